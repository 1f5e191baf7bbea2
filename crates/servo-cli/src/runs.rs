//! `servo run …`: runs are listed, shown, followed, stopped and tried again.

mod list;
mod logs;
pub(crate) mod show;
pub(crate) mod told;

use servo_api::Page;
use servo_api::client::{Client, ListOptions, first_pages};
use servo_api::views::{CancelBody, Conflict, RetryBody, RetryNowBody};
use servo_core::RunId;

use crate::backend::{Need, through, through_both};
use crate::exit::Exit;
use crate::follow;
use crate::lists::more;
use crate::location::Location;
use crate::materialize::default_slots;
use crate::output::{self, Format};
use crate::target::confirm;
use crate::which::Which;

/// List, follow, cancel and retry runs.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Requests that were refused because their run key names the run of another request, newest first.
    #[command(after_help = "Examples:\n  servo run conflicts\n  servo run conflicts --limit 100 --json")]
    Conflicts {
        /// How many.
        #[arg(long, short = 'n', default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=100))]
        limit: u16,
        /// Where to go on; the last line of a page says it.
        #[arg(long)]
        cursor: Option<String>,
    },
    /// Say why a run and its tasks do not go on: every reason, since when, and what would change it.
    #[command(after_help = "Example:\n  servo run why latest")]
    Why {
        /// The run: its id, the beginning of it, or latest.
        run: Which<RunId>,
    },
    /// Runs, newest first: what was asked for, by whom, and how it went.
    #[command(
        after_help = "Examples:\n  servo run list --state FAILED\n  servo run list -a raw.orders -p 2026-01-05\n  servo run list --source schedule --since 2026-01-05T00:00:00Z --sort oldest\n  servo run list --label team=ops -n 100 --json"
    )]
    List(list::Options),
    /// One run and its tasks.
    #[command(
        after_help = "Examples:\n  servo run show latest\n  servo run show run_yqlw --state failed --limit 10"
    )]
    Show(show::Options),
    /// Follow a run until it has ended. An abandoned one continues in this process.
    #[command(after_help = "Examples:\n  servo run watch latest\n  servo run watch run_yqlw")]
    Watch {
        /// The run: its id, the beginning of it, or latest.
        run: Which<RunId>,
    },
    /// Print the logs of a run's tasks; those of a failed one end with its error.
    #[command(
        after_help = "Examples:\n  servo run logs latest\n  servo run logs run_yqlw analytics.delays 2013-01-15 --follow"
    )]
    Logs(logs::Options),
    /// Stop a run.
    #[command(after_help = "Example:\n  servo run cancel latest --reason 'wrong day'")]
    Cancel {
        /// The run: its id, the beginning of it, or latest.
        run: Which<RunId>,
        /// The reason, for the log.
        #[arg(long, default_value = "")]
        reason: String,
        /// Do not wait for workers that have fallen silent.
        #[arg(long)]
        force: bool,
    },
    /// Retry a run that has ended, or at once what waits to be tried again.
    #[command(
        after_help = "Examples:\n  servo run retry latest --from-failure\n  servo run retry latest --now"
    )]
    Retry {
        /// The run: its id, the beginning of it, or latest.
        run: Which<RunId>,
        /// Only tasks that did not succeed.
        #[arg(long)]
        from_failure: bool,
        /// Of a run that has not ended: try at once the tasks that wait to be tried again.
        #[arg(long, conflicts_with_all = ["from_failure", "strict_checks"])]
        now: bool,
        /// End with exit code 3 if a check of severity error or critical fails.
        #[arg(long)]
        strict_checks: bool,
    },
}

pub(crate) async fn run(location: &Location, command: &Command, format: Format) -> anyhow::Result<Exit> {
    match command {
        Command::Conflicts { limit, cursor } => {
            let which = ListOptions { cursor: cursor.clone(), ..ListOptions::default() };
            let page = through(location, Need::Read, async |client| {
                let conflicts = async |options: &ListOptions| client.conflicts(options).await;
                Ok(first_pages(usize::from(*limit), which.clone(), conflicts).await?)
            });
            list_conflicts(&page.await?, format)?;
            Ok(Exit::Done)
        }
        Command::List(options) => list::run(location, options, format).await,
        Command::Show(options) => show::run(location, options, format).await,
        Command::Watch { run } => watch(location, run, format).await,
        Command::Why { run } => crate::admission::why(location, found(location, run).await?, format).await,
        Command::Logs(options) => logs::run(location, options, format).await,
        Command::Cancel { run, reason, force } => {
            let body = CancelBody { reason: reason.clone(), force: *force, ..CancelBody::default() };
            let asked = async |client: &Client| {
                let run = run.find(client).await?;
                confirm(location, &format!("cancel {run}"))?;
                Ok((run, client.cancel(run, &body).await?))
            };
            let (run, accepted) = through(location, Need::Change, asked).await?;
            match format {
                Format::Json => output::json(&accepted)?,
                Format::Table => output::line(format_args!("{run} is being cancelled")),
            }
            Ok(Exit::Done)
        }
        Command::Retry { run, now: true, .. } => {
            let asked = async |client: &Client| {
                let run = run.find(client).await?;
                Ok((run, client.retry_now(run, &RetryNowBody::default()).await?))
            };
            let (run, accepted) = through(location, Need::Change, asked).await?;
            match (format, accepted.accepted_event_id) {
                (Format::Json, _) => output::json(&accepted)?,
                (Format::Table, Some(_)) => {
                    output::line(format_args!("what waits in {run} is tried again now"))
                }
                (Format::Table, None) => {
                    output::line(format_args!("nothing waits to be tried again in {run}"))
                }
            }
            Ok(Exit::Done)
        }
        Command::Retry { run, from_failure, now: false, strict_checks } => {
            let body = RetryBody { from_failure: *from_failure, ..RetryBody::default() };
            // What is the latest run now is not any more once it is tried again.
            let run = found(location, run).await?;
            let ask = async |client: &Client| Ok(client.retry(run, &body).await?.run_id);
            through_both(location, Need::Run { slots: default_slots() }, ask, async |client, run| {
                let ended = follow::until_end(client, run, format).await?;
                Ok(Exit::of_run(&ended.run, *strict_checks))
            })
            .await
        }
    }
}

async fn found(location: &Location, run: &Which<RunId>) -> anyhow::Result<RunId> {
    through(location, Need::Read, async |client| run.find(client).await).await
}

/// One that has ended is told of; one that is at work is followed where it is, or else goes on in this process.
async fn watch(location: &Location, run: &Which<RunId>, format: Format) -> anyhow::Result<Exit> {
    let run = found(location, run).await?;
    let ended = through(location, Need::Read, async |client| {
        let has_ended = client.run(run).await?.state.is_terminal();
        if has_ended { follow::until_end(client, run, format).await.map(Some) } else { Ok(None) }
    });
    if let Some(ended) = ended.await? {
        return Ok(Exit::of_run(&ended.run, false));
    }
    let need = Need::Resume { slots: default_slots(), run };
    through_both(
        location,
        need,
        async |_| Ok(()),
        async |client, ()| {
            let ended = follow::until_end(client, run, format).await?;
            Ok(Exit::of_run(&ended.run, false))
        },
    )
    .await
}

fn list_conflicts(page: &Page<Conflict>, format: Format) -> anyhow::Result<()> {
    if format == Format::Json {
        return output::json(page);
    }
    if page.items.is_empty() {
        output::line(format_args!("no run key was used for two requests"));
        return Ok(());
    }
    output::table(
        &["when", "key", "run", "first request", "refused request", "by"],
        &[],
        page.items
            .iter()
            .map(|conflict| {
                vec![
                    conflict.detected_at.to_string(),
                    conflict.run_key.clone(),
                    conflict.run_id.to_string(),
                    conflict.existing_fingerprint.to_string(),
                    conflict.conflicting_fingerprint.to_string(),
                    conflict.requested_by.clone(),
                ]
            })
            .collect(),
    );
    more(page, "servo run conflicts");
    Ok(())
}
