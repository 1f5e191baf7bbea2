//! The golden vectors that Rust and Python share: every valid case gives its value, every invalid one its refusal.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use servo_core::canonical::{self, Problem};
use servo_core::{
    AssetId, AssetKey, EventId, Fingerprint, ParseError, PartitionKey, PartitionValue, RunId, TaskKey,
    TenantId, Timestamp, WorkspaceId, cloud_task_id, dispatch_id, fingerprint, timer_id,
};
use std::collections::BTreeMap;

fn load<T: DeserializeOwned>(name: &str) -> T {
    let path = format!("{}/tests/golden/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[derive(Deserialize)]
struct Vectors<V, I = Invalid> {
    valid: Vec<V>,
    invalid: Vec<I>,
    #[serde(default)]
    sorted: Vec<String>,
    #[serde(default)]
    refused: Vec<String>,
}

#[derive(Deserialize)]
struct Invalid {
    input: String,
    at: usize,
    reason: String,
}

/// Every invalid text must be refused at its character, for its reason.
fn assert_refused<T: std::fmt::Debug>(cases: &[Invalid], parse: impl Fn(&str) -> Result<T, ParseError>) {
    assert!(!cases.is_empty());
    for case in cases {
        let error = parse(&case.input).expect_err(&case.input);
        assert_eq!(error.at, case.at, "{error}");
        assert!(error.problem.contains(&case.reason), "{error}: expected {:?}", case.reason);
    }
}

#[derive(Deserialize)]
struct Canonical {
    name: String,
    input: String,
    canonical: String,
}

#[derive(Deserialize)]
struct NotCanonical {
    name: String,
    input: String,
    reason: String,
    path: Option<String>,
}

#[test]
fn canonical_json_has_one_text_per_value() {
    let vectors: Vectors<Canonical, NotCanonical> = load("canonical_json");
    for case in &vectors.valid {
        let name = &case.name;
        assert_eq!(canonical::canonicalize_str(&case.input).expect(name), case.canonical, "{name}");
        assert_eq!(canonical::canonicalize_str(&case.canonical).expect(name), case.canonical, "{name}");
        // serde_json stops one level before our limit; the serializer is tested at the limit elsewhere.
        if let Ok(value) = serde_json::from_str::<serde_json::Value>(&case.input) {
            assert_eq!(canonical::to_canonical_string(&value).expect(name), case.canonical, "{name}");
        }
    }
    for case in &vectors.invalid {
        let name = &case.name;
        let error = canonical::canonicalize_str(&case.input).expect_err(name);
        let reason = match error.problem() {
            Problem::Float(_) => "float",
            Problem::IntegerRange(_) => "integer_range",
            Problem::DuplicateKey(_) => "duplicate_key",
            Problem::Depth => "depth",
            Problem::Syntax { .. } => "syntax",
            Problem::Key(_) | Problem::Custom(_) => "unexpected",
        };
        assert_eq!(reason, case.reason, "{name}: {error}");
        if let Some(path) = &case.path {
            assert_eq!(&error.path(), path, "{name}");
        }
    }
}

#[derive(Deserialize)]
struct Fingerprinted {
    input: String,
    fingerprint: Fingerprint,
}

#[test]
fn fingerprints_are_those_of_the_canonical_text() {
    let vectors: Vectors<Fingerprinted> = load("fingerprints");
    assert!(!vectors.refused.is_empty());
    for text in &vectors.refused {
        assert!(canonical::canonicalize_str(text).is_err(), "{text}");
    }
    for case in &vectors.valid {
        let value: Box<serde_json::value::RawValue> = serde_json::from_str(&case.input).unwrap();
        assert_eq!(fingerprint(&value).unwrap(), case.fingerprint, "{}", case.input);
    }
    assert_refused(&vectors.invalid, Fingerprint::parse);
}

#[derive(Deserialize)]
struct AssetCase {
    input: String,
    canonical: String,
    shown: String,
}

#[test]
fn asset_keys_take_both_separators_and_nothing_else() {
    let vectors: Vectors<AssetCase> = load("asset_keys");
    for case in &vectors.valid {
        let key = AssetKey::parse(&case.input).unwrap();
        assert_eq!(key.canonical(), case.canonical);
        assert_eq!(key.to_string(), case.shown);
        assert_eq!(AssetKey::new(key.namespace(), key.name()).unwrap(), key);
        let wire = serde_json::to_string(&key).unwrap();
        assert_eq!(wire, format!("\"{}\"", case.canonical));
        assert_eq!(serde_json::from_str::<AssetKey>(&wire).unwrap(), key);
    }
    assert_refused(&vectors.invalid, AssetKey::parse);
    let keys: Vec<_> = vectors.sorted.iter().map(|text| AssetKey::parse(text).unwrap()).collect();
    assert!(!keys.is_empty() && keys.is_sorted());
    assert!(
        serde_json::from_str::<AssetKey>("\"raw.flights\"").is_err(),
        "the wire form is the canonical one"
    );
}

#[derive(Deserialize)]
struct PartitionCase {
    name: String,
    canonical: String,
    dims: BTreeMap<String, (String, serde_json::Value)>,
    shown: String,
}

fn value_of(tag: &str, value: &serde_json::Value) -> PartitionValue {
    match tag {
        "s" => PartitionValue::Str(value.as_str().unwrap().to_owned()),
        "i" => PartitionValue::Int(value.as_i64().unwrap()),
        "b" => PartitionValue::Bool(value.as_bool().unwrap()),
        "d" => PartitionValue::Date(value.as_str().unwrap().parse().unwrap()),
        "t" => PartitionValue::Time(value.as_i64().unwrap()),
        "n" => PartitionValue::Null,
        other => panic!("unknown tag {other}"),
    }
}

#[test]
fn partition_keys_have_one_text_per_value() {
    let vectors: Vectors<PartitionCase> = load("partition_keys");
    for case in &vectors.valid {
        let name = &case.name;
        let dims = case.dims.iter().map(|(dim, (tag, value))| (dim.clone(), value_of(tag, value))).collect();
        let key = PartitionKey::new(&dims).expect(name);
        assert_eq!(key.canonical(), case.canonical, "{name}");
        assert_eq!(PartitionKey::parse(&case.canonical).expect(name), key, "{name}");
        assert_eq!(key.dims(), dims, "{name}");
        assert_eq!(key.to_string(), case.shown, "{name}");
    }
    assert_refused(&vectors.invalid, PartitionKey::parse);
}

#[derive(Deserialize)]
struct TaskCase {
    canonical: String,
    asset: String,
    partition: Option<String>,
    operation: String,
}

#[test]
fn task_keys_are_asset_partition_and_operation() {
    let vectors: Vectors<TaskCase> = load("task_keys");
    for case in &vectors.valid {
        let key = TaskKey::parse(&case.canonical).unwrap();
        assert_eq!(key.asset_str(), case.asset);
        assert_eq!(key.partition_str(), case.partition.as_deref());
        assert_eq!(key.operation().as_str(), case.operation);
        let rebuilt = TaskKey::new(&key.asset(), key.partition().as_ref(), key.operation());
        assert_eq!(rebuilt.as_str(), case.canonical);
        let wire = serde_json::to_string(&key).unwrap();
        assert_eq!(serde_json::from_str::<TaskKey>(&wire).unwrap(), key);
    }
    assert_refused(&vectors.invalid, TaskKey::parse);
    let keys: Vec<_> = vectors.sorted.iter().map(|text| TaskKey::parse(text).unwrap()).collect();
    assert!(!keys.is_empty() && keys.is_sorted_by(|left, right| left < right), "{keys:?}");
}

#[derive(Deserialize)]
struct Ids {
    run_ids: RunIds,
    ulids: Vectors<FromParts>,
    asset_ids: Vectors<FromParts>,
    names: Vectors<String>,
    dispatches: Vec<Dispatch>,
    timers: Vec<Timer>,
}

#[derive(Deserialize)]
struct RunIds {
    valid: Vec<Derived>,
    texts: Vec<String>,
    invalid: Vec<Invalid>,
}

#[derive(Deserialize)]
struct Derived {
    secret: String,
    tenant: TenantId,
    workspace: WorkspaceId,
    run_key: String,
    run_id: RunId,
}

#[derive(Deserialize)]
struct FromParts {
    ms: u64,
    entropy: String,
    text: String,
}

#[derive(Deserialize)]
struct Dispatch {
    run: RunId,
    task: TaskKey,
    attempt: u32,
    internal: String,
    cloud: String,
}

#[derive(Deserialize)]
struct Timer {
    kind: String,
    run: Option<RunId>,
    task: Option<TaskKey>,
    attempt: u32,
    fire_at_ms: i64,
    internal: String,
    cloud: String,
}

#[test]
fn run_ids_are_derived_from_secret_workspace_and_run_key() {
    let ids: Ids = load("ids");
    for case in &ids.run_ids.valid {
        let secret = data_encoding::HEXLOWER.decode(case.secret.as_bytes()).unwrap();
        assert_eq!(RunId::derive(&secret, &case.tenant, &case.workspace, &case.run_key), case.run_id);
    }
    for text in &ids.run_ids.texts {
        assert_eq!(&text.parse::<RunId>().unwrap().to_string(), text);
    }
    assert_refused(&ids.run_ids.invalid, str::parse::<RunId>);
}

#[test]
fn ulids_and_asset_ids_are_made_of_their_parts() {
    let ids: Ids = load("ids");
    for case in &ids.ulids.valid {
        let id = EventId::from_parts(case.ms, u128::from_str_radix(&case.entropy, 16).unwrap());
        assert_eq!(id.to_string(), case.text);
        assert_eq!(case.text.parse::<EventId>().unwrap(), id);
        assert_eq!(id.timestamp_ms(), case.ms);
    }
    assert_refused(&ids.ulids.invalid, str::parse::<EventId>);
    for case in &ids.asset_ids.valid {
        let id = AssetId::from_parts(case.ms, u128::from_str_radix(&case.entropy, 16).unwrap());
        assert_eq!(id.to_string(), case.text);
        assert_eq!(case.text.parse::<AssetId>().unwrap(), id);
        assert_eq!(id.timestamp_ms(), case.ms);
    }
    assert_refused(&ids.asset_ids.invalid, str::parse::<AssetId>);
}

#[test]
fn names_of_tenants_and_workspaces_are_safe_in_paths_and_ids() {
    let ids: Ids = load("ids");
    for name in &ids.names.valid {
        assert_eq!(TenantId::parse(name).unwrap().as_str(), name);
        assert_eq!(WorkspaceId::parse(name).unwrap().as_str(), name);
    }
    assert_refused(&ids.names.invalid, TenantId::parse);
    assert_refused(&ids.names.invalid, WorkspaceId::parse);
}

#[test]
fn queue_ids_are_readable_inside_and_short_outside() {
    let ids: Ids = load("ids");
    for case in &ids.dispatches {
        let internal = dispatch_id(case.run, &case.task, case.attempt);
        assert_eq!(internal, case.internal);
        assert_eq!(cloud_task_id('d', &internal), case.cloud);
    }
    for case in &ids.timers {
        let fire_at = Timestamp::from_millis(case.fire_at_ms);
        let internal = timer_id(&case.kind, case.run, case.task.as_ref(), case.attempt, fire_at);
        assert_eq!(internal, case.internal);
        assert_eq!(cloud_task_id('t', &internal), case.cloud);
    }
}
