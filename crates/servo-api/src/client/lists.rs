//! Which part of a list.

/// Which part of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// How many; as many as the server thinks right if not said.
    pub limit: Option<usize>,
    /// Where the page before ended.
    pub cursor: Option<String>,
    /// Only what is in one of these states, with commas between them.
    pub state: Option<String>,
}

impl ListOptions {
    /// As a query, in which a state may have another name.
    pub(super) fn query(&self, state: &'static str) -> Vec<(&'static str, String)> {
        let limit = self.limit.map(|limit| ("limit", limit.to_string()));
        let cursor = self.cursor.clone().map(|cursor| ("cursor", cursor));
        let state = self.state.clone().map(|value| (state, value));
        [limit, cursor, state].into_iter().flatten().collect()
    }
}
