//! `servo audit`: who did what to what, when, and whether it was allowed.

use servo_api::Page;
use servo_api::client::{ListOptions, first_pages};
use servo_api::views::Act;
use servo_engine::AuditOutcome;

use crate::backend::{Need, server_client, through};
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
    /// Acts on the server itself: keys, sessions, tenants, workspaces and quotas.
    #[arg(long)]
    server: bool,
    /// Print CSV with a line of names first, for export.
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// How many.
    #[arg(long, short = 'n', default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    limit: u32,
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
    let limit = usize::try_from(options.limit)?;
    let page = if options.server {
        let client = server_client(location).await?;
        first_pages(limit, which, async |list: &ListOptions| client.server_audit(list).await).await?
    } else {
        let asked = through(location, Need::Read, async |client| {
            let acts = async |list: &ListOptions| client.audit(list).await;
            Ok(first_pages(limit, which.clone(), acts).await?)
        });
        asked.await?
    };
    match options.csv {
        true => print_csv(&page),
        false => print(&page, format)?,
    }
    Ok(Exit::Done)
}

/// One line per act, as RFC 4180 has it.
fn print_csv(page: &Page<Act>) {
    let quoted = |text: &str| match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    };
    output::line("time,who,what,subject,outcome,detail,request_id,event_id");
    for act in &page.items {
        let detail = act.message.as_ref().or(act.detail.as_ref()).cloned().unwrap_or_default();
        let fields = [
            act.occurred_at.to_string(),
            act.principal.clone(),
            act.action.clone(),
            act.subject.clone(),
            act.outcome.to_string(),
            detail,
            act.request_id.clone().unwrap_or_default(),
            act.event_id.to_string(),
        ];
        output::line(fields.iter().map(|field| quoted(field)).collect::<Vec<_>>().join(","));
    }
    if let Some(next) = &page.next_cursor {
        eprintln!("more: the same with --cursor {next}");
    }
}

fn print(page: &Page<Act>, format: Format) -> anyhow::Result<()> {
    if format == Format::Json {
        return output::json(page);
    }
    if page.items.is_empty() {
        output::line("nobody has done anything of the kind; `servo audit` shows what was done");
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
