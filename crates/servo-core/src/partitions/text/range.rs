//! Ranges of keys: from one value to another along some dimensions, all along the others.

use super::super::block::Block;
use super::super::error::{KeyError, Reason};
use super::super::moment::Moment;
use super::super::partition_set::PartitionSet;
use super::super::set::Partitions;
use super::value;
use super::words::{self, Entry, Token, Word};
use crate::parse_error::shorten;

/// The ends of a range along a dimension; both included, an absent one is open.
struct Bounds {
    dim: Option<String>,
    from: Option<Word>,
    to: Option<Word>,
}

pub(super) fn read(
    partitions: &Partitions,
    text: &str,
    moment: Moment<'_>,
) -> Result<PartitionSet, KeyError> {
    let wrong = |key: &str, reason: Reason| KeyError { key: shorten(key), reason };
    let unreadable = |problem: String| wrong(text, partitions.unreadable(problem));
    let tokens = words::tokens(text, true).map_err(unreadable)?;
    let mut ends = vec![(None, None); partitions.dims().len()];
    for Bounds { dim, from, to } in bounds(&tokens).map_err(unreadable)? {
        for (word, is_start) in [(from, true), (to, false)] {
            let Some(word) = word else { continue };
            let position = partitions.position_of(dim.as_deref(), &word);
            let position = position.map_err(|reason| wrong(text, reason))?;
            let end = if is_start { &mut ends[position].0 } else { &mut ends[position].1 };
            if end.replace(word).is_some() {
                return Err(unreadable(format!("{} is given twice", partitions.dims()[position].0)));
            }
        }
    }
    let mut ranges = Vec::with_capacity(ends.len());
    for ((name, dimension), (from, to)) in partitions.dims().iter().zip(&ends) {
        let index = |word: &Word| {
            let index =
                value::of_word(name, dimension, word).and_then(|value| dimension.index(name, &value, moment));
            index.map_err(|reason| wrong(&word.text, reason))
        };
        let start = from.as_ref().map_or(Ok(0), index)?;
        let end = to.as_ref().map_or(Ok(dimension.count(moment)), |word| Ok(index(word)? + 1))?;
        if let (Some(from), Some(to), true) = (from, to, start >= end) {
            return Err(wrong(&to.text, Reason::Backwards { from: from.text.clone() }));
        }
        ranges.push(start..end);
    }
    Ok(PartitionSet::from(Block::new(ranges)))
}

/// `A..B` with whole keys where a name follows the dots, otherwise ranges of single dimensions.
fn bounds(tokens: &[Token]) -> Result<Vec<Bounds>, String> {
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

/// `[dim=]A..B`, `[dim=]A..`, `[dim=]..B` or `[dim=]A`.
fn along_one(tokens: &[Token]) -> Result<Bounds, String> {
    let (dim, range) = match tokens {
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
