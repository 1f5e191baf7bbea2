//! A selection as a tree, and the one text of it.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use super::error::{EvaluateError, SyntaxError};
use super::graph::AssetGraph;
use super::pattern::Pattern;
use super::set::AssetSet;
use super::{evaluate, parser};
use crate::serde_text::deserialize_from_text;

/// A selection of assets. `Display` and serde write its canonical form: it reads back as an equal selection.
///
/// ```
/// use servo_core::selection::Selection;
/// let selection = Selection::parse("raw/*,(2+analytics.delays & !tag:team=\"ops\")")?;
/// assert_eq!(selection.to_string(), "raw.* or 2+analytics.delays and not tag:team=ops");
/// # Ok::<(), servo_core::selection::SyntaxError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    expr: Expr,
}

impl Selection {
    /// Reads a text of at most [`MAX_CHARS`](super::MAX_CHARS) characters.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        parser::parse(text).map(|expr| Self { expr })
    }

    /// The expression tree.
    pub fn expr(&self) -> &Expr {
        &self.expr
    }

    /// The assets of `graph` that are meant. Names and globs that match nothing are an error.
    pub fn evaluate(&self, graph: &AssetGraph) -> Result<AssetSet, EvaluateError> {
        evaluate::evaluate(&self.expr, graph)
    }
}

/// A part of a selection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expr {
    /// The assets with matching names.
    Name(NamePattern),
    /// The assets with a matching attribute.
    Attribute(Attribute),
    /// The assets of a part, and what is upstream and downstream of them.
    Neighbours {
        /// How far to follow what they depend on.
        upstream: Option<Depth>,
        /// How far to follow what depends on them.
        downstream: Option<Depth>,
        /// Where to start.
        of: Box<Expr>,
    },
    /// Every other asset.
    Not(Box<Expr>),
    /// The assets that are in every part; two parts or more, none of them an `And`.
    And(Vec<Expr>),
    /// The assets that are in any part; two parts or more, none of them an `Or`.
    Or(Vec<Expr>),
}

/// Which names are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamePattern {
    /// Matches the namespace. A name written without one is read, so that evaluation can say which asset was
    /// probably meant; it never matches.
    pub namespace: Option<Pattern>,
    /// Matches the name.
    pub name: Pattern,
}

/// An attribute that assets are filtered by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attribute {
    /// A tag, and where one is given, with this value.
    Tag(Pattern, Option<Pattern>),
    /// A group.
    Group(Pattern),
    /// At least one such owner.
    Owner(Pattern),
    /// At least one such kind.
    Kind(Pattern),
}

/// How many dependencies `+` follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// To the end.
    All,
    /// At most so many dependencies away.
    Steps(NonZeroU32),
}

impl Expr {
    /// `parts` joined by `and`; the parts of an `And` in parentheses become parts of this one.
    pub(super) fn and(parts: Vec<Self>) -> Self {
        Self::flat(parts, Self::And, |part| if let Self::And(inner) = part { Ok(inner) } else { Err(part) })
    }

    /// `parts` joined by `or`; the parts of an `Or` in parentheses become parts of this one.
    pub(super) fn or(parts: Vec<Self>) -> Self {
        Self::flat(parts, Self::Or, |part| if let Self::Or(inner) = part { Ok(inner) } else { Err(part) })
    }

    fn flat(
        parts: Vec<Self>,
        join: fn(Vec<Self>) -> Self,
        open: fn(Self) -> Result<Vec<Self>, Self>,
    ) -> Self {
        let mut flat = Vec::with_capacity(parts.len());
        for part in parts {
            match open(part) {
                Ok(inner) => flat.extend(inner),
                Err(part) => flat.push(part),
            }
        }
        match flat.len() {
            1 => flat.remove(0),
            _ => join(flat),
        }
    }

    /// How tightly it holds together: an operand with a smaller figure needs parentheses.
    fn binding(&self) -> u8 {
        match self {
            Self::Or(_) => 0,
            Self::And(_) => 1,
            Self::Not(_) => 2,
            Self::Neighbours { .. } => 3,
            Self::Name(_) | Self::Attribute(_) => 4,
        }
    }
}

/// An operand, in parentheses if it binds less than `needed`.
struct Operand<'e>(&'e Expr, u8);

impl fmt::Display for Operand<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(expr, needed) = self;
        if expr.binding() < *needed { write!(f, "({expr})") } else { write!(f, "{expr}") }
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |f: &mut fmt::Formatter<'_>, parts: &[Self], operator: &str| {
            for (index, part) in parts.iter().enumerate() {
                let separator = if index > 0 { operator } else { "" };
                write!(f, "{separator}{}", Operand(part, self.binding() + 1))?;
            }
            Ok(())
        };
        match self {
            Self::Name(name) => write!(f, "{name}"),
            Self::Attribute(attribute) => write!(f, "{attribute}"),
            Self::Neighbours { upstream, downstream, of } => {
                match upstream {
                    Some(Depth::All) => f.write_str("+")?,
                    Some(Depth::Steps(steps)) => write!(f, "{steps}+")?,
                    None => {}
                }
                write!(f, "{}", Operand(of, 4))?;
                match downstream {
                    Some(Depth::All) => f.write_str("+"),
                    Some(Depth::Steps(steps)) => write!(f, "+{steps}"),
                    None => Ok(()),
                }
            }
            Self::Not(part) => write!(f, "not {}", Operand(part, 2)),
            Self::And(parts) => joined(f, parts, " and "),
            Self::Or(parts) => joined(f, parts, " or "),
        }
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) if namespace.is_everything() && self.name.is_everything() => f.write_str("*"),
            Some(namespace) => write!(f, "{namespace}.{}", self.name),
            None => write!(f, "{}", self.name),
        }
    }
}

impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag(key, None) => write!(f, "tag:{key}"),
            Self::Tag(key, Some(value)) => write!(f, "tag:{key}={value}"),
            Self::Group(group) => write!(f, "group:{group}"),
            Self::Owner(owner) => write!(f, "owner:{owner}"),
            Self::Kind(kind) => write!(f, "kind:{kind}"),
        }
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expr.fmt(f)
    }
}

impl FromStr for Selection {
    type Err = SyntaxError;

    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        Self::parse(text)
    }
}

impl serde::Serialize for Selection {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

deserialize_from_text!(Selection, "a selection such as +analytics.delays", Selection::parse);
