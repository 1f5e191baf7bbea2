//! The description of the interface, completed by the tables that the server works by.
//!
//! A route says what it takes and what it answers when all is well. What holds for many of them is added here: what it
//! asks of a caller, the problems that it may answer with, by code, and an example.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::openapi::OpenApi;

use crate::access::{Access, access};
use crate::problem::{Code, PROBLEM_JSON};

/// Requests and answers of a real server, by operation id; `python/tests/test_api.py` records and checks them.
const EXAMPLES: &str = include_str!("description/examples.json");

/// An example of an operation.
#[derive(Default, Deserialize)]
struct Example {
    /// Values of the parameters in its path.
    #[serde(default)]
    path: BTreeMap<String, Value>,
    request: Option<Value>,
    response: Option<Value>,
}

/// Completes what the routes say of themselves.
pub(crate) fn complete(described: &OpenApi) -> Value {
    let mut description = serde_json::to_value(described).unwrap_or_default();
    let can_be_empty = can_be_empty(&description);
    bound(&mut description);
    let examples: BTreeMap<String, Example> = serde_json::from_str(EXAMPLES).unwrap_or_default();
    let paths = description.get_mut("paths").and_then(Value::as_object_mut);
    for (path, methods) in paths.into_iter().flatten() {
        for (method, operation) in methods.as_object_mut().into_iter().flatten() {
            let method = method.to_uppercase().parse::<Method>().ok();
            let access = method.and_then(|method| access(&method, path));
            if let (Some(access), Some(operation)) = (access, operation.as_object_mut()) {
                let id = operation.get("operationId").and_then(Value::as_str).unwrap_or_default().to_owned();
                if let Some(body) = operation.get_mut("requestBody")
                    && can_be_empty.contains(reference(&body["content"]["application/json"]["schema"]))
                {
                    body["required"] = false.into();
                }
                add_access(operation, access);
                add_problems(operation, &id, path, access);
                add_conditional(operation);
                add_example(operation, examples.get(&id));
            }
        }
    }
    description
}

/// References to objects that need no field: a request may leave such a body out.
fn can_be_empty(description: &Value) -> BTreeSet<String> {
    let schemas = description["components"]["schemas"].as_object();
    let optional = schemas.into_iter().flatten().filter(|(_, schema)| {
        schema["type"] == "object" && schema["required"].as_array().is_none_or(Vec::is_empty)
    });
    optional.map(|(name, _)| format!("#/components/schemas/{name}")).collect()
}

fn reference(schema: &Value) -> &str {
    schema["$ref"].as_str().unwrap_or_default()
}

/// Says of numbers without a sign how large they may be: OpenAPI's formats are of those that have one.
fn bound(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.get("minimum") == Some(&json!(0)) {
                let (format, maximum) = match fields.get("format").and_then(Value::as_str) {
                    Some("int64") => ("uint64", u64::MAX),
                    Some("int32") => ("uint32", u32::MAX.into()),
                    Some(_) | None => return,
                };
                fields.insert("format".to_owned(), format.into());
                fields.insert("maximum".to_owned(), maximum.into());
            }
            fields.values_mut().for_each(bound);
        }
        Value::Array(values) => values.iter_mut().for_each(bound),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn add_access(operation: &mut Map<String, Value>, access: Access) {
    let (permission, security) = match access {
        Access::Public => ("public", json!([])),
        Access::Needs(permission) | Access::Administers(permission) => {
            (permission.name(), json!([{"access_token": []}]))
        }
        Access::SensorSecret => ("sensor_secret", json!([{"access_token": []}, {}])),
        Access::WorkerKey => ("worker_key", json!([{"worker_key": []}])),
        Access::TaskToken => ("task_token", json!([{"task_token": []}])),
        Access::CallbackUrl(_) => ("callback_url", json!([{"callback_url": []}])),
    };
    operation.insert("x-permission".to_owned(), permission.into());
    operation.insert("security".to_owned(), security);
}

/// Adds a response for each status of the problems, with their codes.
fn add_problems(operation: &mut Map<String, Value>, id: &str, path: &str, access: Access) {
    let mut by_status: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
    for code in problems(operation, id, path, access) {
        by_status.entry(code.status().as_u16()).or_default().push(code.name());
    }
    let Some(responses) = operation.get_mut("responses").and_then(Value::as_object_mut) else { return };
    responses.remove("default");
    for (status, codes) in by_status {
        let named: Vec<String> = codes.iter().map(|code| format!("`{code}`")).collect();
        let response = responses.entry(status.to_string()).or_insert_with(|| json!({}));
        let text = match response["description"].as_str() {
            Some(own) if !own.is_empty() => format!("{own}; or {}", named.join(", ")),
            Some(_) | None => named.join(", "),
        };
        response["description"] = text.into();
        response["content"][PROBLEM_JSON] = json!({"schema": {"$ref": "#/components/schemas/Problem"}});
        response["x-codes"] = codes.into();
    }
}

/// Adds the tag of the answer, and that there is nothing new, to operations that take the tags that a caller has.
fn add_conditional(operation: &mut Map<String, Value>) {
    let parameters = operation.get("parameters").and_then(Value::as_array);
    if !parameters.into_iter().flatten().any(|parameter| parameter["name"] == "If-None-Match") {
        return;
    }
    let tag = json!({"ETag": {"description": "Tag of this answer", "schema": {"type": "string"}}});
    let Some(responses) = operation.get_mut("responses").and_then(Value::as_object_mut) else { return };
    if let Some(answer) = responses.get_mut("200") {
        answer["headers"] = tag.clone();
    }
    let unchanged = "The answer is one whose tag was shown";
    responses.insert("304".to_owned(), json!({"description": unchanged, "headers": tag}));
}

fn add_example(operation: &mut Map<String, Value>, example: Option<&Example>) {
    let Some(example) = example else { return };
    for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
        let known = parameter["name"].as_str().and_then(|name| example.path.get(name));
        if let (Some("path"), Some(known)) = (parameter["in"].as_str(), known) {
            parameter["example"] = known.clone();
        }
    }
    let set = |content: Option<&mut Value>, value: Option<&Value>| {
        let content = content.and_then(Value::as_object_mut).and_then(|types| types.values_mut().next());
        if let (Some(content), Some(value)) = (content, value) {
            content["example"] = value.clone();
        }
    };
    set(operation.get_mut("requestBody").and_then(|body| body.get_mut("content")), example.request.as_ref());
    let responses = operation.get_mut("responses").and_then(Value::as_object_mut);
    let well = responses.into_iter().flatten().find(|(status, _)| status.starts_with('2'));
    set(well.and_then(|(_, response)| response.get_mut("content")), example.response.as_ref());
}

/// The codes of the problems that an operation may answer with. An internal error is none of them: it is a defect.
fn problems(operation: &Map<String, Value>, id: &str, path: &str, access: Access) -> BTreeSet<Code> {
    let mut codes =
        BTreeSet::from([Code::InvalidRequest, Code::ForeignOrigin, Code::Unavailable, Code::ShuttingDown]);
    match access {
        Access::Public => {}
        Access::Needs(_) | Access::Administers(_) | Access::SensorSecret => {
            codes.extend(CREDENTIAL);
            codes.extend([Code::RateLimited]);
        }
        Access::WorkerKey | Access::TaskToken | Access::CallbackUrl(_) => codes.extend(CREDENTIAL),
    }
    if operation.contains_key("requestBody") {
        codes.extend(BODY);
    }
    let parameters = operation.get("parameters").and_then(Value::as_array);
    for parameter in parameters.into_iter().flatten() {
        match parameter["name"].as_str().unwrap_or_default() {
            "cursor" => codes.extend([Code::InvalidCursor]),
            "wait_for_event_id" | "fresh" => codes.extend([Code::NotYet]),
            "Idempotency-Key" => codes.extend([Code::IdempotencyConflict]),
            _ => {}
        }
    }
    // Whoever has a good address is told that the attempt is over, and not that there is none.
    let path = if matches!(access, Access::CallbackUrl(_)) { "/api/v1/tasks/{task_id}/" } else { path };
    let beginning = |(begins, _): &&(&str, &[Code])| path.starts_with(begins);
    codes.extend(OF_PATHS.iter().filter(beginning).flat_map(|(_, codes)| *codes));
    codes.extend(OF_OPERATIONS.iter().filter(|(ids, _)| ids.contains(&id)).flat_map(|(_, codes)| *codes));
    codes
}

/// Of every operation that takes a credential.
const CREDENTIAL: [Code; 4] =
    [Code::Unauthenticated, Code::Forbidden, Code::WorkspaceDisabled, Code::UnknownWorkspace];

/// Of every operation that takes a body.
const BODY: [Code; 4] =
    [Code::MalformedJson, Code::BodyTooLarge, Code::UnsupportedMediaType, Code::RequestTimeout];

/// Of operations whose path begins so: what it names may not be there.
const OF_PATHS: &[(&str, &[Code])] = &[
    ("/api/v1/admin/", &[Code::NotFound]),
    ("/api/v1/admin/keys/{", &[Code::UnknownKey]),
    ("/api/v1/admin/sessions/{", &[Code::UnknownSession]),
    ("/api/v1/admin/tenants/{", &[Code::UnknownTenant]),
    ("/api/v1/admin/workspaces/{", &[Code::UnknownTenant]),
    ("/api/v1/assets/{", &[Code::UnknownAsset]),
    ("/api/v1/deployments/{", &[Code::NothingDeployed, Code::UnknownDeployment]),
    ("/api/v1/notifications/{", &[Code::UnknownNotification]),
    ("/api/v1/orchestration/backfills/{", &[Code::UnknownBackfill]),
    ("/api/v1/orchestration/conditions/{", &[Code::UnknownAsset, Code::UnknownCondition]),
    ("/api/v1/orchestration/schedules/{", &[Code::UnknownSchedule]),
    ("/api/v1/orchestration/sensors/{", &[Code::UnknownSensor]),
    ("/api/v1/quarantine/{", &[Code::UnknownAsset, Code::NotInQuarantine]),
    ("/api/v1/runs/{", &[Code::UnknownRun]),
    ("/api/v1/runs/{run_id}/tasks/{", &[Code::UnknownTask]),
    ("/api/v1/runs/{run_id}/tasks/{task_id}/attempts/{", &[Code::UnknownAttempt]),
    ("/api/v1/tasks/{", &[Code::StaleAttempt, Code::AttemptEnded]),
];

/// Of operations by their ids: where what is asked for cannot be done.
const OF_OPERATIONS: &[(&[&str], &[Code])] = &[
    (
        &["plan", "trigger_run", "retry_run", "trigger_schedule", "preview_backfill", "create_backfill"],
        &[Code::NothingDeployed, Code::UnknownAsset, Code::Unplannable, Code::QuotaExceeded],
    ),
    // These wait for the code that was saved last, which may not be good.
    (
        &[
            "change_dynamic_partitions",
            "change_notification",
            "change_schedule",
            "change_sensor",
            "create_backfill",
            "create_notification",
            "create_schedule",
            "create_sensor",
            "current_code",
            "evaluate_sensor",
            "mark_partitions",
            "plan",
            "preview_backfill",
            "rename_asset",
            "retry_failed_backfill",
            "retry_run",
            "trigger_run",
            "trigger_schedule",
            "wipe_partitions",
        ],
        &[Code::InvalidProject, Code::InvalidDefinitions],
    ),
    (&["plan", "trigger_run"], &[Code::UpToDate]),
    (&["trigger_run", "retry_run", "trigger_schedule", "create_backfill"], &[Code::StalePlan]),
    (&["trigger_run"], &[Code::RunKeyConflict]),
    (&["cancel_run"], &[Code::RunEnded, Code::ForceTooSoon]),
    (&["retry_run"], &[Code::RunActive, Code::NothingToRetry]),
    (&["retry_run_now"], &[Code::RunEnded, Code::NothingToRetry]),
    (&["get_materialization", "get_lineage"], &[Code::NeverMaterialized]),
    (&["mark_partitions", "undo_partitions", "wipe_partitions"], &[Code::PartitionBusy, Code::StalePlan]),
    (&["undo_partitions"], &[Code::NothingToUndo]),
    (&["rename_asset"], &[Code::CannotRename]),
    (&["change_dynamic_partitions"], &[Code::UnknownPartitions, Code::QuotaExceeded]),
    (&["approve_quarantined", "reject_quarantined"], &[Code::ReviewFailed]),
    (&["current_deployment", "explain_staleness"], &[Code::NothingDeployed]),
    (&["deploy", "preview_deployment"], &[Code::InvalidDefinitions, Code::NameTaken, Code::QuotaExceeded]),
    (&["get_deployment", "diff_deployments", "roll_back"], &[Code::DefinitionsNotKept]),
    (&["roll_back"], &[Code::InvalidDefinitions, Code::NameTaken, Code::VersionConflict]),
    (
        &["create_notification", "create_schedule", "create_sensor"],
        &[Code::InvalidDefinitions, Code::NameTaken, Code::QuotaExceeded, Code::VersionConflict],
    ),
    (
        &["change_notification", "change_schedule", "change_sensor"],
        &[Code::DefinedByCode, Code::InvalidDefinitions, Code::VersionConflict],
    ),
    (
        &["delete_notification", "delete_schedule", "delete_sensor"],
        &[Code::DefinedByCode, Code::VersionConflict],
    ),
    (
        &[
            "pause_backfill",
            "pause_condition",
            "pause_notification",
            "pause_schedule",
            "pause_sensor",
            "reset_sensor_cursor",
            "resume_backfill",
            "resume_condition",
            "resume_notification",
            "resume_schedule",
            "resume_sensor",
            "test_notification",
        ],
        &[Code::VersionConflict],
    ),
    (&["trigger_schedule"], &[Code::NothingToTrigger]),
    (&["push_to_sensor", "evaluate_sensor"], &[Code::TakesNoMessages, Code::QuotaExceeded]),
    (&["evaluate_sensor", "reset_sensor_cursor"], &[Code::BodyTooLarge]),
    (
        &["cancel_backfill", "pause_backfill", "resume_backfill", "retry_failed_backfill"],
        &[Code::InvalidStateTransition, Code::VersionConflict],
    ),
    (
        &["retry_failed_backfill"],
        &[
            Code::NothingDeployed,
            Code::NothingToRetry,
            Code::Unplannable,
            Code::QuotaExceeded,
            Code::StalePlan,
        ],
    ),
    (&["run_sql", "list_sql_tables"], &[Code::InvalidProject]),
    (&["tables"], &[Code::NotYet]),
    (&["create_key", "create_tenant", "create_workspace"], &[Code::QuotaExceeded]),
    (&["create_tenant", "create_workspace"], &[Code::NameTaken]),
    (&["create_key", "create_workspace"], &[Code::UnknownTenant]),
    (&["remove_tenant", "remove_workspace"], &[Code::InvalidStateTransition]),
    (
        &["register_worker"],
        &[Code::NothingDeployed, Code::OtherCode, Code::OtherStorage, Code::OtherWorkspace],
    ),
    (&["worker_heartbeat", "worker_leaves", "lease_tasks", "take_evaluation"], &[Code::UnknownWorker]),
    (&["report_evaluation"], &[Code::UnknownWorker]),
    (&["lease_tasks"], &[Code::OtherCode]),
    (&["task_started", "callback_started"], &[Code::AlreadyStarted]),
    (
        &["task_started", "task_completed", "callback_started", "callback_finished"],
        &[Code::TaskCancelled, Code::UnknownWorker],
    ),
    (&["login", "login_callback"], &[Code::Unauthenticated]),
    (&["login_callback", "get_picture"], &[Code::NotFound]),
];
