//! The partitions that a key or a range names, along each dimension from one value to another.

use std::ops::Range;

use super::super::block::Block;
use super::super::context::PartitionContext;
use super::super::dimension::Dimension;
use super::super::error::{KeyError, Reason};
use super::super::partition_set::PartitionSet;
use super::super::set::Partitions;
use super::words::{self, Entry, Token, Word};
use super::{clock, value};
use crate::parse_error::shorten;

/// The style of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wording {
    /// A key, in which `..` has no meaning.
    Key,
    /// A range of keys.
    Range,
}

/// How much of a text has to be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// All of it.
    Whole,
    /// The dimensions that exist.
    KnownDimensions,
}

/// The ends of a range along a dimension; both included, an absent one is open.
struct Bounds {
    dim: Option<String>,
    from: Option<Word>,
    to: Option<Word>,
}

pub(super) fn read(
    partitions: &Partitions,
    text: &str,
    wording: Wording,
    scope: Scope,
    moment: PartitionContext<'_>,
) -> Result<PartitionSet, KeyError> {
    let bounds = match wording {
        Wording::Key => key(text),
        Wording::Range => words::tokens(text, true).and_then(|tokens| range(&tokens)),
    };
    let mut bounds = bounds.map_err(|problem| wrong(text, partitions.unreadable(problem)))?;
    if scope == Scope::KnownDimensions {
        keep_known(partitions, &mut bounds).map_err(|reason| wrong(text, reason))?;
    }
    let ends = ends(partitions, bounds).map_err(|reason| wrong(text, reason))?;
    let dims = partitions.dims().iter().zip(&ends);
    let ranges = dims.map(|(dim, (from, to))| along(dim, from.as_ref(), to.as_ref(), moment));
    Ok(PartitionSet::from(Block::new(ranges.collect::<Result<Vec<_>, _>>()?)))
}

/// Drops what is said of other dimensions. If that is everything, what is a time is said of the only dimension of time.
fn keep_known(partitions: &Partitions, bounds: &mut Vec<Bounds>) -> Result<(), Reason> {
    let has = |name: &str| partitions.dimensions().any(|dim| dim == name);
    let is_known = |bounds: &Bounds| bounds.dim.as_deref().is_none_or(has);
    if bounds.iter().any(is_known) {
        bounds.retain(is_known);
        return Ok(());
    }
    let mut timed = partitions.dims().iter().filter(|(_, dimension)| dimension.windows().is_some());
    let (Some((name, dimension)), None) = (timed.next(), timed.next()) else {
        return Err(partitions.other_dimensions());
    };
    bounds.retain(|bounds| {
        [&bounds.from, &bounds.to].into_iter().flatten().all(|word| clock::reads(dimension, word))
    });
    bounds.iter_mut().for_each(|bounds| bounds.dim = Some(name.clone()));
    if bounds.is_empty() { Err(partitions.other_dimensions()) } else { Ok(()) }
}

/// The first and the last word of a range; none where it is open.
type Ends = (Option<Word>, Option<Word>);

/// The ends along each dimension.
fn ends(partitions: &Partitions, bounds: Vec<Bounds>) -> Result<Vec<Ends>, Reason> {
    let mut ends = vec![(None, None); partitions.dims().len()];
    for Bounds { dim, from, to } in bounds {
        for (word, is_start) in [(from, true), (to, false)] {
            let Some(word) = word else { continue };
            let position = partitions.position_of(dim.as_deref(), &word)?;
            let end = if is_start { &mut ends[position].0 } else { &mut ends[position].1 };
            if end.replace(word).is_some() {
                return Err(
                    partitions.unreadable(format!("{} is given twice", partitions.dims()[position].0))
                );
            }
        }
    }
    Ok(ends)
}

/// The existing indexes from the first that `from` names to the last that `to` names; an absent end is open.
fn along(
    (name, dimension): &(String, Dimension),
    from: Option<&Word>,
    to: Option<&Word>,
    moment: PartitionContext<'_>,
) -> Result<Range<u64>, KeyError> {
    let numbers = |word: &Word| {
        value::numbers(name, dimension, word, moment).map_err(|reason| wrong(&word.text, reason))
    };
    let start = from.map_or(Ok(i64::MIN), |word| numbers(word).map(|range| range.start))?;
    let end = to.map_or(Ok(i64::MAX), |word| numbers(word).map(|range| range.end))?;
    let (Some(named), range) = (to.or(from), start..end) else { return Ok(0..dimension.count(moment)) };
    if let (Some(from), Some(to), true) = (from, to, start >= end) {
        return Err(wrong(&to.text, Reason::Backwards { from: from.text.clone() }));
    }
    let blamed = from.filter(|_| start >= 0).unwrap_or(named);
    value::existing(dimension, &range, moment).map_err(|reason| wrong(&blamed.text, reason))
}

fn wrong(key: &str, reason: Reason) -> KeyError {
    KeyError { key: shorten(key), reason }
}

/// `[dim=]A` with commas between.
fn key(text: &str) -> Result<Vec<Bounds>, String> {
    let one = |Entry { dim, word }: Entry| Bounds { dim, from: Some(word.clone()), to: Some(word) };
    Ok(words::key(text)?.into_iter().map(one).collect())
}

/// `A..B` with whole keys where a name follows the dots, otherwise ranges of single dimensions.
fn range(tokens: &[Token]) -> Result<Vec<Bounds>, String> {
    let whole_keys = tokens.windows(2).any(|pair| matches!(pair, [Token::Dots, Token::Dim(_)]));
    if !whole_keys {
        return tokens.split(|token| *token == Token::Comma).map(along_one).collect();
    }
    let mut sides = tokens.split(|token| *token == Token::Dots);
    let (from, to) = (sides.next().unwrap_or_default(), sides.next().unwrap_or_default());
    if sides.next().is_some() {
        return Err("a range has \"..\" once".to_owned());
    }
    let entries = |side: &[Token]| if side.is_empty() { Ok(Vec::new()) } else { words::entries(side) };
    let from = entries(from)?.into_iter();
    let to = entries(to)?.into_iter();
    let from = from.map(|Entry { dim, word }| Bounds { dim, from: Some(word), to: None });
    Ok(from.chain(to.map(|Entry { dim, word }| Bounds { dim, from: None, to: Some(word) })).collect())
}

/// `[dim=]A..B`, `[dim=]A..`, `[dim=]..B`, `[dim=]A` or `..`.
fn along_one(tokens: &[Token]) -> Result<Bounds, String> {
    let (dim, range) = match tokens {
        [Token::Dots] => return Ok(Bounds { dim: None, from: None, to: None }),
        [Token::Dim(dim), range @ ..] => (Some(dim.clone()), range),
        range => (None, range),
    };
    let (from, to) = match range {
        [Token::Word(word)] => (Some(word), Some(word)),
        [Token::Word(from), Token::Dots, Token::Word(to)] => (Some(from), Some(to)),
        [Token::Word(from), Token::Dots] => (Some(from), None),
        [Token::Dots, Token::Word(to)] => (None, Some(to)),
        _ => return Err("that is not a range A..B".to_owned()),
    };
    Ok(Bounds { dim, from: from.cloned(), to: to.cloned() })
}
