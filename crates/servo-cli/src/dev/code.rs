//! The code that the server has loaded, and whether something was saved since.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use servo_api::{Code, Problem, ProjectCode};
use servo_worker::project::Sources;
use tokio::sync::{Notify, watch};

use crate::output;

/// How long a request waits for code to be loaded.
const PATIENCE: Duration = Duration::from_secs(120);

/// The code of a project that is loaded again whenever it is saved. Requests that come after a save wait for it.
pub(super) struct LoadedCode {
    root: PathBuf,
    loaded: watch::Sender<Option<Loaded>>,
    wanted: Notify,
}

/// One loading of the code.
#[derive(Clone)]
struct Loaded {
    /// The files as they were just before.
    sources: Sources,
    problem: Option<Problem>,
}

impl LoadedCode {
    /// Nothing is loaded yet.
    pub(super) fn new(root: &Path) -> Arc<Self> {
        Arc::new(Self { root: root.to_owned(), loaded: watch::Sender::new(None), wanted: Notify::new() })
    }

    /// The files as they are now.
    pub(super) fn sources(&self) -> Sources {
        Sources::look(&self.root)
    }

    /// Tells whoever waits that these files were loaded, or why they could not be.
    pub(super) fn loaded(&self, sources: Sources, outcome: Result<(), &anyhow::Error>) {
        let problem = outcome.err().map(|error| {
            let mut problem = output::problem(error);
            let said =
                "the code that was saved cannot be loaded, and nothing is done with the code before it: ";
            problem.detail = format!("{said}{}", problem.detail).into();
            problem
        });
        self.loaded.send_replace(Some(Loaded { sources, problem }));
    }

    /// Resolves when somebody waits for code that is not loaded.
    pub(super) async fn wanted(&self) {
        self.wanted.notified().await;
    }

    async fn newest(&self) -> Result<(), Problem> {
        let mut loaded = self.loaded.subscribe();
        loop {
            let root = self.root.clone();
            let now = tokio::task::spawn_blocking(move || Sources::look(&root)).await;
            let now = now.map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
            if let Some(Loaded { sources, problem }) = loaded.borrow_and_update().clone()
                && sources == now
            {
                return problem.map_or(Ok(()), Err);
            }
            self.wanted.notify_one();
            if loaded.changed().await.is_err() {
                return Err(Problem::new(Code::ShuttingDown, "the server is about to end"));
            }
        }
    }
}

impl ProjectCode for LoadedCode {
    fn current(&self) -> BoxFuture<'_, Result<(), Problem>> {
        let late = |_| Problem::new(Code::NotYet, "the code that was saved is still being loaded; ask again");
        async move { tokio::time::timeout(PATIENCE, self.newest()).await.map_err(late)? }.boxed()
    }
}
