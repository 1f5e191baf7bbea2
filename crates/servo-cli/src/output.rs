//! Tables for people, JSON for programs.

use std::io::Write;
use std::process::ExitCode;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use serde::Serialize;
use servo_api::client::ClientError;
use servo_api::{Code, Problem};
use servo_core::Timestamp;
use servo_engine::definitions::DefinitionProblems;
use servo_worker::project::{ProjectError, ScanError};

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// For people.
    Table,
    /// For programs.
    Json,
}

/// Prints a line of the result. A reader that has seen enough (`| head`) ends the program quietly.
pub(crate) fn line(text: impl std::fmt::Display) {
    if let Err(error) = writeln!(std::io::stdout(), "{text}") {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            std::process::exit(0);
        }
        eprintln!("error: the result cannot be written: {error}");
        std::process::exit(1);
    }
}

/// Prints JSON on one line.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    line(serde_json::to_string(value)?);
    Ok(())
}

/// Prints a table that fits the terminal. Columns listed in `numbers` are aligned to the right.
pub(crate) fn table(header: &[&str], numbers: &[usize], rows: Vec<Vec<String>>) {
    let mut table = Table::new();
    table
        .load_preset(NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(header.to_vec());
    table.add_rows(rows);
    for column in numbers {
        if let Some(column) = table.column_mut(*column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for row in table.to_string().lines() {
        line(row.strip_prefix(' ').unwrap_or(row).trim_end());
    }
}

/// Prints a title and rows below it, if there are any, with columns as wide as they must be.
pub(crate) fn section(title: &str, rows: &[Vec<String>]) {
    if rows.is_empty() {
        return;
    }
    line(format_args!("\n{title}"));
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        rows.iter().filter_map(|row| Some(row.get(column)?.chars().count())).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        line(format_args!("  {}", cells.join("  ").trim_end()));
    }
}

/// How long something took, or nothing.
pub(crate) fn span(from: Option<Timestamp>, to: Option<Timestamp>) -> String {
    from.zip(to).map(|(from, to)| to.since(from).to_string()).unwrap_or_default()
}

/// Prints why a command failed on stderr: a sentence for people, a problem document for programs.
pub(crate) fn failure(error: &anyhow::Error, format: Format) {
    match format {
        Format::Table => eprintln!("error: {error:#}"),
        Format::Json => eprintln!("{}", serde_json::to_string(&problem(error)).unwrap_or_default()),
    }
}

/// Prints what is wrong with a command line, or the help that was asked for.
pub(crate) fn wrong_use(error: &clap::Error) -> ExitCode {
    let wants_json = std::env::args_os().skip(1).take_while(|word| word != "--").any(|word| word == "--json");
    if !error.use_stderr() || !wants_json {
        error.exit();
    }
    let text = error.render().to_string();
    let detail = text.trim().strip_prefix("error: ").unwrap_or(text.trim());
    let problem = Problem::new(Code::InvalidRequest, detail);
    eprintln!("{}", serde_json::to_string(&problem).unwrap_or_default());
    ExitCode::from(2)
}

/// The problem document of an error.
pub(crate) fn problem(error: &anyhow::Error) -> Problem {
    if let Some(problem) = error.downcast_ref::<Problem>() {
        return problem.clone();
    }
    if let Some(ClientError::Problem(problem)) = error.downcast_ref() {
        return (**problem).clone();
    }
    if let Some(problems) = error.downcast_ref::<DefinitionProblems>() {
        return problems.clone().into();
    }
    if let Some(error) = error.downcast_ref::<servo_runtime::Error>() {
        return error.clone().into();
    }
    let is_unreachable = error.is::<ClientError>();
    let is_project = error.is::<ProjectError>() || error.is::<ScanError>();
    let code = match (is_unreachable, is_project) {
        (true, _) => Code::Unavailable,
        (_, true) => Code::InvalidProject,
        (false, false) => Code::Internal,
    };
    Problem::new(code, format!("{error:#}"))
}
