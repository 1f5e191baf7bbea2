//! The cases of the oracle, answered by Servo.

use serde::Deserialize;
use servo_core::partitions::{Mapped, MappingDef, Partitions, Reason, Span};
use servo_core::{PartitionKey, PartitionsDef, Timestamp, sha256_hex};

use crate::support::oracle;

const FOREVER: Timestamp = Timestamp::MAX;

#[derive(Deserialize)]
#[serde(tag = "case", rename_all = "snake_case")]
enum Case {
    Keys(KeysCase),
    Spans(SpansCase),
    Mapping(MappingCase),
}

/// Compares Servo's answers to a case with the oracle's and returns the differences.
pub(crate) fn check(text: &str) -> Vec<String> {
    let case = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"));
    let wrong = match &case {
        Case::Keys(case) => case.check(text),
        Case::Spans(case) => case.check(),
        Case::Mapping(case) => case.check(text),
    };
    let what = match case {
        Case::Keys(KeysCase { partitions, .. }) | Case::Spans(SpansCase { partitions, .. }) => {
            servo_core::to_canonical_string(&partitions)
        }
        Case::Mapping(MappingCase { mapping, downstream, upstream, .. }) => {
            servo_core::to_canonical_string(&(mapping, downstream, upstream))
        }
    };
    wrong.into_iter().map(|wrong| format!("{}: {wrong}", what.as_ref().unwrap())).collect()
}

/// The keys and windows of partitions.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeysCase {
    partitions: PartitionsDef,
    total: u64,
    /// Milliseconds, and how many partitions exist then.
    counts: Vec<(i64, u64)>,
    /// The indexes whose lines the digest is of.
    ranges: Vec<(u64, u64)>,
    /// Days that are not 24 hours long, with their start and end in seconds.
    uneven: Vec<(String, i64, i64)>,
    /// Days that never were.
    skipped: Vec<String>,
    digest: String,
}

impl KeysCase {
    fn check(&self, text: &str) -> Vec<String> {
        let partitions = match valid(&self.partitions) {
            Ok(partitions) => partitions,
            Err(wrong) => return vec![wrong],
        };
        let mut wrong = Vec::new();
        let total = partitions.count(FOREVER);
        if total != u128::from(self.total) {
            wrong.push(format!("has {total} partitions, the oracle {}", self.total));
        }
        for &(millis, expected) in &self.counts {
            let now = Timestamp::from_millis(millis);
            let count = partitions.count(now);
            if count != u128::from(expected) {
                wrong.push(format!("has {count} partitions at {now}, the oracle {expected}"));
            }
        }
        for (key, start, end) in &self.uneven {
            let key = PartitionKey::parse(key).unwrap();
            let window = partitions.window(&key).map(|(start, end)| (seconds(start), seconds(end)));
            if window != Ok((*start, *end)) {
                wrong.push(format!("{key} is {window:?}, for the oracle ({start}, {end})"));
            }
        }
        for key in &self.skipped {
            let found = partitions.index_of(&PartitionKey::parse(key).unwrap(), FOREVER);
            if !matches!(&found, Err(error) if matches!(error.reason, Reason::SkippedDay { .. })) {
                wrong.push(format!("{key} is {found:?}, for the oracle it was skipped"));
            }
        }
        let mut lines = Lines::default();
        for &(first, end) in &self.ranges {
            for key in partitions.page(first.into(), (end - first) as usize, FOREVER) {
                let (start, end) = partitions.window(&key).unwrap();
                lines.add(format_args!("{} {} {}", key.canonical(), seconds(start), seconds(end)));
            }
            for index in [first, end - 1].map(u128::from) {
                let found = partitions.key(index, FOREVER).map(|key| partitions.index_of(&key, FOREVER));
                if found != Some(Ok(index)) {
                    wrong.push(format!("the index of key {index} is {found:?}"));
                }
            }
        }
        wrong.extend(lines.differ(&self.digest, text));
        wrong
    }
}

/// Partitions of one kind and zone with other starts and ends.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SpansCase {
    partitions: PartitionsDef,
    /// Start, end, number of partitions, first and last key.
    spans: Vec<(String, String, u64, String, String)>,
}

impl SpansCase {
    fn check(&self) -> Vec<String> {
        let answers = self.spans.iter().map(|(start, end, total, first, last)| {
            let mut def = self.partitions.clone();
            let span = span_of(&mut def);
            start.clone_into(&mut span.start);
            span.end = Some(end.clone());
            let partitions = valid(&def).map_err(|wrong| format!("{start} to {end}: {wrong}"))?;
            let count = partitions.count(FOREVER);
            let key = |index| partitions.key(index, FOREVER).map(|key| key.canonical().to_owned());
            let found = (count, key(0), key(count - 1));
            let expected = (u128::from(*total), Some(first.clone()), Some(last.clone()));
            (found == expected)
                .then_some(())
                .ok_or_else(|| format!("{start} to {end} is {found:?}, for the oracle {expected:?}"))
        });
        answers.filter_map(Result::err).collect()
    }
}

/// A case of upstream and downstream partitions of a mapping.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MappingCase {
    mapping: MappingDef,
    downstream: PartitionsDef,
    upstream: PartitionsDef,
    /// A time in milliseconds, or once everything exists, and indexes of the asset itself.
    reads: Vec<(Option<i64>, u64, u64)>,
    /// Indexes of the asset depended on.
    read_by: Vec<(u64, u64)>,
    digest: String,
}

impl MappingCase {
    fn check(&self, text: &str) -> Vec<String> {
        let (down, up) = match (valid(&self.downstream), valid(&self.upstream)) {
            (Ok(down), Ok(up)) => (down, up),
            (down, up) => return [down.err(), up.err()].into_iter().flatten().collect(),
        };
        let mapping = match self.mapping.between(Some(&down), Some(&up)) {
            Ok(mapping) => mapping,
            Err(problems) => return vec![format!("refused: {problems}")],
        };
        let mut lines = Lines::default();
        for &(now, first, end) in &self.reads {
            let at = mapping.at(now.map_or(FOREVER, Timestamp::from_millis));
            for index in first..end {
                lines.add(format_args!("{index} reads {}", shown(&at.upstream_of(&[index]))));
            }
        }
        let at = mapping.at(FOREVER);
        for index in self.read_by.iter().flat_map(|&(first, end)| first..end) {
            let mapped = at.downstream(&servo_core::partitions::PartitionSet::one(&[index]));
            lines.add(format_args!("{index} read by {}", shown(&mapped)));
        }
        lines.differ(&self.digest, text).into_iter().collect()
    }
}

/// Ranges of indexes, `-` if there are none, and how many keys are missing.
fn shown(mapped: &Mapped) -> String {
    let ranges: Vec<_> = mapped.set.blocks().iter().map(|block| format!("{:?}", block.ranges()[0])).collect();
    let missing = mapped.missing.len() as u64 + mapped.more_missing;
    format!("{} {missing}", if ranges.is_empty() { "-".to_owned() } else { ranges.join(",") })
}

/// Lines that are to have a digest.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn add(&mut self, line: std::fmt::Arguments<'_>) {
        use std::fmt::Write as _;
        writeln!(self.0, "{line}").unwrap();
    }

    /// Where they are others than those of the oracle.
    fn differ(&self, digest: &str, case: &str) -> Option<String> {
        if sha256_hex(self.0.as_bytes()) == digest {
            return None;
        }
        let mut theirs = Vec::new();
        oracle::ask("partitions_oracle", &["lines"], case, |line| theirs.push(line.to_owned()));
        let ours: Vec<&str> = self.0.lines().collect();
        let at = (0..).find(|&at| ours.get(at).copied() != theirs.get(at).map(String::as_str)).unwrap();
        let (ours, theirs) = (ours.get(at), theirs.get(at));
        Some(format!("line {at} is {ours:?}, of the oracle {theirs:?}"))
    }
}

fn valid(def: &PartitionsDef) -> Result<Partitions, String> {
    def.validate().map_err(|problems| format!("refused: {problems}"))
}

fn span_of(def: &mut PartitionsDef) -> &mut Span {
    match def {
        PartitionsDef::Hourly { span }
        | PartitionsDef::Daily { span }
        | PartitionsDef::Weekly { span, .. }
        | PartitionsDef::Monthly { span, .. }
        | PartitionsDef::Cron { span, .. } => span,
        PartitionsDef::Static { .. } | PartitionsDef::Dynamic { .. } | PartitionsDef::Multi { .. } => {
            panic!("the oracle asks about time only")
        }
    }
}

fn seconds(time: Timestamp) -> i64 {
    assert_eq!(time.as_millis() % 1_000, 0, "{time}");
    time.as_millis() / 1_000
}
