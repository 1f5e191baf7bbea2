//! The tables as plain rows, all of them.

use servo_engine::HotRows;
use servo_engine::rows::{AuditRow, MaterializationRow, RemovalRow, RunRow, TaskCostRow, TaskRow};
use servo_projections::{Error, Projection, RunFilter};

/// Runs read at once.
const PAGE: usize = 1_000;

/// The rows of the Parquet files, up to the batch that their manifest names.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Tables {
    pub hot: HotRows,
    /// Runs that have left memory, newest first, with their tasks.
    pub history: Vec<(RunRow, Vec<TaskRow>)>,
    /// All materializations that ever became current, oldest first.
    pub materializations: Vec<MaterializationRow>,
    /// All acts.
    pub audit: Vec<AuditRow>,
    /// Costs of all attempts.
    pub costs: Vec<TaskCostRow>,
    /// Data that was removed because it is not kept any more.
    pub removals: Vec<RemovalRow>,
}

impl Tables {
    /// Reads everything.
    pub async fn read(projection: &Projection) -> Result<Self, Error> {
        let mut history = Vec::new();
        loop {
            let before = history.last().map(|(row, _): &(RunRow, _)| row.requested_event_id);
            let page = projection.runs_after(before, PAGE, &RunFilter::default()).await?;
            let is_last = page.len() < PAGE;
            for row in page {
                let tasks = projection.tasks_of(&row).await?;
                history.push((row, tasks));
            }
            if is_last {
                break;
            }
        }
        Ok(Self {
            hot: projection.hot_rows().await?,
            history,
            materializations: projection.materializations().await?,
            audit: projection.audit().await?,
            costs: projection.task_costs().await?,
            removals: projection.removals().await?,
        })
    }
}
