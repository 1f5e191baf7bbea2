//! How much of the log is in the tables.

use std::time::Duration;

use axum::extract::State;

use crate::answer::{Answer, Problems, Wait};
use crate::app::Shared;
use crate::extract::{NoQuery, Query};
use crate::problem::{Code, Problem};
use crate::views::Tables;

/// How long the tables may take to be written.
const PATIENCE: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(10);

/// Return how far the tables go. Answers when they hold everything that was durable when it was asked.
#[utoipa::path(
    get, path = "/tables", operation_id = "tables", tag = "server",
    params(Wait), responses((status = 200, body = Tables), Problems)
)]
pub(super) async fn show(
    State(app): State<Shared>,
    Query(NoQuery {}): Query<NoQuery>,
) -> Result<Answer<Tables>, Problem> {
    let durable = app.workspace().read(|state| state.head().seq).await?;
    let written = async {
        loop {
            let tables = Tables::of(app.workspace().manifest().as_deref());
            if tables.last_seq >= durable {
                return tables;
            }
            tokio::time::sleep(POLL).await;
        }
    };
    let late = |_| Problem::new(Code::NotYet, "the tables are not written yet; ask again");
    tokio::select! {
        tables = tokio::time::timeout(PATIENCE, written) => tables.map(Answer).map_err(late),
        () = app.closed() => Err(servo_runtime::Error::Stopped.into()),
    }
}
