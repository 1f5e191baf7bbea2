//! Which server commands are about: flags, then the environment, then the context in use, then that of this directory.

use std::io::{BufRead, IsTerminal, Write};

use anyhow::{Context, bail};
use servo_api::client::Client;

use crate::contexts::{Contexts, LOCAL};
use crate::location::Location;
use crate::owner;

/// Flags that say which server is meant.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct TargetArgs {
    /// Address of the server [default: that of the context, or the one that has the workspace here].
    #[arg(long, global = true, value_name = "URL", conflicts_with = "context")]
    url: Option<String>,
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

impl TargetArgs {
    /// The server that is meant; none if it is the one of this directory.
    pub(crate) fn find(&self) -> anyhow::Result<Option<Target>> {
        let variable = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
        let key = || variable("SERVO_KEY").or_else(|| variable("SERVO_TOKEN"));
        let by_url = |url: String, origin| -> anyhow::Result<Option<Target>> {
            let kept = || Contexts::read().map(|contexts| contexts.key_of(&url).map(str::to_owned));
            let key = key().map_or_else(kept, |key| Ok(Some(key)))?;
            Ok(Some(Target { url, key, context: None, origin }))
        };
        if let Some(url) = &self.url {
            return by_url(url.clone(), "--url");
        }
        let (name, origin) = match (&self.context, variable("SERVO_URL"), variable("SERVO_CONTEXT")) {
            (Some(name), ..) => (name.clone(), "--context"),
            (None, Some(url), _) => return by_url(url, "SERVO_URL"),
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
        let key = key().or_else(|| context.key.clone());
        Ok(Some(Target { url: context.url.clone(), key, context: Some(name), origin }))
    }
}

impl Target {
    /// Asks it. It is shown the key of the target, or else the token of the server that has the workspace here, if that
    /// is the one.
    pub(crate) fn client(&self, location: &Location) -> anyhow::Result<Client> {
        let mut client = Client::new(&self.url).context(self.origin)?;
        let key = self.key.clone().or_else(|| owner::token_of(location, client.server()));
        if let Some(key) = key {
            client = client.with_access_token(key);
        }
        Ok(client)
    }
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
    let Some(target) = location.target.find()? else { return Ok(()) };
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
