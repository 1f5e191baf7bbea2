//! Definitions in words that fit a cell of a table.

use servo_core::PartitionsDef;
use servo_core::partitions::{MappingDef, Span};

/// `daily from 2013-01-01 to 2013-12-31`.
pub(crate) fn partitions(def: &PartitionsDef) -> String {
    match def {
        PartitionsDef::Hourly { span } => format!("hourly {}", self::span(span)),
        PartitionsDef::Daily { span } => format!("daily {}", self::span(span)),
        PartitionsDef::Weekly { span, .. } => format!("weekly {}", self::span(span)),
        PartitionsDef::Monthly { span, .. } => format!("monthly {}", self::span(span)),
        PartitionsDef::Cron { cron, span } => format!("cron {cron} {}", self::span(span)),
        PartitionsDef::Static { keys } => format!("static, {} keys", keys.len()),
        PartitionsDef::Dynamic { name } => format!("dynamic {name}"),
        PartitionsDef::Multi { dims } => {
            let dims: Vec<String> = dims.iter().map(|(name, def)| format!("{name}: {}", kind(def))).collect();
            dims.join(" × ")
        }
    }
}

/// `daily`.
pub(crate) fn kind(def: &PartitionsDef) -> &'static str {
    match def {
        PartitionsDef::Hourly { .. } => "hourly",
        PartitionsDef::Daily { .. } => "daily",
        PartitionsDef::Weekly { .. } => "weekly",
        PartitionsDef::Monthly { .. } => "monthly",
        PartitionsDef::Cron { .. } => "cron",
        PartitionsDef::Static { .. } => "static",
        PartitionsDef::Dynamic { .. } => "dynamic",
        PartitionsDef::Multi { .. } => "multi",
    }
}

fn span(span: &Span) -> String {
    let end = span.end.as_ref().map(|end| format!(" to {end}")).unwrap_or_default();
    let zone = if span.timezone == "UTC" { String::new() } else { format!(", {}", span.timezone) };
    format!("from {}{end}{zone}", span.start)
}

/// `window(-6, 0)`: as the SDK says it.
pub(crate) fn mapping(def: &MappingDef) -> String {
    match def {
        MappingDef::Same => "same".to_owned(),
        MappingDef::All => "all".to_owned(),
        MappingDef::Last => "last".to_owned(),
        MappingDef::Window { from, to } => format!("window({from}, {to})"),
        MappingDef::Specific { keys } => format!("specific({})", keys.join(", ")),
        MappingDef::Static { map } => format!("static map of {} keys", map.len()),
        MappingDef::Time => "overlap in time".to_owned(),
        MappingDef::Dims { dims } => {
            let dims = dims.iter().map(|(name, dim)| {
                let from = dim.from.as_ref().filter(|from| *from != name);
                let from = from.map(|from| format!("{from} → ")).unwrap_or_default();
                let inner = dim.mapping.as_deref().map_or_else(|| "same".to_owned(), mapping);
                format!("{name}: {from}{inner}")
            });
            dims.collect::<Vec<_>>().join(", ")
        }
    }
}
