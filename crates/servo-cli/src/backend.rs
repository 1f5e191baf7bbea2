//! Who answers for a workspace: a process that has it, or this one.
//!
//! Both are asked through the same routes with the same client, so that commands say the same in the same JSON. A
//! command says what it needs, and [`through`] finds who can do it.

mod local;
mod server;

use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use servo_api::Code;
use servo_api::client::{Client, ClientError};
use servo_core::RunId;
use servo_engine::controllers::Dispatching;

use crate::location::Location;
use crate::owner::{self, Asks, Reached};
use crate::session::WorkerScope;
use local::Local;
use server::Server;

/// How long to wait before looking again for who answers.
const PAUSE: Duration = Duration::from_millis(100);

/// Whoever answers for a workspace.
#[async_trait]
pub(crate) trait Backend: Send + Sync {
    /// Asks it.
    fn client(&self) -> &Client;

    /// Says what else this process does beside what was asked for.
    fn tell_what_else(&self) {}

    /// Whether it may be gone before a request is answered, and another one take its place.
    fn may_end(&self) -> bool;

    /// Ends what was begun for this command.
    async fn close(self: Box<Self>) -> anyhow::Result<()>;
}

/// Access to a workspace that a command needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Its state.
    Read,
    /// Its state, and what the project declares.
    ReadProject,
    /// Its state as the tables have it.
    ReadTables,
    /// Live changes.
    Follow,
    /// To change something.
    Change,
    /// To change something that the project declares.
    ChangeProject,
    /// To replace the definitions.
    Deploy,
    /// Somebody who runs tasks with the newest code, so many at once where it is this process.
    Run {
        /// Tasks at once.
        slots: usize,
    },
    /// The same, and who plans chunks of backfills.
    Backfill {
        /// Tasks at once.
        slots: usize,
    },
    /// Somebody who goes on with a run.
    Resume {
        /// Tasks at once.
        slots: usize,
        /// The run.
        run: RunId,
    },
}

impl Need {
    /// A command that is at work has the code that it began with: nobody runs something else with it.
    fn asks(self) -> Asks {
        match self {
            Self::Read | Self::ReadProject | Self::Deploy | Self::Run { .. } | Self::Backfill { .. } => {
                Asks::Servers
            }
            Self::ReadTables | Self::Follow | Self::Change | Self::ChangeProject | Self::Resume { .. } => {
                Asks::Anybody
            }
        }
    }
}

/// Finds who can do what is needed: the server at `SERVO_URL`, the process that has the workspace, or this one.
async fn open(location: &Location, need: Need) -> anyhow::Result<Box<dyn Backend>> {
    if let Some(server) = Server::named(location).await? {
        return Ok(Box::new(server));
    }
    let asks = need.asks();
    let is_read = match need {
        Need::Read | Need::ReadProject | Need::Follow => true,
        Need::ReadTables => !Local::tables_lag(location).await?,
        Need::Change
        | Need::ChangeProject
        | Need::Deploy
        | Need::Run { .. }
        | Need::Backfill { .. }
        | Need::Resume { .. } => false,
    };
    if is_read {
        return Ok(match owner::find(location, asks).await? {
            Some(client) => {
                if need == Need::ReadProject {
                    wait_for_code(&client).await?;
                }
                Box::new(Server::found(client))
            }
            None => Box::new(Local::read(location, need == Need::ReadProject).await?),
        });
    }
    // What the project declares is checked before anything is made for it.
    let scanned = match need {
        Need::ChangeProject if owner::find(location, asks).await?.is_none() => {
            location.project.scan_if_any()?
        }
        Need::Read
        | Need::ReadProject
        | Need::ReadTables
        | Need::Follow
        | Need::Change
        | Need::ChangeProject
        | Need::Deploy
        | Need::Run { .. }
        | Need::Backfill { .. }
        | Need::Resume { .. } => None,
    };
    let (stores, ownership) = match owner::reach(location, asks).await? {
        Reached::Client(client) => return Ok(Box::new(Server::found(client))),
        Reached::Owned(stores, ownership) => (stores, ownership),
    };
    Ok(Box::new(match need {
        Need::Run { slots } => {
            let reach = WorkerScope::Alone { backfills: false };
            Local::run(location, stores, ownership, slots, reach, Dispatching::Held).await?
        }
        Need::Resume { slots, run } => {
            let reach = WorkerScope::Alone { backfills: false };
            Local::run(location, stores, ownership, slots, reach, Dispatching::First(run)).await?
        }
        Need::Backfill { slots } => {
            let reach = WorkerScope::Alone { backfills: true };
            Local::run(location, stores, ownership, slots, reach, Dispatching::All).await?
        }
        Need::Read
        | Need::ReadProject
        | Need::ReadTables
        | Need::Follow
        | Need::Change
        | Need::ChangeProject
        | Need::Deploy => Local::write(location, stores, ownership, scanned).await?,
    }))
}

/// Waits until a server has loaded what was saved. If that cannot be, the code before it is what is shown.
async fn wait_for_code(client: &Client) -> anyhow::Result<()> {
    match client.current_code().await {
        Ok(_) => Ok(()),
        Err(ClientError::Problem(problem))
            if matches!(problem.code, Code::InvalidProject | Code::InvalidDefinitions) =>
        {
            eprintln!("warning: {problem}\nthis is about the code before it");
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// Says so where something is declared that only a server does, and none is there.
pub(crate) async fn note_without_server(location: &Location, what: &str) -> anyhow::Result<()> {
    if other_process(location).await?.is_none() {
        eprintln!("note: no server has this workspace, and {what} until one does: servo dev, or servo serve");
    }
    Ok(())
}

/// The process that has the workspace, if there is one: that at `SERVO_URL`, or the one on this machine.
pub(crate) async fn other_process(location: &Location) -> anyhow::Result<Option<Client>> {
    match Server::named(location).await? {
        Some(server) => Ok(Some(server.client().clone())),
        None => owner::find(location, Asks::Anybody).await,
    }
}

/// The server that keys, tenants and quotas are asked of.
pub(crate) async fn server_client(location: &Location) -> anyhow::Result<Client> {
    other_process(location).await?.with_context(|| {
        format!(
            "no server has {}; start one with servo serve, or name one with --url and --key",
            location.dir().display()
        )
    })
}

/// Does something through whoever can. If that process ends before it has answered, the next one is asked, or this one
/// takes its place: what is done must be safe to begin again.
pub(crate) async fn through<T>(
    location: &Location,
    need: Need,
    act: impl AsyncFn(&Client) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    through_backend(location, need, async |backend| act(backend.client()).await).await
}

/// The same for what is asked for and then followed. What else goes on is said in between: a request that is refused
/// does nothing beside it.
pub(crate) async fn through_both<A, T>(
    location: &Location,
    need: Need,
    ask: impl AsyncFn(&Client) -> anyhow::Result<A>,
    follow: impl AsyncFn(&Client, A) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    through_backend(location, need, async |backend| {
        let asked = ask(backend.client()).await?;
        backend.tell_what_else();
        follow(backend.client(), asked).await
    })
    .await
}

async fn through_backend<T>(
    location: &Location,
    need: Need,
    act: impl AsyncFn(&dyn Backend) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    loop {
        let backend = open(location, need).await?;
        let outcome = act(&*backend).await;
        let may_end = backend.may_end();
        let closed = backend.close().await;
        match outcome {
            Err(error) if may_end && has_ended(&error) => tokio::time::sleep(PAUSE).await,
            outcome => {
                let value = outcome?;
                closed?;
                return Ok(value);
            }
        }
    }
}

/// Whether somebody who answered before does not any more.
fn has_ended(error: &anyhow::Error) -> bool {
    match error.downcast_ref::<ClientError>() {
        Some(ClientError::Unreachable { .. }) => true,
        Some(ClientError::Problem(problem)) => problem.code == Code::ShuttingDown,
        Some(ClientError::Address { .. } | ClientError::Malformed { .. } | ClientError::Random(_)) | None => {
            false
        }
    }
}
