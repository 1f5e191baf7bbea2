//! `servo audit`: who did what to what, when, and whether it was allowed.

use servo_api::Page;
use servo_api::client::{ListOptions, first_pages};
use servo_api::views::Act;
use servo_engine::AuditOutcome;

use crate::backend::{Need, through};
use crate::exit::Exit;
use crate::location::Location;
use crate::output::{self, Format};

/// Options of `servo audit`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only acts of this principal: user:local, or its name alone.
    #[arg(long, short, value_name = "WHO")]
    principal: Option<String>,
    /// Only this action, or all of its family: run.cancel, run, quarantine.
    #[arg(long, short, value_name = "WHAT")]
    action: Option<String>,
    /// Only acts about a subject that begins so: a run, a project, an asset.
    #[arg(long, short, value_name = "SUBJECT")]
    subject: Option<String>,
    /// Only acts that were refused.
    #[arg(long, short)]
    refused: bool,
    /// Only acts at this time or later, such as 2026-01-05T12:00:00Z.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only acts before this time.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// How many.
    #[arg(long, short = 'n', default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Where to go on; the last line of a page says it.
    #[arg(long)]
    cursor: Option<String>,
}

pub(crate) async fn run(location: &Location, options: &Options, format: Format) -> anyhow::Result<Exit> {
    let filters = [
        ("principal", &options.principal),
        ("action", &options.action),
        ("subject", &options.subject),
        ("since", &options.since),
        ("until", &options.until),
    ];
    let which = ListOptions {
        cursor: options.cursor.clone(),
        state: options.refused.then(|| AuditOutcome::Refused.to_string()),
        filters: filters.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect(),
        ..ListOptions::default()
    };
    let page = through(location, Need::Read, async |client| {
        let acts = async |list: &ListOptions| client.audit(list).await;
        Ok(first_pages(usize::from(options.limit), which.clone(), acts).await?)
    });
    print(&page.await?, format)?;
    Ok(Exit::Done)
}

fn print(page: &Page<Act>, format: Format) -> anyhow::Result<()> {
    if format == Format::Json {
        return output::json(page);
    }
    if page.items.is_empty() {
        output::line("nobody has done anything of the kind");
        return Ok(());
    }
    let row = |act: &Act| {
        let why = match (&act.message, act.omitted) {
            (Some(message), 0) => message.clone(),
            (Some(message), omitted) => format!("{message} ({omitted} more before were not recorded)"),
            (None, _) => act.detail.clone().unwrap_or_default(),
        };
        vec![
            act.occurred_at.to_string(),
            act.principal.clone(),
            act.action.clone(),
            act.subject.clone(),
            act.outcome.to_string(),
            why,
        ]
    };
    output::table(
        &["time", "who", "what", "subject", "outcome", "detail"],
        &[],
        page.items.iter().map(row).collect(),
    );
    if let Some(next) = &page.next_cursor {
        output::line(format_args!("\nmore: the same with --cursor {next}"));
    }
    Ok(())
}
