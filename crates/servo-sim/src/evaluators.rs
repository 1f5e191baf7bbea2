//! Whoever calls the functions of sensors: beside a node, in its process, so that calls end with it. Some take longer
//! than they may, some fail, and some are never answered.

use futures::FutureExt;
use servo_engine::evaluation::{
    Call, Evaluation, EvaluationOutcome, EvaluationReport, EvaluationResult, RequestSpec,
};
use servo_queue::EvaluationSource;
use servo_runtime::Workspace;

use crate::cluster::Cluster;
use crate::faults::Fault;
use crate::graphs;
use crate::machine::ProcessSpawner;
use crate::scenario::SECOND;

/// Something new turns up this often for a sensor that polls.
const NEWS_EVERY: u64 = 7 * SECOND;

/// Files that may turn up, in all.
const MOST_NEWS: u64 = 12;

/// Makes the calls that a node asks for.
pub fn serve(cluster: &Cluster, spawner: &ProcessSpawner, workspace: &Workspace) {
    let (cluster, workspace, calls) = (cluster.clone(), workspace.clone(), spawner.clone());
    let serve = async move {
        while workspace.is_open() {
            match workspace.next_evaluation().await {
                Ok(Some(evaluation)) => {
                    let call = answer(cluster.clone(), workspace.clone(), evaluation);
                    calls.world.spawn(calls.process, "evaluation", call.boxed());
                }
                Ok(None) => return,
                Err(_) => cluster.world.sleep(cluster.domain, SECOND).await,
            }
        }
    };
    spawner.world.spawn(spawner.process, "evaluator", serve.boxed());
}

async fn answer(cluster: Cluster, workspace: Workspace, evaluation: Evaluation) {
    if cluster.faults.injects(cluster.domain, Fault::WorkerCrash, 100) {
        return;
    }
    // What it sees is that of the beginning; what it says comes at the end.
    let outcome = outcome(&cluster, &evaluation);
    let length = cluster.world.roll(cluster.domain, |rng| match rng.below(8) {
        0 => rng.within(60 * SECOND..100 * SECOND),
        1 | 2 => rng.within(5 * SECOND..20 * SECOND),
        _ => rng.within(1_000..3 * SECOND),
    });
    cluster.world.sleep(cluster.domain, length).await;
    let report = EvaluationReport { outcome, output: None };
    while let Err(error) = workspace.evaluated(&evaluation, report.clone()).await {
        if !error.is_transient() || !workspace.is_open() {
            return;
        }
        cluster.world.sleep(cluster.domain, SECOND).await;
    }
}

fn outcome(cluster: &Cluster, evaluation: &Evaluation) -> EvaluationOutcome {
    let fails = if cluster.faults.is_healed() { 100 } else { 250 };
    if cluster.world.roll(cluster.domain, |rng| rng.chance(fails)) {
        return EvaluationOutcome::Failed("boom".to_owned());
    }
    let mut result = EvaluationResult::default();
    match &evaluation.call {
        Call::Poll { cursor, .. } => {
            let known = cursor.as_deref().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
            let there = MOST_NEWS.min(1 + cluster.world.now() / NEWS_EVERY).min(known + 2);
            for number in known + 1..=there {
                // An item is one run, however often the cursor is set back.
                request(&mut result, number, Some(format!("item-{number}")));
            }
            result.skip = (there <= known).then(|| "nothing is new".to_owned());
            result.cursor = Some(there.max(known).to_string().into());
        }
        Call::Message { message, .. } => {
            let read: serde_json::Value = serde_json::from_str(message).unwrap_or_default();
            request(&mut result, read["number"].as_u64().unwrap_or(0), None);
        }
        Call::Tick { .. } => {}
    }
    EvaluationOutcome::Returned(result)
}

/// Requests what belongs to an item: an asset that everything else reads, or a customer that may be new.
fn request(result: &mut EvaluationResult, number: u64, run_key: Option<String>) {
    let spec = if number.is_multiple_of(2) {
        RequestSpec { selection: Some("t.n20".to_owned()), run_key, ..RequestSpec::default() }
    } else {
        let customer = format!("k{}", number % 4);
        result.add_partitions.entry(graphs::CUSTOMERS.to_owned()).or_default().push(customer.clone());
        let selection = Some("t.n15".to_owned());
        RequestSpec { selection, partition: Some(customer), run_key, ..RequestSpec::default() }
    };
    result.requests.push(spec);
}
