//! `servo admin keys`: lists and rotates the keys that sign envelopes, task tokens, cursors and sessions.

use servo_queue::Purpose;

use crate::exit::Exit;
use crate::keys_file::KeysFile;
use crate::location::Location;
use crate::output::{self, Format};

/// The signing keys.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Keys by purpose, without their secrets.
    #[command(after_help = "Example:\n  servo admin keys list --json")]
    List,
    /// Sign with new keys from now on; the ones before verify for 26 hours more.
    #[command(
        after_help = "Examples:\n  servo admin keys rotate\n  servo admin keys rotate --purpose task_tokens"
    )]
    Rotate {
        /// Only those for this purpose; may be given several times.
        #[arg(long, value_name = "PURPOSE", value_parser = parse_purpose)]
        purpose: Vec<Purpose>,
    },
}

fn parse_purpose(name: &str) -> Result<Purpose, String> {
    let known = Purpose::ALL.into_iter().find(|purpose| purpose.name() == name);
    known.ok_or_else(|| {
        let names: Vec<&str> = Purpose::ALL.iter().map(|purpose| purpose.name()).collect();
        format!("there is no such purpose; there are {}", names.join(", "))
    })
}

pub(crate) fn run(location: &Location, command: &Command, format: Format) -> anyhow::Result<Exit> {
    location.must_exist()?;
    let keys = match command {
        Command::List => KeysFile::open(location)?,
        Command::Rotate { purpose } if purpose.is_empty() => KeysFile::rotate_some(location, &Purpose::ALL)?,
        Command::Rotate { purpose } => KeysFile::rotate_some(location, purpose)?,
    };
    let statuses = keys.statuses();
    if format == Format::Json {
        output::json(&serde_json::json!({ "items": statuses }))?;
        return Ok(Exit::Done);
    }
    output::table(
        &["purpose", "key", "signs", "created", "expires"],
        &[],
        statuses
            .iter()
            .map(|key| {
                vec![
                    key.purpose.to_owned(),
                    key.key_id.clone(),
                    if key.signs { "yes" } else { "no" }.to_owned(),
                    key.created_at.to_string(),
                    key.expires_at.to_string(),
                ]
            })
            .collect(),
    );
    Ok(Exit::Done)
}
