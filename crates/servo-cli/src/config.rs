//! `servo config show|set|unset`: settings of the workspace, where they come from and who changed them.

use servo_api::views::{Setting, Settings, SettingsBody};
use servo_engine::SettingValue;

use crate::backend::{Need, through};
use crate::exit::Exit;
use crate::location::Location;
use crate::output::{self, Format};

/// Settings of the workspace.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Show settings: value, default, where the value comes from, who changed it.
    #[command(
        visible_alias = "list",
        after_help = "Examples:\n  servo config show\n  servo config show heartbeat_timeout --json\n  servo config show --serve"
    )]
    Show {
        /// Only this setting.
        name: Option<String>,
        /// Those that servo serve would be started with here, and where each value comes from.
        #[arg(long, conflicts_with = "name")]
        serve: bool,
    },
    /// Give settings other values. They hold at once, and win over servo.toml until they are unset.
    #[command(
        after_help = "Examples:\n  servo config set execution_timeout=30m\n  servo config set max_concurrent_runs=20 pool.warehouse=4"
    )]
    Set {
        /// Settings and their values.
        #[arg(required = true, value_name = "NAME=VALUE", value_parser = assignment)]
        values: Vec<(String, String)>,
    },
    /// Give settings their defaults again.
    #[command(after_help = "Example:\n  servo config unset execution_timeout")]
    Unset {
        /// The settings.
        #[arg(required = true)]
        names: Vec<String>,
    },
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

pub(crate) async fn run(location: &Location, command: &Command, format: Format) -> anyhow::Result<Exit> {
    match command {
        Command::Show { serve: true, .. } => drop(crate::serve::config::show(format)?),
        Command::Show { name, serve: false } => show(location, name.as_deref(), format).await?,
        Command::Set { values } => {
            let set = values.iter().map(|(name, value)| (name.clone(), SettingValue::Text(value.clone())));
            let body = SettingsBody { set: set.collect(), from_cli: true, ..SettingsBody::default() };
            change(location, &body, format).await?
        }
        Command::Unset { names } => {
            let body = SettingsBody { unset: names.clone(), from_cli: true, ..SettingsBody::default() };
            change(location, &body, format).await?
        }
    }
    Ok(Exit::Done)
}

async fn show(location: &Location, name: Option<&str>, format: Format) -> anyhow::Result<()> {
    if let Some(name) = name {
        servo_engine::Setting::find(name)?;
    }
    let mut items = through(location, Need::Read, async |client| Ok(client.settings().await?.items)).await?;
    items.retain(|setting| name.is_none_or(|name| setting.name == name));
    if format == Format::Json {
        return output::json(&Settings { items });
    }
    table(&items);
    if let (Some(_), [setting]) = (name, items.as_slice()) {
        output::line(format_args!("\n{} From {} to {}.", setting.about, setting.least, setting.most));
    }
    Ok(())
}

async fn change(location: &Location, body: &SettingsBody, format: Format) -> anyhow::Result<()> {
    let changed =
        through(location, Need::Change, async |client| Ok(client.change_settings(body).await?)).await?;
    if format == Format::Json {
        return output::json(&changed);
    }
    if changed.accepted.accepted_event_id.is_none() {
        output::line("nothing to change: it is like that already");
    }
    table(&changed.items);
    Ok(())
}

fn table(items: &[Setting]) {
    let row = |setting: &Setting| {
        let at = setting.changed_at.map(|at| at.to_string()).unwrap_or_default();
        vec![
            setting.name.clone(),
            setting.text.clone(),
            setting.default.clone(),
            setting.origin.to_string(),
            setting.changed_by.clone().unwrap_or_default(),
            at,
        ]
    };
    let columns = &["setting", "value", "default", "from", "changed by", "changed at"];
    output::table(columns, &[], items.iter().map(row).collect());
}
