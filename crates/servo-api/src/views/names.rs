//! The values that states and the like can have, for the description of the interface.

use std::borrow::Cow;

use servo_engine::{
    AttemptOutcome, AuditOutcome, DataFormat, DataStatus, FreshnessStatus, GatingDecision, OutputState,
    RunState, SettingOrigin, TaskState, WorkerState,
};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

macro_rules! named {
    ($($(#[$doc:meta])* $schema:ident = $name:literal, $values:expr;)*) => {
        $($(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub struct $schema;

        impl PartialSchema for $schema {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new().schema_type(Type::String).enum_values(Some($values)).into()
            }
        }

        impl ToSchema for $schema {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed($name)
            }
        })*
    };
}

named! {
    /// How [`RunState`] is described.
    RunStateName = "RunState", RunState::ALL.iter().map(|value| value.name());
    /// How [`SettingOrigin`] is described.
    SettingOriginName = "SettingOrigin", SettingOrigin::ALL.iter().map(|value| value.name());
    /// How [`TaskState`] is described.
    TaskStateName = "TaskState", TaskState::ALL.iter().map(|value| value.name());
    /// How [`DataStatus`] is described.
    DataStatusName = "DataStatus", DataStatus::ALL.iter().map(|value| value.name());
    /// How [`DataFormat`] is described.
    DataFormatName = "DataFormat", DataFormat::ALL.iter().map(|value| value.name());
    /// How [`OutputState`] is described.
    OutputStateName = "OutputState", OutputState::ALL.iter().map(|value| value.name());
    /// How [`GatingDecision`] is described.
    GatingDecisionName = "GatingDecision", GatingDecision::ALL.iter().map(|value| value.name());
    /// How [`AuditOutcome`] is described.
    AuditOutcomeName = "AuditOutcome", AuditOutcome::ALL.iter().map(|value| value.name());
    /// How [`AttemptOutcome`] is described.
    AttemptOutcomeName = "AttemptOutcome", AttemptOutcome::ALL.iter().map(|value| value.name());
    /// How [`FreshnessStatus`] is described.
    FreshnessStatusName = "FreshnessStatus", FreshnessStatus::ALL.iter().map(|value| value.name());
    /// How [`WorkerState`] is described.
    WorkerStateName = "WorkerState", WorkerState::ALL.iter().map(|value| value.name());
    /// How [`servo_engine::Outcome`] is described.
    OutcomeName = "Outcome", ["SUCCEEDED", "FAILED", "CANCELLED", "TIMED_OUT", "INTERRUPTED"];
}
