//! Verifies that the data of an attempt is there before its report counts (ADR-087).

use servo_core::planted::{self, Mistake};
use servo_engine::outputs::{DataFormat, OutputReport, materialization_of};
use servo_engine::{Attempt, OutputState, Report};
use servo_store::DataError;

use crate::data::{Data, MARKER};

impl Data {
    /// The report of an attempt as far as storage confirms it: an output without its commit marker is missing, whatever
    /// the worker calls it.
    pub(crate) async fn confirm(&self, attempt: &Attempt, report: Report) -> Result<Report, DataError> {
        if planted::has(Mistake::PromotedWithoutMarker) {
            return Ok(report);
        }
        let partition = attempt.task_key.partition();
        let id = materialization_of(attempt.attempt_id);
        let mut outputs = report.outputs.to_vec();
        for output in outputs.iter_mut().filter(|output| is_stored(output)) {
            let place = self.layout.materialization(&output.asset, partition.as_ref(), id);
            if !self.root.has(&format!("{place}/{MARKER}")).await? {
                output.state = OutputState::Missing;
            }
        }
        Ok(Report { outputs: outputs.into(), ..report })
    }
}

/// Whether an output has files with a marker. Of a function that only did something there is nothing to store.
fn is_stored(output: &OutputReport) -> bool {
    output.state == OutputState::Committed && output.format.is_some_and(|format| format != DataFormat::None)
}
