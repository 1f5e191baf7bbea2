//! `servo admin api-keys`: the keys that people and programs show a server.

use servo_access::{Role, Scope};
use servo_api::client::{ListOptions, all_pages};
use servo_api::views::{ApiKey, KeyBody};
use servo_core::Millis;

use crate::backend::server_client;
use crate::exit::Exit;
use crate::location::Location;
use crate::output::{self, Format};

/// API keys.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Create a key. It is shown once, on stdout, and cannot be read again.
    #[command(
        after_help = "Examples:\n  servo admin api-keys create nightly --role operator --scope acme/main --service --expires 90d\n  servo admin api-keys create zoë --role developer --scope 'acme/*'\n  servo admin api-keys create raw-loader --role operator --scope acme/main --assets 'raw.*' --service"
    )]
    Create(CreateOptions),
    /// Show keys without their secrets: role, scope, expiry, last use.
    #[command(
        after_help = "Examples:\n  servo admin api-keys list\n  servo admin api-keys list --all --json"
    )]
    List {
        /// Also those that were revoked or have expired.
        #[arg(long)]
        all: bool,
    },
    /// Refuse a key from now on, and the sessions that were made with it.
    #[command(after_help = "Example:\n  servo admin api-keys revoke 3f1c9a7be204")]
    Revoke {
        /// Its id, as the list shows it.
        key_id: String,
    },
}

/// A key to be created.
#[derive(clap::Args)]
pub(crate) struct CreateOptions {
    /// What it is for.
    name: String,
    /// viewer, operator, developer, admin or worker.
    #[arg(long, value_parser = parse_role)]
    role: Role,
    /// Where it is good: tenant/workspace, tenant/* or *, the whole server [default: the workspace of --tenant and --workspace].
    #[arg(long, value_parser = parse_scope)]
    scope: Option<Scope>,
    /// Limit it to the assets of a selection.
    #[arg(long, value_name = "SELECTION")]
    assets: Option<String>,
    /// A program uses it, not a person.
    #[arg(long)]
    service: bool,
    /// How long it is good for, such as 12h or 90d [default: until it is revoked].
    #[arg(long, value_name = "LENGTH", value_parser = parse_length)]
    expires: Option<Millis>,
}

fn parse_role(text: &str) -> Result<Role, String> {
    text.parse()
}

fn parse_scope(text: &str) -> Result<Scope, String> {
    text.parse().map_err(|error: servo_access::ScopeError| error.to_string())
}

fn parse_length(text: &str) -> Result<Millis, String> {
    let wrong = || "is a number and s, m, h or d, such as 90d".to_owned();
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    match number.checked_mul(seconds).filter(|length| (1..=100 * 366 * 86_400).contains(length)) {
        Some(length) => Ok(Millis::from_secs(length)),
        None => Err("is from 1s to 100 years".to_owned()),
    }
}

pub(crate) async fn run(location: &Location, command: &Command, format: Format) -> anyhow::Result<Exit> {
    let client = server_client(location).await?;
    match command {
        Command::Create(options) => {
            let here = || Scope::Workspace(location.tenant.clone(), location.workspace.clone());
            let body = KeyBody {
                name: options.name.clone(),
                role: options.role,
                scope: options.scope.clone().unwrap_or_else(here),
                assets: options.assets.clone(),
                service: options.service,
                expires_in_ms: options.expires,
            };
            let created = client.create_key(&body).await?;
            match format {
                Format::Json => output::json(&created)?,
                Format::Table => {
                    eprintln!(
                        "{} is {} in {}; it is shown this once",
                        created.about.key_id, created.about.role, created.about.scope
                    );
                    output::line(created.key);
                }
            }
        }
        Command::List { all } => {
            let keys = all_pages(async |options: &ListOptions| client.keys(*all, options).await).await?;
            match format {
                Format::Json => output::json(&serde_json::json!({ "items": keys }))?,
                Format::Table => table(&keys),
            }
        }
        Command::Revoke { key_id } => {
            let changed = client.revoke_key(key_id).await?;
            match format {
                Format::Json => output::json(&changed)?,
                Format::Table if changed.changed => {
                    output::line(format_args!("{key_id} is refused from now on"))
                }
                Format::Table => output::line(format_args!("{key_id} was revoked before")),
            }
        }
    }
    Ok(Exit::Done)
}

fn table(keys: &[ApiKey]) {
    let row = |key: &ApiKey| {
        let time = |at: Option<servo_core::Timestamp>| at.map(|at| at.to_string()).unwrap_or_default();
        vec![
            key.key_id.clone(),
            key.name.clone(),
            key.role.to_string(),
            key.scope.to_string(),
            key.assets.clone().unwrap_or_default(),
            if key.service { "service" } else { "user" }.to_owned(),
            key.status.clone(),
            time(key.expires_at),
            time(key.last_used_at),
        ]
    };
    let columns = &["key", "name", "role", "scope", "assets", "for", "status", "expires", "last used"];
    output::table(columns, &[], keys.iter().map(row).collect());
}
