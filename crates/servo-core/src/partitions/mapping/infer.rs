//! Inference of mappings that need not be declared.
//!
//! | asset | depends on | mapping |
//! |---|---|---|
//! | any | no partitions | the one there is |
//! | no partitions | any | all |
//! | the same dimensions | each with the same grid of time, the same keys or the same dynamic name | same |
//!
//! Everything else could be meant in several ways and is not guessed.

use super::super::dimension::Dimension;
use super::super::set::Partitions;
use super::def::MappingDef;

/// Which partitions belong together does not follow from the partitions of two assets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the asset has {downstream}, the asset it depends on has {upstream}; which belong together is not clear from \
     that: say it with mapping={suggestion}"
)]
pub struct Mismatch {
    /// The partitions of the asset.
    pub downstream: String,
    /// The partitions of the asset it depends on.
    pub upstream: String,
    /// The Python expression that declares a valid mapping.
    pub suggestion: String,
}

impl MappingDef {
    /// The only sensible mapping, or a suggestion of what to declare.
    pub fn inferred(
        downstream: Option<&Partitions>,
        upstream: Option<&Partitions>,
    ) -> Result<Self, Mismatch> {
        let (down, up) = match (downstream, upstream) {
            (None, None) => return Ok(Self::Same),
            (Some(_), None) | (None, Some(_)) => return Ok(Self::All),
            (Some(down), Some(up)) => (down, up),
        };
        let names_agree = down.dimensions().eq(up.dimensions());
        let mut pairs = down.dims().iter().zip(up.dims().iter());
        if names_agree && pairs.all(|((_, down), (_, up))| alike(down, up)) {
            return Ok(Self::Same);
        }
        Err(Mismatch {
            downstream: described(down),
            upstream: described(up),
            suggestion: suggested(down, up),
        })
    }
}

/// Whether a value of one dimension can only mean the same value of the other.
fn alike(down: &Dimension, up: &Dimension) -> bool {
    match (down, up) {
        (Dimension::Time(down), Dimension::Time(up)) => down.shift_to(up).is_some(),
        (Dimension::Static(down), Dimension::Static(up)) => {
            down.count() == up.count() && down.keys().iter().all(|key| up.find(key).is_some())
        }
        (Dimension::Dynamic(down), Dimension::Dynamic(up)) => down == up,
        (Dimension::Time(_) | Dimension::Static(_) | Dimension::Dynamic(_), _) => false,
    }
}

/// The partitions of an asset for a message: `daily in UTC partitions`.
fn described(partitions: &Partitions) -> String {
    if let [(_, only)] = &partitions.dims()[..] {
        return format!("{} partitions", kind(only));
    }
    let dims = partitions.dims().iter().map(|(name, dimension)| format!("{name} ({})", kind(dimension)));
    format!("partitions by {}", dims.collect::<Vec<_>>().join(" and "))
}

/// The kind of a dimension for a message.
pub(super) fn kind(dimension: &Dimension) -> String {
    match dimension {
        Dimension::Time(windows) => windows.rhythm(),
        Dimension::Static(keys) => format!("{} static", keys.count()),
        Dimension::Dynamic(name) => format!("dynamic {name:?}"),
    }
}

fn suggested(down: &Partitions, up: &Partitions) -> String {
    if let ([(_, down)], [(_, up)]) = (&down.dims()[..], &up.dims()[..]) {
        return match (down, up) {
            (Dimension::Time(_), Dimension::Time(_)) => {
                "servo.time_grain() for those that overlap in time, or servo.all_partitions()".to_owned()
            }
            (Dimension::Static(_) | Dimension::Dynamic(_), Dimension::Static(_) | Dimension::Dynamic(_)) => {
                "servo.same() for those with the same key, servo.static_map({...}), or servo.all_partitions()"
                    .to_owned()
            }
            (Dimension::Time(_) | Dimension::Static(_) | Dimension::Dynamic(_), _) => {
                "servo.all_partitions(), or servo.last() for the newest".to_owned()
            }
        };
    }
    let dims = up.dims().iter().map(|(name, up)| format!("\"{name}\": {}", along(down.dims(), name, up)));
    format!("servo.per_dimension({{{}}})", dims.collect::<Vec<_>>().join(", "))
}

/// The suggestion for one dimension: the dimension of the same name, one of the same shape, or all.
fn along(down: &[(String, Dimension)], name: &str, up: &Dimension) -> String {
    let found = match down.iter().find(|(existing, _)| existing == name) {
        Some(found) => Some(found),
        None => down.iter().find(|(_, down)| alike(down, up)),
    };
    let found = found.or_else(|| down.iter().find(|(_, down)| down.windows().and(up.windows()).is_some()));
    let mapping = match (found, up) {
        (Some((_, down)), up) if alike(down, up) => "servo.same()",
        (Some((_, Dimension::Time(_))), Dimension::Time(_)) => "servo.time_grain()",
        (Some(_) | None, _) => "servo.all_partitions()",
    };
    match found {
        Some((from, _)) if from != name => format!("servo.dimension(\"{from}\", {mapping})"),
        Some(_) | None => mapping.to_owned(),
    }
}
