//! Why a condition holds or not, part by part.

use serde::{Deserialize, Serialize};
use servo_core::partitions::PartitionSet;
use servo_core::{AssetKey, PartitionKey, Timestamp};

use super::compiled::Node;
use super::evaluate::{Evaluator, HeldBack, Subject, Truth, time};
use crate::definitions::Condition;
use crate::state::State;

/// The most partitions that a trace counts over.
const MOST_TRACED: usize = 1_000;

/// A part of a condition, with how it was for the partitions that were looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceNode {
    /// The part, as people write it.
    pub label: String,
    /// For how many partitions it is true.
    pub holds: u64,
    /// Of how many.
    pub of: u64,
    /// Since when the newest of them is as it is; none if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Its parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<TraceNode>,
}

/// The state of the condition of an asset at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The asset.
    pub asset: AssetKey,
    /// The condition in a line.
    pub condition: String,
    /// How many partitions were looked at: the newest.
    pub partitions: u64,
    /// The tree.
    pub trace: TraceNode,
    /// The partitions, if there are few or one was asked for, with what holds each back.
    pub details: Vec<PartitionExplanation>,
}

/// One partition of an explanation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionExplanation {
    /// The partition; none if the asset has none.
    pub partition: Option<PartitionKey>,
    /// Whether the condition holds.
    pub holds: bool,
    /// Why it is not requested now, in a sentence; none if it is about to be.
    pub held_back: Option<String>,
    /// When it was last requested by the condition.
    pub requested_at: Option<Timestamp>,
}

/// Explains the condition of a deployed asset, for one partition or for its newest ones; none if the asset has no
/// condition, or no such partition.
pub fn explain(
    state: &State,
    asset: &AssetKey,
    partition: Option<&PartitionKey>,
    now: Timestamp,
    most: usize,
) -> Option<Explanation> {
    let definitions = state.checked_definitions()?;
    let position = definitions.position(asset)?;
    let compiled = definitions.conditions().get(position)?;
    let evaluator = Evaluator::new(state, &definitions, now);
    let known = definitions.asset(position);
    let subjects: Vec<Subject> = match (partition, &known.partitions) {
        (Some(_), _) => vec![evaluator.subject_of(position, partition)?],
        (None, None) => vec![evaluator.subject(position, Vec::new())?],
        (None, Some(partitions)) => {
            let set = newest(&partitions.all(evaluator.at()), most.min(MOST_TRACED));
            set.into_iter().filter_map(|digits| evaluator.subject(position, digits)).collect()
        }
    };
    let details = subjects.iter().map(|subject| {
        let truth = evaluator.evaluate(&compiled.root, subject);
        let request = state.condition_request(asset, subject.key.as_ref());
        PartitionExplanation {
            partition: subject.key.clone(),
            holds: truth.holds,
            held_back: evaluator.held_back(truth, subject).map(|why| sentence(why, truth)),
            requested_at: request.map(|request| request.at),
        }
    });
    Some(Explanation {
        asset: asset.clone(),
        condition: compiled.condition.text(),
        partitions: subjects.len() as u64,
        details: details.collect(),
        trace: traced(&evaluator, &compiled.condition, &compiled.root, &subjects),
    })
}

/// The last so many partitions of a set, in order.
fn newest(set: &PartitionSet, most: usize) -> Vec<Vec<u64>> {
    let len = usize::try_from(set.len()).unwrap_or(usize::MAX);
    if len <= most {
        return set.iter().collect();
    }
    let last: Vec<Vec<u64>> = set
        .blocks()
        .iter()
        .rev()
        .flat_map(|block| {
            let mut digits: Vec<Vec<u64>> = match block.ranges() {
                [range] => (range.start.max(range.end.saturating_sub(most as u64))..range.end)
                    .map(|digit| vec![digit])
                    .collect(),
                _ => block.iter().take(most).collect(),
            };
            digits.reverse();
            digits
        })
        .take(most)
        .collect();
    last.into_iter().rev().collect()
}

fn sentence(why: HeldBack, truth: Truth) -> String {
    let at = truth.cause.or(truth.at).and_then(time);
    let when = at.map(|at| format!(" ({at})")).unwrap_or_default();
    match why {
        HeldBack::Paused => "its automation is paused".to_owned(),
        HeldBack::False => "the condition is false".to_owned(),
        HeldBack::NoCause => "the condition is true, and nothing in it has happened".to_owned(),
        HeldBack::Before => format!("the condition is true for what was so before it was deployed{when}"),
        HeldBack::Handled => format!("it was made or requested since the condition became true{when}"),
        HeldBack::InProgress => "a run makes it now".to_owned(),
        HeldBack::NoUpstream => "something that it is made from does not exist yet".to_owned(),
    }
}

/// The tree of a condition over some partitions.
fn traced(evaluator: &Evaluator<'_>, condition: &Condition, root: &Node, subjects: &[Subject]) -> TraceNode {
    let mut trace = blank(condition);
    for subject in subjects.iter().take(MOST_TRACED) {
        evaluator.note(root, subject, &mut trace);
    }
    trace
}

/// The tree of a condition before anything is counted.
pub(crate) fn blank(condition: &Condition) -> TraceNode {
    let label = match condition {
        Condition::And { .. } => "all of".to_owned(),
        Condition::Or { .. } => "any of".to_owned(),
        Condition::Not { .. } => "not".to_owned(),
        Condition::AnyUpstream { .. } => "any upstream".to_owned(),
        Condition::AllUpstream { .. } => "all upstream".to_owned(),
        Condition::Since { .. } => "since".to_owned(),
        Condition::NewlyTrue { .. } => "newly true".to_owned(),
        Condition::Named { .. }
        | Condition::Missing
        | Condition::NewPartition
        | Condition::Updated
        | Condition::Stale
        | Condition::CodeChanged
        | Condition::InProgress
        | Condition::Failed
        | Condition::CronTick { .. }
        | Condition::Latest { .. }
        | Condition::During { .. }
        | Condition::AtMost { .. } => condition.text(),
    };
    let parts = condition.parts().into_iter().map(blank).collect();
    TraceNode { label, holds: 0, of: 0, since: None, parts }
}

impl TraceNode {
    /// Counts one value.
    pub(super) fn count(&mut self, truth: Truth) {
        self.of += 1;
        self.holds += u64::from(truth.holds);
        self.since = self.since.max(truth.at.and_then(time));
    }
}
