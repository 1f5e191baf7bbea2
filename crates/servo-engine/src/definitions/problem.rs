//! Problems of a manifest: what, where, and what to do.

use std::fmt;

use super::manifest::Location;

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct DefinitionProblem {
    /// Where it was declared; absent for problems of the manifest as a whole.
    pub location: Option<Location>,
    /// The subject of the problem: `asset analytics.delays`, `schedule morning`.
    pub subject: String,
    /// The problem.
    pub message: String,
    /// The suggested fix.
    pub fix: String,
}

/// `file:line: subject: message; fix`.
impl fmt::Display for DefinitionProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(location) = &self.location {
            write!(f, "{location}: ")?;
        }
        write!(f, "{}: {}; {}", self.subject, self.message, self.fix)
    }
}

/// Every problem of a manifest, in order of place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionProblems(Vec<DefinitionProblem>);

impl DefinitionProblems {
    /// The problems; there is at least one.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &DefinitionProblem> {
        self.0.iter()
    }
}

impl fmt::Display for DefinitionProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.len();
        write!(f, "the definitions have {count} problem{}", if count == 1 { "" } else { "s" })?;
        self.0.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}

impl std::error::Error for DefinitionProblems {}

/// Collects problems while a manifest is checked.
#[derive(Default)]
pub(super) struct Report {
    found: Vec<DefinitionProblem>,
}

impl Report {
    pub(super) fn add(
        &mut self,
        location: Option<&Location>,
        subject: impl Into<String>,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.found.push(DefinitionProblem {
            location: location.cloned(),
            subject: subject.into(),
            message: message.into(),
            fix: fix.into(),
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Whether few problems were found so far, so that suggestions such as similar names may be searched.
    pub(super) fn is_short(&self) -> bool {
        self.found.len() < 50
    }

    /// The problems in order of place, each once.
    pub(super) fn finish(mut self) -> DefinitionProblems {
        self.found.sort();
        self.found.dedup();
        DefinitionProblems(self.found)
    }
}

/// How an asset is named in a problem; as the user wrote it, with the dot that people write.
pub(super) fn asset(key: &str) -> String {
    format!("asset {}", key.replacen('/', ".", 1))
}
