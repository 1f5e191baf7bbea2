//! `servo serve`: a server for many tenants and workspaces, until it is stopped.

pub(crate) mod config;
pub(crate) mod queues;
mod workspaces;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use servo_access::{ControlCommand, ControlLedger, Grant, KeyText, NewKey, Role, Scope};
use servo_api::{ApiKeys, Certificate, ClientAuthority, Served};
use servo_engine::Principal;
use servo_runtime::SystemClock;
use servo_store::{FileLog, FileLogOptions, Layout, OpenError, OsFiles, SystemPutIds};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::exit::Exit;
use crate::keys_file::{self, KeysFile};
use crate::location::{Location, random_token};
use crate::output::{self, Format};
use crate::owner::{self, Kind};
pub(crate) use config::Options;
use config::ServeConfig;
use workspaces::ServedWorkspaces;

/// The space that is kept for the control ledger: it is small.
const RESERVE: u64 = 1 << 20;
/// How often the last use of keys is written down, where it is due.
const RECORD_USES: Duration = Duration::from_secs(60);

pub(crate) async fn run(location: &Location, options: &Options, format: Format) -> anyhow::Result<Exit> {
    let config = ServeConfig::resolve(options)?;
    let certificate = match (&config.tls_cert, &config.tls_key) {
        (Some(certificate), Some(key)) => Some(Certificate::read(certificate, key)?),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => bail!("tls_cert and tls_key belong together; give both or none"),
    };
    let worker_authority = match (&config.tls_client_ca, &certificate) {
        (Some(authority), Some(_)) => Some(ClientAuthority::read(authority)?),
        (Some(_), None) => {
            bail!("tls_client_ca needs tls_cert and tls_key: certificates are shown over TLS alone")
        }
        (None, _) => None,
    };
    let listener =
        TcpListener::bind(config.listen).await.with_context(|| format!("listening on {}", config.listen))?;
    let at = listener.local_addr()?;
    let scheme = if certificate.is_some() { "https" } else { "http" };
    let control = control(location).await?;
    let (stores, mut ownership) = owner::own(location, Kind::Server).await?;
    let first_key = prepare(&control, location).await?;
    let token = random_token()?;
    let session_keys = KeysFile::of_server(location)?.ring()?;
    let api_keys = ApiKeys::new(control);
    let (slots, oidc, limits) = (config.slots, config.oidc.clone(), config.limits);
    let write_timeout = config.write_timeout;
    let url = format!("{scheme}://{}", if at.ip().is_unspecified() { reachable(at) } else { at.to_string() });
    let workspaces =
        ServedWorkspaces::new(location, stores, config, &token, &api_keys, &session_keys, url.clone());
    let workspaces = Arc::new(workspaces);
    ownership.advertise(url.clone(), token.clone())?;
    if let Some(key) = first_key {
        say_once(&key, format)?;
    }
    if !at.ip().is_loopback() && certificate.is_none() {
        tracing::warn!(
            "keys are sent in plain text to {at}; give it a certificate, or put something with TLS before it"
        );
    }
    for queue in workspaces.called_queues().filter(|queue| queue.is_in_plain_text()) {
        tracing::warn!(
            queue = queue.shown_name(),
            "tasks and their callback URLs are sent in plain text to {}; give its worker a certificate",
            queue.shown_url()
        );
    }
    eprintln!("servo serve {url}  {}  {slots} slots", location.dir().display());

    let key_watch = tokio::spawn(keys_file::keep_server_current(location.clone(), session_keys.clone()));
    let uses = tokio::spawn(record_uses(api_keys.clone()));
    let served = Served {
        workspaces: workspaces.clone(),
        access_token: Some(token.into()),
        api_keys: Some(api_keys.clone()),
        session_keys,
        oidc,
        authenticators: Vec::new(),
        limits,
        hosts: workspaces.hosts(),
        certificate,
        worker_authority,
        idle_after: workspaces.idle_after(),
        write_timeout,
    };
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    let stop = async {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = interrupted.recv() => {}
        }
        eprintln!("draining");
        drop(ownership);
    };
    servo_api::serve_many(listener, served, stop).await?;
    key_watch.abort();
    uses.abort();
    api_keys.record_uses(true).await?;
    Ok(Exit::Done)
}

/// The control ledger of a directory of state.
async fn control(location: &Location) -> anyhow::Result<ControlLedger> {
    let root = location.dir().join("control");
    let layout = Layout::new("server".parse()?, "control".parse()?);
    let options = FileLogOptions { reserve_bytes: RESERVE, ..FileLogOptions::default() };
    let log = FileLog::open_with(Arc::new(OsFiles), &root, &layout, options);
    let log = log.map_err(|error| match error {
        OpenError::Locked { holder, .. } => {
            anyhow::anyhow!("{holder} serves {} already; stop it first", location.dir().display())
        }
        error @ (OpenError::Read(_) | OpenError::Write(_)) => error.into(),
    })?;
    Ok(ControlLedger::open(Arc::new(log), Arc::new(SystemPutIds::default()), Arc::new(SystemClock)).await?)
}

/// Makes the workspace that the server is started with, and the first key where there is none.
async fn prepare(control: &ControlLedger, location: &Location) -> anyhow::Result<Option<KeyText>> {
    let system = Principal::system();
    let (tenant, workspace) = (location.tenant.clone(), location.workspace.clone());
    let state = control.state();
    if state.tenant(&tenant).is_none() {
        control.ask(&system, &ControlCommand::CreateTenant(tenant.clone())).await?;
    }
    if state.workspace(&tenant, &workspace).is_none() {
        control.ask(&system, &ControlCommand::CreateWorkspace(tenant.clone(), workspace.clone())).await?;
    }
    if !control.state().is_open(&tenant, &workspace) {
        bail!("{tenant}/{workspace} is switched off; serve another one with --tenant and --workspace");
    }
    if state.keys().next().is_some() {
        return Ok(None);
    }
    let mut random = [0u8; 38];
    getrandom::fill(&mut random).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
    let text = KeyText::of(random);
    let grant = Grant { role: Role::Admin, scope: Scope::Server, assets: None };
    let (id, hash, name) = (text.id.clone(), text.hash(), "first".to_owned());
    let new = NewKey { id, hash, name, grant, service: false, expires_at: None };
    control.ask(&system, &ControlCommand::CreateKey(new)).await?;
    Ok(Some(text))
}

/// Shows the first key on stdout, where no log goes.
fn say_once(key: &KeyText, format: Format) -> anyhow::Result<()> {
    match format {
        Format::Json => output::json(&serde_json::json!({ "admin_key": key.reveal() }))?,
        Format::Table => output::line(format_args!("admin key, shown this once: {}", key.reveal())),
    }
    Ok(())
}

/// An address of this machine by which a server on all interfaces is reached from it.
fn reachable(at: std::net::SocketAddr) -> String {
    match at {
        std::net::SocketAddr::V4(at) => format!("127.0.0.1:{}", at.port()),
        std::net::SocketAddr::V6(at) => format!("[::1]:{}", at.port()),
    }
}

async fn record_uses(keys: ApiKeys) {
    loop {
        tokio::time::sleep(RECORD_USES).await;
        if let Err(error) = keys.record_uses(false).await {
            tracing::warn!(%error, "the last use of keys could not be recorded");
        }
    }
}
