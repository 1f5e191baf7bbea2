//! Declarations of the project of some seeds, beside its assets: what asks for work by itself, and what looks after data.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::Millis;
use servo_engine::definitions::{
    AssetDef, Condition, DepDef, Destination, FreshnessDef, Location, NotificationDef, SensorDef,
    TextOrSecret,
};
use servo_engine::{NotificationTrigger, RunState};

use crate::rng::Rng;

/// The parts of a project that only some seeds have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Declared {
    /// Sensors of every kind.
    pub sensors: bool,
    /// A schedule of the hour that clocks show twice.
    pub change_of_clocks: bool,
    /// A chain of assets with conditions.
    pub conditions: bool,
    /// Rules of whom to tell what.
    pub notifications: bool,
    /// Assets that must not get old.
    pub freshness: bool,
    /// Assets that count for a while.
    pub expiry: bool,
    /// An asset that every version of the project but one gives another name.
    pub renames: bool,
    /// Pools of tasks, and labels of runs, that have limits.
    pub limits: bool,
}

/// The pools of the project.
pub const POOLS: [&str; 2] = ["disk", "net"];

/// The label that says whom a run is for.
pub const CUSTOMER: &str = "customer";
/// Its values.
pub const CUSTOMERS_OF_RUNS: [&str; 2] = ["ada", "bob"];

/// The pool of a task with this number, where pools have limits: of three, one has none.
pub fn pool(number: usize) -> Option<&'static str> {
    POOLS.get(number % 3).copied()
}

impl Declared {
    /// Those of a seed, with chances of their own.
    pub fn of(seed: u64) -> Self {
        let limits = Rng::fork(seed, 59).chance(350);
        if seed % 6 != 5 {
            return Self { limits, ..Self::default() };
        }
        let mut rng = Rng::fork(seed, 31);
        Self {
            limits,
            sensors: rng.chance(600),
            change_of_clocks: rng.chance(250),
            conditions: rng.chance(600),
            notifications: rng.chance(500),
            freshness: rng.chance(500),
            expiry: rng.chance(500),
            renames: rng.chance(500),
        }
    }
}

/// A sensor that polls. It is paused until somebody resumes it, so that the world can come to rest.
pub const POLL: &str = "poll";
/// A sensor that is told something, and calls a function with it.
pub const PUSHED: &str = "pushed";
/// The same without a function; nobody has declared it.
pub const TOLD: &str = "told";

/// The rule that people pause and test.
pub const RULE: &str = "runs";

/// Where sensors and schedules of the project are declared.
pub fn location() -> Location {
    Location { file: "sim.py".into(), line: 1 }
}

/// Assets with conditions, each made of the one before it, and the first of what every version of the project has.
pub const CHAIN: [&str; 3] = ["e1", "e2", "e3"];

/// The chain: two are made whenever what they read was made, the last one only if it is missing. The code of the second
/// never changes.
pub fn chain(version: u8) -> Vec<Arc<AssetDef>> {
    let asset = |at: usize, condition: Condition| {
        let upstream = if at == 0 { "n20" } else { CHAIN[at - 1] };
        let code = if at == 1 { 0 } else { version };
        Arc::new(AssetDef {
            key: format!("t/{}", CHAIN[at]),
            function: Some("sim:asset".to_owned()),
            code_version: Some(format!("v{code}")),
            deps: vec![DepDef {
                asset: Some(format!("t/{upstream}")),
                parameter: Some("read".to_owned()),
                ..DepDef::default()
            }],
            automation: Some(Arc::new(condition)),
            ..AssetDef::default()
        })
    };
    vec![asset(0, eager()), asset(1, eager()), asset(2, on_missing())]
}

/// An asset that has one name in even versions of the project, and another in odd ones.
pub fn renamed(version: u8) -> Arc<AssetDef> {
    let (name, before) = if version.is_multiple_of(2) { ("even", "odd") } else { ("odd", "even") };
    Arc::new(AssetDef {
        key: format!("t/{name}"),
        renamed_from: Some(format!("t/{before}")),
        function: Some("sim:asset".to_owned()),
        code_version: Some(format!("v{version}")),
        quarantine: true,
        deps: vec![DepDef {
            asset: Some("t/n20".to_owned()),
            parameter: Some("read".to_owned()),
            ..DepDef::default()
        }],
        automation: Some(Arc::new(eager())),
        ..AssetDef::default()
    })
}

fn upstream(of: Condition) -> Condition {
    Condition::AnyUpstream { of: Box::new(of), only: Vec::new(), ignore: Vec::new() }
}

fn not(of: Condition) -> Condition {
    Condition::Not { of: Box::new(of) }
}

fn named(name: &str, of: Vec<Condition>) -> Condition {
    Condition::Named { name: name.into(), of: Box::new(Condition::And { of }) }
}

/// As `servo.eager()` declares it.
fn eager() -> Condition {
    let news = vec![Condition::NewPartition, upstream(Condition::Updated)];
    let held = [not(upstream(Condition::Missing)), not(upstream(Condition::InProgress))];
    let parts = std::iter::once(Condition::Or { of: news }).chain(held);
    named("eager()", parts.chain([not(Condition::InProgress)]).collect())
}

/// As `servo.on_missing()` declares it.
fn on_missing() -> Condition {
    let held = [not(upstream(Condition::Missing)), not(upstream(Condition::InProgress))];
    let parts = std::iter::once(Condition::Missing).chain(held);
    named("on_missing()", parts.chain([not(Condition::InProgress)]).collect())
}

fn sensor(name: &str) -> SensorDef {
    SensorDef {
        name: name.into(),
        location: location(),
        function: None,
        selection: None,
        description: None,
        tags: BTreeMap::new(),
        enabled: true,
        interval_ms: None,
        push: false,
        timeout_ms: None,
        config: BTreeMap::new(),
        priority: 0,
        on: Vec::new(),
        all_of: false,
        run_status: Vec::new(),
        verify: None,
    }
}

/// The sensors of the project. None of them asks, even through others, for what it waits for: all comes to an end.
pub fn sensors() -> Vec<Arc<SensorDef>> {
    let function = |name: &str| Some(format!("sim:{name}"));
    let selection = |text: &str| Some(text.to_owned());
    let assets = |names: &[&str]| names.iter().map(|name| format!("t/{name}")).collect();
    let all = [
        SensorDef {
            function: function(POLL),
            enabled: false,
            interval_ms: Some(Millis::from_secs(5)),
            timeout_ms: Some(Millis::from_secs(20)),
            ..sensor(POLL)
        },
        SensorDef {
            function: function(PUSHED),
            push: true,
            timeout_ms: Some(Millis::from_secs(20)),
            ..sensor(PUSHED)
        },
        SensorDef { on: assets(&["n20"]), selection: selection("t.n16"), ..sensor("made") },
        SensorDef {
            on: assets(&["n20", "n16"]),
            all_of: true,
            selection: selection("t.n13"),
            ..sensor("all_made")
        },
        SensorDef {
            run_status: vec![RunState::Failed, RunState::TimedOut],
            selection: selection("t.n12"),
            ..sensor("failed")
        },
    ];
    all.into_iter().map(Arc::new).collect()
}

/// The rules of the project: one that tells of little, to two receivers and also when it is over, and one that is told
/// of too much to tell all of it.
pub fn rules() -> Vec<Arc<NotificationDef>> {
    let webhook = || Destination::Webhook {
        url: TextOrSecret::Text("http://sim".to_owned()),
        headers: BTreeMap::new(),
        json: None,
        secret: None,
    };
    let rule = |name: &str, when: Vec<NotificationTrigger>, to, max_per_hour| {
        Arc::new(NotificationDef {
            name: name.into(),
            location: location(),
            when,
            to,
            selection: None,
            description: None,
            title: None,
            body: None,
            enabled: true,
            max_per_hour,
        })
    };
    use NotificationTrigger::{FreshnessMissed, Recovered, RetriesExhausted, RunFailed, SensorError};
    let command = Destination::Command { command: vec!["tell".to_owned()], timeout_ms: None };
    vec![
        rule(RULE, vec![RunFailed, SensorError, FreshnessMissed, Recovered], vec![webhook(), command], 60),
        rule("tasks", vec![RetriesExhausted], vec![webhook()], 2),
    ]
}

/// How old the data of an asset may be, if that is anything: for a while, with a warning before; or, at every minute, no
/// older than the minute before.
pub fn freshness(asset: &str) -> Option<FreshnessDef> {
    let policy =
        FreshnessDef { max_lag_ms: Millis::ZERO, cron: None, timezone: None, warn_before_ms: Millis::ZERO };
    match asset {
        "n16" => Some(FreshnessDef { cron: Some("* * * * *".to_owned()), ..policy }),
        "n12" => Some(FreshnessDef {
            max_lag_ms: Millis::from_secs(40),
            warn_before_ms: Millis::from_secs(15),
            ..policy
        }),
        _ => None,
    }
}

/// For how long what is made of an asset counts, if that is not for ever.
pub fn expiry(asset: &str) -> Option<Millis> {
    matches!(asset, "n18" | "n19" | "n11").then(|| Millis::from_secs(50))
}

/// A sensor that anybody may create: messages to it request assets of which one version of the project has not all.
pub fn told() -> Arc<SensorDef> {
    Arc::new(SensorDef { push: true, selection: Some("t.n20 | t.n18".to_owned()), ..sensor(TOLD) })
}
