//! What a command has said, without what differs between any two projects.

#![allow(unreachable_pub)]

use std::process::Output;

use serde_json::Value;

/// Characters of the shortest id that a command prints.
const SHORT_ID: usize = 12;

/// Exit code, stdout and stderr, without what differs between any two projects.
pub fn shown(output: &Output) -> String {
    let text = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        // That nothing ticks without a server is said only without one.
        let is_same = |line: &&str| !line.starts_with("note: no server") && is_always_said(line);
        let lines = text.lines().filter(is_same).map(|line| match serde_json::from_str::<Value>(line) {
            Ok(mut value) if value.is_object() => {
                blot(&mut value);
                format!("{value:#}")
            }
            Ok(_) | Err(_) => line.split_whitespace().map(word).collect::<Vec<_>>().join(" "),
        });
        // Tasks that run at the same time end in any order.
        let mut lines: Vec<String> = lines.collect();
        if lines.iter().any(|line| line.starts_with(['✓', '✗'])) {
            lines.sort();
        }
        lines.join("\n")
    };
    format!(
        "exit {}\n--- stdout\n{}\n--- stderr\n{}",
        output.status.code().unwrap(),
        text(&output.stdout),
        text(&output.stderr)
    )
}

/// Whether a line is there every time: what a run cost is said only if it is not rounded to nothing.
pub fn is_always_said(line: &str) -> bool {
    !line.starts_with("cost $")
}

/// Ids, times and figures that are never the same twice.
fn word(word: &str) -> String {
    let bare = word.trim_end_matches([',', '.', ':', ';']);
    let is_time = bare.len() == 24 && bare.ends_with('Z') && bare.contains('T');
    let is_id = ["run_", "manual:", "retry:", "request:"].iter().any(|prefix| bare.starts_with(prefix));
    let is_ulid = bare.len() == 26 && bare.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit());
    let is_span = bare.starts_with(|c: char| c.is_ascii_digit())
        && bare.ends_with('s')
        && bare.chars().all(|c| c.is_ascii_digit() || ".dhms".contains(c));
    let is_cursor = bare.len() > 40 && !bare.contains([':', '/']);
    let is_uri = bare.starts_with("file://");
    let is_cost = bare.starts_with('$');
    // A server deploys in the name of whoever started it.
    let is_deployer = bare == "user:tester" || bare == "user:local";
    if is_uri || is_cost || is_time || is_id || is_ulid || is_span || is_cursor || is_deployer {
        "[…]".to_owned()
    } else {
        word.to_owned()
    }
}

fn blot(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                // Who was asked last, and what that took.
                let differs = [
                    "worker_id",
                    "usage",
                    "duration_ms",
                    "next_cursor",
                    "uri",
                    "cpu_ms",
                    "memory_mb_ms",
                    "since",
                    "until",
                ];
                let is_time = name == "at" || name.ends_with("_at");
                let is_id = name.ends_with("_id") || name == "row_version";
                let is_cost = name.ends_with("cost_micro_usd");
                if is_cost || is_time || is_id || differs.contains(&name.as_str()) {
                    *value = "[…]".into();
                }
                blot(value);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(blot),
        Value::String(text) => *text = text.split(' ').map(word).collect::<Vec<_>>().join(" "),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A line as a terminal shows it, with its columns: ids, times and figures are left out, and columns are not padded,
/// since what stood in them was as long as it liked.
pub fn line(text: &str) -> String {
    if let Ok(mut value @ Value::Object(_)) = serde_json::from_str::<Value>(text) {
        blot(&mut value);
        return format!("{value:#}").lines().map(columns).collect::<Vec<_>>().join("\n");
    }
    columns(text)
}

fn columns(text: &str) -> String {
    let indent = &text[..text.len() - text.trim_start().len()];
    let cells = text.trim().split("  ").map(str::trim).filter(|cell| !cell.is_empty());
    let cells = cells.map(|cell| cell.split(' ').map(part).collect::<Vec<_>>().join(" "));
    indent.to_owned() + &cells.collect::<Vec<_>>().join("  ")
}

/// A word without what is in it that is never the same twice; what stands around that stays.
fn part(text: &str) -> String {
    let is_around = |c: char| "()[],.:;'\"?`".contains(c);
    let bare = text.trim_matches(is_around);
    // The beginning of an id that a person has typed is no id.
    let is_typed = bare.starts_with("run_") && bare.len() < SHORT_ID;
    let is_made =
        ["manual_", "sched:", "v1:sha256:", "sha256:", "local-"].iter().any(|it| bare.starts_with(it));
    let is_variable = !bare.is_empty() && !is_typed && (is_made || word(bare) != bare);
    if is_variable { text.replacen(bare, "[…]", 1) } else { text.to_owned() }
}
