//! Prints the facts of a materialization for people: figures, metadata, columns and first rows.

use serde_json::{Map, Value};
use servo_api::views::MaterializationDetail;

use crate::output;
use crate::style::harmless;

/// Characters of a value in a table.
const WIDEST: usize = 40;

/// Prints what is known of a materialization.
pub(crate) fn print(made: &MaterializationDetail) {
    let latest = &made.materialization;
    let which = latest.partition.as_deref().map(|partition| format!(" {partition}")).unwrap_or_default();
    let by = latest.run_id.map_or_else(|| "nobody: it was marked".to_owned(), |run| run.to_string());
    let mut facts = vec![
        fact("made", format!("{} by {by}", latest.materialized_at)),
        fact("materialization", latest.materialization_id.to_string()),
    ];
    facts.extend(made.row_count.map(|rows| fact("rows", rows.to_string())));
    facts.extend(made.byte_size.map(|bytes| fact("bytes", bytes.to_string())));
    facts.extend(made.uri.as_deref().map(|uri| fact("where", harmless(uri).into_owned())));
    output::section(&format!("data{which}"), &facts);
    let columns: Vec<Vec<String>> = made.schema.iter().map(|column| column_of(column, made)).collect();
    output::section("columns", &columns);
    for (name, value) in &made.metadata {
        metadata(name, value, made.uri.as_deref());
    }
    preview(made);
}

fn fact(name: &str, value: String) -> Vec<String> {
    vec![name.to_owned(), value]
}

fn column_of((name, kind): (&String, &String), made: &MaterializationDetail) -> Vec<String> {
    let nulls = match made.nulls.get(name) {
        None | Some(0) => String::new(),
        Some(count) => format!("{count} null"),
    };
    vec![harmless(name).into_owned(), kind.clone(), nulls]
}

/// A value of metadata, in the way that its kind is shown.
fn metadata(name: &str, value: &Value, directory: Option<&str>) {
    let part = |part: &str| value.get(part).and_then(Value::as_str);
    let name = harmless(name);
    match (part("$servo"), part("text"), part("url"), part("file")) {
        (Some("md"), Some(text), ..) => {
            output::line(format_args!("\n{name}"));
            for line in text.lines() {
                output::line(format_args!("  {}", harmless(line)));
            }
        }
        (Some("url"), text, Some(url), _) => {
            let text = text.map(|text| format!("{} ", harmless(text))).unwrap_or_default();
            output::line(format_args!("\n{name}: {text}{}", harmless(url)));
        }
        (Some("image"), _, _, Some(file)) => {
            let place = directory.map(|directory| format!("{directory}/")).unwrap_or_default();
            output::line(format_args!("\n{name}: {}", harmless(&format!("{place}{file}"))));
        }
        (Some("image"), ..) => {
            let kind = part("media_type").unwrap_or("image");
            output::line(format_args!("\n{name}: {kind}, which --json has"));
        }
        (Some("table"), ..) => shown_table(&name, value),
        _ => output::line(format_args!("\n{name}: {}", cell(value))),
    }
}

fn shown_table(name: &str, value: &Value) {
    let list = |part: &str| value.get(part).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let columns: Vec<String> = list("columns").iter().map(cell).collect();
    let rows = list("rows").iter().map(|row| row.as_array().into_iter().flatten().map(cell).collect());
    let rows: Vec<Vec<String>> = rows.collect();
    let total = value.get("row_count").and_then(Value::as_u64).unwrap_or(rows.len() as u64);
    output::line(format_args!("\n{name}, {}", of_rows(rows.len(), total)));
    table(&columns, rows);
}

fn preview(made: &MaterializationDetail) {
    let Some(first) = made.preview.first() else { return };
    let columns: Vec<&String> = first.keys().collect();
    let row = |row: &Map<String, Value>| {
        columns.iter().map(|column| row.get(*column).map(cell).unwrap_or_default()).collect()
    };
    let rows: Vec<Vec<String>> = made.preview.iter().map(row).collect();
    output::line(format_args!("\nfirst rows, {}", of_rows(rows.len(), made.row_count.unwrap_or_default())));
    let columns: Vec<String> = columns.into_iter().map(|name| harmless(name).into_owned()).collect();
    table(&columns, rows);
}

fn of_rows(shown: usize, total: u64) -> String {
    if (shown as u64) < total { format!("{shown} of {total}") } else { format!("{shown} in all") }
}

fn table(columns: &[String], rows: Vec<Vec<String>>) {
    let header: Vec<&str> = columns.iter().map(String::as_str).collect();
    output::table(&header, &[], rows);
}

/// A value in a few characters; a text without its quotes.
fn cell(value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    };
    let text = harmless(&text).replace('\n', " ");
    match text.char_indices().nth(WIDEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
