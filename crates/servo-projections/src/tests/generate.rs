//! Rows of every kind with awkward values, from a seed.

use servo_core::{
    AssetId, AssetKey, AttemptId, EventId, Fingerprint, MaterializationId, Millis, PartitionKey, PlanId,
    RunId, TaskKey, Timestamp,
};
use servo_engine::event::TimerKind;
use servo_engine::rows::{
    AssetDefinitionRow, CheckResultRow, DeploymentRow, DynamicPartitionRow, EdgeRow, IdempotencyRow,
    MaterializationRow, OutboxRow, PartitionSetRow, PartitionStatusRow, QuarantineRow, RunKeyConflictRow,
    RunKeyRow, RunRow, TaskRow, TimerRow,
};
use servo_engine::{
    AttemptOutcome, DataFormat, DataStatus, OutboxStatus, Resolution, RunState, RunTransitionReason,
    TaskState, TimerState, TransitionReason,
};

const TEXTS: [&str; 8] =
    ["", "a", "日本語 ünï 🦀", "{\"k\":\"v\\u0000\"}", "NULL", " \t\n", "\u{0}\u{7f}", "x,y;'\"\\"];

pub(super) struct Generator(u64);

impl Generator {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    pub(super) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }

    pub(super) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    fn wide(&mut self) -> u128 {
        match self.below(8) {
            0 => 0,
            1 => u128::MAX,
            _ => u128::from(self.number()) << 64 | u128::from(self.number()),
        }
    }

    fn text(&mut self) -> String {
        match self.below(10) {
            0 => "long ".repeat(2_000),
            _ => format!("{}{}", self.pick(&TEXTS), self.pick(&TEXTS)),
        }
    }

    fn int(&mut self) -> u32 {
        match self.below(4) {
            0 => 0,
            1 => u32::MAX,
            _ => self.number() as u32,
        }
    }

    pub(super) fn at(&mut self) -> Timestamp {
        match self.below(6) {
            0 => Timestamp::MIN,
            1 => Timestamp::MAX,
            2 => Timestamp::EPOCH,
            _ => Timestamp::from_millis(self.below(4_000_000_000_000) as i64),
        }
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.below(2) == 0).then(|| make(self))
    }

    pub(super) fn event(&mut self) -> EventId {
        EventId::from_u128(self.wide())
    }

    pub(super) fn run_id(&mut self) -> RunId {
        RunId::from_u128(self.wide())
    }

    pub(super) fn task_key(&mut self) -> TaskKey {
        let partition = match self.below(4) {
            0 => String::new(),
            1 => "[date=d:2025-01-15]".to_owned(),
            2 => "[n=i:-9223372036854775808]".to_owned(),
            _ => format!("[n=i:{}]", self.below(100)),
        };
        let operation = self.pick(&["materialize", "check", "backfill"]);
        let name = self.pick(&["raw/events", "a/b", "analytics/delays"]);
        TaskKey::parse(&format!("{name}{partition}:{operation}")).unwrap()
    }

    pub(super) fn run(&mut self) -> RunRow {
        RunRow {
            run_id: self.run_id(),
            requested_event_id: self.event(),
            run_key: self.text(),
            request_fingerprint: self.text(),
            plan_id: self.maybe(|g| PlanId::from_u128(g.wide())),
            plan_fingerprint: self.maybe(Self::text),
            state: self.pick(RunState::ALL),
            transition_reason: self.pick(RunTransitionReason::ALL),
            source_type: self.text(),
            source: self.text(),
            requested_by: self.text(),
            request_id: self.maybe(Self::text),
            selection: self.text(),
            partitions: self.text(),
            config: self.text(),
            labels: self.text(),
            priority: self.pick(&[i32::MIN, i32::MAX, 0, -1, 7]),
            tasks_total: self.int(),
            tasks_succeeded: self.int(),
            tasks_failed: self.int(),
            tasks_skipped: self.int(),
            tasks_cancelled: self.int(),
            timeout: self.maybe(|g| Millis::new(g.pick(&[0, 1, i64::MAX as u64, u64::MAX]))),
            created_at: self.at(),
            started_at: self.maybe(Self::at),
            finished_at: self.maybe(Self::at),
            cancel_requested_at: self.maybe(Self::at),
            cancel_actor: self.maybe(Self::text),
            cancel_reason: self.maybe(Self::text),
            finished_event_id: self.maybe(Self::event),
            row_version: self.event(),
        }
    }

    pub(super) fn task(&mut self) -> TaskRow {
        TaskRow {
            run_id: self.run_id(),
            requested_event_id: self.event(),
            task_key: self.task_key(),
            asset_key: self.text(),
            partition_key: self.maybe(Self::text),
            operation: self.text(),
            state: self.pick(TaskState::ALL),
            transition_reason: self.pick(TransitionReason::ALL),
            transition_at: self.at(),
            attempt: self.int(),
            attempt_id: self.maybe(|g| AttemptId::from_u128(g.wide())),
            failures: self.int(),
            interruptions: self.int(),
            deps_total: self.int(),
            deps_satisfied_count: self.int(),
            deps_satisfied_at: self.maybe(Self::at),
            options: self.text(),
            ready_at: self.maybe(Self::at),
            dispatched_at: self.maybe(Self::at),
            started_at: self.maybe(Self::at),
            last_heartbeat_at: self.maybe(Self::at),
            finished_at: self.maybe(Self::at),
            retry_at: self.maybe(Self::at),
            worker_id: self.maybe(Self::text),
            progress_ppm: self.maybe(Self::int),
            progress_message: self.maybe(Self::text),
            caused_by: self.maybe(Self::task_key),
            error: self.maybe(Self::text),
            error_code: self.maybe(Self::text),
            late_outcome: self.maybe(Self::text),
            materialization_id: self.maybe(|g| MaterializationId::from_u128(g.wide())),
            outputs: self.maybe(Self::text),
            usage: self.maybe(Self::text),
            past_attempts: self.maybe(Self::text),
            row_version: self.event(),
        }
    }

    pub(super) fn edge(&mut self) -> EdgeRow {
        EdgeRow {
            run_id: self.run_id(),
            requested_event_id: self.event(),
            upstream_task_key: self.task_key(),
            downstream_task_key: self.task_key(),
            satisfied: self.below(2) == 0,
            resolution: self.maybe(|g| g.pick(Resolution::ALL)),
            satisfied_at: self.maybe(Self::at),
            satisfying_attempt: self.maybe(Self::int),
            row_version: self.event(),
        }
    }

    pub(super) fn timer(&mut self) -> TimerRow {
        TimerRow {
            timer_id: self.text(),
            cloud_task_id: self.text(),
            timer_type: self.pick(&[
                TimerKind::Retry,
                TimerKind::HeartbeatCheck,
                TimerKind::DispatchAck,
                TimerKind::RunTimeout,
            ]),
            run_id: self.run_id(),
            task_key: self.task_key(),
            attempt: self.int(),
            fire_at: self.at(),
            state: self.pick(TimerState::ALL),
            row_version: self.event(),
        }
    }

    pub(super) fn outbox(&mut self) -> OutboxRow {
        OutboxRow {
            dispatch_id: self.text(),
            cloud_task_id: self.text(),
            run_id: self.run_id(),
            task_key: self.task_key(),
            attempt: self.int(),
            attempt_id: AttemptId::from_u128(self.wide()),
            status: self.pick(OutboxStatus::ALL),
            worker_queue: self.text(),
            created_at: self.at(),
            row_version: self.event(),
        }
    }

    fn fingerprint(&mut self) -> Fingerprint {
        Fingerprint::from_digest([self.below(256) as u8; 32])
    }

    pub(super) fn run_key(&mut self) -> RunKeyRow {
        let (run_id, fingerprint) = (self.run_id(), self.fingerprint());
        RunKeyRow {
            run_id,
            key_hash: run_id.to_u128(),
            run_key: self.text(),
            request_fingerprint: fingerprint.clone(),
            fingerprint_digest: fingerprint.digest(),
            created_at: self.at(),
            row_version: self.event(),
        }
    }

    pub(super) fn conflict(&mut self) -> RunKeyConflictRow {
        RunKeyConflictRow {
            run_id: self.run_id(),
            run_key: self.text(),
            existing_fingerprint: self.fingerprint(),
            conflicting_fingerprint: self.fingerprint(),
            conflicting_event_id: self.event(),
            detected_at: self.at(),
            row_version: self.event(),
        }
    }

    pub(super) fn idempotency(&mut self) -> IdempotencyRow {
        IdempotencyRow {
            key_hash: self.wide(),
            idempotency_key: self.text(),
            event_id: self.event(),
            created_at: self.at(),
            row_version: self.event(),
        }
    }

    fn asset(&mut self) -> AssetKey {
        let name = self.pick(&["raw/events", "a/b", "analytics/delays"]);
        AssetKey::parse_canonical(name).unwrap()
    }

    fn partition(&mut self) -> PartitionKey {
        let text = format!("n=i:{},region=s:{}", self.below(30), self.pick(&["", "dXMtZWFzdA"]));
        PartitionKey::parse(&text).unwrap()
    }

    pub(super) fn asset_definition(&mut self) -> AssetDefinitionRow {
        AssetDefinitionRow {
            asset_key: self.asset(),
            asset_id: AssetId::from_parts(self.below(1 << 48), self.wide()),
            definition: self.text(),
            code_version: self.maybe(Self::text),
            group_name: self.maybe(Self::text),
            deployment_number: self.number(),
            deployment_digest: self.text(),
            deployed_at: self.at(),
            removed_at: self.maybe(Self::at),
            row_version: self.event(),
        }
    }

    pub(super) fn deployment(&mut self) -> DeploymentRow {
        DeploymentRow {
            number: self.number(),
            digest: self.text(),
            project: self.text(),
            actor: self.text(),
            assets: self.int(),
            assets_upserted: self.int(),
            assets_removed: self.int(),
            deployed_at: self.at(),
            row_version: self.event(),
        }
    }

    pub(super) fn dynamic_partition(&mut self) -> DynamicPartitionRow {
        DynamicPartitionRow {
            name: self.text(),
            partition: self.text(),
            added_at: self.at(),
            row_version: self.event(),
        }
    }

    pub(super) fn partition_set(&mut self) -> PartitionSetRow {
        PartitionSetRow {
            name: self.text(),
            change_number: self.number(),
            partitions: self.number(),
            actor: self.text(),
            changed_at: self.at(),
            row_version: self.event(),
        }
    }

    pub(super) fn partition_status(&mut self) -> PartitionStatusRow {
        PartitionStatusRow {
            asset_key: self.asset(),
            partition_key: self.maybe(Self::partition),
            status: self.pick(DataStatus::ALL),
            last_materialization_id: self.maybe(|g| MaterializationId::from_u128(g.wide())),
            last_materialization_format: self.maybe(|g| g.pick(DataFormat::ALL)),
            last_materialization_at: self.maybe(Self::at),
            last_materialization_run_id: self.maybe(Self::run_id),
            last_materialization_event_id: self.maybe(Self::event),
            last_attempt_outcome: self.pick(AttemptOutcome::ALL),
            last_attempt_at: self.at(),
            last_attempt_run_id: self.run_id(),
            row_version: self.event(),
        }
    }

    pub(super) fn materialization(&mut self) -> MaterializationRow {
        MaterializationRow {
            materialization_id: MaterializationId::from_u128(self.wide()),
            asset_key: self.asset(),
            partition_key: self.maybe(Self::partition),
            run_id: self.run_id(),
            task_key: self.task_key(),
            attempt: self.int(),
            attempt_id: AttemptId::from_u128(self.wide()),
            materialized_at: self.at(),
            format: self.maybe(|g| g.pick(DataFormat::ALL)),
            uri: self.maybe(Self::text),
            row_count: self.maybe(Self::number),
            byte_size: self.maybe(Self::number),
            content_hash: self.maybe(Self::text),
            schema_hash: self.maybe(Self::text),
            schema: self.maybe(Self::text),
            metadata: self.maybe(Self::text),
            code_version: self.maybe(Self::text),
            row_version: self.event(),
        }
    }

    pub(super) fn check_result(&mut self) -> CheckResultRow {
        CheckResultRow {
            asset_key: self.asset(),
            partition_key: self.maybe(Self::partition),
            check_name: self.text(),
            check_type: self.text(),
            passed: self.below(2) == 0,
            severity: self.text(),
            blocking: self.maybe(|g| g.below(2) == 0),
            message: self.maybe(Self::text),
            metadata: self.text(),
            duration_ms: self.number(),
            materialization_id: MaterializationId::from_u128(self.wide()),
            run_id: self.run_id(),
            task_key: self.task_key(),
            attempt: self.int(),
            checked_at: self.at(),
            row_version: self.event(),
        }
    }

    pub(super) fn quarantine(&mut self) -> QuarantineRow {
        QuarantineRow {
            asset_key: self.asset(),
            materialization_id: MaterializationId::from_u128(self.wide()),
            partition_key: self.maybe(Self::partition),
            run_id: self.run_id(),
            task_key: self.task_key(),
            attempt: self.int(),
            quarantined_at: self.at(),
            output: self.text(),
            row_version: self.event(),
        }
    }
}
