//! Lists of a workspace: fetched page by page, printed as a table for people and as they are for programs.

use std::fmt::Display;

use serde::Serialize;
use servo_api::Page;
use servo_api::client::{Client, ClientError, ListOptions, all_pages, first_pages};

use crate::backend::{Need, through};
use crate::location::Location;
use crate::output::{self, Format};

/// How much of a list to show.
#[derive(clap::Args)]
pub(crate) struct PageArgs {
    /// How many.
    #[arg(long, short = 'n', default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Where to go on; the last line of a page says it.
    #[arg(long)]
    cursor: Option<String>,
}

impl PageArgs {
    /// How many items the page has.
    pub(crate) fn limit(&self) -> usize {
        usize::from(self.limit)
    }

    /// The options of the request; `state` says in which states the items may be.
    pub(crate) fn options(&self, state: Option<&str>) -> ListOptions {
        let (cursor, state) = (self.cursor.clone(), state.map(str::to_owned));
        ListOptions { cursor, state, ..ListOptions::default() }
    }

    /// Fetches the page of a list.
    pub(crate) async fn fetch<T>(
        &self,
        location: &Location,
        state: Option<&str>,
        fetch: impl AsyncFn(&Client, &ListOptions) -> Result<Page<T>, ClientError>,
    ) -> anyhow::Result<Page<T>> {
        through(location, Need::Read, async |client| {
            let page = async |options: &ListOptions| fetch(client, options).await;
            Ok(first_pages(self.limit(), self.options(state), page).await?)
        })
        .await
    }
}

/// Fetches all of a list of the project.
pub(crate) async fn fetch_all<T>(
    location: &Location,
    fetch: impl AsyncFn(&Client, &ListOptions) -> Result<Page<T>, ClientError>,
) -> anyhow::Result<Vec<T>> {
    through(location, Need::ReadProject, async |client| {
        Ok(all_pages(async |options: &ListOptions| fetch(client, options).await).await?)
    })
    .await
}

/// Prints the whole of a list, or what to say if there is nothing in it. Says whether there is a table to say more about.
pub(crate) fn print_all<T: Serialize>(
    items: Vec<T>,
    format: Format,
    nothing: &str,
    header: &[&str],
    row: impl Fn(&T) -> Vec<String>,
) -> anyhow::Result<bool> {
    if format == Format::Json {
        output::json(&Page { items, next_cursor: None })?;
        return Ok(false);
    }
    if items.is_empty() {
        output::line(nothing);
        return Ok(false);
    }
    output::table(header, &[], items.iter().map(row).collect());
    Ok(true)
}

/// Prints a page; `command` shows the next one.
pub(crate) fn print_page<T: Serialize>(
    page: &Page<T>,
    format: Format,
    header: &[&str],
    row: impl Fn(&T) -> Vec<String>,
    command: impl Display,
) -> anyhow::Result<()> {
    if format == Format::Json {
        return output::json(page);
    }
    output::table(header, &[], page.items.iter().map(row).collect());
    more(page, command);
    Ok(())
}

/// Says how to see the next page, if there is one.
pub(crate) fn more<T>(page: &Page<T>, command: impl Display) {
    if let Some(next) = &page.next_cursor {
        output::line(format_args!("\nmore: {command} --cursor {next}"));
    }
}
