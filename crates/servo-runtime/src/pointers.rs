//! Whether data is what the tables say: every materialization that counts is there, and `latest.json` points at it. For
//! those who look after a workspace that nobody runs.

use std::sync::Arc;

use servo_core::EventId;
use servo_engine::Promotion;
use servo_projections::Projection;
use servo_store::DataError;

use crate::config::Stores;
use crate::data::{Data, MARKER};
use crate::effects::promote;
use crate::error::Error;

/// Problems that are named; the rest is counted.
const SAMPLES: usize = 100;

/// The result of a comparison of data with the tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DataReport {
    /// Partitions that have data.
    pub partitions: u64,
    /// Partitions that are not as the tables say.
    pub differing: u64,
    /// The first of them, with what is wrong.
    pub samples: Vec<String>,
}

impl DataReport {
    /// Whether data is what the tables say.
    pub fn is_ok(&self) -> bool {
        self.differing == 0
    }

    fn note(&mut self, problem: String) {
        self.differing += 1;
        if self.samples.len() < SAMPLES {
            self.samples.push(problem);
        }
    }
}

/// Compares the data of every partition with the tables. Changes nothing.
pub async fn verify_data(stores: &Stores) -> Result<DataReport, Error> {
    let mut report = DataReport::default();
    let Some((data, promotions, through)) = expected(stores).await? else { return Ok(report) };
    for promotion in promotions {
        report.partitions += 1;
        let place = data.layout.data_home(&promotion.asset, promotion.partition.as_ref());
        match problem(&data, &promotion, through).await {
            Ok(None) => {}
            Ok(Some(problem)) => report.note(problem),
            Err(error) => report.note(format!("{}/latest.json: {error}", data.root.uri(&place))),
        }
    }
    Ok(report)
}

/// Points every `latest.json` at what the tables say is the latest; gives how many pointed elsewhere. One that tells of
/// a newer event stays, unless it is told that the tables are the newest that there is.
pub async fn point_at_latest(stores: &Stores, tables_are_newest: bool) -> Result<u64, Error> {
    let Some((data, promotions, _)) = expected(stores).await? else { return Ok(0) };
    let mut changed = 0;
    for promotion in promotions {
        match point(&data, &promotion, tables_are_newest).await {
            Ok(is_changed) => changed += u64::from(is_changed),
            Err(error) => {
                let path = data.root.uri(&latest(&data, &promotion));
                tracing::error!(path, %error, "this cannot be written; everything else goes on");
            }
        }
    }
    Ok(changed)
}

/// Points one at what counts; whether it pointed elsewhere.
async fn point(data: &Data, promotion: &Promotion, tables_are_newest: bool) -> Result<bool, DataError> {
    let found = pointed(data, promotion).await?;
    let is_newer = found.as_ref().is_some_and(|(_, event)| *event > promotion.event_id);
    let is_right = found.is_some_and(|(id, _)| id == promotion.materialization_id.to_string());
    if is_right || (is_newer && !tables_are_newest) {
        return Ok(false);
    }
    if is_newer {
        data.root.remove_file(&latest(data, promotion)).await?;
    }
    promote::promote(data, &[promotion]).await?;
    Ok(true)
}

/// The pointer that every partition with data must have, by the newest tables, and the last event in them.
async fn expected(stores: &Stores) -> Result<Option<(Data, Vec<Promotion>, EventId)>, Error> {
    let Some(root) = stores.data.clone() else { return Ok(None) };
    let tables = Projection::open_latest(Arc::clone(&stores.blobs), stores.layout.clone()).await?;
    let Some(tables) = tables else { return Ok(None) };
    let rows = tables.partition_status().await?;
    let promotions = rows.iter().filter_map(Promotion::of_row).collect();
    let through = tables.manifest().watermarks.events_processed_through;
    Ok(Some((Data { root, layout: stores.layout.clone() }, promotions, through)))
}

fn latest(data: &Data, promotion: &Promotion) -> String {
    data.layout.latest(&promotion.asset, promotion.partition.as_ref())
}

/// The materialization and the event of a pointer, if it is one.
async fn pointed(data: &Data, promotion: &Promotion) -> Result<Option<(String, EventId)>, DataError> {
    let Some(bytes) = data.root.get(&latest(data, promotion)).await? else { return Ok(None) };
    let found: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let event = found["event_id"].as_str().and_then(|event| event.parse().ok());
    Ok(found["materialization_id"].as_str().map(str::to_owned).zip(event))
}

async fn problem(data: &Data, promotion: &Promotion, through: EventId) -> Result<Option<String>, DataError> {
    let Promotion { asset, partition, materialization_id: id, .. } = promotion;
    let dir = data.layout.materialization(asset, partition.as_ref(), *id);
    if !data.root.has(&format!("{dir}/{MARKER}")).await? {
        return Ok(Some(format!("{}: there is no {MARKER}", data.root.uri(&dir))));
    }
    let pointer = data.root.uri(&latest(data, promotion));
    Ok(match pointed(data, promotion).await? {
        Some((found, _)) if found == id.to_string() => None,
        // The log is ahead of the tables, and so is the data.
        Some((_, event)) if event > through => None,
        Some((found, _)) => Some(format!("{pointer}: points at {found}, the latest is {id}")),
        None => Some(format!("{pointer}: is missing or no pointer, the latest is {id}")),
    })
}
