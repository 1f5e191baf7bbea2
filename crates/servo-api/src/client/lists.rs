//! Lists: which part of one, and how to get more than a page.

use super::ClientError;
use crate::pages::{MAX_LIMIT, Page};

/// Options of a list request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// Page size; the server's default if absent.
    pub limit: Option<usize>,
    /// Cursor of the page before.
    pub cursor: Option<String>,
    /// Only items in one of these states, separated by commas.
    pub state: Option<String>,
    /// Further filters of the list, by their names.
    pub filters: Vec<(&'static str, String)>,
}

impl ListOptions {
    /// The query parameters; a state may have another name there.
    pub(super) fn query(&self, state: &'static str) -> Vec<(&'static str, String)> {
        let limit = self.limit.map(|limit| ("limit", limit.to_string()));
        let cursor = self.cursor.clone().map(|cursor| ("cursor", cursor));
        let state = self.state.clone().map(|value| (state, value));
        [limit, cursor, state].into_iter().flatten().chain(self.filters.iter().cloned()).collect()
    }
}

/// The first of a list, page by page.
pub async fn first_pages<T>(
    limit: usize,
    mut options: ListOptions,
    fetch: impl AsyncFn(&ListOptions) -> Result<Page<T>, ClientError>,
) -> Result<Page<T>, ClientError> {
    let mut found = Vec::new();
    loop {
        options.limit = Some((limit - found.len()).clamp(1, MAX_LIMIT));
        let page = fetch(&options).await?;
        found.extend(page.items);
        options.cursor = page.next_cursor;
        if options.cursor.is_none() || found.len() >= limit {
            return Ok(Page { items: found, next_cursor: options.cursor });
        }
    }
}

/// All of a list, page by page.
pub async fn all_pages<T>(
    fetch: impl AsyncFn(&ListOptions) -> Result<Page<T>, ClientError>,
) -> Result<Vec<T>, ClientError> {
    Ok(first_pages(usize::MAX, ListOptions::default(), fetch).await?.items)
}
