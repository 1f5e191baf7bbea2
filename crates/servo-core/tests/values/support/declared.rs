//! Partitions and mappings in few words.

use servo_core::PartitionsDef;
use servo_core::partitions::{DimMapping, MappingDef, Partitions, Span};

pub(crate) fn valid(def: &PartitionsDef) -> Partitions {
    def.validate().unwrap_or_else(|problems| panic!("{problems}"))
}

pub(crate) fn utc(start: &str, end: &str) -> Span {
    Span::new(start).until(end)
}

pub(crate) fn daily(span: Span) -> PartitionsDef {
    PartitionsDef::Daily { span }
}

pub(crate) fn hourly(span: Span) -> PartitionsDef {
    PartitionsDef::Hourly { span }
}

pub(crate) fn weekly(span: Span) -> PartitionsDef {
    PartitionsDef::Weekly { weekday: 1, span }
}

pub(crate) fn monthly(span: Span) -> PartitionsDef {
    PartitionsDef::Monthly { day: 1, span }
}

pub(crate) fn keys(keys: &[&str]) -> PartitionsDef {
    PartitionsDef::Static { keys: keys.iter().map(|key| (*key).to_owned()).collect() }
}

pub(crate) fn dynamic(name: &str) -> PartitionsDef {
    PartitionsDef::Dynamic { name: name.to_owned() }
}

pub(crate) fn multi(dims: &[(&str, PartitionsDef)]) -> PartitionsDef {
    PartitionsDef::Multi { dims: dims.iter().map(|(name, def)| ((*name).to_owned(), def.clone())).collect() }
}

pub(crate) fn window(from: i64, to: i64) -> MappingDef {
    MappingDef::Window { from, to }
}

pub(crate) fn dims(dims: &[(&str, Option<&str>, Option<MappingDef>)]) -> MappingDef {
    let dims = dims.iter().map(|(name, from, mapping)| {
        let from = from.map(str::to_owned);
        ((*name).to_owned(), DimMapping { from, mapping: mapping.clone().map(Box::new) })
    });
    MappingDef::Dims { dims: dims.collect() }
}
