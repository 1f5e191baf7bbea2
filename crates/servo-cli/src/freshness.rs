//! `servo asset freshness`: how old the data of assets is, and whether their policies allow it.

use servo_api::client::{ListOptions, first_pages};
use servo_api::views::AssetFreshness;

use crate::backend::{Need, through};
use crate::exit::Exit;
use crate::location::Location;
use crate::output::{self, Format, words};

/// Which assets.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Which: names, globs, +upstream, downstream+, tag:, group:, owner:, kind:, and, or, not.
    #[arg(default_value = "*")]
    selection: String,
    /// Only those with this status: pass, warn, fail.
    #[arg(long)]
    status: Option<String>,
    /// How many.
    #[arg(long, short = 'n', default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
}

pub(crate) async fn run(location: &Location, options: &Options, format: Format) -> anyhow::Result<Exit> {
    let which = ListOptions {
        state: options.status.clone(),
        filters: vec![("selection", options.selection.clone())],
        ..ListOptions::default()
    };
    let page = through(location, Need::ReadProject, async |client| {
        let fetch = async |options: &ListOptions| client.freshness(options).await;
        Ok(first_pages(usize::from(options.limit), which.clone(), fetch).await?)
    })
    .await?;
    if format == Format::Json {
        output::json(&page)?;
        return Ok(Exit::Done);
    }
    if page.items.is_empty() {
        output::line(format_args!("no such asset has a freshness policy"));
        return Ok(Exit::Done);
    }
    let row = |asset: &AssetFreshness| {
        vec![
            asset.asset_key.to_string(),
            words(asset.status),
            asset.since.to_string(),
            asset.lag_ms.map_or_else(|| "never made".to_owned(), |lag| lag.to_string()),
            asset.fails_at.to_string(),
        ]
    };
    let rows = page.items.iter().map(row).collect();
    output::table(&["asset", "status", "since", "lag", "fails at"], &[], rows);
    Ok(Exit::Done)
}
