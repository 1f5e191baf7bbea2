//! Partition definitions as users declare them, and their validation.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::calendar::Grain;
use super::dimension::Dimension;
use super::error::{Collector, Problems};
use super::listed::Static;
use super::set::Partitions;
use super::span::Span;
use super::time::Windows;
use crate::{Cron, PartitionKey, PartitionValue};

/// The partitions of an asset as declared. Nothing is checked before [`PartitionsDef::validate`].
///
/// ```
/// use servo_core::{PartitionsDef, partitions::Span, to_canonical_string};
/// let def = PartitionsDef::Daily { span: Span::new("2013-01-01").in_zone("Europe/Amsterdam") };
/// assert_eq!(
///     to_canonical_string(&def)?,
///     r#"{"kind":"daily","span":{"end":null,"end_offset":0,"start":"2013-01-01","timezone":"Europe/Amsterdam"}}"#
/// );
/// # Ok::<(), servo_core::canonical::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum PartitionsDef {
    /// Every hour; dimension `hour`.
    Hourly {
        /// From when to when.
        span: Span,
    },
    /// Every local day; dimension `date`.
    Daily {
        /// From when to when.
        span: Span,
    },
    /// Seven local days from a day of the week; dimension `week`.
    Weekly {
        /// The day that weeks start on, 1 for Monday to 7 for Sunday.
        weekday: u8,
        /// From when to when.
        span: Span,
    },
    /// From a day of the month to the same day of the next; dimension `month`.
    Monthly {
        /// The day that months start on, 1 to 28.
        day: u8,
        /// From when to when.
        span: Span,
    },
    /// From each tick of a cron expression to the next; dimension `tick`.
    Cron {
        /// The expression, as [`Cron::parse`] takes it.
        cron: String,
        /// From when to when.
        span: Span,
    },
    /// Keys that are part of the definition, in this order; dimension `partition`.
    Static {
        /// The keys.
        keys: Vec<String>,
    },
    /// Keys that are added and removed at run time; dimension `partition`.
    Dynamic {
        /// The name under which a [`PartitionContext`](super::PartitionContext) holds the keys.
        name: String,
    },
    /// Every combination of the values of any number of dimensions.
    Multi {
        /// The dimensions by name, none of them `multi`.
        dims: BTreeMap<String, PartitionsDef>,
    },
}

impl PartitionsDef {
    /// The names of the dynamic partitions that it is made of.
    pub fn dynamic_names(&self) -> impl Iterator<Item = &str> {
        let dims: Vec<&Self> =
            if let Self::Multi { dims } = self { dims.values().collect() } else { vec![self] };
        dims.into_iter().filter_map(|def| {
            let Self::Dynamic { name } = def else { return None };
            Some(name.as_str())
        })
    }

    /// The partitions, or every problem of the definition.
    pub fn validate(&self) -> Result<Partitions, Problems> {
        let mut problems = Collector::of("partitions");
        let dims = self.dimensions(&mut problems);
        problems.finish(dims).map(|dims| Partitions::new(self.clone(), dims))
    }

    fn dimensions(&self, problems: &mut Collector) -> Option<Vec<(String, Dimension)>> {
        let Self::Multi { dims } = self else {
            let dimension = self.dimension(problems)?;
            return Some(vec![(self.default_name().to_owned(), dimension)]);
        };
        if dims.is_empty() {
            problems.add("dims", "there are none; give at least one");
        }
        // Every dimension is looked at, also after a problem.
        let checked: Vec<_> = dims
            .iter()
            .map(|(name, def)| {
                let path = format!("dims.{name}");
                if let Err(error) = PartitionKey::single(name, PartitionValue::Null) {
                    problems.add(&path, format!("a dimension is named [a-z][a-z0-9_]*: {}", error.problem));
                }
                Some((name.clone(), problems.within(&path, |problems| def.dimension(problems))?))
            })
            .collect();
        checked.into_iter().collect()
    }

    fn dimension(&self, problems: &mut Collector) -> Option<Dimension> {
        match self {
            Self::Hourly { span } => in_span(problems, |problems| Windows::hourly(span, problems)),
            Self::Daily { span } => {
                in_span(problems, |problems| Windows::calendar(Grain::Day, span, problems))
            }
            Self::Weekly { weekday, span } => {
                if !(1..=7).contains(weekday) {
                    problems.add("weekday", format!("{weekday} is not between 1, Monday, and 7, Sunday"));
                }
                let grain = Grain::Week(i64::from(*weekday) - 1);
                in_span(problems, |problems| Windows::calendar(grain, span, problems))
            }
            Self::Monthly { day, span } => {
                if !(1..=28).contains(day) {
                    problems
                        .add("day", format!("{day} is not between 1 and 28, the days that every month has"));
                }
                let grain = Grain::Month(u32::from(*day).clamp(1, 28));
                in_span(problems, |problems| Windows::calendar(grain, span, problems))
            }
            Self::Cron { cron, span } => {
                let cron = Cron::parse(cron).map_err(|error| problems.add("cron", error.to_string())).ok();
                in_span(problems, |problems| Windows::cron(cron, span, problems))
            }
            Self::Static { keys } => Static::new(keys, problems).map(Dimension::Static),
            Self::Dynamic { name } => {
                if name.is_empty() {
                    problems.add("name", "is empty");
                }
                Some(Dimension::Dynamic(name.clone()))
            }
            Self::Multi { .. } => {
                problems.add("kind", "a dimension is not multi; move its dimensions one level up");
                None
            }
        }
    }

    fn default_name(&self) -> &'static str {
        match self {
            Self::Hourly { .. } => "hour",
            Self::Daily { .. } => "date",
            Self::Weekly { .. } => "week",
            Self::Monthly { .. } => "month",
            Self::Cron { .. } => "tick",
            Self::Static { .. } | Self::Dynamic { .. } | Self::Multi { .. } => "partition",
        }
    }
}

fn in_span(
    problems: &mut Collector,
    check: impl FnOnce(&mut Collector) -> Option<Windows>,
) -> Option<Dimension> {
    problems.within("span", check).map(Dimension::Time)
}
