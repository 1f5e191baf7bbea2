//! Tables for people, JSON for programs.

use std::io::Write;
use std::process::ExitCode;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width};
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

/// Blanks on both sides of a cell.
const PADDING: usize = 2;
/// A column is not made narrower than this.
const NARROWEST: usize = 6;

/// Prints a table that fits the terminal. Columns listed in `numbers` are aligned to the right.
pub(crate) fn table(header: &[&str], numbers: &[usize], mut rows: Vec<Vec<String>>) {
    let mut table = Table::new();
    table
        .load_preset(NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(header.to_vec());
    let room = table.width().map(|width| usize::from(width).saturating_sub(PADDING * header.len()));
    let narrowed = room.and_then(|room| narrowed(room, header, &mut rows));
    table.add_rows(rows);
    for (column, width) in narrowed.into_iter().flatten().enumerate() {
        if let Some(column) = table.column_mut(column) {
            let width = u16::try_from(width + PADDING).unwrap_or(u16::MAX);
            column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(width)));
        }
    }
    for column in numbers {
        if let Some(column) = table.column_mut(*column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for row in table.to_string().lines() {
        line(row.strip_prefix(' ').unwrap_or(row).trim_end());
    }
}

/// The widths of columns, without padding, for a terminal that does not have room for all of them. Words stay whole,
/// and so can be copied, as long as that is possible; a time may be broken behind its day, and a range behind its
/// beginning.
fn narrowed(room: usize, header: &[&str], rows: &mut [Vec<String>]) -> Option<Vec<usize>> {
    let most = |rows: &[Vec<String>], width: fn(&str) -> usize| -> Vec<usize> {
        let of_column = |(column, head): (usize, &&str)| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| width(cell)).fold(width(head), usize::max)
        };
        header.iter().enumerate().map(of_column).collect()
    };
    let all = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap_or_default();
    if most(rows, all).iter().sum::<usize>() <= room {
        return None;
    }
    for cell in rows.iter_mut().flatten() {
        *cell = breakable(cell);
    }
    let wanted = most(rows, all);
    let mut widths =
        most(rows, |text| text.split_whitespace().map(|word| word.chars().count()).max().unwrap_or_default());
    while widths.iter().sum::<usize>() > room {
        let widest = widths.iter_mut().max().filter(|width| **width > NARROWEST)?;
        *widest -= 1;
    }
    for _ in widths.iter().sum::<usize>()..room {
        let lacks = |(width, wanted): &(&mut usize, &usize)| wanted.saturating_sub(**width);
        let needs_most = widths.iter_mut().zip(&wanted).max_by_key(lacks);
        if let Some((width, _)) = needs_most.filter(|needs| lacks(needs) > 0) {
            *width += 1;
        }
    }
    Some(widths)
}

/// A text with blanks where a narrow column may break it.
fn breakable(text: &str) -> String {
    if let Ok(time) = text.parse::<Timestamp>() {
        let time = time.to_string();
        let day_and_time =
            time.split_once('T').map(|(day, time)| (day, time.split('.').next().unwrap_or(time)));
        return day_and_time
            .map_or(time.clone(), |(day, time)| format!("{day} {}Z", time.trim_end_matches('Z')));
    }
    text.replace("..2", ".. 2")
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

/// Prints a name, and below it what is known of it.
pub(crate) fn facts(name: &str, facts: &[(&str, String)]) {
    line(name);
    let width = facts.iter().map(|(fact, _)| fact.len()).max().unwrap_or_default();
    for (fact, value) in facts {
        line(format_args!("  {fact:<width$}  {value}"));
    }
}

/// The name of a state or a reason, as people read it: `EXECUTION_FAILED` is `execution failed`.
pub(crate) fn words(name: impl std::fmt::Display) -> String {
    name.to_string().to_lowercase().replace('_', " ")
}

/// A time, or that there is none.
pub(crate) fn time(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "–".to_owned(), |at| at.to_string())
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

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: [&str; 4] = ["run", "asked for", "by", "created"];

    fn rows() -> Vec<Vec<String>> {
        let row = [
            "run_subgtxxb",
            "raw.events 2026-01-01..2026-01-06",
            "manual by local",
            "2026-11-18T17:40:09.534Z",
        ];
        vec![row.map(str::to_owned).to_vec()]
    }

    #[test]
    fn a_table_with_room_enough_is_left_as_it_is() {
        let mut found = rows();
        assert_eq!(narrowed(84, &HEADER, &mut found), None);
        assert_eq!(found, rows());
    }

    #[test]
    fn a_narrow_table_breaks_between_words_and_keeps_ids_whole() {
        let mut found = rows();
        let widths = narrowed(60, &HEADER, &mut found).unwrap();
        assert_eq!((widths[0], widths.iter().sum::<usize>()), (12, 60));
        assert!(widths[1] >= "2026-01-01..".len() && widths[3] >= "2026-11-18".len(), "{widths:?}");
        assert_eq!(found[0][3], "2026-11-18 17:40:09Z");
        assert_eq!(found[0][1], "raw.events 2026-01-01.. 2026-01-06");
    }

    #[test]
    fn where_words_have_no_room_the_widest_are_broken_and_nothing_is_wider_than_the_terminal() {
        let widths = narrowed(36, &HEADER, &mut rows()).unwrap();
        assert_eq!(widths.iter().sum::<usize>(), 36);
        assert_eq!(narrowed(12, &HEADER, &mut rows()), None, "left to what breaks anywhere");
    }
}
