//! One value as people type it.

use std::ops::Range;

use super::super::context::PartitionContext;
use super::super::dimension::Dimension;
use super::super::error::Reason;
use super::super::listed::Static;
use super::super::ranges::clipped;
use super::clock::{self, Unnamed};
use super::words::Word;
use crate::PartitionValue;
use crate::edit_distance::near;

/// How many keys an example shows.
const SHOWN_KEYS: usize = 3;

/// Reads a value of a dimension that is not quoted.
pub(in super::super) fn read(
    name: &str,
    dimension: &Dimension,
    text: &str,
) -> Result<PartitionValue, Reason> {
    let text = text.trim();
    let quoted = text.len() > 1 && text.starts_with('"') && text.ends_with('"');
    let word = match super::words::key(text).as_deref() {
        Ok([entry]) if quoted && entry.dim.is_none() => entry.word.clone(),
        Ok(_) | Err(_) => Word { text: text.to_owned(), quoted: false },
    };
    of_word(name, dimension, &word)
}

/// Reads a word as a value of a dimension, which is one that can exist as far as is known without a moment.
pub(super) fn of_word(name: &str, dimension: &Dimension, word: &Word) -> Result<PartitionValue, Reason> {
    let tagged = (!word.quoted).then(|| PartitionValue::parse(&word.text).ok()).flatten();
    match dimension {
        Dimension::Time(windows) => {
            let value = match tagged {
                Some(value) => value,
                None => clock::read(windows, &word.text)
                    .map_err(|problem| Reason::Unreadable { problem, example: example(dimension) })?,
            };
            windows.position(name, &value)?;
            Ok(value)
        }
        Dimension::Static(keys) => {
            let canonical = tagged.filter(|value| keys.index(name, value).is_ok());
            if let Some(value) = canonical {
                return Ok(value);
            }
            keys.find(&word.text).ok_or_else(|| unlisted(name, keys, &word.text))?;
            Ok(PartitionValue::Str(word.text.clone()))
        }
        Dimension::Dynamic(_) => match tagged {
            Some(value @ PartitionValue::Str(_)) => Ok(value),
            Some(_) | None => Ok(PartitionValue::Str(word.text.clone())),
        },
    }
}

/// The numbers of what a word names along a dimension: of time those that start in it or are around it, whether or not
/// they exist; of listed keys the one, which exists.
pub(super) fn numbers(
    name: &str,
    dimension: &Dimension,
    word: &Word,
    moment: PartitionContext<'_>,
) -> Result<Range<i64>, Reason> {
    let one = |number: i64| number..number + 1;
    let Dimension::Time(windows) = dimension else {
        let value = of_word(name, dimension, word)?;
        let index = dimension.index(name, &value, moment)?;
        return Ok(one(i64::try_from(index).unwrap_or(i64::MAX - 1)));
    };
    if let Some(value) = (!word.quoted).then(|| PartitionValue::parse(&word.text).ok()).flatten() {
        return windows.number(name, &value).map(one);
    }
    clock::named(windows, &word.text).map_err(|unnamed| match unnamed {
        Unnamed::Unreadable(problem) => Reason::Unreadable { problem, example: example(dimension) },
        Unnamed::Nothing(reason) => reason,
    })
}

/// The existing indexes of a range along a dimension, or why there are none.
pub(super) fn existing(
    dimension: &Dimension,
    numbers: &Range<i64>,
    moment: PartitionContext<'_>,
) -> Result<Range<u64>, Reason> {
    match dimension {
        Dimension::Time(windows) => windows.existing(numbers, moment),
        Dimension::Static(_) | Dimension::Dynamic(_) => Ok(clipped(numbers, dimension.count(moment))),
    }
}

/// That a static key is not listed, and which was probably meant.
pub(in super::super) fn unlisted(name: &str, keys: &Static, key: &str) -> Reason {
    let candidates = keys.keys().iter().filter_map(|existing| Some((near(key, existing)?, existing)));
    let near = candidates.min().map(|(_, existing)| existing.clone());
    Reason::Unlisted { dim: name.to_owned(), value: key.to_owned(), count: keys.count(), near }
}

/// Examples of the values of a dimension.
pub(super) fn example(dimension: &Dimension) -> String {
    match dimension {
        Dimension::Static(keys) => {
            let shown = keys.keys().iter().take(SHOWN_KEYS);
            let shown = shown.map(|key| PartitionValue::Str(key.clone()).to_string());
            let more = if keys.keys().len() > SHOWN_KEYS { " or …" } else { "" };
            format!("{}{more}", shown.collect::<Vec<_>>().join(" or "))
        }
        Dimension::Time(_) | Dimension::Dynamic(_) => one_example(dimension),
    }
}

/// An example of one value of a dimension.
pub(super) fn one_example(dimension: &Dimension) -> String {
    match dimension {
        Dimension::Time(windows) => windows.value(0).to_string(),
        Dimension::Static(keys) => keys.value(0).to_string(),
        Dimension::Dynamic(name) => format!("a key of {name:?}"),
    }
}
