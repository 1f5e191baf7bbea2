//! What is deployed and run: small projects and graphs, drawn from numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::{AssetKey, Millis, TaskKey, TenantId, WorkspaceId};
use servo_engine::definitions::AssetDef;
use servo_engine::{Deploy, Plan, RetryPolicy, TaskOptions, TaskRequest};

use crate::dice::Dice;

const ASSETS: usize = 10;

fn name(i: usize) -> String {
    // Names run against the order of the graph, so that "smallest key" and "first in the graph" differ.
    format!("n{:02}", 20 - i)
}

/// A version of the project: all assets, or most of them.
pub fn project(version: u8) -> Deploy {
    let left_out = usize::from(version) * 3;
    let assets = (0..ASSETS).filter(|i| version == 0 || i % 7 != left_out % 7).map(|i| {
        Arc::new(AssetDef {
            key: format!("t/{}", name(i)),
            function: Some("sim:asset".to_owned()),
            code_version: Some(format!("v{version}")),
            quarantine: i % 2 == 0,
            ..AssetDef::default()
        })
    });
    Deploy {
        digest: format!("sha256:{version:02x}").into(),
        project: "sim".to_owned(),
        assets: assets.collect(),
        actor: "me".to_owned(),
    }
}

/// A graph of up to ten tasks.
pub fn plan(tenant: &TenantId, workspace: &WorkspaceId, seed: u64, number: u64) -> Plan {
    let mut dice = Dice::fork(seed, 1_000 + number);
    let size = 1 + dice.below(ASSETS);
    let shape = dice.below(3);
    let task_key = |i: usize| match i % 4 {
        1 => TaskKey::parse(&format!("t/{}[p=i:{i}]:materialize", name(i))).expect("a task key"),
        3 => TaskKey::parse(&format!("t/{}:check", name(i))).expect("a task key"),
        _ => TaskKey::parse(&format!("t/{}:materialize", name(i))).expect("a task key"),
    };
    let tasks = (0..size).map(|i| {
        let upstream = (0..i).filter(|j| match shape {
            0 => j + 1 == i,
            1 => *j == 0 || i + 1 == size,
            _ => dice.chance(350),
        });
        let upstream = upstream.map(task_key).collect();
        let retry = match dice.below(4) {
            0 => None,
            n => Some(RetryPolicy { max_attempts: n as u32, ..RetryPolicy::default() }),
        };
        let options = TaskOptions {
            priority: dice.below(3) as i32,
            retry,
            timeout_ms: dice.chance(200).then(|| Millis::from_secs(30)),
            heartbeat_timeout_ms: dice.chance(150).then(|| Millis::from_secs(25)),
            outputs: (0..dice.below(4) / 2)
                .map(|n| AssetKey::new("t", &format!("also_{n}")).expect("a key"))
                .collect(),
            config: BTreeMap::new(),
            ..TaskOptions::default()
        };
        TaskRequest { key: task_key(i), upstream, options }
    });
    Plan::build(tenant, workspace, tasks.collect(), 10_000).expect("a graph without cycles")
}
