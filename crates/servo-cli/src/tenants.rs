//! `servo admin tenants|workspaces|quotas`: what a server serves, and how much of it.

use servo_api::client::{ListOptions, all_pages};
use servo_api::views::{QuotasBody, ServerChanged, TenantQuotas};
use servo_core::{TenantId, WorkspaceId};

use crate::backend::server_client;
use crate::exit::Exit;
use crate::location::Location;
use crate::output::{self, Format};

/// Tenants.
#[derive(clap::Subcommand)]
pub(crate) enum TenantCommand {
    /// Create a tenant.
    #[command(after_help = "Example:\n  servo admin tenants create acme")]
    Create {
        /// Its name.
        #[arg(value_parser = TenantId::parse)]
        name: TenantId,
    },
    /// Show tenants.
    #[command(after_help = "Example:\n  servo admin tenants list --json")]
    List,
    /// Switch a tenant off: its workspaces are closed, and requests to them are refused.
    #[command(after_help = "Example:\n  servo admin tenants disable acme")]
    Disable {
        /// Its name.
        #[arg(value_parser = TenantId::parse)]
        name: TenantId,
    },
    /// Switch a tenant on again.
    #[command(after_help = "Example:\n  servo admin tenants enable acme")]
    Enable {
        /// Its name.
        #[arg(value_parser = TenantId::parse)]
        name: TenantId,
    },
    /// Forget a tenant that is switched off, and revoke its keys. Its files stay.
    #[command(after_help = "Example:\n  servo admin tenants remove acme")]
    Remove {
        /// Its name.
        #[arg(value_parser = TenantId::parse)]
        name: TenantId,
    },
}

/// Workspaces.
#[derive(clap::Subcommand)]
pub(crate) enum WorkspaceCommand {
    /// Create a workspace of a tenant that exists.
    #[command(after_help = "Example:\n  servo admin workspaces create acme/main")]
    Create {
        /// Tenant and workspace, as acme/main.
        #[arg(value_parser = parse_workspace)]
        name: Name,
    },
    /// Show workspaces.
    #[command(after_help = "Example:\n  servo admin workspaces list --json")]
    List,
    /// Switch a workspace off: it is closed, and requests to it are refused.
    #[command(after_help = "Example:\n  servo admin workspaces disable acme/main")]
    Disable {
        /// Tenant and workspace, as acme/main.
        #[arg(value_parser = parse_workspace)]
        name: Name,
    },
    /// Switch a workspace on again.
    #[command(after_help = "Example:\n  servo admin workspaces enable acme/main")]
    Enable {
        /// Tenant and workspace, as acme/main.
        #[arg(value_parser = parse_workspace)]
        name: Name,
    },
    /// Forget a workspace that is switched off, and revoke its keys. Its files stay.
    #[command(after_help = "Example:\n  servo admin workspaces remove acme/main")]
    Remove {
        /// Tenant and workspace, as acme/main.
        #[arg(value_parser = parse_workspace)]
        name: Name,
    },
}

/// Limits of tenants.
#[derive(clap::Subcommand)]
pub(crate) enum QuotaCommand {
    /// Show the limits of a tenant.
    #[command(after_help = "Example:\n  servo admin quotas show acme --json")]
    Show {
        /// The tenant.
        #[arg(value_parser = TenantId::parse)]
        name: TenantId,
    },
    /// Give limits other values; unlimited is no limit.
    #[command(
        after_help = "Example:\n  servo admin quotas set acme max_concurrent_runs=20 max_daily_runs=unlimited"
    )]
    Set {
        /// The tenant.
        #[arg(value_parser = TenantId::parse)]
        name: TenantId,
        /// Limits and their values, lengths of time in milliseconds.
        #[arg(required = true, value_name = "NAME=VALUE", value_parser = parse_quota)]
        values: Vec<(String, Option<u64>)>,
    },
    /// Give limits their defaults again.
    #[command(after_help = "Example:\n  servo admin quotas unset acme max_daily_runs")]
    Unset {
        /// The tenant.
        #[arg(value_parser = TenantId::parse)]
        name: TenantId,
        /// The limits.
        #[arg(required = true)]
        names: Vec<String>,
    },
}

/// Tenant and workspace.
#[derive(Debug, Clone)]
pub(crate) struct Name(TenantId, WorkspaceId);

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.0, self.1)
    }
}

fn parse_workspace(text: &str) -> Result<Name, String> {
    let (tenant, workspace) = text.split_once('/').ok_or("expected TENANT/WORKSPACE")?;
    let tenant = TenantId::parse(tenant).map_err(|error| error.to_string())?;
    Ok(Name(tenant, WorkspaceId::parse(workspace).map_err(|error| error.to_string())?))
}

fn parse_quota(text: &str) -> Result<(String, Option<u64>), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    let value = match value.trim() {
        "unlimited" => None,
        number => {
            Some(number.parse().map_err(|_| format!("{number:?} is neither a whole number nor unlimited"))?)
        }
    };
    Ok((name.trim().to_owned(), value))
}

pub(crate) async fn tenants(
    location: &Location,
    command: &TenantCommand,
    format: Format,
) -> anyhow::Result<Exit> {
    let client = server_client(location).await?;
    match command {
        TenantCommand::Create { name } => told(&client.create_tenant(name).await?, name, "is there", format),
        TenantCommand::Disable { name } => {
            told(&client.switch_tenant(name, false).await?, name, "is off", format)
        }
        TenantCommand::Enable { name } => {
            told(&client.switch_tenant(name, true).await?, name, "is on", format)
        }
        TenantCommand::Remove { name } => {
            told(&client.remove_tenant(name).await?, name, "is forgotten", format)
        }
        TenantCommand::List => {
            let found = all_pages(async |options: &ListOptions| client.tenants(options).await).await?;
            if format == Format::Json {
                output::json(&serde_json::json!({ "items": found }))?;
                return Ok(Exit::Done);
            }
            let row = |it: servo_api::views::Tenant| {
                let status = if it.disabled { "off" } else { "on" }.to_owned();
                vec![it.tenant.to_string(), status, it.workspaces.to_string(), it.created_at.to_string()]
            };
            output::table(
                &["tenant", "status", "workspaces", "created"],
                &[2],
                found.into_iter().map(row).collect(),
            );
            Ok(Exit::Done)
        }
    }
}

pub(crate) async fn workspaces(
    location: &Location,
    command: &WorkspaceCommand,
    format: Format,
) -> anyhow::Result<Exit> {
    let client = server_client(location).await?;
    match command {
        WorkspaceCommand::Create { name } => {
            told(&client.create_workspace(&name.0, &name.1).await?, name, "is there", format)
        }
        WorkspaceCommand::Disable { name } => {
            told(&client.switch_workspace(&name.0, &name.1, false).await?, name, "is off", format)
        }
        WorkspaceCommand::Enable { name } => {
            told(&client.switch_workspace(&name.0, &name.1, true).await?, name, "is on", format)
        }
        WorkspaceCommand::Remove { name } => {
            told(&client.remove_workspace(&name.0, &name.1).await?, name, "is forgotten", format)
        }
        WorkspaceCommand::List => {
            let found = all_pages(async |options: &ListOptions| client.workspaces(options).await).await?;
            if format == Format::Json {
                output::json(&serde_json::json!({ "items": found }))?;
                return Ok(Exit::Done);
            }
            let row = |it: servo_api::views::WorkspaceInfo| {
                let status = if it.disabled { "off" } else { "on" }.to_owned();
                vec![it.tenant.to_string(), it.workspace.to_string(), status, it.created_at.to_string()]
            };
            output::table(
                &["tenant", "workspace", "status", "created"],
                &[],
                found.into_iter().map(row).collect(),
            );
            Ok(Exit::Done)
        }
    }
}

pub(crate) async fn quotas(
    location: &Location,
    command: &QuotaCommand,
    format: Format,
) -> anyhow::Result<Exit> {
    let client = server_client(location).await?;
    let found = match command {
        QuotaCommand::Show { name } => client.quotas(name).await?,
        QuotaCommand::Set { name, values } => {
            let body = QuotasBody { set: values.iter().cloned().collect(), unset: Vec::new() };
            client.change_quotas(name, &body).await?
        }
        QuotaCommand::Unset { name, names } => {
            let body = QuotasBody { unset: names.clone(), ..QuotasBody::default() };
            client.change_quotas(name, &body).await?
        }
    };
    if format == Format::Json {
        output::json(&found)?;
        return Ok(Exit::Done);
    }
    let TenantQuotas { items, .. } = found;
    let text = |value: Option<u64>| value.map_or_else(|| "unlimited".to_owned(), |value| value.to_string());
    let row = |it: servo_api::views::TenantQuota| {
        let from = if it.is_set { "set" } else { "default" }.to_owned();
        vec![it.name, text(it.value), text(it.default), from]
    };
    output::table(&["quota", "value", "default", "from"], &[1, 2], items.into_iter().map(row).collect());
    Ok(Exit::Done)
}

fn told(
    changed: &ServerChanged,
    name: &impl std::fmt::Display,
    how: &str,
    format: Format,
) -> anyhow::Result<Exit> {
    match format {
        Format::Json => output::json(changed)?,
        Format::Table if changed.changed => output::line(format_args!("{name} {how}")),
        Format::Table => output::line(format_args!("{name} {how} already")),
    }
    Ok(Exit::Done)
}
