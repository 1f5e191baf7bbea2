//! Selections that were typed.

use anyhow::anyhow;
use servo_core::selection::Selection;
use servo_engine::definitions::Definitions;

/// Reads a selection; an error points at the fault.
pub(crate) fn parse(text: &str) -> anyhow::Result<Selection> {
    Selection::parse(text)
        .map_err(|error| anyhow!("invalid selection\n\n  {}", error.caret().replace('\n', "\n  ")))
}

/// The positions of the assets that a text means.
pub(crate) fn positions(definitions: &Definitions, text: &str) -> anyhow::Result<Vec<u32>> {
    // A project without assets is empty, not wrong: "*" means what there is.
    if text == "*" {
        return Ok((0..definitions.assets().len() as u32).collect());
    }
    let selected = parse(text)?.evaluate(definitions.graph())?;
    Ok(selected.positions().map(|position| position as u32).collect())
}
