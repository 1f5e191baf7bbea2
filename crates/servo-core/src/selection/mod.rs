//! Selections: which assets a person means by a line of text.
//!
//! ```text
//! or        = and { ("or" | "|" | ",") and }
//! and       = not { ("and" | "&") not }
//! not       = ("not" | "!") not | reach
//! reach     = [[steps] "+"] operand ["+" [steps]]          no spaces around "+"
//! operand   = "(" or ")" | attribute | name
//! name      = "*" | segment ("." | "/") segment            segments may hold the globs "*" and "?"
//! attribute = "tag:" value ["=" value] | ("group:" | "owner:" | "kind:") value
//! value     = bare word | quoted text                      both may hold globs; "\*" in quotes is a star
//! ```
//!
//! The words `and`, `or`, `not` are read in any case. `2+a+1` is `a`, what it depends on within two steps, and what
//! depends on it within one. `Display` writes the one canonical text of a selection.
//!
//! A name or glob that matches nothing is an error with near misses, because it is nearly always a typing error,
//! and inside `not` it would let through what it was to keep out. An attribute that matches nothing selects nothing.
//!
//! ```
//! use servo_core::AssetKey;
//! use servo_core::selection::{AssetGraph, AssetInfo, Selection};
//!
//! let delays = AssetInfo::new(AssetKey::parse("analytics.delays")?);
//! let flights = AssetInfo::new(AssetKey::parse("raw.flights")?);
//! let graph = AssetGraph::new(vec![delays, flights], vec![vec![1], vec![]])?; // delays reads flights
//!
//! let selected = Selection::parse("+analytics.* and not kind:view")?.evaluate(&graph)?;
//! assert_eq!(selected.positions().collect::<Vec<_>>(), [0, 1]);
//!
//! let error = Selection::parse("analytics.delay")?.evaluate(&graph).unwrap_err();
//! assert_eq!(error.to_string(), "no asset matches analytics.delay: did you mean analytics.delays?");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ast;
mod error;
mod evaluate;
mod graph;
mod lexer;
mod parser;
mod pattern;
mod set;
mod suggest;

pub use ast::{Attribute, Depth, Expr, NamePattern, Selection};
pub use error::{EvaluateError, SyntaxError, Unmatched};
pub use graph::{AssetGraph, AssetInfo, GraphError};
pub use parser::{MAX_CHARS, MAX_NESTING};
pub use pattern::Pattern;
pub use set::AssetSet;
pub use suggest::{similar_assets, similarly_named};
