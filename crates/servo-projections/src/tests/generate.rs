//! Rows of every table with awkward values, from a seed. Rows are put together column by column, so a new table needs
//! nothing here unless it has a column of a new type.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;

use servo_core::{
    AssetId, AssetKey, AttemptId, BackfillId, EvaluationId, EventId, Fingerprint, MaterializationId,
    MicroUsd, Millis, PartitionKey, PlanId, RuleId, RunId, ScheduleId, SensorId, TaskKey, Timestamp,
};
use servo_engine::conditions::TraceNode;
use servo_engine::definitions::Condition;
use servo_engine::definitions::{
    AssetDef, CheckKind, Destination, FreshnessDef, IfRunning, Location, NotificationDef, ScheduleDef,
    SensorDef, Severity,
};
use servo_engine::event::{
    BackfillCreated, BackfillTarget, FailureThreshold, KeyRange, RequestedRun, SensorTrigger, TimerKind,
};
use servo_engine::notification::Facts;
use servo_engine::outputs::{CheckReport, OutputReport, Usage};
use servo_engine::planner::PartitionChoice;
use servo_engine::rows::{
    Column, ColumnSource, DefinitionChange, DefinitionKind, Json, JsonTexts, Name, ReadFrom, RowSource,
};
use servo_engine::{
    AttemptOutcome, AuditOutcome, AutomationStatus, BackfillState, Channel, ChunkState, DataFormat,
    DataStatus, ErrorCategory, ErrorCode, ExpectedCheck, FreshnessStatus, GatingDecision, NotificationStatus,
    NotificationTrigger, Origin, OutboxStatus, Outcome, OutputState, PastAttempt, PendingEvaluation,
    PendingTick, Positions, Principal, Provenance, Resolution, RetryPolicy, RunSource, RunState,
    RunTransitionReason, SensorKind, SensorStatus, SettingOrigin, TaskError, TaskOptions, TaskState,
    TickStatus, TimerState, TransitionReason, WorkerState,
};

use super::support::event;

const TEXTS: [&str; 8] =
    ["", "a", "日本語 ünï 🦀", "{\"k\":\"v\\u0000\"}", "NULL", " \t\n", "\u{0}\u{7f}", "x,y;'\"\\"];

pub(super) struct Generator {
    state: Cell<u64>,
    /// Values are few, so that keys meet often, and event ids are those of this batch.
    batch: Cell<Option<u64>>,
}

impl Generator {
    pub(super) fn new(seed: u64) -> Self {
        Self { state: Cell::new(seed ^ 0x9e37_79b9_7f4a_7c15), batch: Cell::new(None) }
    }

    /// From here on keys meet often, and versions are those of batch `seq`.
    pub(super) fn at_batch(&self, seq: u64) {
        self.batch.set(Some(seq));
    }

    pub(super) fn number(&self) -> u64 {
        self.state.set(self.state.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
        let mut z = self.state.get();
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&self, bound: u64) -> u64 {
        self.number() % bound
    }

    pub(super) fn pick<T: Copy>(&self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// A value of a column.
    pub(super) fn make<F: Make>(&self) -> F {
        F::make(self)
    }

    /// A row of a table.
    pub(super) fn row<R: ReadFrom<Self>>(&self) -> R {
        self.rows(1).remove(0)
    }

    pub(super) fn rows<R: ReadFrom<Self>>(&self, count: usize) -> Vec<R> {
        let Ok(rows) = R::read_rows(self, 0..count);
        rows
    }

    fn wide(&self) -> u128 {
        if self.batch.get().is_some() {
            return self.below(8).into();
        }
        match self.below(8) {
            0 => 0,
            1 => u128::MAX,
            _ => u128::from(self.number()) << 64 | u128::from(self.number()),
        }
    }
}

impl RowSource for Generator {
    type Error = Infallible;
}

/// Columns are made up cell by cell.
impl<F: Make> ColumnSource<F> for Generator {
    type Column = Generator;

    fn column(&self, _column: Column) -> Result<Generator, Infallible> {
        let column = Generator::new(self.number());
        column.batch.set(self.batch.get());
        Ok(column)
    }

    fn field(column: &Generator, _row: usize) -> Result<F, Infallible> {
        Ok(F::make(column))
    }
}

/// A value that can be made up.
pub(super) trait Make: Sized {
    fn make(from: &Generator) -> Self;
}

macro_rules! made {
    ($($type:ty: |$from:ident| $make:expr;)*) => {$(
        impl Make for $type {
            fn make($from: &Generator) -> Self {
                $make
            }
        }
    )*};
}

macro_rules! picked {
    ($($type:ty),* $(,)?) => {$(
        impl Make for $type {
            fn make(from: &Generator) -> Self {
                from.pick(<$type>::ALL)
            }
        }
    )*};
}

picked!(
    RunState,
    SettingOrigin,
    RunTransitionReason,
    TaskState,
    TransitionReason,
    Resolution,
    TimerState,
    OutboxStatus,
    AttemptOutcome,
    DataStatus,
    DataFormat,
    GatingDecision,
    OutputState,
    AuditOutcome,
    AutomationStatus,
    Origin,
    SensorKind,
    SensorStatus,
    TickStatus,
    BackfillState,
    ChunkState,
    WorkerState,
    NotificationTrigger,
    NotificationStatus,
    Channel
);

made! {
    bool: |from| from.below(2) == 0;
    DefinitionKind: |from| {
        from.pick(&[
            DefinitionKind::Asset,
            DefinitionKind::Schedule,
            DefinitionKind::Sensor,
            DefinitionKind::Notification,
        ])
    };
    DefinitionChange: |from| {
        from.pick(&[DefinitionChange::Added, DefinitionChange::Changed, DefinitionChange::Removed])
    };
    serde_json::Value: |from| serde_json::json!({"key": String::make(from), "n": [from.below(9), null]});
    i32: |from| from.pick(&[i32::MIN, i32::MAX, 0, -1, 7]);
    u32: |from| match from.below(4) {
        0 => 0,
        1 => u32::MAX,
        _ => from.number() as u32,
    };
    u64: |from| match (from.batch.get(), from.below(4)) {
        (Some(_), few) => few,
        (None, 0) => u64::MAX,
        (None, _) => from.number(),
    };
    u128: |from| from.wide();
    Positions: |from| Positions::of((0..from.below(5)).map(|_| from.below(10_000) as u32));
    String: |from| match (from.batch.get(), from.below(10)) {
        (Some(_), few) => from.pick(&TEXTS)[..].repeat(1 + few as usize % 2),
        (None, 0) => "long ".repeat(2_000),
        (None, _) => format!("{}{}", from.pick(&TEXTS), from.pick(&TEXTS)),
    };
    MicroUsd: |from| MicroUsd::new(from.pick(&[0, 1, i64::MAX as u64, u64::MAX]));
    Millis: |from| Millis::new(from.pick(&[0, 1, i64::MAX as u64, u64::MAX]));
    Timestamp: |from| match from.below(6) {
        0 => Timestamp::MIN,
        1 => Timestamp::MAX,
        2 => Timestamp::EPOCH,
        _ => Timestamp::from_millis(from.below(4_000_000_000_000) as i64),
    };
    EventId: |from| match from.batch.get() {
        Some(seq) => event((seq - 1) * 1_000 + 1 + from.below(999)),
        None => EventId::from_u128(from.wide()),
    };
    RunId: |from| RunId::from_u128(from.wide());
    PlanId: |from| PlanId::from_u128(from.wide());
    AttemptId: |from| AttemptId::from_u128(from.wide());
    MaterializationId: |from| MaterializationId::from_u128(from.wide());
    ScheduleId: |from| ScheduleId::from_u128(from.wide());
    SensorId: |from| SensorId::from_u128(from.wide());
    EvaluationId: |from| EvaluationId::from_u128(from.wide());
    RuleId: |from| RuleId::from_u128(from.wide());
    BackfillId: |from| BackfillId::from_u128(from.wide());
    AssetId: |from| AssetId::from_parts(from.below(1 << 48), from.wide());
    TaskKey: |from| {
        let partition = match from.below(4) {
            0 => String::new(),
            1 => "[date=d:2025-01-15]".to_owned(),
            2 => "[n=i:-9223372036854775808]".to_owned(),
            _ => format!("[n=i:{}]", from.below(100)),
        };
        let operation = from.pick(&["materialize", "check", "backfill"]);
        let name = from.pick(&["raw/events", "a/b", "analytics/delays"]);
        TaskKey::parse(&format!("{name}{partition}:{operation}")).unwrap()
    };
    AssetKey: |from| {
        AssetKey::parse_canonical(from.pick(&["raw/events", "a/b", "analytics/delays"])).unwrap()
    };
    PartitionKey: |from| {
        let text = format!("n=i:{},region=s:{}", from.below(30), from.pick(&["", "dXMtZWFzdA"]));
        PartitionKey::parse(&text).unwrap()
    };
    TimerKind: |from| {
        from.pick(&[TimerKind::Retry, TimerKind::HeartbeatCheck, TimerKind::DispatchAck, TimerKind::RunTimeout])
    };
    Outcome: |from| {
        from.pick(&[Outcome::Succeeded, Outcome::Failed, Outcome::Cancelled, Outcome::TimedOut])
    };
    ErrorCode: |from| from.pick(&[ErrorCode::NetworkError, ErrorCode::OutOfMemory, ErrorCode::CheckFailed]);
    ErrorCategory: |from| ErrorCode::make(from).category();
    CheckKind: |from| from.pick(&[CheckKind::RowCount, CheckKind::NotNull, CheckKind::Sql]);
    Severity: |from| {
        from.pick(&[Severity::Info, Severity::Warning, Severity::Error, Severity::Critical])
    };
    RunSource: |from| match from.below(4) {
        0 => RunSource::Manual,
        1 => RunSource::Retry { of: from.make(), from_failure: from.make() },
        2 => RunSource::Schedule { id: String::make(from).into(), tick: from.make() },
        _ => serde_json::from_str(r#"{"type":"webhook", "url":"größe"}"#).unwrap(),
    };
    Principal: |from| match from.below(3) {
        0 => Principal::system(),
        1 => Principal::user("zoë@example.org"),
        _ => Principal::parse(&String::make(from)),
    };
    PartitionChoice: |from| PartitionChoice {
        keys: from.make(),
        ranges: from.make(),
        latest: from.make(),
        missing: from.make(),
        failed: from.make(),
        stale: from.make(),
    };
    FreshnessStatus: |from| from.pick(FreshnessStatus::ALL);
    FreshnessDef: |from| FreshnessDef {
        max_lag_ms: from.make(),
        cron: from.make(),
        timezone: from.make(),
        warn_before_ms: from.make(),
    };
    Fingerprint: |from| Fingerprint::from_digest(from.make());
    [u8; 32]: |from| [from.below(256) as u8; 32];
    TaskOptions: |from| TaskOptions {
        priority: from.make(),
        retry: Option::<bool>::make(from).map(|_| RetryPolicy { retry_on: from.make(), ..RetryPolicy::default() }),
        timeout_ms: from.make(),
        worker_queue: Option::<String>::make(from).map(Arc::from),
        outputs: from.make(),
        config: from.make(),
        ..TaskOptions::default()
    };
    TaskError: |from| TaskError {
        code: from.make(),
        message: from.make(),
        error_type: from.make(),
        error_bases: from.make(),
        traceback: from.make(),
        suggested_action: Option::<String>::make(from).map(Box::from),
        details: from.make(),
    };
    Usage: |from| Usage {
        cpu_ms: from.make(),
        max_rss_bytes: from.make(),
        bytes_read: from.make(),
        bytes_written: from.make(),
        network_egress_bytes: from.make(),
    };
    JsonTexts: |from| JsonTexts::new(from.make());
    CheckReport: |from| CheckReport {
        name: from.make(),
        kind: from.make(),
        passed: from.make(),
        severity: from.make(),
        blocking: from.make(),
        message: from.make(),
        error: from.make(),
        metadata: from.make(),
        duration_ms: from.make(),
    };
    OutputReport: |from| OutputReport {
        format: from.make(),
        row_count: from.make(),
        schema: from.make(),
        metadata: from.make(),
        checks: from.make(),
        ..OutputReport::new(from.make(), from.make())
    };
    PastAttempt: |from| PastAttempt {
        attempt: from.make(),
        attempt_id: from.make(),
        reason: from.make(),
        started_at: from.make(),
        ended_at: from.make(),
        worker_id: Option::<String>::make(from).map(Arc::from),
        error: from.make(),
        usage: from.make(),
    };
    ExpectedCheck: |from| ExpectedCheck {
        output: from.make(),
        name: from.make(),
        severity: from.make(),
        blocking: from.make(),
    };
    Provenance: |from| Provenance {
        deployment: from.make(),
        definition_changed: from.make(),
        checks: from.make(),
        ..Provenance::default()
    };
    RequestedRun: |from| RequestedRun {
        run_key: String::make(from).into(),
        run_id: from.make(),
        request_fingerprint: from.make(),
    };
    KeyRange: |from| KeyRange { from: from.make(), to: from.make() };
    BackfillTarget: |from| BackfillTarget { asset: from.make(), partitions: from.make(), packed: None };
    FailureThreshold: |from| match from.below(2) {
        0 => FailureThreshold::Percent(10),
        _ => FailureThreshold::Count(from.make()),
    };
    BackfillCreated: |from| BackfillCreated {
        backfill_id: from.make(),
        client_request_id: Option::<String>::make(from).map(Arc::from),
        request_fingerprint: from.make(),
        asset_selection: from.make(),
        partition_selector: from.make(),
        as_of: from.make(),
        targets: from.make(),
        total_partitions: from.make(),
        total_chunks: from.make(),
        chunk_size: from.make(),
        max_concurrent_runs: from.make(),
        parent_backfill_id: from.make(),
        stop_on_failure: from.make(),
        failure_threshold: from.make(),
        config: from.make(),
        priority: from.make(),
        labels: from.make(),
    };
    Condition: |from| match from.below(3) {
        0 => Condition::Missing,
        1 => Condition::And {
            of: vec![Condition::Stale, Condition::CronTick { cron: from.make(), timezone: from.make() }],
        },
        _ => Condition::AtMost { times: from.make(), per_ms: from.make() },
    };
    TraceNode: |from| TraceNode {
        label: from.make(),
        holds: from.make(),
        of: from.make(),
        since: from.make(),
        parts: Vec::new(),
    };
    ScheduleDef: |from| ScheduleDef {
        name: from.make(),
        location: Location::default(),
        cron: from.make(),
        timezone: from.make(),
        function: from.make(),
        selection: from.make(),
        description: from.make(),
        tags: from.make(),
        enabled: from.make(),
        partitions: from.make(),
        catch_up_on_resume: from.make(),
        config: from.make(),
        priority: from.make(),
        catchup_window_minutes: from.make(),
        max_catchup_ticks: from.make(),
        if_running: from.pick(&[IfRunning::Allow, IfRunning::Skip, IfRunning::Queue]),
        timeout_ms: from.make(),
    };
    PendingTick: |from| PendingTick {
        evaluation_id: from.make(),
        attempt: from.make(),
        requested_at: from.make(),
        deadline: from.make(),
    };
    SensorTrigger: |from| match from.below(3) {
        0 => SensorTrigger::Poll { poll_epoch: from.below(1 << 40) as i64 },
        1 => SensorTrigger::Push { message_id: String::make(from).into() },
        _ => SensorTrigger::Asset { message_id: String::make(from).into() },
    };
    PendingEvaluation: |from| PendingEvaluation {
        evaluation_id: from.make(),
        trigger: from.make(),
        attempt: from.make(),
        expected_state_version: from.make(),
        requested_at: from.make(),
        deadline: from.make(),
    };
    SensorDef: |from| SensorDef {
        name: from.make(),
        location: Location::default(),
        function: from.make(),
        selection: from.make(),
        description: from.make(),
        tags: from.make(),
        enabled: from.make(),
        interval_ms: from.make(),
        push: from.make(),
        timeout_ms: from.make(),
        config: from.make(),
        priority: from.make(),
        on: from.make(),
        all_of: from.make(),
        run_status: from.make(),
        verify: None,
    };
    NotificationDef: |from| NotificationDef {
        name: from.make(),
        location: Location::default(),
        when: from.make(),
        to: vec![Destination::Command { command: from.make(), timeout_ms: from.make() }],
        selection: from.make(),
        description: from.make(),
        title: from.make(),
        body: from.make(),
        enabled: from.make(),
        max_per_hour: from.make(),
    };
    Facts: |from| Facts {
        at: from.make(),
        summary: from.make(),
        assets: from.make(),
        more_assets: from.make(),
        partition: from.make(),
        owners: from.make(),
        error: from.make(),
        run_id: from.make(),
        check: from.make(),
        schedule: from.make(),
        sensor: from.make(),
        queue: from.make(),
        left_out: from.make(),
    };
    AssetDef: |from| AssetDef {
        key: from.make(),
        description: from.make(),
        kinds: from.make(),
        tags: from.make(),
        priority: from.make(),
        ..AssetDef::default()
    };
}

impl<T: Make> Make for Option<T> {
    fn make(from: &Generator) -> Self {
        (from.below(2) == 0).then(|| T::make(from))
    }
}

impl<T: Make> Make for Vec<T> {
    fn make(from: &Generator) -> Self {
        (0..from.below(3)).map(|_| T::make(from)).collect()
    }
}

impl<T: Make + Ord> Make for BTreeSet<T> {
    fn make(from: &Generator) -> Self {
        (0..from.below(3)).map(|_| T::make(from)).collect()
    }
}

impl<T: Make> Make for Arc<T> {
    fn make(from: &Generator) -> Self {
        Arc::new(T::make(from))
    }
}

impl Make for Arc<str> {
    fn make(from: &Generator) -> Self {
        String::make(from).into()
    }
}

impl<T: Make> Make for Arc<[T]> {
    fn make(from: &Generator) -> Self {
        Vec::make(from).into()
    }
}

impl<A: Make, B: Make> Make for (A, B) {
    fn make(from: &Generator) -> Self {
        (A::make(from), B::make(from))
    }
}

impl<A: Make, B: Make, C: Make> Make for (A, B, C) {
    fn make(from: &Generator) -> Self {
        (A::make(from), B::make(from), C::make(from))
    }
}

impl<K: Make + Ord, V: Make> Make for BTreeMap<K, V> {
    fn make(from: &Generator) -> Self {
        (0..from.below(3)).map(|_| (K::make(from), V::make(from))).collect()
    }
}

impl<T: Make> Make for Json<T> {
    fn make(from: &Generator) -> Self {
        Self(T::make(from))
    }
}

impl<T: Make> Make for Name<T> {
    fn make(from: &Generator) -> Self {
        Self(T::make(from))
    }
}
