//! Projects and graphs to deploy and run, generated from numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::{
    AssetKey, Millis, Operation, PartitionKey, PartitionValue, PartitionsDef, TaskKey, TenantId, WorkspaceId,
};
use servo_engine::definitions::{
    AssetDef, CheckDef, CheckKind, DepDef, IfRunning, Phase, ScheduleDef, Severity,
};
use servo_engine::planner::PartitionChoice;
use servo_engine::{Caller, DepSet, Deploy, Plan, Positions, RetryPolicy, TaskOptions, TaskRequest};

use crate::declared::{self, Declared};
use crate::rng::Rng;

const ASSETS: usize = 10;

/// Keys of dynamic partitions are found under this name.
pub const CUSTOMERS: &str = "customers";

/// An asset of many partitions, for backfills. One version of the project is without it.
pub const WIDE: &str = "wide";

/// Its partitions.
pub fn wide_keys() -> Vec<String> {
    (0..6).map(|n| format!("w{n}")).collect()
}

/// The schedule of the hour that clocks show twice: it ticks when they show it for the first time.
pub const NIGHT: u8 = 9;

/// A schedule with this number: every half minute or every minute, of assets of which some versions have not all.
pub fn schedule(number: u8) -> ScheduleDef {
    let cron = match number {
        NIGHT => "0-59/3 2 * * *",
        _ if number.is_multiple_of(2) => "*/30 * * * * *",
        _ => "0 * * * * *",
    };
    let selection = if number < 2 { "t.n20" } else { "t.n20 | t.n18" };
    let if_running = [IfRunning::Allow, IfRunning::Skip, IfRunning::Queue][usize::from(number) % 3];
    ScheduleDef {
        name: format!("s{number}").into(),
        location: declared::location(),
        cron: cron.into(),
        timezone: (number == NIGHT).then(|| "Europe/Amsterdam".into()),
        function: None,
        selection: Some(selection.into()),
        description: None,
        tags: BTreeMap::new(),
        enabled: true,
        partitions: PartitionChoice::default(),
        catch_up_on_resume: false,
        config: BTreeMap::new(),
        priority: 0,
        catchup_window_minutes: ScheduleDef::DEFAULT_WINDOW_MINUTES,
        max_catchup_ticks: ScheduleDef::DEFAULT_CATCHUP_TICKS,
        if_running,
        timeout_ms: None,
    }
}

fn name(i: usize) -> String {
    // Names run against the order of the graph, so that "smallest key" and "first in the graph" differ.
    format!("n{:02}", 20 - i)
}

/// The second output of an asset's function.
fn second_output(i: usize) -> String {
    format!("{}_also", name(i))
}

/// The partitions of some assets: static keys, or keys that people add and remove.
fn partitions(i: usize) -> Option<PartitionsDef> {
    match i {
        1 | 9 => Some(PartitionsDef::Static { keys: keys(i).map(str::to_owned).into() }),
        5 => Some(PartitionsDef::Dynamic { name: CUSTOMERS.to_owned() }),
        _ => None,
    }
}

fn keys(i: usize) -> [&'static str; 2] {
    if i == 5 { ["k0", "k1"] } else { ["east", "west"] }
}

/// Assets that read the first one, which every version of the project has. None of them has partitions.
const READERS: [usize; 5] = [2, 4, 6, 7, 8];

fn reads(upstream: &str) -> DepDef {
    DepDef { asset: Some(format!("t/{upstream}")), parameter: Some("read".to_owned()), ..DepDef::default() }
}

fn rows_check() -> CheckDef {
    CheckDef {
        name: "rows".to_owned(),
        kind: CheckKind::RowCount,
        severity: Severity::Critical,
        phase: Phase::Post,
        blocking: None,
        timeout_ms: None,
        location: None,
        function: None,
        description: None,
        spec: BTreeMap::new(),
    }
}

/// A version of the project: all assets, or most of them.
pub fn project(version: u8, declared: Declared) -> Deploy {
    let left_out = usize::from(version) * 3;
    let there = (0..ASSETS).filter(|i| version == 0 || i % 7 != left_out % 7);
    let assets = there.flat_map(|i| {
        [name(i), second_output(i)].map(|name| {
            Arc::new(AssetDef {
                expires_after_ms: declared::expiry(&name).filter(|_| declared.expiry),
                freshness: declared::freshness(&name).filter(|_| declared.freshness),
                key: format!("t/{name}"),
                function: Some("sim:asset".to_owned()),
                code_version: Some(format!("v{version}")),
                partitions: partitions(i),
                pool: declared::pool(i).filter(|_| declared.limits).map(str::to_owned),
                quarantine: i % 2 == 0,
                deps: if READERS.contains(&i) { vec![reads(&self::name(0))] } else { Vec::new() },
                checks: if i % 3 == 1 { Arc::new([rows_check()]) } else { Arc::default() },
                ..AssetDef::default()
            })
        })
    });
    let wide = (version != 3).then(|| {
        Arc::new(AssetDef {
            key: format!("t/{WIDE}"),
            function: Some("sim:asset".to_owned()),
            code_version: Some(format!("v{version}")),
            partitions: Some(PartitionsDef::Static { keys: wide_keys() }),
            pool: declared.limits.then(|| declared::POOLS[0].to_owned()),
            ..AssetDef::default()
        })
    });
    let chain = if declared.conditions { declared::chain(version) } else { Vec::new() };
    let renamed = declared.renames.then(|| declared::renamed(version));
    Deploy {
        schedules: Vec::new(),
        sensors: if declared.sensors { declared::sensors() } else { Vec::new() },
        notifications: if declared.notifications { declared::rules() } else { Vec::new() },
        time_zones: "2026e".into(),
        digest: format!("sha256:{version:02x}").into(),
        project: "sim".to_owned(),
        assets: assets.chain(wide).chain(chain).chain(renamed).collect(),
        caller: Caller::user("me"),
    }
}

/// A graph of up to ten tasks.
pub fn plan(tenant: &TenantId, workspace: &WorkspaceId, seed: u64, number: u64) -> Plan {
    let mut rng = Rng::fork(seed, 1_000 + number);
    let size = 1 + rng.below(ASSETS);
    let shape = rng.below(3);
    let limits = Declared::of(seed).limits;
    let task_key = |i: usize| {
        let partition = partitions(i).map(|_| partition(keys(i)[number as usize % 2]));
        let operation = if i % 4 == 3 { Operation::Check } else { Operation::Materialize };
        TaskKey::new(&asset(&name(i)), partition.as_ref(), operation)
    };
    let tasks = (0..size).map(|i| {
        let upstream = (0..i).filter(|j| match shape {
            0 => j + 1 == i,
            1 => *j == 0 || i + 1 == size,
            _ => rng.chance(350),
        });
        let upstream = upstream.map(task_key).collect();
        let retry = match rng.below(4) {
            0 => None,
            n => Some(RetryPolicy { max_attempts: n as u32, ..RetryPolicy::default() }),
        };
        let options = TaskOptions {
            priority: rng.below(3) as i32,
            retry,
            timeout_ms: rng.chance(200).then(|| Millis::from_secs(30)),
            heartbeat_timeout_ms: rng.chance(150).then(|| Millis::from_secs(25)),
            outputs: (0..rng.below(4) / 2).map(|_| asset(&second_output(i))).collect(),
            config: BTreeMap::new(),
            pool: declared::pool(i).filter(|_| limits).map(Into::into),
            ..TaskOptions::default()
        };
        TaskRequest { key: task_key(i), upstream, options }
    });
    let mut tasks: Vec<TaskRequest> = tasks.collect();
    let mut sets = Vec::new();
    // Two layers of which every task of the second waits for all of the first.
    if size >= 4 && Rng::fork(seed, 5_000 + number).chance(200) {
        tasks.sort_by(|a, b| a.key.cmp(&b.key));
        let (half, all) = (size as u32 / 2, size as u32);
        tasks.iter_mut().for_each(|task| task.upstream.clear());
        sets.push(DepSet { upstream: Positions::of(0..half), downstream: Positions::of(half..all) });
    }
    Plan::build_with_sets(tenant, workspace, tasks, sets, 10_000).expect("a graph without cycles")
}

fn asset(name: &str) -> AssetKey {
    AssetKey::new("t", name).expect("a key")
}

fn partition(key: &str) -> PartitionKey {
    let value = PartitionValue::Str(key.to_owned());
    PartitionKey::new(&[("partition".to_owned(), value)].into()).expect("a partition")
}
