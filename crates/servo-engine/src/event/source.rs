//! Sources of runs: what made somebody or something ask for one.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use servo_core::{AssetKey, RunId, Timestamp};

/// Origin of a run: a person, a program, a schedule, a sensor and so on.
///
/// On the wire it is an object with a `type`. A source that this version does not know, or whose fields it cannot read,
/// is kept as it was written: it never spoils a batch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum RunSource {
    /// A person, with a command.
    #[default]
    Manual,
    /// A program, over HTTP.
    Api,
    /// Another try of a run that had ended.
    Retry {
        /// The run before.
        of: RunId,
        /// Only what had not succeeded.
        from_failure: bool,
    },
    /// A tick of a schedule.
    Schedule {
        /// The schedule.
        id: Arc<str>,
        /// When the tick was due.
        tick: Timestamp,
    },
    /// An evaluation of a sensor.
    Sensor {
        /// The sensor.
        id: Arc<str>,
        /// The evaluation.
        evaluation: Arc<str>,
    },
    /// A chunk of a backfill.
    Backfill {
        /// The backfill.
        id: Arc<str>,
        /// The chunk.
        chunk: Arc<str>,
    },
    /// An evaluation of the condition of an asset.
    Condition {
        /// The asset.
        asset: AssetKey,
        /// The evaluation.
        evaluation: Arc<str>,
    },
    /// A source that this version does not know.
    Unknown(UnknownSource),
}

/// A source that this version does not know, as it was written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnknownSource {
    kind: Arc<str>,
    json: Arc<str>,
}

impl RunSource {
    /// The kinds that this version knows, as they are written.
    pub const KINDS: [&'static str; 7] =
        ["manual", "api", "retry", "schedule", "sensor", "backfill", "condition"];

    /// The `type` on the wire.
    pub fn kind(&self) -> &str {
        match self {
            RunSource::Manual => "manual",
            RunSource::Api => "api",
            RunSource::Retry { .. } => "retry",
            RunSource::Schedule { .. } => "schedule",
            RunSource::Sensor { .. } => "sensor",
            RunSource::Backfill { .. } => "backfill",
            RunSource::Condition { .. } => "condition",
            RunSource::Unknown(unknown) => &unknown.kind,
        }
    }
}

/// The sources that this version can write.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Known {
    Manual,
    Api,
    Retry { of: RunId, from_failure: bool },
    Schedule { id: Arc<str>, tick: Timestamp },
    Sensor { id: Arc<str>, evaluation: Arc<str> },
    Backfill { id: Arc<str>, chunk: Arc<str> },
    Condition { asset: AssetKey, evaluation: Arc<str> },
}

impl Serialize for RunSource {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let known = match self.clone() {
            RunSource::Manual => Known::Manual,
            RunSource::Api => Known::Api,
            RunSource::Retry { of, from_failure } => Known::Retry { of, from_failure },
            RunSource::Schedule { id, tick } => Known::Schedule { id, tick },
            RunSource::Sensor { id, evaluation } => Known::Sensor { id, evaluation },
            RunSource::Backfill { id, chunk } => Known::Backfill { id, chunk },
            RunSource::Condition { asset, evaluation } => Known::Condition { asset, evaluation },
            RunSource::Unknown(unknown) => {
                let json = RawValue::from_string(unknown.json.to_string());
                return json.map_err(serde::ser::Error::custom)?.serialize(serializer);
            }
        };
        known.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RunSource {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Kind {
            r#type: Arc<str>,
        }
        let json = Box::<RawValue>::deserialize(deserializer)?;
        Ok(match serde_json::from_str(json.get()) {
            Ok(Known::Manual) => RunSource::Manual,
            Ok(Known::Api) => RunSource::Api,
            Ok(Known::Retry { of, from_failure }) => RunSource::Retry { of, from_failure },
            Ok(Known::Schedule { id, tick }) => RunSource::Schedule { id, tick },
            Ok(Known::Sensor { id, evaluation }) => RunSource::Sensor { id, evaluation },
            Ok(Known::Backfill { id, chunk }) => RunSource::Backfill { id, chunk },
            Ok(Known::Condition { asset, evaluation }) => RunSource::Condition { asset, evaluation },
            Err(_) => {
                let kind = serde_json::from_str(json.get()).map(|kind: Kind| kind.r#type);
                let kind = kind.unwrap_or_else(|_| "unknown".into());
                RunSource::Unknown(UnknownSource { kind, json: json.get().into() })
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> RunSource {
        serde_json::from_str(text).expect("every value is a source")
    }

    #[test]
    fn sources_are_read_as_they_were_written() {
        let all = [
            RunSource::Manual,
            RunSource::Api,
            RunSource::Retry { of: RunId::from_u128(7), from_failure: true },
            RunSource::Schedule { id: "nightly".into(), tick: Timestamp::from_millis(1) },
            RunSource::Sensor { id: "files".into(), evaluation: "e1".into() },
            RunSource::Backfill { id: "b".into(), chunk: "c".into() },
            RunSource::Condition { asset: AssetKey::parse("raw.a").unwrap(), evaluation: "e".into() },
        ];
        let kinds: Vec<&str> = all.iter().map(RunSource::kind).collect();
        assert_eq!(kinds, RunSource::KINDS);
        for source in &all {
            assert_eq!(read(&serde_json::to_string(source).unwrap()), *source);
        }
    }

    #[test]
    fn a_source_of_a_newer_version_is_kept_as_it_was_written() {
        for (text, kind) in [
            (r#"{"type":"webhook", "url":"https://x", "n":1.50}"#, "webhook"),
            (r#"{"type":"schedule","cron":"* * * * *"}"#, "schedule"),
            (r#"{"kind":"odd"}"#, "unknown"),
            ("[1,2]", "unknown"),
            ("null", "unknown"),
        ] {
            let source = read(text);
            assert_eq!((source.kind(), serde_json::to_string(&source).unwrap().as_str()), (kind, text));
        }
    }
}
