//! Finding the newest of numbered names by asking whether single names exist, never by listing (P6).

use std::collections::BTreeSet;

/// The last number of an unbroken sequence, given that `known` is in it (or is the number before its first).
/// Costs two questions when nothing is new, and about `2 log2(new)` otherwise.
pub async fn last_dense<E, Fut>(known: u64, exists: impl Fn(u64) -> Fut) -> Result<u64, E>
where
    Fut: Future<Output = Result<bool, E>>,
{
    let mut last = known;
    let mut step = 1_u64;
    let mut missing = loop {
        let candidate = last.saturating_add(step);
        if candidate == last || !exists(candidate).await? {
            break candidate;
        }
        last = candidate;
        step = step.saturating_mul(2);
    };
    while missing > last + 1 {
        let middle = last + (missing - last) / 2;
        if exists(middle).await? {
            last = middle;
        } else {
            missing = middle;
        }
    }
    Ok(last)
}

/// The last number of a sequence of which old names are deleted, except those that [`anchors`] keeps; 0 if
/// there is none.
///
/// The number is found bit by bit from the top: every number made of its leading bits is an anchor. Those that were
/// asked for in vain may have come since, and those that are asked for next may be gone with them, so that the answer
/// has to be looked at again.
pub async fn last_anchored<E, Fut>(exists: impl Fn(u64) -> Fut) -> Result<u64, E>
where
    Fut: Future<Output = Result<bool, E>>,
{
    loop {
        let found = search(&exists).await?;
        if !is_overtaken(found, &exists).await? {
            return Ok(found);
        }
    }
}

async fn search<E, Fut>(exists: impl Fn(u64) -> Fut) -> Result<u64, E>
where
    Fut: Future<Output = Result<bool, E>>,
{
    let mut bit = 1_u64;
    let mut last = 0;
    while exists(bit).await? {
        last = bit;
        let Some(next) = bit.checked_mul(2) else { break };
        bit = next;
    }
    bit = last / 2;
    while bit > 0 {
        if exists(last + bit).await? {
            last += bit;
        }
        bit /= 2;
    }
    Ok(last)
}

/// Whether a number above `known` was there when this was asked.
///
/// The names are asked for from the lowest to the highest, one after the other. The one that shows the newest number
/// goes up when numbers are added meanwhile, so it cannot slip by.
pub async fn is_overtaken<E, Fut>(known: u64, exists: impl Fn(u64) -> Fut) -> Result<bool, E>
where
    Fut: Future<Output = Result<bool, E>>,
{
    for name in above(known) {
        if exists(name).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Names of which one exists if there is a number above `known`, and none otherwise, in ascending order.
///
/// A higher number has a one where `known` has a zero, below a common start: its leading bits up to there are an
/// anchor.
fn above(known: u64) -> impl Iterator<Item = u64> {
    let bits = u64::BITS - known.leading_zeros();
    (0..=bits)
        .filter_map(move |shift| Some((known.checked_shr(shift)?, shift)))
        .filter(|(start, _)| start % 2 == 0)
        .filter_map(|(start, shift)| (start + 1).checked_mul(1_u64.checked_shl(shift)?))
}

/// The names that must be kept when `newest` is the last one: the powers of two, the numbers made of its
/// leading bits, and the `window` newest.
pub fn anchors(newest: u64, window: u64) -> BTreeSet<u64> {
    let mut kept: BTreeSet<u64> = (newest.saturating_sub(window.saturating_sub(1)).max(1)..=newest).collect();
    let mut prefix = 0;
    for bit in (0..u64::BITS).rev().map(|shift| 1_u64 << shift).filter(|bit| *bit <= newest) {
        kept.insert(bit);
        if newest & bit != 0 {
            prefix |= bit;
            kept.insert(prefix);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::executor::block_on;
    use proptest::prelude::*;
    use std::cell::Cell;
    use std::convert::Infallible;

    #[test]
    fn the_newest_is_found_although_old_names_are_deleted() {
        const WINDOW: u64 = 4;
        let mut names = BTreeSet::new();
        for newest in 1..=2_000_u64 {
            names.insert(newest);
            for dead in anchors(newest - 1, WINDOW).difference(&anchors(newest, WINDOW)) {
                names.remove(dead);
            }
            assert_eq!(names, anchors(newest, WINDOW), "what is deleted step by step is what is not kept");
            let found = block_on(last_anchored(async |n| Ok::<_, Infallible>(names.contains(&n))));
            assert_eq!(found, Ok(newest));
        }
        assert!(names.len() < 40, "{}", names.len());
    }

    #[test]
    fn a_higher_number_shows_in_one_of_few_names() {
        for window in [1, 4, 50] {
            for newest in 1..=300_u64 {
                let names = anchors(newest, window);
                for known in 1..=newest {
                    let found = above(known).any(|name| names.contains(&name));
                    assert_eq!(found, newest > known, "{known} below {newest} with a window of {window}");
                }
            }
        }
        assert!(above(1_000_000).count() < 21);
        assert!(above(1_000_000).is_sorted());
        assert_eq!(above(u64::MAX).count(), 0);
    }

    #[test]
    fn numbers_that_are_added_while_it_is_looked_for_them_hide_none() {
        const WINDOW: u64 = 4;
        for first in 1..=300_u64 {
            // One more number is there from this question on.
            for question in 0..30 {
                let asked = Cell::new(0);
                let exists = async |name| {
                    let newest = if asked.replace(asked.get() + 1) < question { first } else { first + 1 };
                    Ok::<_, Infallible>(anchors(newest, WINDOW).contains(&name))
                };
                let found = block_on(last_anchored(exists)).unwrap();
                assert!(found >= first, "{found} instead of {first}, one more after {question} questions");
                asked.set(0);
                assert_eq!(block_on(is_overtaken(first - 1, exists)), Ok(true), "{first} after {question}");
            }
        }
    }

    #[test]
    fn nothing_is_found_where_nothing_is() {
        assert_eq!(block_on(last_anchored(async |_| Ok::<_, Infallible>(false))), Ok(0));
        assert_eq!(block_on(last_dense(0, async |_| Ok::<_, Infallible>(false))), Ok(0));
    }

    proptest! {
        #[test]
        fn the_end_of_an_unbroken_sequence_is_found_with_few_questions(known in 0u64..1 << 40, new in 0u64..1 << 30) {
            let asked = Cell::new(0);
            let found = block_on(last_dense(known, async |n| {
                asked.set(asked.get() + 1);
                Ok::<_, Infallible>(n <= known + new)
            }));
            prop_assert_eq!(found, Ok(known + new));
            prop_assert!(asked.get() <= 2 + 2 * (64 - new.leading_zeros()), "{} questions", asked.get());
        }
    }
}
