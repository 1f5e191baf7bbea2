//! Whether a mapping makes sense between one dimension of an asset and one of an asset it depends on.

use std::collections::BTreeMap;

use super::super::dimension::Dimension;
use super::super::error::{Collector, Reason};
use super::super::text;
use super::super::time::Windows;
use super::axis::{Axis, How};
use super::def::MappingDef;
use super::independent::{Independent, Pick};
use super::infer::kind;
use super::keyed::Keyed;
use super::overlap::Overlap;
use super::shift::Shift;
use crate::PartitionValue;

/// A dimension of the asset itself.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) position: usize,
    pub(super) dimension: &'a Dimension,
}

/// How the dimension `name` of the asset depended on follows from a dimension of the asset itself.
pub(super) fn axis(
    mapping: &MappingDef,
    from: Option<Source<'_>>,
    name: &str,
    up: &Dimension,
    problems: &mut Collector,
) -> Option<Axis> {
    let follows = |problems: &mut Collector, how: &dyn Fn(&Dimension, &mut Collector) -> Option<How>| {
        let Some(Source { position, dimension }) = from else {
            problems.add("kind", format!("the asset itself has no dimension {name}; say which one is meant"));
            return None;
        };
        how(dimension, problems).map(|how| Axis::From { source: position, how })
    };
    match mapping {
        MappingDef::All => Some(Axis::Independent(Independent::All)),
        MappingDef::Last => Some(Axis::Independent(Independent::Last)),
        MappingDef::Specific { keys } => picks(keys, name, up, problems).map(Axis::Independent),
        MappingDef::Same => follows(problems, &|down, problems| same(name, down, up, problems)),
        MappingDef::Window { from, to } => {
            if from > to {
                problems.add("from", format!("{from} is after to, {to}; swap them"));
                return None;
            }
            follows(problems, &|down, problems| {
                let by = counted_alike(name, down, up, problems)?;
                Some(How::Shift(Shift::window(by, *from, *to)))
            })
        }
        MappingDef::Static { map } => follows(problems, &|down, problems| table(map, down, up, problems)),
        MappingDef::Time => follows(problems, &|down, problems| match (down.windows(), up.windows()) {
            (Some(down), Some(up)) => Some(How::Overlap(Box::new(Overlap::new(down, up)))),
            (Some(_) | None, _) => {
                let message =
                    format!("both need windows of time: {} and {} do not overlap", kind(down), kind(up));
                problems.add("kind", message);
                None
            }
        }),
        MappingDef::Dims { .. } => {
            problems.add("kind", "a dimension has no dimensions; move them one level up");
            None
        }
    }
}

/// The same value: by number where both count the same, else by key.
fn same(name: &str, down: &Dimension, up: &Dimension, problems: &mut Collector) -> Option<How> {
    match (down, up) {
        (Dimension::Time(down), Dimension::Time(up)) => {
            let by = shift(name, down, up, problems)?;
            return Some(How::Shift(Shift::same(by)));
        }
        (Dimension::Static(down), Dimension::Static(up)) if down.keys() == up.keys() => {
            return Some(How::Shift(Shift::same(0)));
        }
        (Dimension::Dynamic(down), Dimension::Dynamic(up)) if down == up => {
            return Some(How::Shift(Shift::same(0)));
        }
        (Dimension::Static(down), Dimension::Static(up)) => {
            if !down.keys().iter().any(|key| up.find(key).is_some()) {
                problems.add("kind", format!("no key of {name} is on both sides"));
                return None;
            }
        }
        (Dimension::Static(_) | Dimension::Dynamic(_), Dimension::Static(_) | Dimension::Dynamic(_)) => {}
        (Dimension::Time(_) | Dimension::Static(_) | Dimension::Dynamic(_), _) => {
            let message = format!(
                "{name} cannot have the same keys: {} and {}; write servo.all_partitions() or servo.last()",
                kind(down),
                kind(up)
            );
            problems.add("kind", message);
            return None;
        }
    }
    Some(How::Keyed(Keyed::Same))
}

/// The offset between indexes of the same value, where both sides have the same values in the same order.
fn counted_alike(name: &str, down: &Dimension, up: &Dimension, problems: &mut Collector) -> Option<i64> {
    match (down, up) {
        (Dimension::Time(down), Dimension::Time(up)) => shift(name, down, up, problems),
        (Dimension::Static(down), Dimension::Static(up)) if down.keys() == up.keys() => Some(0),
        (Dimension::Dynamic(down), Dimension::Dynamic(up)) if down == up => Some(0),
        (Dimension::Time(_) | Dimension::Static(_) | Dimension::Dynamic(_), _) => {
            let message = format!(
                "a window of {name} needs the same keys in the same order on both sides: {} and {}",
                kind(down),
                kind(up)
            );
            problems.add("kind", message);
            None
        }
    }
}

fn shift(name: &str, down: &Windows, up: &Windows, problems: &mut Collector) -> Option<i64> {
    let by = down.shift_to(up);
    if by.is_none() {
        let (down, up) = (down.rhythm(), up.rhythm());
        let differ = if down == up {
            format!("{name} is {down} on both sides, but starts at other minutes")
        } else {
            format!("{name} is {down}, and {up} in the asset depended on")
        };
        problems.add("kind", format!("{differ}; write servo.time_grain() for those that overlap in time"));
    }
    by
}

/// By key, with a table of keys.
fn table(
    map: &BTreeMap<String, Vec<String>>,
    down: &Dimension,
    up: &Dimension,
    problems: &mut Collector,
) -> Option<How> {
    if let Some(side) = [down, up].into_iter().find(|side| side.windows().is_some()) {
        problems.add("kind", format!("keys are of static and dynamic partitions; these are {}", kind(side)));
        return None;
    }
    for (key, read) in map {
        if let Err(reason) = listed("partition", down, key) {
            problems.add(&format!("map.{key}"), format!("of the asset itself, {reason}"));
        }
        for (position, read) in read.iter().enumerate() {
            if let Err(reason) = listed("partition", up, read) {
                let message = format!("of the asset depended on, {reason}");
                problems.add(&format!("map.{key}[{position}]"), message);
            }
        }
    }
    Some(How::Keyed(Keyed::table(map)))
}

/// Refuses a key that a static dimension does not have.
fn listed(name: &str, dimension: &Dimension, key: &str) -> Result<(), Reason> {
    match dimension {
        Dimension::Static(keys) if keys.find(key).is_none() => Err(text::unlisted(name, keys, key)),
        Dimension::Static(_) | Dimension::Dynamic(_) | Dimension::Time(_) => Ok(()),
    }
}

fn picks(keys: &[String], name: &str, up: &Dimension, problems: &mut Collector) -> Option<Independent> {
    if keys.is_empty() {
        problems.add("keys", "there are none; give at least one");
    }
    let mut picks = Vec::with_capacity(keys.len());
    for (position, key) in keys.iter().enumerate() {
        match text::read(name, up, key).and_then(|value| pick(name, up, &value)) {
            Ok(pick) => picks.push(pick),
            Err(reason) => {
                problems.add(&format!("keys[{position}]"), format!("no partition {key}: {reason}"))
            }
        }
    }
    Some(Independent::Picks(picks))
}

/// A value that can exist: by its index, if that does not change.
pub(super) fn pick(name: &str, dimension: &Dimension, value: &PartitionValue) -> Result<Pick, Reason> {
    match (dimension, value) {
        (Dimension::Time(windows), value) => windows.position(name, value).map(Pick::Index),
        (Dimension::Static(keys), value) => keys.index(name, value).map(Pick::Index),
        (Dimension::Dynamic(_), PartitionValue::Str(key)) => Ok(Pick::Key(key.clone())),
        (Dimension::Dynamic(_), _) => Err(Reason::Type { dim: name.to_owned(), expected: "a string" }),
    }
}
