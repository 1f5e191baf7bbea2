//! How much of the log is in the tables.

use std::time::Duration;

use axum::extract::State;

use crate::answer::{Answer, Problems, Wait};
use crate::app::{App, Shared};
use crate::extract::{NoQuery, Query};
use crate::problem::{Code, Problem};
use crate::views::Tables;

/// How long the tables may take to be written.
const PATIENCE: Duration = Duration::from_secs(20);

/// Return how far the tables go. Answers when they hold everything that was durable when it was asked.
#[utoipa::path(
    get, path = "/tables", operation_id = "tables", tag = "server",
    params(Wait), responses((status = 200, body = Tables), Problems)
)]
pub(super) async fn show(
    State(app): State<Shared>,
    Query(NoQuery {}): Query<NoQuery>,
) -> Result<Answer<Tables>, Problem> {
    app.tables_current().await.map(Answer)
}

impl App {
    /// The same, for as long as a request may wait.
    pub(super) async fn tables_current(&self) -> Result<Tables, Problem> {
        let late = |_| Problem::new(Code::NotYet, "the tables are not written yet; ask again");
        tokio::select! {
            tables = tokio::time::timeout(PATIENCE, self.tables_written()) => tables.map_err(late)?,
            () = self.closed() => Err(servo_runtime::Error::Stopped.into()),
        }
    }
}
