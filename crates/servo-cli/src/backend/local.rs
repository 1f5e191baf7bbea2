//! This process: reads a workspace beside whoever writes it, or has it for as long as the command takes.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use servo_api::Api;
use servo_api::client::Client;
use servo_core::RunId;
use servo_engine::controllers::Dispatching;
use servo_queue::{Keyring, LocalQueue};
use servo_runtime::{Config, Stores, Workspace};
use servo_store::DataRoot;
use servo_worker::project::Scanned;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::Backend;
use crate::kept_logs::KeptLogs;
use crate::keys_file::KeysFile;
use crate::location::{Location, random_token};
use crate::owner::Ownership;
use crate::session::{self, ServerContext, Session, WorkerScope};

/// Runs of before that are named one by one.
const NAMED: usize = 3;

/// This process.
pub(super) struct Local {
    client: Client,
    work: Work,
}

enum Work {
    /// Reads.
    Reading(Workspace),
    /// Has the workspace and runs nothing.
    Writing(Workspace, Ownership),
    /// Has the workspace and runs tasks.
    Running(Box<Running>),
}

struct Running {
    session: Session,
    ownership: Ownership,
    server: Server,
    /// Runs that were active when the last process ended.
    before: Vec<RunId>,
    /// Whether it was said that they go on.
    has_told: AtomicBool,
}

impl Local {
    /// Reads the state, as if the project was deployed where that matters.
    pub(super) async fn read(location: &Location, with_project: bool) -> anyhow::Result<Self> {
        let definitions = match with_project {
            true => Some(session::deployment(location.project.scan_cached()?, location.caller())?),
            false => None,
        };
        let mut stores = location.look_if_any()?;
        if let Some(place) = location.project.find().ok().and_then(|project| project.storage()) {
            stores.data = DataRoot::open(&place, &stores.layout).ok();
        }
        let secret = location.secret_if_any()?;
        let keys = KeysFile::look(location)?.ring()?;
        let queue = LocalQueue::new(1);
        let mut config = Config::new(queue.clone(), secret, keys.clone());
        config.logs = Some(Arc::new(KeptLogs(Arc::new(location.logs()))));
        let workspace = Workspace::open_read_only(stores, config, definitions).await?;
        let client = in_process(location, &workspace, queue, keys)?;
        Ok(Self { client, work: Work::Reading(workspace) })
    }

    /// Whether the tables lack something of the log: nobody has written them since it grew.
    pub(super) async fn tables_lag(location: &Location) -> anyhow::Result<bool> {
        let stores = location.look()?;
        let durable = stores.log.next_seq().await? - 1;
        let tables = servo_projections::Projection::open_latest(stores.blobs, stores.layout).await?;
        Ok(tables.map_or(0, |tables| tables.manifest().watermarks.last_seq) < durable)
    }

    /// Has the workspace, and runs nothing. What was scanned is deployed.
    pub(super) async fn write(
        location: &Location,
        mut stores: Stores,
        ownership: Ownership,
        scanned: Option<Scanned>,
    ) -> anyhow::Result<Self> {
        let secret = location.secret()?;
        let keys = KeysFile::open(location)?.ring()?;
        let queue = LocalQueue::new(1_024);
        let mut config = Config::new(queue.clone(), secret, keys.clone());
        config.automation = false;
        config.backfills = false;
        config.notifier = Some(session::senders(location, None)?);
        config.logs = Some(Arc::new(KeptLogs(Arc::new(location.logs()))));
        if let Ok(project) = location.project.find() {
            session::keep_data_of(&project, &mut stores)?;
        }
        let workspace = Workspace::open(stores, config).await?;
        let client = in_process(location, &workspace, queue, keys)?;
        if let Some(scanned) = scanned {
            session::deploy(&workspace, scanned, location.caller()).await?;
        }
        Ok(Self { client, work: Work::Writing(workspace, ownership) })
    }

    /// Has the workspace, deploys the project, runs tasks, plans chunks of backfills if that is wanted, and answers
    /// other commands.
    pub(super) async fn run(
        location: &Location,
        stores: Stores,
        mut ownership: Ownership,
        slots: usize,
        reach: WorkerScope,
        dispatching: Dispatching,
    ) -> anyhow::Result<Self> {
        let project = location.project.find()?;
        let server = ServerContext::default();
        let mut session = Session::open(location, stores, project, slots, reach, dispatching, server).await?;
        let mut before = session.unfinished().await?;
        if let Dispatching::First(run) = dispatching {
            before.retain(|unfinished| *unfinished != run);
        }
        let started = async {
            session.deploy(location.caller()).await?;
            let (server, url, token) = Server::start(session.api()).await?;
            ownership.advertise(url, token)?;
            Ok((Client::in_process(session.api())?, server))
        };
        match started.await {
            Ok((client, server)) => {
                let has_told = AtomicBool::new(false);
                let running = Running { session, ownership, server, before, has_told };
                Ok(Self { client, work: Work::Running(Box::new(running)) })
            }
            Err(error) => {
                drop(ownership);
                session.close().await?;
                Err(error)
            }
        }
    }
}

#[async_trait]
impl Backend for Local {
    fn client(&self) -> &Client {
        &self.client
    }

    fn tell_what_else(&self) {
        if let Work::Running(running) = &self.work {
            running.has_told.store(true, Ordering::Relaxed);
            say_what_else(&running.before);
        }
    }

    fn may_end(&self) -> bool {
        false
    }

    async fn close(self: Box<Self>) -> anyhow::Result<()> {
        match self.work {
            Work::Reading(workspace) => Ok(workspace.shutdown().await?),
            Work::Writing(workspace, ownership) => {
                drop(ownership);
                Ok(workspace.shutdown().await?)
            }
            Work::Running(running) => {
                let Running { session, ownership, server, before, has_told } = *running;
                let has_told = has_told.into_inner();
                drop(ownership);
                server.stop().await?;
                let unfinished = session.unfinished().await?;
                session.close().await?;
                for run in unfinished.iter().filter(|run| has_told && before.contains(run)) {
                    eprintln!("{run} of before is not finished; go on with it: servo run watch {run}");
                }
                Ok(())
            }
        }
    }
}

/// Says which runs of before are gone on with beside what is asked for, which goes first.
fn say_what_else(before: &[RunId]) {
    let named: Vec<String> = before.iter().take(NAMED).map(ToString::to_string).collect();
    match before.len() {
        0 => {}
        1 => eprintln!("{} of before goes on as well, when slots are free", named.join("")),
        count => {
            let more = if count > NAMED { format!(" and {} more", count - NAMED) } else { String::new() };
            eprintln!("{}{more} of before go on as well, when slots are free", named.join(", "));
        }
    }
}

/// Answers other commands of this user while this one is at work.
struct Server {
    stop: oneshot::Sender<()>,
    serving: JoinHandle<std::io::Result<()>>,
}

impl Server {
    /// Where it listens, and what it wants to be shown: whoever can read `server.json` may ask.
    async fn start(mut api: Api) -> anyhow::Result<(Self, String, String)> {
        let token = random_token()?;
        api.access_token = Some(token.as_str().into());
        api.worker_key = Some(token.as_str().into());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(servo_api::serve(listener, api, async {
            let _dropped = stopped.await;
        }));
        Ok((Self { stop, serving }, url, token))
    }

    async fn stop(self) -> anyhow::Result<()> {
        let _ended = self.stop.send(());
        Ok(self.serving.await??)
    }
}

fn in_process(
    location: &Location,
    workspace: &Workspace,
    queue: Arc<LocalQueue>,
    keys: Keyring,
) -> anyhow::Result<Client> {
    let api = Api::new(workspace.clone(), queue, Arc::new(location.logs()), keys);
    Ok(Client::in_process(api)?)
}
