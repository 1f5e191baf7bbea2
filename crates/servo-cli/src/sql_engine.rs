//! Runs the SQL of the pages: each query in a Python of its own, which ends when nobody waits for it any more.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use servo_api::views::SqlResult;
use servo_api::{Code, Problem, SqlEngine, SqlQuery};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::Semaphore;

use crate::location::Location;

/// Queries at once; more wait for their turn.
const AT_ONCE: usize = 2;
/// How long a query may wait for its turn.
const TURN: Duration = Duration::from_secs(10);
/// How long a process may take to clean up when it is told to end.
const GRACE: Duration = Duration::from_secs(2);
/// More than a result of the allowed size, with the names of its columns.
const MOST_OUTPUT: u64 = 32 << 20;
const MOST_ERRORS: u64 = 64 << 10;
const MEMORY: &str = "1GB";
const THREADS: u32 = 2;

/// Starts `python -m servo.sql`, which is what `servo sql` starts.
pub(crate) struct PythonSql {
    interpreter: PathBuf,
    arguments: Vec<OsString>,
    turns: Semaphore,
}

impl PythonSql {
    /// Queries the workspace at a location, with the Python that is found there. Its data is where the project says, if
    /// the project is that of the workspace.
    pub(crate) fn new(location: &Location, is_its_project: bool) -> anyhow::Result<Self> {
        let (project, interpreter) = location.project.python()?;
        let mut arguments: Vec<OsString> = ["-m", "servo.sql", "--serve", "--dir"].map(Into::into).into();
        arguments.push(location.dir().into());
        for (name, value) in
            [("--tenant", location.tenant.as_str()), ("--workspace", location.workspace.as_str())]
        {
            arguments.extend([name.into(), value.into()]);
        }
        if let Some(storage) =
            project.as_ref().filter(|_| is_its_project).and_then(|project| project.storage())
        {
            arguments.extend(["--storage".into(), storage.into()]);
        }
        Ok(Self { interpreter, arguments, turns: Semaphore::new(AT_ONCE) })
    }

    async fn run(&self, query: SqlQuery) -> Result<SqlResult, Problem> {
        let busy =
            |_| limit("sql_queries", AT_ONCE as u64, "other queries are running; ask again when they ended");
        let turn = tokio::time::timeout(TURN, self.turns.acquire()).await.map_err(busy)?;
        let _turn = turn.map_err(|error| internal(&error))?;
        let seconds = query.timeout.as_secs();
        let late = |_| {
            let advice = format!(
                "the query took longer than {seconds} s and was stopped; ask for less, or use servo sql"
            );
            limit("sql_seconds", seconds, &advice)
        };
        tokio::time::timeout(query.timeout, self.answer(&query)).await.map_err(late)?
    }

    async fn answer(&self, query: &SqlQuery) -> Result<SqlResult, Problem> {
        let child = Command::new(&self.interpreter)
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let failed = |what: &str, error: std::io::Error| {
            internal(&format_args!("{what} {}: {error}", self.interpreter.display()))
        };
        let mut running = Running::new(child.map_err(|error| failed("starting", error))?);
        let asked = serde_json::json!({
            "query": query.text, "rows": query.max_rows, "bytes": query.max_bytes,
            "memory": MEMORY, "threads": THREADS,
        });
        let line = format!("{asked}\n");
        let (mut out, mut err) = (Vec::new(), Vec::new());
        // The pipe stays open: when it closes, nobody waits any more. A process that is gone says why.
        if let Some(stdin) = &mut running.stdin {
            let _gone = stdin.write_all(line.as_bytes()).await;
        }
        let Some(child) = &mut running.child else { return Err(internal(&"the process is gone")) };
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let read_out = async {
            match stdout {
                Some(pipe) => pipe.take(MOST_OUTPUT).read_to_end(&mut out).await,
                None => Ok(0),
            }
        };
        let read_err = async {
            match stderr {
                Some(pipe) => pipe.take(MOST_ERRORS).read_to_end(&mut err).await,
                None => Ok(0),
            }
        };
        let (read, _) = tokio::join!(read_out, read_err);
        read.map_err(|error| failed("reading from", error))?;
        let status = child.wait().await.map_err(|error| failed("waiting for", error))?;
        if status.success() {
            return serde_json::from_slice(&out).map_err(|error| internal(&error));
        }
        let said = String::from_utf8_lossy(&err).trim().to_owned();
        Err(said.lines().last().and_then(|line| serde_json::from_str(line).ok()).unwrap_or_else(|| {
            let detail = format!("{} ended with {status}: {said}", self.interpreter.display());
            Problem::new(Code::InvalidProject, detail)
        }))
    }
}

fn limit(name: &str, limit: u64, detail: &str) -> Problem {
    let mut problem = Problem::new(Code::QuotaExceeded, detail);
    let figures = servo_api::QuotaFigures { name: name.to_owned(), limit, used: limit };
    problem.quota = Some(Box::new(figures));
    problem
}

impl SqlEngine for PythonSql {
    fn run(&self, query: SqlQuery) -> BoxFuture<'_, Result<SqlResult, Problem>> {
        Self::run(self, query).boxed()
    }
}

fn internal(error: &dyn std::fmt::Display) -> Problem {
    Problem::new(Code::Internal, format!("the query could not be run: {error}"))
}

/// A process that is told to end when this is dropped, and killed if it does not.
struct Running {
    /// There until it is dropped.
    child: Option<Child>,
    stdin: Option<ChildStdin>,
}

impl Running {
    fn new(mut child: Child) -> Self {
        let stdin = child.stdin.take();
        Self { child: Some(child), stdin }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let Some(mut child) = self.child.take() else { return };
        let end = async move {
            if tokio::time::timeout(GRACE, child.wait()).await.is_err() {
                let _gone = child.kill().await;
            }
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(end);
        }
    }
}
