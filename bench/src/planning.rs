//! How long it takes to plan, to name partitions, and to map them. Also how long a project of 10,000 assets takes to
//! scan.

use std::collections::BTreeMap;

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use servo_core::partitions::{MappingDef, PartitionContext, PartitionSet, Span};
use servo_core::selection::Selection;
use servo_core::{
    AssetKey, MaterializationId, PartitionKey, PartitionsDef, TenantId, Timestamp, WorkspaceId,
};
use servo_engine::definitions::{AssetDef, Definitions, DepDef, MANIFEST_VERSION, Manifest};
use servo_engine::planner::{self, Materializations, PartitionChoice, PlanContext, PlanRequest};
use servo_worker::project::Project;

use crate::results::{Better, Results};

const LAYERS: usize = 10;
const WIDTH: usize = 1_000;
const ROUNDS: usize = 21;

/// Measures planning and partitions.
pub(crate) fn measure(results: &mut Results) -> anyhow::Result<()> {
    let layers = Definitions::check(layers())?;
    let (took, tasks, edges) = plan(&layers, "*", PartitionChoice::default())?;
    anyhow::ensure!((tasks, edges) == (10_000, 27_000), "planned {tasks} tasks, {edges} edges");
    results.add(
        "planning",
        "plan 10 layers x 1,000 assets, 3 upstream each",
        (millis(took), "ms"),
        Better::Lower,
        50.0,
    );

    let windows = Definitions::check(windows())?;
    let days =
        PartitionChoice { ranges: vec!["2020-01-01..2022-09-26".to_owned()], ..PartitionChoice::default() };
    let (took, tasks, edges) = plan(&windows, "*", days)?;
    anyhow::ensure!(tasks == 10_000 && edges > 60_000, "planned {tasks} tasks, {edges} edges");
    results.add(
        "planning",
        "plan 1,000 days x 10 assets with window(-6, 0)",
        (millis(took), "ms"),
        Better::Lower,
        50.0,
    );

    let all = Definitions::check(all_of_all())?;
    let days =
        PartitionChoice { ranges: vec!["2010-01-01..2018-03-19".to_owned()], ..PartitionChoice::default() };
    let (took, tasks, edges) = plan(&all, "*", days)?;
    anyhow::ensure!((tasks, edges) == (6_000, 9_000_000), "planned {tasks} tasks, {edges} edges");
    results.add(
        "planning",
        "plan 3,000 x 3,000 partitions with the mapping all",
        (millis(took), "ms"),
        Better::Lower,
        300.0,
    );

    let took = median(|| {
        let def = PartitionsDef::Hourly {
            span: Span::new("1970-01-01T00:00").until("2100-12-31T23:00").in_zone("Europe/Amsterdam"),
        };
        let hours = def.validate().expect("the span is valid");
        let count = hours.count(Timestamp::MAX);
        let page = hours.page(0, 100, Timestamp::MAX);
        let from = hours.key(count / 3, Timestamp::MAX).expect("a third of the way is a key");
        let to = hours.key(count / 2, Timestamp::MAX).expect("half of the way is a key");
        black_box((count, page, hours.slice(&from, &to, Timestamp::MAX).expect("both exist")));
    });
    results.add(
        "planning",
        "define, count, page, slice hours of 1970-2100",
        (millis(took), "ms"),
        Better::Lower,
        1.0,
    );

    let days = PartitionsDef::Daily { span: Span::new("2010-01-01").until("2019-12-31") }.validate()?;
    let months =
        PartitionsDef::Monthly { day: 1, span: Span::new("2010-01-01").until("2019-12-01") }.validate()?;
    let there = MappingDef::Time.between(Some(&days), Some(&months))?;
    let back = MappingDef::Time.between(Some(&months), Some(&days))?;
    let all: PartitionSet = days.all(Timestamp::MAX);
    let took = median(|| {
        let months = there.upstream(&all, Timestamp::MAX).set;
        assert_eq!(months.len(), 120, "ten years have 120 months");
        assert_eq!(black_box(back.upstream(&months, Timestamp::MAX)).set, all, "and they are these days");
    });
    results.add(
        "planning",
        "map 10 years of days to months and back",
        (millis(took), "ms"),
        Better::Lower,
        1.0,
    );
    scan(results)
}

/// The project is written by the generator of the SDK's tests; left out where there is no interpreter with the SDK.
fn scan(results: &mut Results) -> anyhow::Result<()> {
    let generator = Path::new("python/tests/generate_project.py");
    let python = Path::new(".venv/bin/python");
    if !generator.is_file() || !python.is_file() {
        eprintln!("scan: needs the checkout and its .venv (make setup); left out");
        return Ok(());
    }
    let directory = tempfile::tempdir()?;
    let written = std::process::Command::new(python)
        .arg(generator)
        .arg(directory.path())
        .args(["--assets", "10000"])
        .status()?;
    anyhow::ensure!(written.success(), "the generator failed");
    // The project lies elsewhere, so its interpreter must be named.
    let file = directory.path().join("servo.toml");
    let text = std::fs::read_to_string(&file).context("reading the generated servo.toml")?;
    let python = std::path::absolute(python)?;
    std::fs::write(
        &file,
        text.replacen("[project]", &format!("[project]\npython = {:?}", python.display().to_string()), 1),
    )?;
    let project = Project::open(directory.path())?;
    let mut took = Vec::new();
    for _ in 0..5 {
        let started = Instant::now();
        let scanned = project.scan()?;
        took.push(started.elapsed());
        anyhow::ensure!(scanned.manifest.assets.len() == 10_000, "{} assets", scanned.manifest.assets.len());
    }
    took.sort();
    results.add(
        "planning",
        "scan a project of 10,000 assets",
        (took[2].as_secs_f64(), "s"),
        Better::Lower,
        3.0,
    );
    Ok(())
}

/// The time of a plan, and how many tasks and edges it has.
fn plan(
    definitions: &Definitions,
    selection: &str,
    partitions: PartitionChoice,
) -> anyhow::Result<(Duration, usize, usize)> {
    let request = PlanRequest {
        selection: Selection::parse(selection)?,
        operation: servo_core::Operation::Materialize,
        partitions,
        config: BTreeMap::new(),
        no_retry: false,
    };
    let (tenant, workspace) = (TenantId::parse("bench")?, WorkspaceId::parse("bench")?);
    let at = PartitionContext::from(Timestamp::MAX);
    let context = PlanContext {
        tenant: &tenant,
        workspace: &workspace,
        at,
        materializations: &Nothing,
        max_tasks: 100_000,
    };
    let planned = planner::plan(definitions, &request, &context)?;
    let pairs: usize = planned.plan.tasks().iter().map(|task| task.upstream.len()).sum();
    let edges = pairs + planned.plan.sets().iter().map(|set| set.edges() as usize).sum::<usize>();
    let took = median(|| {
        black_box(planner::plan(definitions, &request, &context)).expect("it was planned before");
    });
    Ok((took, planned.tasks.len(), edges))
}

/// A lookup without any materializations.
struct Nothing;

impl Materializations for Nothing {
    fn of<'s>(
        &'s self,
        _: &AssetKey,
    ) -> Box<dyn Iterator<Item = (Option<PartitionKey>, MaterializationId)> + 's> {
        Box::new(std::iter::empty())
    }
}

fn layers() -> Manifest {
    let name = |layer: usize, at: usize| format!("layer_{layer:02}/asset_{at:04}");
    let assets = (0..LAYERS).flat_map(|layer| {
        (0..WIDTH).map(move |at| {
            let upstream =
                (0..3).filter(|_| layer > 0).map(|step| name(layer - 1, (at * 7 + step * 331) % WIDTH));
            asset(
                name(layer, at),
                upstream.map(|asset| DepDef { asset: Some(asset), ..DepDef::default() }).collect(),
            )
        })
    });
    manifest(assets.collect())
}

fn windows() -> Manifest {
    let days = PartitionsDef::Daily { span: Span::new("2019-01-01") };
    let assets = (0..10usize).map(|at| {
        let mapping = Some(MappingDef::Window { from: -6, to: 0 });
        let upstream = at.checked_sub(1).map(|before| DepDef {
            asset: Some(format!("days/asset_{before}")),
            mapping,
            ..DepDef::default()
        });
        AssetDef {
            partitions: Some(days.clone()),
            ..asset(format!("days/asset_{at}"), upstream.into_iter().collect())
        }
    });
    manifest(assets.collect())
}

/// Two assets of 3,000 days, of which every day of one reads every day of the other.
fn all_of_all() -> Manifest {
    let days = PartitionsDef::Daily { span: Span::new("2010-01-01").until("2018-03-19") };
    let reads =
        DepDef { asset: Some("all/first".to_owned()), mapping: Some(MappingDef::All), ..DepDef::default() };
    let partitioned = |asset: AssetDef| AssetDef { partitions: Some(days.clone()), ..asset };
    let first = partitioned(asset("all/first".to_owned(), Vec::new()));
    manifest(vec![first, partitioned(asset("all/second".to_owned(), vec![reads]))])
}

fn asset(key: String, deps: Vec<DepDef>) -> AssetDef {
    AssetDef { function: Some(format!("bench:{}", key.replace('/', "_"))), key, deps, ..AssetDef::default() }
}

fn manifest(assets: Vec<AssetDef>) -> Manifest {
    Manifest {
        manifest_version: MANIFEST_VERSION,
        project: "bench".to_owned(),
        assets,
        schedules: Vec::new(),
        sensors: Vec::new(),
        notifications: Vec::new(),
        resources: Vec::new(),
    }
}

fn median(mut work: impl FnMut()) -> Duration {
    let mut took: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            work();
            started.elapsed()
        })
        .collect();
    took.sort();
    took[ROUNDS / 2]
}

fn millis(took: Duration) -> f64 {
    took.as_secs_f64() * 1_000.0
}
