//! `servo login`, `servo logout` and `servo context`: which servers this user speaks to.

use std::io::{BufRead, IsTerminal, Read};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde_json::json;
use servo_api::client::{ClientError, ListOptions};
use servo_api::views::OidcOptions;
use servo_core::Clock;
use servo_oidc::{Polled, Provider};
use servo_runtime::SystemClock;

use crate::contexts::{Context, Contexts, LOCAL};
use crate::exit::Exit;
use crate::location::Location;
use crate::output::{self, Format};
use crate::target::{Target, connect, key_for};

/// Longest key that is read.
const MAX_KEY: u64 = 64 << 10;

/// Options of `servo login`.
#[derive(clap::Args)]
pub(crate) struct LoginOptions {
    /// Address of the server.
    #[arg(value_name = "URL")]
    server: String,
    /// Name of the context [default: the name of the host].
    #[arg(long)]
    name: Option<String>,
    /// Log in with an API key, read from stdin: arguments can be seen by everybody on the machine.
    #[arg(long)]
    key_stdin: bool,
}

/// Options of `servo logout`.
#[derive(clap::Args)]
pub(crate) struct LogoutOptions {
    /// The context [default: the one in use].
    name: Option<String>,
}

/// Look at contexts, and choose one.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// List contexts.
    #[command(after_help = "Example:\n  servo context list --json")]
    List,
    /// Choose the context that commands are about; local is the workspace on this machine.
    #[command(after_help = "Examples:\n  servo context use prod\n  servo context use local")]
    Use {
        /// The context.
        name: String,
    },
    /// Show the context in use, and what decides it.
    #[command(after_help = "Example:\n  servo context show")]
    Show,
}

pub(crate) async fn login(
    location: &Location,
    options: &LoginOptions,
    format: Format,
) -> anyhow::Result<Exit> {
    let client = connect(&options.server)?;
    let name = match &options.name {
        Some(name) => name.clone(),
        None => host(client.server())?,
    };
    if name == LOCAL || name.is_empty() || name.chars().any(char::is_control) {
        bail!("{name:?} cannot be the name of a context; give another one with --name");
    }
    client.version().await.with_context(|| format!("{} is no server of Servo", options.server))?;
    let (key, refresh_token) = match (options.key_stdin, key_for(location, client.server())) {
        (true, _) => (read_key()?, None),
        (false, Some(key)) => (key, None),
        (false, None) => match client.login_options().await?.oidc {
            Some(offered) => at_provider(&offered).await?,
            None => (read_key()?, None),
        },
    };
    let context = Context { url: client.server().to_owned(), key: Some(key), refresh_token };
    check(&context).await?;
    let mut contexts = Contexts::read()?;
    contexts.contexts.insert(name.clone(), context.clone());
    contexts.current = Some(name.clone());
    contexts.write()?;
    match format {
        Format::Json => output::json(&json!({ "context": name, "url": context.url }))?,
        Format::Table => eprintln!("logged in: commands are about {name} ({}) now", context.url),
    }
    Ok(Exit::Done)
}

/// Logs in at the identity provider of a server, with a code that the user enters in a browser.
async fn at_provider(offered: &OidcOptions) -> anyhow::Result<(String, Option<String>)> {
    let provider = provider(offered)?;
    let login = provider.begin_device().await?;
    let address = login.verification_uri_complete.as_deref().unwrap_or(&login.verification_uri);
    eprintln!("open {address}\nand enter {}", login.user_code);
    let deadline = Instant::now() + login.lives();
    let mut pause = login.interval();
    loop {
        tokio::time::sleep(pause).await;
        match provider.poll_device(&login).await {
            Ok(Polled::Done(tokens)) => {
                let token = tokens.id_token.context("the provider gave no token of identity")?;
                return Ok((token, tokens.refresh_token));
            }
            Ok(Polled::Waiting) => {}
            Ok(Polled::SlowDown) => pause += Duration::from_secs(5),
            Err(error) if error.is_passing() => {}
            Err(error) => return Err(error.into()),
        }
        if Instant::now() > deadline {
            bail!("the code has expired; run servo login again");
        }
    }
}

fn provider(offered: &OidcOptions) -> anyhow::Result<Provider> {
    let config = serde_json::to_value(offered)?;
    Ok(Provider::new(serde_json::from_value(config)?)?)
}

/// Gets a new token for a context whose own has expired.
pub(crate) async fn renew(target: &mut Target) -> anyhow::Result<()> {
    let Some(name) = &target.context else { return Ok(()) };
    let mut contexts = Contexts::read()?;
    let Some(context) = contexts.contexts.get_mut(name) else { return Ok(()) };
    let (Some(key), Some(refresh)) = (&target.key, &context.refresh_token) else { return Ok(()) };
    if context.key.as_ref() != Some(key) || !servo_oidc::has_expired(key, SystemClock.now()) {
        return Ok(());
    }
    let Some(offered) = connect(&context.url)?.login_options().await?.oidc else { return Ok(()) };
    let again = || format!("your login at {} is over; run servo login {}", context.url, context.url);
    let tokens = provider(&offered)?.renew(refresh).await.with_context(again)?;
    (context.key, context.refresh_token) = (tokens.id_token, tokens.refresh_token);
    target.key = context.key.clone();
    contexts.write()
}

/// That the server knows the key. What it allows is found out when it is used.
async fn check(context: &Context) -> anyhow::Result<()> {
    let mut client = connect(&context.url)?;
    if let Some(key) = &context.key {
        client = client.with_access_token(key.as_str());
    }
    match client.runs(&ListOptions::default()).await {
        Ok(_) => Ok(()),
        Err(ClientError::Problem(problem)) if matches!(problem.status, 403 | 404) => Ok(()),
        Err(error) => Err(error).context("nothing was saved"),
    }
}

pub(crate) fn logout(options: &LogoutOptions, format: Format) -> anyhow::Result<Exit> {
    let mut contexts = Contexts::read()?;
    let Some(name) = options.name.clone().or_else(|| contexts.current.clone()) else {
        bail!("no context is in use; name the one to log out of");
    };
    contexts.named(&name)?;
    contexts.contexts.remove(&name);
    if contexts.current.as_ref() == Some(&name) {
        contexts.current = None;
    }
    contexts.write()?;
    match format {
        Format::Json => output::json(&json!({ "context": name }))?,
        Format::Table => eprintln!("logged out of {name}; its key is forgotten here"),
    }
    Ok(Exit::Done)
}

pub(crate) fn run(location: &Location, command: &Command, format: Format) -> anyhow::Result<Exit> {
    let mut contexts = Contexts::read()?;
    match command {
        Command::List => {
            let current = contexts.current.as_deref().unwrap_or(LOCAL);
            let rows = contexts.contexts.iter().map(|(name, context)| (name.as_str(), context.url.as_str()));
            let rows: Vec<(&str, &str)> =
                [(LOCAL, "the workspace on this machine")].into_iter().chain(rows).collect();
            match format {
                Format::Json => {
                    let items: Vec<_> = contexts
                        .contexts
                        .iter()
                        .map(|(name, context)| {
                            json!({ "name": name, "url": context.url, "current": name == current })
                        })
                        .collect();
                    output::json(&json!({ "items": items }))?;
                }
                Format::Table => output::table(
                    &["", "name", "server"],
                    &[],
                    rows.into_iter()
                        .map(|(name, url)| {
                            let mark = if name == current { "*" } else { "" };
                            vec![mark.to_owned(), name.to_owned(), url.to_owned()]
                        })
                        .collect(),
                ),
            }
        }
        Command::Use { name } => {
            let url = match name.as_str() {
                LOCAL => None,
                name => Some(contexts.named(name)?.url.clone()),
            };
            contexts.current = url.is_some().then(|| name.clone());
            contexts.write()?;
            match (format, url) {
                (Format::Json, url) => output::json(&json!({ "context": name, "url": url }))?,
                (Format::Table, Some(url)) => eprintln!("commands are about {name} ({url}) now"),
                (Format::Table, None) => eprintln!("commands are about the workspace on this machine now"),
            }
        }
        Command::Show => match (Target::of(location)?, format) {
            (Some(target), Format::Json) => output::json(
                &json!({ "context": target.context, "url": target.url, "origin": target.origin }),
            )?,
            (None, Format::Json) => output::json(&json!({ "context": LOCAL, "origin": "default" }))?,
            (Some(target), Format::Table) => output::line(format_args!("{target}, by {}", target.origin)),
            (None, Format::Table) => output::line("the workspace on this machine"),
        },
    }
    Ok(Exit::Done)
}

fn host(server: &str) -> anyhow::Result<String> {
    let (_, rest) = server.split_once("://").context("it has no scheme")?;
    let authority = rest.split('/').next().unwrap_or(rest);
    Ok(authority.to_owned())
}

/// A key from stdin.
fn read_key() -> anyhow::Result<String> {
    if std::io::stdin().is_terminal() {
        eprint!("key: ");
    }
    let mut line = String::new();
    std::io::stdin().lock().take(MAX_KEY).read_line(&mut line)?;
    let key = line.trim().to_owned();
    if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        bail!("a key is one line of printable characters; nothing was saved");
    }
    Ok(key)
}
