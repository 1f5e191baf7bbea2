//! SQL over Servo's tables and the data of assets: read-only, limited, and sealed off from everything else (ADR-171).

use std::time::{Duration, Instant};

use axum::extract::State;

use crate::answer::{Answer, FreshTables, Problems};
use crate::app::{Shared, SqlQuery};
use crate::extract::{Fresh, Json, NoQuery, Query};
use crate::problem::{Code, Problem};
use crate::views::{SqlBody, SqlResult, SqlTables};

const MAX_QUERY: usize = 100_000;
const MAX_ROWS: u32 = 10_000;
const DEFAULT_ROWS: u32 = 1_000;
const MAX_SECONDS: u32 = 60;
const DEFAULT_SECONDS: u32 = 20;
/// The most that rows of an answer may take as JSON.
const MAX_BYTES: usize = 8 << 20;
/// How long a query waits for the tables to have the newest rows.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs a query. It ends when nobody waits for it any more.
#[utoipa::path(
    post, path = "/sql", operation_id = "run_sql", tag = "sql",
    params(FreshTables), request_body = SqlBody, responses((status = 200, body = SqlResult), Problems)
)]
pub(super) async fn run(
    State(app): State<Shared>,
    fresh: Fresh,
    Json(body): Json<SqlBody>,
) -> Result<Answer<SqlResult>, Problem> {
    if body.query.trim().is_empty() {
        return Err(Problem::invalid("query", "is empty; give one, such as select * from runs limit 10"));
    }
    if body.query.len() > MAX_QUERY {
        return Err(Problem::invalid("query", format!("is longer than {MAX_QUERY} bytes")));
    }
    let max_rows = within("max_rows", body.max_rows, DEFAULT_ROWS, MAX_ROWS)?;
    let seconds = within("max_seconds", body.max_seconds, DEFAULT_SECONDS, MAX_SECONDS)?;
    let Some(sql) = &app.api.sql else {
        let detail = "this server has no Python that could run SQL; use servo sql where the workspace is";
        return Err(Problem::new(Code::InvalidProject, detail));
    };
    fresh.tables(&app, Some(PATIENCE)).await?;
    let (started, allowed) = (Instant::now(), Duration::from_secs(u64::from(seconds)));
    let query = SqlQuery { text: body.query, max_rows, max_bytes: MAX_BYTES, timeout: allowed };
    let mut result = tokio::select! {
        result = sql.run(query) => result?,
        () = app.closed() => return Err(servo_runtime::Error::Stopped.into()),
    };
    result.elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(Answer(result))
}

/// Servo's tables with their columns. Assets are listed by `GET /assets`.
#[utoipa::path(
    get, path = "/sql/tables", operation_id = "list_sql_tables", tag = "sql",
    responses((status = 200, body = SqlTables), Problems)
)]
pub(super) async fn tables(Query(NoQuery {}): Query<NoQuery>) -> Answer<SqlTables> {
    Answer(SqlTables::all())
}

fn within(name: &str, given: Option<u32>, default: u32, most: u32) -> Result<u32, Problem> {
    match given.unwrap_or(default) {
        value if (1..=most).contains(&value) => Ok(value),
        value => Err(Problem::invalid(name, format!("{value} is not between 1 and {most}"))),
    }
}
