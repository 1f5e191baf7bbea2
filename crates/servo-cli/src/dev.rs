//! `servo dev`: a server, workers and the newest code, in one terminal.

mod changes;
mod code;
mod demo;
mod event_printer;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use servo_core::Millis;
use servo_engine::Schedule;
use servo_engine::controllers::Dispatching;
use servo_runtime::Workspace;
use servo_worker::project::{Project, ScanError, Sources, StartError};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::exit::Exit;
use crate::keys_file::{self, KeysFile};
use crate::location::{Location, random_token};
use crate::materialize::default_slots;
use crate::open;
use crate::owner::{self, Kind};
use crate::project::ProjectArgs;
use crate::session::{ServerContext, Session, WorkerScope};
use crate::sql_engine::PythonSql;
use crate::style::{Paint, Style};
use changes::Changes;
use code::LoadedCode;

/// Default port of a server; if it is taken, another one is used.
const PORT: u16 = 8741;
/// After how long an interpreter is started again that died while it imported the project.
const START_AGAIN: Duration = Duration::from_secs(2);
/// How long tasks may continue after Ctrl-C before they are interrupted.
const DRAIN: Duration = Duration::from_secs(2);

/// How often it is looked whether the workspace is still open.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Schedules whose next tick is shown at the start.
const SHOWN_SCHEDULES: usize = 5;

/// How to serve.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Port on the loopback interface [default: 8741, or a free one].
    #[arg(long)]
    port: Option<u16>,
    /// Open it in a browser.
    #[arg(long)]
    open: bool,
    /// Serve a project to look at, in servo-demo below this directory, with a history that is made first.
    #[arg(long)]
    demo: bool,
    /// Tasks at once [default: one per core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    slots: Option<u16>,
    /// Key that workers on other machines must show; without one, only those that can read the directory of state are
    /// given tasks.
    #[arg(long, env = "SERVO_WORKER_KEY", hide_env_values = true, value_name = "KEY", value_parser = parse_worker_key)]
    worker_key: Option<String>,
    /// Let people in whom an OpenID provider vouches for: a TOML file with [oidc].
    #[arg(long, env = "SERVO_OIDC", value_name = "FILE")]
    oidc: Option<std::path::PathBuf>,
    /// Seconds that a worker of another process may be silent before its tasks are given to others.
    #[arg(long, value_name = "SECONDS", default_value_t = 90, value_parser = clap::value_parser!(u64).range(3..=86_400))]
    worker_timeout: u64,
}

pub(crate) async fn run(location: &Location, options: &Options) -> anyhow::Result<Exit> {
    let mut location = location.clone();
    if options.demo {
        location.project = ProjectArgs::at(demo::project()?);
    }
    let location = &location;
    let project = location.project.find()?;
    let slots = options.slots.map_or_else(default_slots, usize::from);
    let reach = WorkerScope::Shared(Millis::from_secs(options.worker_timeout));
    let listener = listen(options.port).await?;
    let url = format!("http://{}", listener.local_addr()?);
    let is_new = !location.exists();
    let (stores, mut ownership) = owner::own(location, Kind::Server).await?;
    if options.demo && is_new {
        demo::live_through(location, &stores, &project, slots).await;
    }
    let code = LoadedCode::new(project.root());
    // Before an interpreter begins to read them.
    let sources = code.sources();
    let server = ServerContext { url: Some(&url), ..ServerContext::default() };
    let mut session =
        Session::open(location, stores, project.clone(), slots, reach, Dispatching::All, server).await?;
    let token = random_token()?;
    ownership.advertise(url.clone(), token.clone())?;
    let paint = Paint::for_stderr();
    eprintln!("{} {url}  {}", paint.with(Style::Bold, "servo dev"), project.root().display());

    let mut terminated = signal(SignalKind::terminate())?;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let mut api = session.api();
    api.access_token = Some(token.into());
    api.oidc = options.oidc.as_deref().map(crate::identity::provider).transpose()?;
    let logins = api.logins.clone();
    let local_key = KeysFile::open(location)?;
    api.code = Some(code.clone());
    api.sql = Some(Arc::new(PythonSql::new(location, true)?));
    api.worker_key = Some(options.worker_key.as_deref().unwrap_or(local_key.worker_key()).into());
    let key_watch = tokio::spawn(keys_file::keep_current(location.clone(), session.keys().clone()));
    api.lease = Duration::from_secs(options.worker_timeout) / 3;
    let server = tokio::spawn(servo_api::serve(listener, api, async {
        let _dropped = stopped.await;
    }));
    if options.open && !open::browse(&location.dir(), &format!("{url}{}", new_link(&logins)?))? {
        eprintln!("no browser was found; servo open --print prints a link for one");
    }
    let history =
        (options.demo && is_new).then(|| tokio::spawn(demo::fill(session.workspace.clone(), session.api())));
    let event_printer = tokio::spawn(event_printer::print_events(session.workspace.clone()));
    let (mut is_closed, workspace) = (false, session.workspace.clone());
    tokio::select! {
        ended = keep_up(location, &mut session, &project, slots, &code, sources) => ended?,
        pressed = tokio::signal::ctrl_c() => pressed?,
        _ = terminated.recv() => {}
        () = closed(&workspace) => is_closed = true,
    }
    eprintln!("stopping");
    drop(ownership);
    let _ended = stop.send(());
    server.await??;
    event_printer.abort();
    if let Some(history) = history {
        history.abort();
    }
    key_watch.abort();
    session.close_after(DRAIN).await?;
    if is_closed {
        bail!("the workspace was closed by itself: the reason is in the lines above");
    }
    Ok(Exit::Done)
}

/// The path of a link that lets a browser in.
fn new_link(logins: &servo_api::Logins) -> anyhow::Result<String> {
    logins.link().map_err(|error| anyhow::anyhow!("no random numbers: {error}"))
}

/// Waits until the workspace takes nothing more, for a reason of its own.
async fn closed(workspace: &Workspace) {
    while workspace.is_open() {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// A key that is not empty: anybody could show that.
pub(crate) fn parse_worker_key(key: &str) -> Result<String, String> {
    if key.is_empty() { Err("is empty".to_owned()) } else { Ok(key.to_owned()) }
}

async fn listen(port: Option<u16>) -> anyhow::Result<TcpListener> {
    let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    match port {
        Some(port) => TcpListener::bind(at(port)).await.with_context(|| format!("listening on port {port}")),
        None => match TcpListener::bind(at(PORT)).await {
            Ok(listener) => Ok(listener),
            Err(_) => TcpListener::bind(at(0)).await.context("listening on a free port"),
        },
    }
}

/// Deploys the project, and again whenever its files change. Code that cannot be imported leaves the last deployment
/// active.
async fn keep_up(
    location: &Location,
    session: &mut Session,
    project: &Project,
    slots: usize,
    code: &LoadedCode,
    mut sources: Sources,
) -> anyhow::Result<()> {
    let mut changes = Changes::watch(project.root())?;
    let paint = Paint::for_stderr();
    let mut is_first = true;
    loop {
        // Settings may have changed too.
        let found = Project::open(project.root()).map_err(anyhow::Error::from);
        let scanned = match found {
            Ok(_) if is_first => session.scanned().await,
            Ok(project) => session.runners.reload(project).await.map_err(anyhow::Error::from),
            Err(error) => Err(error),
        };
        let deployed = match scanned {
            Ok(scanned) => {
                let count = scanned.manifest.assets.len();
                let deployed = session.deploy_scanned(scanned, location.caller()).await;
                deployed.map(|is_new| (count, is_new))
            }
            Err(error) => Err(error),
        };
        if is_first {
            // All of them before it is said: whoever saves something broken now goes on with these.
            session.runners.warm().await.unwrap_or_else(|error| eprintln!("{error}"));
        }
        code.loaded(sources, deployed.as_ref().map(|_| ()));
        let has_died = deployed.as_ref().is_err_and(|error| {
            matches!(
                error.downcast_ref(),
                Some(ScanError::Start(StartError::Crashed(_) | StartError::Spawn { .. }))
            )
        });
        match deployed {
            Ok((count, _)) if is_first => {
                let (assets, places) = (plural(count, "asset"), plural(slots, "slot"));
                eprintln!("{assets}, {places}; the code is reloaded when you save");
                show_next_ticks(session).await?;
            }
            Ok((_, true)) => eprintln!("{} reloaded: definitions have changed", paint.with(Style::Good, "↻")),
            Ok((_, false)) => eprintln!("{} reloaded", paint.with(Style::Good, "↻")),
            Err(error) => {
                let kept = if is_first { "" } else { "\nthe code before is kept" };
                eprintln!("{} {error:#}{kept}", paint.with(Style::Bad, "✗"));
            }
        }
        is_first = false;
        tokio::select! {
            changed = changes.next() => changed?,
            // Whoever asks has seen a change before it was told here.
            () = code.wanted() => changes.quiet().await?,
            () = tokio::time::sleep(START_AGAIN), if has_died => {}
        }
        sources = code.sources();
    }
}

/// Schedules and when they tick next, the first few.
async fn show_next_ticks(session: &Session) -> anyhow::Result<()> {
    let next = session.workspace.read(|state| {
        let next = |schedule: &Schedule| Some((schedule.next_tick_at?, schedule.name.clone()));
        let mut next: Vec<_> = state.schedules().filter(|it| !it.paused).filter_map(next).collect();
        next.sort();
        next
    });
    let next = next.await?;
    for (at, name) in next.iter().take(SHOWN_SCHEDULES) {
        eprintln!("{name} ticks next at {at}");
    }
    if let more @ 1.. = next.len().saturating_sub(SHOWN_SCHEDULES) {
        eprintln!("and {more} more: servo schedule list");
    }
    Ok(())
}

fn plural(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
