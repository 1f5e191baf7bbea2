//! The table of results.

use std::path::Path;

use anyhow::Context;
use serde::Serialize;

/// Whether higher or lower figures are better.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Better {
    Lower,
    Higher,
}

/// One figure.
#[derive(Debug, Serialize)]
struct Figure {
    area: &'static str,
    what: String,
    value: f64,
    unit: &'static str,
    target: Option<f64>,
    better: Better,
    ok: bool,
}

/// All figures of one run.
#[derive(Debug, Default)]
pub(crate) struct Results {
    figures: Vec<Figure>,
    /// Measurements that could not be made, and why.
    problems: Vec<String>,
}

impl Results {
    /// A figure with a target.
    pub(crate) fn add(
        &mut self,
        area: &'static str,
        what: impl Into<String>,
        (value, unit): (f64, &'static str),
        better: Better,
        target: f64,
    ) {
        let ok = match better {
            Better::Lower => value <= target,
            Better::Higher => value >= target,
        };
        self.push(Figure { area, what: what.into(), value, unit, target: Some(target), better, ok });
    }

    /// A figure that only explains another.
    pub(crate) fn note(
        &mut self,
        area: &'static str,
        what: impl Into<String>,
        (value, unit): (f64, &'static str),
        better: Better,
    ) {
        self.push(Figure { area, what: what.into(), value, unit, target: None, better, ok: true });
    }

    /// Notes a measurement that could not be made. Others go on.
    pub(crate) fn done(&mut self, what: &str, done: anyhow::Result<()>) {
        if let Err(error) = done {
            eprintln!("  {what} could not be measured: {error:#}");
            self.problems.push(format!("{what}: {error:#}"));
        }
    }

    /// Whether everything was measured that was to be.
    pub(crate) fn is_whole(&self) -> bool {
        self.problems.is_empty()
    }

    fn push(&mut self, figure: Figure) {
        eprintln!("  {:<11} {:<58} {:>12.3} {}", figure.area, figure.what, figure.value, figure.unit);
        self.figures.push(figure);
    }

    pub(crate) fn print(&self) {
        println!("{:<11} {:<58} {:>12} {:<9} {:>14}", "area", "what", "value", "unit", "target");
        for figure in &self.figures {
            let sign = match figure.better {
                Better::Lower => "≤",
                Better::Higher => "≥",
            };
            let target = figure.target.map(|target| format!("{sign} {target}")).unwrap_or_default();
            let verdict = if figure.ok { "" } else { "  MISSED" };
            println!(
                "{:<11} {:<58} {:>12.3} {:<9} {:>14}{verdict}",
                figure.area, figure.what, figure.value, figure.unit, target
            );
        }
        for problem in &self.problems {
            println!("not measured: {problem}");
        }
    }

    pub(crate) fn write(&self, path: &Path) -> anyhow::Result<()> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).with_context(|| format!("creating {}", parent.display()))?;
        }
        let text = serde_json::to_string_pretty(&self.figures)?;
        std::fs::write(path, text + "\n").with_context(|| format!("writing {}", path.display()))
    }
}
