//! Errors of the API: problem documents of RFC 7807, one table of codes.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// The media type of a problem.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $status:ident, $title:literal;)*) => {
        /// Machine-readable code of a problem.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Code {
            $($(#[$doc])* #[serde(rename = $text)] $name,)*
            /// A code of a newer server.
            #[serde(other, rename = "other")]
            Other,
        }

        impl Code {
            /// Every code of this version.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            /// The name on the wire.
            pub const fn name(self) -> &'static str {
                match self { $(Code::$name => $text,)* Code::Other => "other" }
            }

            /// The HTTP status.
            pub const fn status(self) -> StatusCode {
                match self {
                    $(Code::$name => StatusCode::$status,)*
                    Code::Other => StatusCode::INTERNAL_SERVER_ERROR,
                }
            }

            /// The title, the same for every occurrence.
            pub const fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)* Code::Other => "Something else" }
            }
        }
    };
}

codes! {
    /// The body is not JSON.
    MalformedJson = "malformed_json", BAD_REQUEST, "Malformed JSON";
    /// A parameter, a header or a field is not valid.
    InvalidRequest = "invalid_request", BAD_REQUEST, "Invalid request";
    /// A page token that was not given out here, or for another list.
    InvalidCursor = "invalid_cursor", BAD_REQUEST, "Invalid cursor";
    /// The credential is missing or not valid.
    Unauthenticated = "unauthenticated", UNAUTHORIZED, "Not authenticated";
    /// The credential does not allow this.
    Forbidden = "forbidden", FORBIDDEN, "Forbidden";
    /// Somebody has switched the workspace or its tenant off.
    WorkspaceDisabled = "workspace_disabled", FORBIDDEN, "Workspace switched off";
    /// The request comes from another site.
    ForeignOrigin = "foreign_origin", FORBIDDEN, "Foreign origin";
    /// No route or resource at this address.
    NotFound = "not_found", NOT_FOUND, "Not found";
    /// There is no such workspace, or none that the credential is good for.
    UnknownWorkspace = "unknown_workspace", NOT_FOUND, "Unknown workspace";
    /// There is no such API key.
    UnknownKey = "unknown_key", NOT_FOUND, "Unknown key";
    /// There is no such session, or it has ended.
    UnknownSession = "unknown_session", NOT_FOUND, "Unknown session";
    /// There is no such tenant.
    UnknownTenant = "unknown_tenant", NOT_FOUND, "Unknown tenant";
    /// There is no such run.
    UnknownRun = "unknown_run", NOT_FOUND, "Unknown run";
    /// The run has no such task.
    UnknownTask = "unknown_task", NOT_FOUND, "Unknown task";
    /// The task has no such attempt.
    UnknownAttempt = "unknown_attempt", NOT_FOUND, "Unknown attempt";
    /// No such asset is deployed.
    UnknownAsset = "unknown_asset", NOT_FOUND, "Unknown asset";
    /// No asset has dynamic partitions of that name.
    UnknownPartitions = "unknown_partitions", NOT_FOUND, "Unknown dynamic partitions";
    /// The asset, or its partition, was never materialized.
    NeverMaterialized = "never_materialized", NOT_FOUND, "Never materialized";
    /// No deployment exists yet.
    NothingDeployed = "nothing_deployed", NOT_FOUND, "Nothing deployed";
    /// The materialization is not in quarantine.
    NotInQuarantine = "not_in_quarantine", NOT_FOUND, "Not in quarantine";
    /// There is no such schedule.
    UnknownSchedule = "unknown_schedule", NOT_FOUND, "Unknown schedule";
    /// There is no such sensor.
    UnknownSensor = "unknown_sensor", NOT_FOUND, "Unknown sensor";
    /// There is no such notification rule.
    UnknownNotification = "unknown_notification", NOT_FOUND, "Unknown notification rule";
    /// There is no such backfill.
    UnknownBackfill = "unknown_backfill", NOT_FOUND, "Unknown backfill";
    /// The asset has no automation condition.
    UnknownCondition = "unknown_condition", NOT_FOUND, "No automation";
    /// There is no such deployment.
    UnknownDeployment = "unknown_deployment", NOT_FOUND, "Unknown deployment";
    /// The address does not support this method.
    MethodNotAllowed = "method_not_allowed", METHOD_NOT_ALLOWED, "Method not allowed";
    /// The body took too long to arrive.
    RequestTimeout = "request_timeout", REQUEST_TIMEOUT, "Request timeout";
    /// The run key was used for another request.
    RunKeyConflict = "run_key_conflict", CONFLICT, "Run key in use";
    /// The idempotency key was used for another request.
    IdempotencyConflict = "idempotency_conflict", CONFLICT, "Idempotency key in use";
    /// The run has ended.
    RunEnded = "run_ended", CONFLICT, "Run has ended";
    /// The run has not ended.
    RunActive = "run_active", CONFLICT, "Run is active";
    /// There is nothing to retry.
    NothingToRetry = "nothing_to_retry", CONFLICT, "Nothing to retry";
    /// A run is at work on a partition that is to be wiped.
    PartitionBusy = "partition_busy", CONFLICT, "A run is at work on the partition";
    /// Nothing was wiped or marked that can be undone.
    NothingToUndo = "nothing_to_undo", CONFLICT, "Nothing to undo";
    /// The asset cannot have that name, or not now.
    CannotRename = "cannot_rename", CONFLICT, "Cannot be renamed";
    /// Everything that was asked for is up to date.
    UpToDate = "up_to_date", CONFLICT, "Up to date";
    /// No task has been silent for long enough.
    ForceTooSoon = "force_too_soon", CONFLICT, "Too soon to force";
    /// Another attempt of the task is the current one.
    StaleAttempt = "stale_attempt", CONFLICT, "Stale attempt";
    /// Another worker has the attempt.
    AlreadyStarted = "already_started", CONFLICT, "Already started";
    /// The task was cancelled.
    TaskCancelled = "task_cancelled", CONFLICT, "Task was cancelled";
    /// The files under review cannot be moved.
    ReviewFailed = "review_failed", CONFLICT, "Review failed";
    /// The workspace changes faster than the request can be planned.
    StalePlan = "stale_plan", CONFLICT, "Plan out of date";
    /// The name is taken.
    NameTaken = "name_taken", CONFLICT, "Name taken";
    /// Code declares it: change it there and deploy.
    DefinedByCode = "defined_by_code", CONFLICT, "Defined by code";
    /// Somebody has changed it since.
    VersionConflict = "version_conflict", CONFLICT, "Version conflict";
    /// The schedule has nothing to request by itself.
    NothingToTrigger = "nothing_to_trigger", CONFLICT, "Nothing to trigger";
    /// The sensor is not one that messages are sent to.
    TakesNoMessages = "takes_no_messages", CONFLICT, "Takes no messages";
    /// It cannot get into that state from where it is.
    InvalidStateTransition = "invalid_state_transition", CONFLICT, "Invalid state transition";
    /// The tables do not have the definitions of a deployment that is older than they are.
    DefinitionsNotKept = "definitions_not_kept", CONFLICT, "Definitions not kept";
    /// The worker is not registered, or was not heard of for too long.
    UnknownWorker = "unknown_worker", CONFLICT, "Unknown worker";
    /// The worker has other code than is deployed.
    OtherCode = "other_code", CONFLICT, "Other code";
    /// The worker has not found in its storage what is in that of the workspace.
    OtherStorage = "other_storage", CONFLICT, "Other storage";
    /// The worker works for another workspace.
    OtherWorkspace = "other_workspace", CONFLICT, "Other workspace";
    /// The attempt is over.
    AttemptEnded = "attempt_ended", GONE, "Attempt has ended";
    /// The body exceeds the limit.
    BodyTooLarge = "body_too_large", PAYLOAD_TOO_LARGE, "Body too large";
    /// The content type is not JSON.
    UnsupportedMediaType = "unsupported_media_type", UNSUPPORTED_MEDIA_TYPE, "Unsupported media type";
    /// The definitions have problems.
    InvalidDefinitions = "invalid_definitions", UNPROCESSABLE_ENTITY, "Invalid definitions";
    /// The project cannot be found, or its code cannot be imported.
    InvalidProject = "invalid_project", UNPROCESSABLE_ENTITY, "Invalid project";
    /// The request cannot be planned.
    Unplannable = "unplannable", UNPROCESSABLE_ENTITY, "No such plan";
    /// A limit is reached.
    QuotaExceeded = "quota_exceeded", TOO_MANY_REQUESTS, "Quota exceeded";
    /// Too many requests in too short a time.
    RateLimited = "rate_limited", TOO_MANY_REQUESTS, "Too many requests";
    /// An internal error.
    Internal = "internal", INTERNAL_SERVER_ERROR, "Internal error";
    /// The event to wait for has not come in time.
    NotYet = "not_yet", SERVICE_UNAVAILABLE, "Not yet";
    /// No change was made; the request may be repeated.
    Unavailable = "unavailable", SERVICE_UNAVAILABLE, "Unavailable";
    /// The server is about to end.
    ShuttingDown = "shutting_down", SERVICE_UNAVAILABLE, "Shutting down";
}

/// The names on the wire.
impl PartialSchema for Code {
    fn schema() -> RefOr<Schema> {
        let names = Code::ALL.iter().map(|code| code.name());
        let schema = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names));
        schema.description(Some("Machine-readable code of a problem.")).into()
    }
}

impl ToSchema for Code {}

/// A problem document: why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// `urn:servo:problem:` and the code.
    #[serde(rename = "type")]
    #[schema(value_type = String)]
    pub kind: Box<str>,
    /// The same for every occurrence.
    #[schema(value_type = String)]
    pub title: Box<str>,
    /// The HTTP status.
    pub status: u16,
    /// An explanation: the event, its subject, and the next step for the caller.
    #[schema(value_type = String)]
    pub detail: Box<str>,
    /// Machine-readable code of the problem.
    pub code: Code,
    /// The invalid parts of the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<Violation>,
    /// The limit that is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<Box<QuotaFigures>>,
    /// Seconds after which to retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u32>,
    /// Every problem of the definitions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<DefinitionProblem>,
}

/// An invalid part of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Violation {
    /// The field, as `labels.team` or `partitions.keys[0]`; `.` stands for the whole.
    pub field: String,
    /// The problem with the field.
    pub message: String,
}

/// A limit that is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct QuotaFigures {
    pub name: String,
    pub limit: u64,
    pub used: u64,
}

/// One problem of definitions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DefinitionProblem {
    /// Where it was declared; absent if it is one of the manifest as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<SourceLocation>,
    /// The subject of the problem: `asset analytics.delays`.
    pub subject: String,
    /// The problem.
    pub message: String,
    /// The suggested fix.
    pub fix: String,
}

/// A location in the code of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct SourceLocation {
    pub file: String,
    pub line: u32,
}

impl Problem {
    /// A problem with a sentence about it.
    pub fn new(code: Code, detail: impl Into<Box<str>>) -> Self {
        Self {
            kind: format!("urn:servo:problem:{}", code.name()).into(),
            title: code.title().into(),
            status: code.status().as_u16(),
            detail: detail.into(),
            code,
            violations: Vec::new(),
            quota: None,
            retry_after: (code.status() == StatusCode::SERVICE_UNAVAILABLE).then_some(1),
            problems: Vec::new(),
        }
    }

    /// A problem with one field.
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        let (field, message) = (field.into(), message.into());
        let mut problem = Self::new(Code::InvalidRequest, format!("{field}: {message}"));
        problem.violations.push(Violation { field, message });
        problem
    }

    /// An internal error, which is logged but not exposed.
    pub(crate) fn internal(error: &dyn std::fmt::Display) -> Self {
        tracing::error!(%error, "api.internal_error");
        Self::new(Code::Internal, "something went wrong in the server; its log says what")
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.detail)?;
        for problem in &self.problems {
            f.write_str("\n  ")?;
            if let Some(SourceLocation { file, line }) = &problem.location {
                write!(f, "{file}:{line}: ")?;
            }
            write!(f, "{}: {}; {}", problem.subject, problem.message, problem.fix)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problem {}

impl IntoResponse for Problem {
    fn into_response(self) -> Response<Body> {
        let status = self.code.status();
        let mut response = Response::new(Body::from(serde_json::to_vec(&self).unwrap_or_default()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_names_and_statuses_that_they_always_had() {
        let table: Vec<String> =
            Code::ALL.iter().map(|code| format!("{} {}", code.status().as_u16(), code.name())).collect();
        insta::assert_snapshot!(table.join("\n"));
    }

    #[test]
    fn a_code_of_a_newer_server_is_read_as_another_one() {
        assert_eq!(serde_json::from_str::<Code>("\"brand_new\"").unwrap(), Code::Other);
        for code in Code::ALL {
            let text = serde_json::to_string(code).unwrap();
            assert_eq!(text, format!("\"{}\"", code.name()));
            assert_eq!(serde_json::from_str::<Code>(&text).unwrap(), *code);
        }
    }
}
