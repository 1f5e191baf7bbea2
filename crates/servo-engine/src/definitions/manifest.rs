//! The manifest as it is written by the SDK: plain data, unchecked (`docs/manifest.md`).
//!
//! Texts that a user wrote stay texts here, so that a wrong one can be reported with its place instead of making the
//! whole manifest unreadable. [`Definitions`](super::Definitions) is what they become once they are checked. Fields at
//! their default are not written, and fields that are not known are not read.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use servo_core::partitions::MappingDef;
use servo_core::{Millis, PartitionsDef};

use super::conditions::Condition;
use super::notifications::NotificationDef;
use crate::lifecycle::{RunState, SensorKind};
use crate::planner::PartitionChoice;
use crate::retry::RetryPolicy;

/// The version of the manifest that this build reads.
pub const MANIFEST_VERSION: u32 = 1;

/// All declarations of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Manifest {
    pub manifest_version: u32,
    pub project: String,
    #[serde(default, skip_serializing_if = "is_default")]
    pub assets: Vec<AssetDef>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub schedules: Vec<ScheduleDef>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub sensors: Vec<SensorDef>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub notifications: Vec<NotificationDef>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub resources: Vec<ResourceDef>,
}

/// One asset as declared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct AssetDef {
    pub key: String,
    pub location: Location,
    /// `module:qualname`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub function: Option<String>,
    /// Made outside of Servo; never planned.
    #[serde(default, skip_serializing_if = "is_default")]
    pub external: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub multi: Option<Multi>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub group: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub kinds: Vec<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub owners: Vec<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub tags: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub code_version: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub partitions: Option<PartitionsDef>,
    /// One call of the function makes all partitions of a run.
    #[serde(default, skip_serializing_if = "is_default")]
    pub single_call: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub deps: Vec<DepDef>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub checks: Arc<[CheckDef]>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub retry: Option<RetryPolicy>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub freshness: Option<FreshnessDef>,
    /// The name that it had before.
    #[serde(default, skip_serializing_if = "is_default")]
    pub renamed_from: Option<String>,
    /// For how long what was made counts; for ever unless given.
    #[serde(default, skip_serializing_if = "is_default")]
    pub expires_after_ms: Option<Millis>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub timeout_ms: Option<Millis>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub compute: Option<Compute>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub priority: i32,
    #[serde(default, skip_serializing_if = "is_default")]
    pub queue: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub pool: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub isolation: Isolation,
    #[serde(default, skip_serializing_if = "is_default")]
    pub quarantine: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub config: Option<ConfigDef>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub resources: Vec<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub secrets: Vec<SecretDef>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub io: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub metadata: BTreeMap<String, String>,
    /// When it is made without anybody asking.
    #[serde(default, skip_serializing_if = "is_default")]
    pub automation: Option<Arc<Condition>>,
}

/// Where something is declared.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Location {
    pub file: Arc<str>,
    pub line: u32,
}

/// `file:line`.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// One of several outputs of a function.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Multi {
    /// Whether the function can make some of its outputs without the others.
    #[serde(default)]
    pub can_subset: bool,
    /// Key of the first output as declared. A function that is made in a loop has the same name every time.
    #[serde(default, skip_serializing_if = "is_default")]
    pub first: String,
}

/// Declares a dependency of an asset.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct DepDef {
    /// Canonical key; absent: the asset that is named like the parameter.
    #[serde(default, skip_serializing_if = "is_default")]
    pub asset: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub parameter: Option<String>,
    /// Text of the parameter's annotation.
    #[serde(default, skip_serializing_if = "is_default", rename = "type")]
    pub annotation: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub mapping: Option<MappingDef>,
    /// Partitions that were never made are left out instead of failing the task.
    #[serde(default, skip_serializing_if = "is_default")]
    pub available: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_blocked: OnBlocked,
}

/// The behaviour of an asset in a run in which a check blocks one of its inputs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnBlocked {
    /// It is not made.
    #[default]
    Skip,
    /// It is made of the materialization before.
    Previous,
}

/// A test of the data of an asset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct CheckDef {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: CheckKind,
    #[serde(default, skip_serializing_if = "is_default")]
    pub severity: Severity,
    #[serde(default, skip_serializing_if = "is_default")]
    pub phase: Phase,
    #[serde(default, skip_serializing_if = "is_default")]
    pub blocking: Option<bool>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub timeout_ms: Option<Millis>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub location: Option<Location>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub function: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub description: Option<String>,
    /// Parameters of the kind of check; read by the runner.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spec: BTreeMap<String, serde_json::Value>,
}

/// The subject of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum CheckKind {
    RowCount,
    NotNull,
    Unique,
    Freshness,
    Schema,
    AcceptedValues,
    Sql,
    Python,
}

/// How bad a failed check is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Severity {
    Info,
    Warning,
    #[default]
    Error,
    Critical,
}

/// When a check runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Before the asset, on what it reads.
    Pre,
    /// After the asset, on what it made.
    #[default]
    Post,
}

/// How old an asset may get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct FreshnessDef {
    /// The longest lag; zero with a cron: newer than the tick before.
    #[serde(default, skip_serializing_if = "is_default")]
    pub max_lag_ms: Millis,
    /// The ticks at which it matters; at every moment without.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cron: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub timezone: Option<String>,
    /// How long before it fails there is a warning.
    #[serde(default, skip_serializing_if = "is_default")]
    pub warn_before_ms: Millis,
}

/// The machine resources a task needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Compute {
    #[serde(default, skip_serializing_if = "is_default")]
    pub cpu_millicores: Option<u64>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub memory_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub gpus: Option<u32>,
}

/// The degree to which a task is isolated from others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// A warm interpreter that runs one task after another.
    #[default]
    Shared,
    /// A fresh process for every task.
    Process,
}

/// The configuration that a function takes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct ConfigDef {
    pub fields: Vec<ConfigField>,
}

/// One field of a configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct ConfigField {
    pub name: String,
    #[serde(default, skip_serializing_if = "is_default", rename = "type")]
    pub annotation: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub required: bool,
    /// JSON as text.
    #[serde(default, skip_serializing_if = "is_default")]
    pub default: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub description: Option<String>,
}

/// A reference to a secret; never its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct SecretDef {
    pub name: String,
    pub provider: String,
    pub path: String,
}

/// An object that functions are given by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct ResourceDef {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: String,
}

/// Declares a schedule: it requests runs by the clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct ScheduleDef {
    pub name: Arc<str>,
    pub location: Location,
    pub cron: Arc<str>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub timezone: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub function: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub selection: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub tags: BTreeMap<String, String>,
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub enabled: bool,
    /// Which partitions its ticks request, as of the time at which they were due; the newest complete one of each asset
    /// unless given.
    #[serde(default, skip_serializing_if = "PartitionChoice::is_empty")]
    pub partitions: PartitionChoice,
    #[serde(default, skip_serializing_if = "is_default")]
    pub catch_up_on_resume: bool,
    /// Values of configuration fields as JSON texts, by field or by `namespace.name:field`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub config: BTreeMap<String, String>,
    /// Higher runs first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub priority: i32,
    /// Ticks that are older than this when they are noticed are left out.
    #[serde(default = "default_window", skip_serializing_if = "is_default_window")]
    pub catchup_window_minutes: u32,
    /// The most ticks that are made up for at once; older ones are left out.
    #[serde(default = "default_catchup", skip_serializing_if = "is_default_catchup")]
    pub max_catchup_ticks: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    pub if_running: IfRunning,
    /// Longest that one call of the function may take.
    #[serde(default, skip_serializing_if = "is_default")]
    pub timeout_ms: Option<Millis>,
}

impl ScheduleDef {
    /// A day: `catchup_window_minutes` unless given.
    pub const DEFAULT_WINDOW_MINUTES: u32 = 1_440;
    /// `max_catchup_ticks` unless given.
    pub const DEFAULT_CATCHUP_TICKS: u32 = 3;

    /// The time zone of its cron expression.
    pub fn zone(&self) -> &str {
        self.timezone.as_deref().unwrap_or("UTC")
    }
}

/// The behaviour of a tick while a run of an earlier tick of its schedule is active.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IfRunning {
    /// It requests its run at once.
    #[default]
    Allow,
    /// It is skipped.
    Skip,
    /// It waits until that run has ended.
    Queue,
}

/// Declares a sensor: it requests runs because of an observation or a notification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct SensorDef {
    pub name: Arc<str>,
    pub location: Location,
    #[serde(default, skip_serializing_if = "is_default")]
    pub function: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub selection: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub tags: BTreeMap<String, String>,
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub enabled: bool,
    /// How long after one evaluation the next one starts.
    #[serde(default, skip_serializing_if = "is_default")]
    pub interval_ms: Option<Millis>,
    /// Whether messages can be sent to it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub push: bool,
    /// Longest that one call of the function may take.
    #[serde(default, skip_serializing_if = "is_default")]
    pub timeout_ms: Option<Millis>,
    /// Values of configuration fields as JSON texts, by field or by `namespace.name:field`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub config: BTreeMap<String, String>,
    /// Higher runs first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub priority: i32,
    /// Assets whose materializations it is about.
    #[serde(default, skip_serializing_if = "is_default")]
    pub on: Vec<String>,
    /// Whether all of these must have been materialized, or one is enough.
    #[serde(default, skip_serializing_if = "is_default")]
    pub all_of: bool,
    /// States in which runs end that it is about.
    #[serde(default, skip_serializing_if = "is_default")]
    pub run_status: Vec<RunState>,
    /// How senders of messages prove who they are.
    #[serde(default, skip_serializing_if = "is_default")]
    pub verify: Option<VerifyDef>,
}

impl SensorDef {
    /// 30 seconds: `interval` unless given.
    pub const DEFAULT_INTERVAL: Millis = Millis::from_secs(30);

    /// The trigger of its evaluations.
    pub fn kind(&self) -> SensorKind {
        if self.push {
            SensorKind::Push
        } else if !self.on.is_empty() {
            SensorKind::Asset
        } else if !self.run_status.is_empty() {
            SensorKind::Run
        } else {
            SensorKind::Poll
        }
    }

    /// How long after one evaluation the next one starts.
    pub fn interval(&self) -> Millis {
        self.interval_ms.unwrap_or(Self::DEFAULT_INTERVAL)
    }
}

/// How senders of messages prove who they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyDef {
    /// The way.
    pub scheme: VerifyScheme,
    /// Where the server finds the secret.
    pub secret: SecretDef,
}

/// A way in which senders of messages prove who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerifyScheme {
    /// `Authorization: Bearer` with the secret, or `?token=`.
    Token,
    /// `X-Hub-Signature-256: sha256=` and the HMAC of the body.
    Github,
    /// `Stripe-Signature: t=,v1=` and the HMAC of time and body.
    Stripe,
}

pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn default_window() -> u32 {
    ScheduleDef::DEFAULT_WINDOW_MINUTES
}

fn is_default_window(minutes: &u32) -> bool {
    *minutes == ScheduleDef::DEFAULT_WINDOW_MINUTES
}

fn default_catchup() -> u32 {
    ScheduleDef::DEFAULT_CATCHUP_TICKS
}

fn is_default_catchup(ticks: &u32) -> bool {
    *ticks == ScheduleDef::DEFAULT_CATCHUP_TICKS
}

pub(super) fn yes() -> bool {
    true
}

pub(super) fn is_yes(value: &bool) -> bool {
    *value
}
