//! Keys of dynamic partitions.

use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use servo_engine::definitions::Definitions;
use servo_engine::{ChangePartitions, State as EngineState};

use crate::answer::{IdempotencyKey, Problems};
use crate::app::Shared;
use crate::extract::{Command, Path};
use crate::problem::{Code, Problem};
use crate::views::{ChangePartitionsBody, PartitionsChanged};

/// Adds and removes keys of dynamic partitions. Data of removed ones stays.
#[utoipa::path(
    post, path = "/dynamic-partitions/{name}", operation_id = "change_dynamic_partitions", tag = "assets",
    params(("name" = String, Path), IdempotencyKey),
    request_body = ChangePartitionsBody, responses((status = 202, body = PartitionsChanged), Problems)
)]
pub(super) async fn change(
    State(app): State<Shared>,
    Path(name): Path<String>,
    Command { body, caller }: Command<ChangePartitionsBody>,
) -> Result<Response<Body>, Problem> {
    let by = caller.clone();
    let work = async {
        app.current_code().await?;
        let wanted = name.clone();
        app.workspace().read(move |state| check_name(state, &wanted)).await??;
        let change = ChangePartitions { name, add: body.add, remove: body.remove, caller: by };
        Ok(PartitionsChanged::from(app.workspace().change_partitions(change).await?))
    };
    app.once(caller, work, async |known| Ok(known.partitions().into())).await
}

/// A name that no definition has, and never had, is nearly always a slip.
fn check_name(state: &EngineState, name: &str) -> Result<(), Problem> {
    if state.dynamic_partitions().contains_key(name) {
        return Ok(());
    }
    let definitions = state.checked_definitions();
    let declared = definitions.as_deref().map(Definitions::dynamic_partitions).unwrap_or_default();
    if declared.contains(name) {
        return Ok(());
    }
    let declared: Vec<&str> = declared.into_iter().collect();
    let detail = match declared.as_slice() {
        [] => format!("no asset has dynamic partitions; declare servo.DynamicPartitions(\"{name}\")"),
        declared => format!("no asset has dynamic partitions {name}; there are {}", declared.join(", ")),
    };
    Err(Problem::new(Code::UnknownPartitions, detail))
}
