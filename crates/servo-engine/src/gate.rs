//! The gate between what an attempt made and what counts: computed from the results of checks, never taken from a
//! worker (ADR-087).
//!
//! | failed check | `blocking` unset | `blocking=True` | `blocking=False` |
//! |---|---|---|---|
//! | critical | BLOCK | BLOCK | WARN |
//! | error | WARN | BLOCK | WARN |
//! | warning, info | ALLOW | BLOCK | ALLOW |
//!
//! A check that raises is one of severity error at least: nobody knows what it would have said.

use std::sync::Arc;

use servo_core::Operation;
use servo_core::planted::{self, Mistake};

use crate::definitions::Severity;
use crate::failure::{ErrorCode, TaskError};
use crate::lifecycle::{GatingDecision, OutputState};
use crate::outputs::{CheckReport, OutputReport};
use crate::provenance::ExpectedCheck;
use crate::state::Task;

/// The sum of the checks of one output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdicts {
    /// The worst effect of any check.
    pub decision: GatingDecision,
    /// Checks that passed.
    pub passed: u32,
    /// Checks that failed, whatever their severity.
    pub failed: u32,
}

/// Sums up the results of checks.
pub fn verdicts(checks: &[CheckReport]) -> Verdicts {
    let failed = checks.iter().filter(|check| !check.passed).count() as u32;
    Verdicts {
        decision: checks.iter().map(effect).max().unwrap_or(GatingDecision::Allow),
        passed: checks.len() as u32 - failed,
        failed,
    }
}

fn effect(check: &CheckReport) -> GatingDecision {
    let severity = if check.error.is_some() { check.severity.max(Severity::Error) } else { check.severity };
    match (check.passed, severity, check.blocking) {
        (true, ..) => GatingDecision::Allow,
        (false, _, Some(true)) | (false, Severity::Critical, None) => GatingDecision::Block,
        (false, Severity::Critical, Some(false)) | (false, Severity::Error, None | Some(false)) => {
            GatingDecision::Warn
        }
        (false, Severity::Warning | Severity::Info, None | Some(false)) => GatingDecision::Allow,
    }
}

/// The outputs of an attempt as far as they count, and why the attempt fails although its worker calls them committed.
///
/// How bad a failed check is follows from its declaration at the dispatch.
pub(crate) fn enforce(
    task: &Task,
    reported: &Arc<[OutputReport]>,
) -> (Arc<[OutputReport]>, Option<TaskError>) {
    let mut outputs = reported.clone();
    let mut error = None;
    if task.key.operation() == Operation::Check {
        return checked(task, outputs);
    }
    for position in 0..reported.len() {
        let output = &reported[position];
        let Some(made) = (0..).zip(task.assets()).find(|(_, asset)| *asset == output.asset) else { continue };
        let declared: Vec<&ExpectedCheck> =
            task.provenance.checks.iter().filter(|check| check.output == made.0).collect();
        let differs = |check: &CheckReport| trusted(check, &declared) != (check.severity, check.blocking);
        if output.checks.iter().any(differs) {
            for check in &mut Arc::make_mut(&mut outputs)[position].checks {
                (check.severity, check.blocking) = trusted(check, &declared);
            }
        }
        let is_committed = output.state == OutputState::Committed && !planted::has(Mistake::GateIgnored);
        let blocked = is_committed.then(|| reason_to_block(&outputs[position], &declared)).flatten();
        if blocked.is_some() {
            Arc::make_mut(&mut outputs)[position].state = OutputState::Discarded;
        }
        let blocked = blocked.map(|reason| TaskError::new(ErrorCode::CheckFailed, reason));
        error = error.or(blocked).or_else(|| missing(output));
    }
    (outputs, error)
}

/// The results of checks that ran alone. Whatever the worker says of data, none was made.
fn checked(task: &Task, mut outputs: Arc<[OutputReport]>) -> (Arc<[OutputReport]>, Option<TaskError>) {
    let mut error = None;
    for (position, asset) in (0..).zip(task.assets()) {
        let declared: Vec<&ExpectedCheck> =
            task.provenance.checks.iter().filter(|check| check.output == position).collect();
        let reported = outputs.iter().position(|output| output.asset == asset);
        let found = reported.map(|at| &mut Arc::make_mut(&mut outputs)[at]);
        let results = found.map_or(&mut [][..], |output| {
            output.state = OutputState::Discarded;
            output.checks.as_mut_slice()
        });
        for check in &mut *results {
            (check.severity, check.blocking) = trusted(check, &declared);
        }
        // Checks behind one that failed may be left out.
        let has_failed = results.iter().any(|check| !check.passed);
        let is_reported = |check: &&&ExpectedCheck| results.iter().any(|report| report.name == check.name);
        if let Some(missing) = declared.iter().find(|check| !has_failed && !is_reported(check)) {
            let problem = format!("{asset}: no result of check {} was reported", missing.name);
            error = error.or_else(|| Some(TaskError::new(ErrorCode::CheckFailed, problem)));
        }
    }
    (outputs, error)
}

fn missing(output: &OutputReport) -> Option<TaskError> {
    (output.state == OutputState::Missing).then(|| {
        let problem = "was reported as stored, but its storage does not have it; does the worker write to the same storage?";
        TaskError::new(ErrorCode::OutputMissing, format!("{} {problem}", output.asset))
    })
}

fn trusted(check: &CheckReport, declared: &[&ExpectedCheck]) -> (Severity, Option<bool>) {
    declared
        .iter()
        .find(|declared| declared.name == check.name)
        .map_or((check.severity, check.blocking), |declared| (declared.severity, declared.blocking))
}

fn reason_to_block(output: &OutputReport, declared: &[&ExpectedCheck]) -> Option<String> {
    let is_reported = |check: &&&ExpectedCheck| output.checks.iter().any(|report| report.name == check.name);
    if let Some(missing) = declared.iter().find(|check| !is_reported(check)) {
        return Some(format!("{}: no result of check {} was reported", output.asset, missing.name));
    }
    let check = output.checks.iter().find(|check| effect(check) == GatingDecision::Block)?;
    let message = check.message.as_ref().map_or_else(String::new, |message| format!(": {message}"));
    Some(format!("{}: check {} does not let it pass{message}", output.asset, check.name))
}
