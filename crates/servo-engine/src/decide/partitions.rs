//! Requests to add and remove keys of dynamic partitions: only what makes a difference goes into the log (ADR-055).

use std::collections::BTreeSet;

use super::{Answer, Decision};
use crate::command::{Change, ChangePartitions, PartitionsReply, Reply, Report};
use crate::definitions::Definitions;
use crate::event::{DynamicPartitionsChanged, EventData, Outcome};
use crate::failure::{ErrorCode, TaskError};
use crate::gate;
use crate::principal::Caller;
use crate::refusal::Refusal;
use crate::state::{State, Task};

/// Characters in a name or a key.
const LONGEST: usize = 256;

pub(super) fn change(state: &State, command: &ChangePartitions) -> Decision {
    match difference(state, command) {
        Ok(change) if change.added.is_empty() && change.removed.is_empty() => {
            let change = Change::Duplicate;
            Decision::reply(Reply::Partitions(PartitionsReply { change, added: 0, removed: 0 }))
        }
        Ok(change) => Decision {
            answer: Answer::Partitions(change.added.len() as u64, change.removed.len() as u64),
            events: vec![EventData::DynamicPartitionsChanged(change)],
            principal: command.caller.principal.clone(),
        },
        Err(refusal) => Decision::refuse(refusal),
    }
}

/// The events that add what an attempt wants to add, in the batch of its end; none if the attempt does not count.
pub(super) fn added_by(state: &State, task: &Task, report: &Report) -> Result<Vec<EventData>, TaskError> {
    let counts = report.outcome == Outcome::Succeeded && gate::enforce(task, &report.outputs).1.is_none();
    if report.added_partitions.is_empty() || !counts {
        return Ok(Vec::new());
    }
    let failed = |problem: String| TaskError::new(ErrorCode::UserCodeException, problem);
    let definitions = state.checked_definitions();
    let declared = definitions.as_deref().map(Definitions::dynamic_partitions).unwrap_or_default();
    let mut events = Vec::new();
    for (name, keys) in &report.added_partitions {
        if !declared.contains(name.as_str()) {
            let declared: Vec<&str> = declared.iter().copied().collect();
            let declared = if declared.is_empty() { "none".to_owned() } else { declared.join(", ") };
            return Err(failed(format!(
                "ctx.add_partitions({name:?}): no asset has dynamic partitions of that name; there are: {declared}"
            )));
        }
        let (name, add) = (name.clone(), keys.clone());
        let command = ChangePartitions { name, add, remove: Vec::new(), caller: Caller::default() };
        let change = difference(state, &command)
            .map_err(|refusal| failed(format!("ctx.add_partitions({:?}): {refusal}", command.name)))?;
        if !change.added.is_empty() {
            events.push(EventData::DynamicPartitionsChanged(change));
        }
    }
    Ok(events)
}

fn difference(state: &State, command: &ChangePartitions) -> Result<DynamicPartitionsChanged, Refusal> {
    let name = || command.name.clone();
    check("name of dynamic partitions", &command.name)?;
    let (count, limit) = (command.add.len() + command.remove.len(), state.settings().max_partition_changes);
    if count > limit as usize {
        return Err(Refusal::TooManyPartitionChanges { name: name(), count, limit });
    }
    for key in command.add.iter().chain(&command.remove) {
        check("partition key", key)?;
    }
    let add: BTreeSet<&String> = command.add.iter().collect();
    let remove: BTreeSet<&String> = command.remove.iter().collect();
    if let Some(key) = add.intersection(&remove).next() {
        return Err(Refusal::AddedAndRemoved { name: name(), key: (*key).clone() });
    }
    let known = |key: &&&String| state.dynamic.contains(&command.name, key);
    let added: Vec<String> = add.iter().filter(|key| !known(key)).map(|key| (*key).clone()).collect();
    let removed: Vec<String> = remove.iter().filter(known).map(|key| (*key).clone()).collect();
    let count = state.dynamic.keys_of(&command.name).len() + added.len() - removed.len();
    let limit = state.settings().max_dynamic_partitions;
    if count > limit as usize && !added.is_empty() {
        return Err(Refusal::TooManyPartitions { name: name(), count, limit });
    }
    let number = state.dynamic.number(&command.name) + 1;
    Ok(DynamicPartitionsChanged { name: name(), number, added, removed })
}

fn check(what: &'static str, text: &str) -> Result<(), Refusal> {
    let length = text.chars().count();
    let problem = if length == 0 {
        "is empty".to_owned()
    } else if length > LONGEST {
        format!("has {length} characters, at most {LONGEST} are allowed")
    } else if let Some((at, control)) = text.chars().enumerate().find(|(_, c)| c.is_control()) {
        format!("has the control character {:?} at character {}", control, at + 1)
    } else {
        return Ok(());
    };
    // The text itself may be of any length.
    let text =
        if length > LONGEST { text.chars().take(32).chain(['…']).collect() } else { text.to_owned() };
    Err(Refusal::BadPartition { what, text, problem })
}
