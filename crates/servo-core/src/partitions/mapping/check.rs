//! Whether a mapping makes sense between the partitions of two assets.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::dimension::Dimension;
use super::super::error::{Collector, Problems};
use super::super::set::Partitions;
use super::Mapping;
use super::axis::Axis;
use super::check_axis::{self, Source};
use super::def::{DimMapping, MappingDef};
use super::independent::Independent;
use super::product::Product;

impl MappingDef {
    /// The mapping between the partitions of an asset and those of an asset it depends on, which may be the asset
    /// itself, or every problem with it.
    pub fn between(
        &self,
        downstream: Option<&Partitions>,
        upstream: Option<&Partitions>,
    ) -> Result<Mapping, Problems> {
        let dims =
            |side: Option<&Partitions>| side.map_or_else(|| Arc::from([]), |side| Arc::clone(side.dims()));
        let (down, up) = (dims(downstream), dims(upstream));
        let mut problems = Collector::of("mapping");
        let products = match (self, upstream) {
            (Self::Specific { keys }, Some(partitions)) => specific(keys, partitions, &mut problems),
            _ => self.axes(&down, &up, &mut problems).map(|axes| vec![Product::new(axes)]),
        };
        problems.finish(products).map(|products| Mapping { down, up, products })
    }

    fn axes(
        &self,
        down: &[(String, Dimension)],
        up: &[(String, Dimension)],
        problems: &mut Collector,
    ) -> Option<Vec<Axis>> {
        match (self, down, up) {
            (Self::All, _, up) => Some(up.iter().map(|_| Axis::Independent(Independent::All)).collect()),
            (Self::Last, _, up) => Some(up.iter().map(|_| Axis::Independent(Independent::Last)).collect()),
            (Self::Same, [], []) => Some(Vec::new()),
            (_, _, []) => {
                problems.add("kind", "the asset depended on has no partitions; leave the mapping out");
                None
            }
            (Self::Dims { dims }, down, up) => each_dimension(dims, down, up, problems),
            (_, [], _) => {
                problems.add(
                    "kind",
                    "the asset itself has no partitions that others could follow from; write \
                     servo.all_partitions() or servo.last()",
                );
                None
            }
            (Self::Same, down, up) => same(down, up, problems),
            (_, [(_, only)], [(name, dimension)]) => {
                let from = Source { position: 0, dimension: only };
                check_axis::axis(self, Some(from), name, dimension, problems).map(|axis| vec![axis])
            }
            (_, _, up) => {
                let time = up.iter().find(|(_, dimension)| dimension.windows().is_some());
                let name = time.or(up.first()).map_or("date", |(name, _)| name.as_str());
                problems.add(
                    "kind",
                    format!(
                        "there are several dimensions; say which, as in servo.per_dimension({{\"{name}\": {}}})",
                        self.in_python()
                    ),
                );
                None
            }
        }
    }

    /// The Python expression for this mapping.
    fn in_python(&self) -> String {
        match self {
            Self::Same => "servo.same()".to_owned(),
            Self::All => "servo.all_partitions()".to_owned(),
            Self::Last => "servo.last()".to_owned(),
            Self::Window { from, to } => format!("servo.window({from}, {to})"),
            Self::Time => "servo.time_grain()".to_owned(),
            Self::Specific { .. } | Self::Static { .. } | Self::Dims { .. } => "...".to_owned(),
        }
    }
}

/// The same key: the same dimensions, and each the same value.
fn same(
    down: &[(String, Dimension)],
    up: &[(String, Dimension)],
    problems: &mut Collector,
) -> Option<Vec<Axis>> {
    let one_time_each = matches!((down, up), ([(_, Dimension::Time(down))], [(_, Dimension::Time(up))])
        if down.shift_to(up).is_none());
    // Of one time each, the grains are the problem and not what the dimensions are called.
    if !one_time_each && !names(down).eq(names(up)) {
        problems.add(
            "kind",
            format!(
                "no keys are the same: the asset has the dimensions {}, the asset depended on {}; say which follow \
                 from which with servo.per_dimension({{...}})",
                list(down),
                list(up)
            ),
        );
        return None;
    }
    let pairs = down.iter().zip(up).enumerate();
    let axes: Vec<Option<Axis>> = pairs
        .map(|(position, ((_, dimension), (name, up)))| {
            let from = Source { position, dimension };
            check_axis::axis(&MappingDef::Same, Some(from), name, up, problems)
        })
        .collect();
    axes.into_iter().collect()
}

/// Every dimension of the asset depended on by itself.
fn each_dimension(
    dims: &BTreeMap<String, DimMapping>,
    down: &[(String, Dimension)],
    up: &[(String, Dimension)],
    problems: &mut Collector,
) -> Option<Vec<Axis>> {
    for name in dims.keys().filter(|name| !names(up).any(|existing| existing == name.as_str())) {
        let message = format!("is no dimension of the asset depended on, which has {}", list(up));
        problems.add(&format!("dims.{name}"), message);
    }
    let default = DimMapping::default();
    let axes: Vec<Option<Axis>> = up
        .iter()
        .map(|(name, dimension)| {
            let written = dims.get(name);
            problems.within(&format!("dims.{name}"), |problems| {
                one_dimension(
                    written.unwrap_or(&default),
                    written.is_some(),
                    down,
                    (name, dimension),
                    problems,
                )
            })
        })
        .collect();
    axes.into_iter().collect()
}

fn one_dimension(
    mapping: &DimMapping,
    written: bool,
    down: &[(String, Dimension)],
    (name, dimension): (&str, &Dimension),
    problems: &mut Collector,
) -> Option<Axis> {
    let wanted = mapping.from.as_deref().unwrap_or(name);
    let source = down.iter().position(|(existing, _)| existing == wanted);
    if source.is_none() && !written {
        return Some(Axis::Independent(Independent::All));
    }
    if source.is_none() && mapping.from.is_some() {
        let has = if down.is_empty() { "no partitions".to_owned() } else { list(down) };
        problems.add("from", format!("{wanted:?} is no dimension of the asset itself, which has {has}"));
        return None;
    }
    let from = source.map(|position| Source { position, dimension: &down[position].1 });
    let inner = mapping.mapping.as_deref().unwrap_or(&MappingDef::Same);
    problems.within("mapping", |problems| check_axis::axis(inner, from, name, dimension, problems))
}

/// Always the same keys: one product for each, free along the dimensions it leaves out.
fn specific(keys: &[String], up: &Partitions, problems: &mut Collector) -> Option<Vec<Product>> {
    if keys.is_empty() {
        problems.add("keys", "there are none; give at least one");
    }
    let products: Vec<Option<Product>> = keys
        .iter()
        .enumerate()
        .map(|(position, text)| {
            let key = up.parse_key(text);
            let key =
                key.map_err(|error| problems.add(&format!("keys[{position}]"), error.to_string())).ok()?;
            let axes = up.dims().iter().map(|(name, dimension)| match key.values().get(name) {
                Some(value) => {
                    check_axis::pick(name, dimension, value).ok().map(|pick| Independent::Picks(vec![pick]))
                }
                None => Some(Independent::All),
            });
            Some(Product::new(axes.map(|free| free.map(Axis::Independent)).collect::<Option<Vec<_>>>()?))
        })
        .collect();
    products.into_iter().collect()
}

fn names(dims: &[(String, Dimension)]) -> impl Iterator<Item = &str> {
    dims.iter().map(|(name, _)| name.as_str())
}

fn list(dims: &[(String, Dimension)]) -> String {
    names(dims).collect::<Vec<_>>().join(", ")
}
