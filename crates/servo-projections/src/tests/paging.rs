//! Pages of ended runs, single runs, and their tasks and edges.

use std::sync::Arc;

use proptest::prelude::*;
use servo_core::{AssetKey, RunId, TaskKey, Timestamp};
use servo_engine::rows::{EdgeRow, Json, RunRow, TaskRow};
use servo_engine::{RunSource, RunState, TaskOptions};

use super::generate::Generator;
use super::support::{empty_delta, event, latest, memory, now, open};
use crate::{Limits, RunFilter, RunOrder, merge_page};

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn ended(generator: &Generator, n: u64) -> RunRow {
    let retry = RunSource::Retry { of: RunId::from_u128(1), from_failure: false };
    let source = if generator.below(2) == 0 { RunSource::Api } else { retry };
    RunRow {
        run_id: RunId::from_u128(u128::from(n) * 0x1234_5678_9abc_def1),
        requested_event_id: event(n),
        row_version: event(n + 10_000),
        source_type: source.kind().to_owned(),
        source: Json(source),
        labels: Json([("team".to_owned(), generator.pick(&["ops", "data"]).to_owned())].into()),
        created_at: Timestamp::from_millis(event(n).timestamp_ms().cast_signed()),
        ..generator.row()
    }
}

/// One task of a run: of one of two assets, made with another or not, and for one of two days.
fn task(generator: &Generator, run: &RunRow) -> TaskRow {
    let (asset, day) = (generator.pick(&["a/b", "a/c"]), generator.pick(&["2025-01-15", "2025-01-16"]));
    let partition = format!("date=d:{day}");
    let outputs = if generator.below(2) == 0 { vec![] } else { vec![AssetKey::new("a", "also").unwrap()] };
    TaskRow {
        run_id: run.run_id,
        requested_event_id: run.requested_event_id,
        task_key: TaskKey::parse(&format!("{asset}[{partition}]:materialize")).unwrap(),
        asset_key: asset.to_owned(),
        partition_key: Some(partition),
        options: Json(Arc::new(TaskOptions { outputs, ..TaskOptions::default() })),
        ..generator.row()
    }
}

/// Filters of every kind, some of them together.
fn filters() -> Vec<RunFilter> {
    let any = RunFilter::default;
    let asset = |name: &str| Some(AssetKey::new("a", name).unwrap());
    vec![
        any(),
        RunFilter { order: RunOrder::OldestFirst, ..any() },
        RunFilter { states: RunState::ALL[..2].to_vec(), ..any() },
        RunFilter { sources: vec!["retry".to_owned()], order: RunOrder::OldestFirst, ..any() },
        RunFilter { labels: [("team".to_owned(), "ops".to_owned())].into(), ..any() },
        RunFilter { labels: [("none".to_owned(), String::new())].into(), ..any() },
        RunFilter {
            created_after: Some(Timestamp::from_millis(1_760_000_000_040)),
            created_before: Some(Timestamp::from_millis(1_760_000_000_120)),
            ..any()
        },
        RunFilter { asset: asset("b"), ..any() },
        RunFilter { asset: asset("also"), order: RunOrder::OldestFirst, ..any() },
        RunFilter { partitions: vec!["2025-01-15".to_owned()], ..any() },
        RunFilter {
            asset: asset("c"),
            partitions: vec!["date=d:2025-01-16".to_owned()],
            sources: vec!["api".to_owned()],
            ..any()
        },
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn pages_of_overlapping_files_with_duplicates_are_the_models(
        seed: u64, limit in 1usize..30, fanout in 2usize..9,
    ) {
        block_on(async {
            let generator = Generator::new(seed);
            let blobs = memory();
            let mut compactor = open(&blobs, 1, 1, Limits { tier_fanout: fanout, ..Limits::default() }).await;
            let mut model: Vec<RunRow> = Vec::new();
            let mut tasks: Vec<TaskRow> = Vec::new();
            for seq in 1..=12 {
                let mut delta = empty_delta(seq);
                for _ in 0..generator.below(20) {
                    // Runs end in another order than they were asked for, and some are written twice.
                    let n = seq * 10 + generator.below(60);
                    let known = model.iter().find(|row| row.requested_event_id == event(n)).cloned();
                    let row = known.unwrap_or_else(|| ended(&generator, n));
                    if !delta.ended.runs.contains(&row) {
                        delta.ended.runs.push(row.clone());
                    }
                    if !model.contains(&row) {
                        tasks.push(task(&generator, &row));
                        delta.ended.tasks.extend(tasks.last().cloned());
                        model.push(row);
                    }
                }
                compactor.flush(delta, now()).await.unwrap();
            }
            let projection = latest(&blobs).await;
            for filter in filters() {
                let is_wanted = |run: &&RunRow| {
                    filter.accepts_row(run)
                        && filter.accepts_tasks(tasks.iter().filter(|task| task.run_id == run.run_id))
                };
                let mut expected: Vec<RunRow> = model.iter().filter(is_wanted).cloned().collect();
                expected.sort_by_key(|run| run.requested_event_id);
                if filter.order == RunOrder::NewestFirst {
                    expected.reverse();
                }
                let (mut found, mut after) = (Vec::new(), None);
                loop {
                    let page = projection.runs_after(after, limit, &filter).await.unwrap();
                    prop_assert!(page.len() <= limit);
                    let Some(last) = page.last() else { break };
                    after = Some(last.requested_event_id);
                    found.extend(page);
                }
                prop_assert_eq!(found, expected, "{:?}", filter);
            }
            for run in &model {
                prop_assert_eq!(projection.run(run.run_id).await.unwrap(), Some(run.clone()));
            }
            prop_assert_eq!(projection.run(RunId::from_u128(7)).await.unwrap(), None);
            Ok(())
        })?;
    }
}

#[tokio::test]
async fn tasks_and_edges_of_a_run_are_found_among_those_of_others() {
    let blobs = memory();
    let mut compactor = open(&blobs, 1, 1, Limits { tier_fanout: 3, ..Limits::default() }).await;
    let generator = Generator::new(5);
    let mut wanted = None;
    for seq in 1..=10 {
        let mut delta = empty_delta(seq);
        for n in 0..5 {
            let run = ended(&generator, seq * 10 + n);
            let key = |name: &str| servo_core::TaskKey::parse(&format!("a/{name}:materialize")).unwrap();
            let tasks: Vec<TaskRow> = ["b", "c", "d"]
                .map(|name| TaskRow {
                    run_id: run.run_id,
                    requested_event_id: run.requested_event_id,
                    task_key: key(name),
                    ..generator.row()
                })
                .to_vec();
            let edge = EdgeRow {
                run_id: run.run_id,
                requested_event_id: run.requested_event_id,
                upstream_task_key: key("b"),
                downstream_task_key: key("c"),
                ..generator.row()
            };
            if (seq, n) == (4, 2) {
                wanted = Some((run.clone(), tasks.clone(), vec![edge.clone()]));
            }
            delta.ended.runs.push(run);
            delta.ended.tasks.extend(tasks.into_iter().rev());
            delta.ended.edges.push(edge);
        }
        compactor.flush(delta, now()).await.unwrap();
    }
    let (run, tasks, edges) = wanted.unwrap();
    let projection = latest(&blobs).await;
    assert_eq!(projection.tasks_of(&run).await.unwrap(), tasks);
    assert_eq!(projection.edges_of(&run).await.unwrap(), edges);
}

#[test]
fn a_page_takes_the_row_in_memory_over_the_one_in_history() {
    let generator = Generator::new(1);
    let old: Vec<RunRow> = [5, 3, 1].map(|n| ended(&generator, n)).to_vec();
    let hot = vec![RunRow { priority: 42, ..old[1].clone() }, ended(&generator, 4)];
    let page = merge_page(hot.clone(), old.clone(), 3, RunOrder::NewestFirst);
    assert_eq!(page, vec![old[0].clone(), hot[1].clone(), hot[0].clone()]);
}
