//! Queries in SQL, and their results.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A query.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SqlBody {
    /// One query, over Servo's tables by name and assets by `namespace.name`.
    pub query: String,
    /// Rows that are returned, at most 10,000; 1,000 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rows: Option<u32>,
    /// Seconds after which the query is stopped, at most 60; 20 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_seconds: Option<u32>,
}

/// The result of a query.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SqlResult {
    /// Its columns.
    pub columns: Vec<SqlColumn>,
    /// Its rows: values in the order of the columns. Numbers that JavaScript would round are text.
    #[schema(value_type = Vec<Vec<Value>>)]
    pub rows: Vec<Vec<Value>>,
    /// Whether there are more rows than are returned.
    pub truncated: bool,
    /// What to know about the result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// How long it took.
    #[serde(default)]
    pub elapsed_ms: u64,
}

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SqlColumn {
    /// Its name.
    pub name: String,
    /// Its type, as DuckDB names it.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether its values are numbers.
    pub number: bool,
    /// Whether its values are times.
    pub time: bool,
}

/// Servo's own tables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SqlTables {
    /// Each of them.
    pub items: Vec<SqlTable>,
}

/// A table that queries can name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SqlTable {
    /// Its name.
    pub name: String,
    /// One sentence about its rows.
    pub about: String,
    /// Names of its columns.
    pub columns: Vec<String>,
}

impl SqlTables {
    /// All tables of this version, by name.
    pub(crate) fn all() -> Self {
        use servo_engine::rows::Row;

        let mut items = Vec::new();
        servo_engine::for_each_table!(R => items.push(SqlTable {
            name: R::TABLE.to_owned(),
            about: R::DOC.trim().to_owned(),
            columns: R::COLUMNS.iter().map(|column| column.name.to_owned()).collect(),
        }));
        items.sort_by(|a, b| a.name.cmp(&b.name));
        Self { items }
    }
}
