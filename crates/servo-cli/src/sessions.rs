//! `servo admin sessions`: who has logged in to a server with a browser, and how that ends.

use anyhow::bail;
use servo_api::client::{ListOptions, all_pages};
use servo_api::views::Session;

use crate::backend::server_client;
use crate::exit::Exit;
use crate::location::Location;
use crate::output::{self, Format};

/// Sessions of browsers.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Show sessions: whose, how they logged in, until when.
    #[command(
        after_help = "Examples:\n  servo admin sessions list\n  servo admin sessions list --principal user:zoë@example.org --json"
    )]
    List {
        /// Only those of this principal, as the audit shows it: user:zoë@example.org.
        #[arg(long, short, value_name = "WHO")]
        principal: Option<String>,
    },
    /// End a session, or with --principal everything that somebody has logged in with until now.
    #[command(
        after_help = "Examples:\n  servo admin sessions end ses_3f1c9a7be2040d11\n  servo admin sessions end --principal user:zoë@example.org"
    )]
    End {
        /// The session, as the list shows it.
        #[arg(required_unless_present = "principal", conflicts_with = "principal")]
        session: Option<String>,
        /// All sessions of this principal, and the tokens that the identity provider has given them.
        #[arg(long, short, value_name = "WHO")]
        principal: Option<String>,
    },
}

pub(crate) async fn run(location: &Location, command: &Command, format: Format) -> anyhow::Result<Exit> {
    let client = server_client(location).await?;
    match command {
        Command::List { principal } => {
            let page = async |options: &ListOptions| client.sessions(principal.as_deref(), options).await;
            let sessions = all_pages(page).await?;
            match format {
                Format::Json => output::json(&serde_json::json!({ "items": sessions }))?,
                Format::Table if sessions.is_empty() => output::line("nobody has a session"),
                Format::Table => table(&sessions),
            }
        }
        Command::End { session, principal } => {
            let (changed, whose) = match (session, principal) {
                (Some(session), None) => (client.end_session(session).await?, session),
                (None, Some(principal)) => (client.end_sessions_of(principal).await?, principal),
                (Some(_), Some(_)) | (None, None) => bail!("name a session, or somebody with --principal"),
            };
            match format {
                Format::Json => output::json(&changed)?,
                Format::Table => output::line(format_args!("{whose} is logged out")),
            }
        }
    }
    Ok(Exit::Done)
}

fn table(sessions: &[Session]) {
    let row = |session: &Session| {
        vec![
            session.session_id.clone(),
            session.principal.clone(),
            session.login.clone(),
            session.started_at.to_string(),
            session.expires_at.to_string(),
        ]
    };
    let columns = &["session", "who", "login", "since", "until"];
    output::table(columns, &[], sessions.iter().map(row).collect());
}
