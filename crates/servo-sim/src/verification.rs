//! Verifies a cluster at rest: log, tables, state and data must agree.

use std::collections::BTreeMap;

use servo_core::EventId;
use servo_engine::event::decode_batch;
use servo_engine::{HotRows, State};
use servo_projections::Projection;

use crate::audit::Batch;
use crate::cluster::Cluster;
use crate::model::history::{self, Expected};
use crate::model::{Log, Model, Rules, Tables};

/// After every so many batches it is compared what is stale, where conditions see to it.
const STALENESS_EVERY: u64 = 8;

/// The violations of a workspace at rest; empty if there are none.
pub async fn verify(cluster: Cluster, live: Vec<HotRows>) -> Vec<String> {
    let book = cluster.audit.workspace(&cluster.prefix());
    let mut wrong = Vec::new();
    let read = book.batches.iter().map(|batch| (batch.seq, batch.epoch, batch.payload.as_ref()));
    let mut kept = BTreeMap::new();
    let keep = |state: &State| {
        if cluster.scenario.declared.conditions && state.head().seq.is_multiple_of(STALENESS_EVERY) {
            kept.insert(state.head().seq, state.clone());
        }
    };
    let (folded, log) = match (fold_with(&cluster, &book.batches, keep), Log::read(read)) {
        (Ok(folded), Ok(log)) => (folded, log),
        (Err(error), _) | (_, Err(error)) => return vec![error],
    };
    let rows = folded.rows();
    for live in &live {
        wrong.extend(different("the live state", live, &rows));
    }
    if folded.active_runs() > 0 {
        wrong.push(format!("{} runs have not ended, and no user was told of them", folded.active_runs()));
    }
    let rules = Rules::default();
    let expected = Expected {
        tenant: cluster.layout.tenant().as_str(),
        workspace: cluster.layout.workspace().as_str(),
        rules: &rules,
        leased: cluster.scenario.leased,
    };
    let stale = |model: &Model| {
        kept.get(&model.last_seq).map_or_else(Vec::new, |state| model.compare_staleness(state))
    };
    match history::follow_with(&log.batches, expected, stale) {
        Ok((model, problems)) => {
            wrong.extend(problems);
            wrong.extend(model.compare_state(&folded));
            wrong.extend(model.compare_staleness(&folded));
            wrong.extend(model.open_backfills());
            wrong.extend(model.busy_sensors());
            wrong.extend(model.overdue());
            wrong.extend(model.left_behind());
            wrong.extend(model.untold(&cluster.notifier.arrived()));
            let all = History { batches: &book.batches, log: &log, folded: &folded, model: &model };
            let shown = tables(&cluster, &all, !live.is_empty()).await;
            wrong.extend(shown.unwrap_or_else(|error| vec![error]));
        }
        Err(problem) => wrong.push(problem),
    }
    wrong.extend(data(&cluster, &folded));
    wrong
}

/// The whole log, its fold and its model.
struct History<'a> {
    batches: &'a [Batch],
    log: &'a Log,
    folded: &'a State,
    model: &'a Model,
}

/// The state that a log amounts to.
pub fn fold(cluster: &Cluster, batches: &[Batch]) -> Result<State, String> {
    fold_with(cluster, batches, |_| {})
}

/// The same, with a look at the state after each batch.
fn fold_with(cluster: &Cluster, batches: &[Batch], mut look: impl FnMut(&State)) -> Result<State, String> {
    let (tenant, workspace) = (cluster.layout.tenant().clone(), cluster.layout.workspace().clone());
    let mut state = State::new(tenant, workspace);
    for batch in batches {
        let events = decode_batch(&batch.payload).map_err(|error| format!("batch {}: {error}", batch.seq))?;
        state.apply_batch(batch.seq, &events);
        look(&state);
    }
    Ok(state)
}

/// Checks that the tables are the fold of a prefix of the log; of all of it, once a node that knew all of it was
/// closed.
async fn tables(cluster: &Cluster, all: &History<'_>, complete: bool) -> Result<Vec<String>, String> {
    let stores = cluster
        .stores(&cluster.spawner("judge"), &cluster.checkers_files())
        .map_err(|error| error.to_string())?;
    let opened = Projection::open_latest(stores.blobs.clone(), stores.layout.clone()).await;
    let Some(projection) = opened.map_err(|error| error.to_string())? else { return Ok(Vec::new()) };
    let (last, end) = (projection.manifest().watermarks.last_seq, all.batches.len() as u64);
    if last > end || (complete && last < end) {
        return Ok(vec![format!("the tables end at batch {last}, the log at {end}")]);
    }
    let earlier;
    let (shown, model) = if last == end {
        (all.folded, all.model)
    } else {
        let rules = Rules::default();
        earlier = (fold(cluster, &all.batches[..last as usize])?, Model::of(all.log.through(last), &rules)?);
        (&earlier.0, &earlier.1)
    };
    let tables = Tables::read(&projection).await.map_err(|error| error.to_string())?;
    let mut wrong: Vec<String> = different("the tables", &tables.hot, &shown.rows()).into_iter().collect();
    wrong.extend(pointers(cluster, shown));
    wrong.extend(model.compare_tables(&tables));
    Ok(wrong)
}

/// Checks that current and quarantined materializations have their data.
fn data(cluster: &Cluster, state: &State) -> Vec<String> {
    let mut wrong = Vec::new();
    for row in state.rows().partition_status {
        let (Some(id), Some(_)) = (row.last_materialization_id, row.last_materialization_format) else {
            continue;
        };
        let dir = cluster.layout.materialization(&row.asset_key, row.partition_key.as_ref(), id);
        if cluster.bucket.peek(&format!("{}/{dir}/_commit.json", cluster.prefix())).is_none() {
            wrong.push(format!("{dir} is the latest and is not there"));
        }
    }
    let is_there =
        |dir: &str| cluster.bucket.peek(&format!("{}/{dir}/_reason.json", cluster.prefix())).is_some();
    for row in state.quarantine() {
        let (asset, partition, id) = (&row.asset_key, row.partition_key.as_ref(), row.materialization_id);
        let dir = cluster.layout.quarantine(asset, partition, id);
        if !is_there(&dir) {
            wrong.push(format!("{dir} waits for review and is not there"));
        }
    }
    for row in state.approved() {
        let (asset, partition, id) = (&row.asset_key, row.partition_key.as_ref(), row.materialization_id);
        // It is moved before the log says so.
        let dirs = [
            cluster.layout.quarantine(asset, partition, id),
            cluster.layout.materialization(asset, partition, id),
        ];
        if !dirs.iter().any(|dir| is_there(dir)) {
            wrong.push(format!("{} was approved and is not there", dirs[0]));
        }
    }
    wrong
}

/// Pointers may lag behind the log, not behind the tables.
fn pointers(cluster: &Cluster, shown: &State) -> Vec<String> {
    let mut wrong = Vec::new();
    for row in shown.rows().partition_status {
        let (Some(event), Some(_)) = (row.last_materialization_event_id, row.last_materialization_format)
        else {
            continue;
        };
        let partition = row.partition_key.as_ref();
        let latest = cluster.bucket.peek(&format!(
            "{}/{}",
            cluster.prefix(),
            cluster.layout.latest(&row.asset_key, partition)
        ));
        let pointer: serde_json::Value =
            serde_json::from_slice(&latest.unwrap_or_default()).unwrap_or_default();
        let named = pointer["event_id"].as_str().and_then(|text| text.parse::<EventId>().ok());
        if named < Some(event) {
            wrong.push(format!("latest.json of {} is behind {event}: {pointer}", row.asset_key));
        }
    }
    wrong
}

fn different(what: &str, found: &HotRows, expected: &HotRows) -> Option<String> {
    if found == expected {
        return None;
    }
    let (found, expected) = (format!("{found:#?}"), format!("{expected:#?}"));
    let lines = found.lines().zip(expected.lines()).enumerate().find(|(_, (a, b))| a != b);
    let shown = lines
        .map_or_else(String::new, |(n, (a, b))| format!(" (line {n}: {} instead of {})", a.trim(), b.trim()));
    Some(format!("{what}: not what the log amounts to{shown}"))
}
