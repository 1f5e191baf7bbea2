//! Which server commands are about: flags, then the environment, then the context in use, then that of this directory.

use std::io::{BufRead, IsTerminal, Write};

use anyhow::{Context, bail};
use servo_api::client::{Client, ClientTls};

use crate::contexts::{Contexts, LOCAL};
use crate::location::Location;
use crate::owner;

/// Flags besides `--url` and `--key` that say which server is meant.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct TargetArgs {
    /// Context of servo login, or local for the workspace on this machine.
    #[arg(long, global = true, value_name = "NAME")]
    context: Option<String>,
    /// Do not ask before something is stopped or removed on another machine.
    #[arg(long, short = 'y', global = true)]
    yes: bool,
}

/// A server that was named, by whatever.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) url: String,
    pub(crate) key: Option<String>,
    /// Name of the context, if it is one.
    pub(crate) context: Option<String>,
    /// Said in errors: who named it.
    pub(crate) origin: &'static str,
}

impl Target {
    /// A server that an option of a command names.
    pub(crate) fn named(location: &Location, url: &str, origin: &'static str) -> anyhow::Result<Self> {
        if location.target.context.is_some() {
            bail!("{origin} and --context name a server each; give one");
        }
        Self::at(url, key_for(location, url), origin)
    }

    /// A server that is shown a key, or the one that is kept for it.
    fn at(url: &str, key: Option<String>, origin: &'static str) -> anyhow::Result<Self> {
        let key = match key {
            Some(key) => Some(key),
            None => Contexts::read()?.key_of(url).map(str::to_owned),
        };
        Ok(Self { url: url.to_owned(), key, context: None, origin })
    }

    /// The server that is meant; none if it is the one of this directory.
    pub(crate) fn of(location: &Location) -> anyhow::Result<Option<Self>> {
        let url = location.url.clone().filter(|url| !url.is_empty());
        let (name, origin) = match (&location.target.context, url, variable("SERVO_CONTEXT")) {
            (Some(_), Some(_), _) if location.is_url_flag => {
                bail!("--url and --context name a server each; give one")
            }
            (Some(name), ..) => (name.clone(), "--context"),
            (None, Some(url), _) => {
                let origin = if location.is_url_flag { "--url" } else { "SERVO_URL" };
                let token = || variable("SERVO_TOKEN").filter(|_| is_meant_for(&url));
                return Self::at(&url, key_for(location, &url).or_else(token), origin).map(Some);
            }
            (None, None, Some(name)) => (name, "SERVO_CONTEXT"),
            (None, None, None) => match Contexts::read()?.current {
                Some(name) => (name, "servo context use"),
                None => return Ok(None),
            },
        };
        if name == LOCAL {
            return Ok(None);
        }
        let contexts = Contexts::read()?;
        let context = contexts.named(&name).context(origin)?;
        let flag = location.key.clone().filter(|_| location.is_key_flag);
        // Of a context, its own key is meant: that of the environment is for the server that is named there.
        let of_environment = || {
            let is_named = variable("SERVO_URL").is_some();
            key_for(location, &context.url).filter(|_| is_named)
        };
        let key = flag.or_else(|| context.key.clone()).or_else(of_environment);
        Ok(Some(Self { url: context.url.clone(), key, context: Some(name), origin }))
    }

    /// Asks it. It is shown the key of the target, or else the token of the server that has the workspace here, if that
    /// is the one.
    pub(crate) fn client(&self, location: &Location) -> anyhow::Result<Client> {
        let mut client = location.addressed(connect(&self.url).context(self.origin)?);
        let key = self.key.clone().or_else(|| owner::token_of(location, client.server()));
        if let Some(key) = key {
            client = client.with_access_token(key);
        }
        Ok(client)
    }
}

/// A client of a server, with the certificates that the environment names: `SERVO_CA_CERT` has authorities besides those
/// of the system, `SERVO_CLIENT_CERT` and `SERVO_CLIENT_KEY` what is shown to the server.
pub(crate) fn connect(url: &str) -> anyhow::Result<Client> {
    Ok(Client::with_tls(url, &client_tls()?)?)
}

/// The certificates that the environment names.
pub(crate) fn client_tls() -> anyhow::Result<ClientTls> {
    let read = |name: &str| {
        let file = variable(name);
        let text =
            file.as_ref().map(|file| std::fs::read(file).with_context(|| format!("{name}: reading {file}")));
        text.transpose()
    };
    let identity = match (read("SERVO_CLIENT_CERT")?, read("SERVO_CLIENT_KEY")?) {
        (Some(certificate), Some(key)) => Some([certificate, key].join(&b'\n')),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => {
            bail!("SERVO_CLIENT_CERT and SERVO_CLIENT_KEY belong together; give both or none")
        }
    };
    Ok(ClientTls { authorities: read("SERVO_CA_CERT")?, identity })
}

/// The key that was given for a server: that of `--key`, or that of the environment, unless the environment names
/// another server, for which it is meant.
pub(crate) fn key_for(location: &Location, url: &str) -> Option<String> {
    if location.is_key_flag {
        return location.key.clone();
    }
    location.key.clone().filter(|_| is_meant_for(url))
}

/// Whether what the environment has is for a server: it is for the one that it names, if it names one.
fn is_meant_for(url: &str) -> bool {
    variable("SERVO_URL").is_none_or(|named| owner::is_same_server(&named, url))
}

/// A variable of the environment that says something.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.context {
            Some(name) => write!(f, "{name} ({})", self.url),
            None => f.write_str(&self.url),
        }
    }
}

/// Names the target of something that cannot be undone: `cancel run_… on prod (https://…)?`. Somebody at a terminal is
/// asked; a program is told. What is about this directory is not asked for.
pub(crate) fn confirm(location: &Location, action: &str) -> anyhow::Result<()> {
    let Some(target) = Target::of(location)? else { return Ok(()) };
    if location.target.yes || !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        eprintln!("{action} on {target}");
        return Ok(());
    }
    eprint!("{action} on {target}? [y/N] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => bail!("nothing was done"),
    }
}
