//! Sets of dependencies: many tasks that all wait for the same many tasks, without an edge for each pair (ADR-118).
//!
//! An edge between two such tasks resolves as the task that must end first has ended, which is the same for all that
//! wait. So nothing is kept per pair: a set is two lists of positions.

use serde::{Deserialize, Serialize};

/// Positions in a plan, ascending, as ranges: tasks of one asset lie together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Positions(Vec<(u32, u32)>);

impl Positions {
    /// These positions, in any order.
    pub fn of(positions: impl IntoIterator<Item = u32>) -> Self {
        let mut all: Vec<u32> = positions.into_iter().collect();
        all.sort_unstable();
        all.dedup();
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for position in all {
            match ranges.last_mut() {
                Some((_, end)) if *end == position => *end += 1,
                Some(_) | None => ranges.push((position, position + 1)),
            }
        }
        Self(ranges)
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.iter().map(|(start, end)| (end - start) as usize).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a position is among them.
    pub fn contains(&self, position: u32) -> bool {
        let after = self.0.partition_point(|(start, _)| *start <= position);
        after > 0 && position < self.0[after - 1].1
    }

    /// All of them, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + Clone + '_ {
        self.0.iter().flat_map(|(start, end)| *start..*end)
    }

    /// Whether these are ranges that do not meet, of positions below `count`.
    pub(crate) fn is_normal(&self, count: usize) -> bool {
        let is_range = |range: &(u32, u32)| range.0 < range.1 && range.1 as usize <= count;
        self.0.iter().all(is_range) && self.0.windows(2).all(|pair| pair[0].1 < pair[1].0)
    }
}

/// Every task of one list waits for every task of the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DepSet {
    /// Tasks that must end first.
    pub upstream: Positions,
    /// Tasks that wait. They read what was there before a block, or do not, all alike.
    pub downstream: Positions,
}

impl DepSet {
    /// How many edges it stands for.
    pub fn edges(&self) -> u64 {
        self.upstream.len() as u64 * self.downstream.len() as u64
    }

    /// Why it is not one of a plan of so many tasks, if it is not.
    pub(crate) fn problem(&self, count: usize) -> Option<&'static str> {
        if !self.upstream.is_normal(count) || !self.downstream.is_normal(count) {
            return Some("its positions are not ranges of the plan");
        }
        if self.upstream.is_empty() || self.downstream.is_empty() {
            return Some("it is empty");
        }
        let is_both = self.downstream.iter().any(|position| self.upstream.contains(position));
        is_both.then_some("a task of it waits for itself")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_what_was_put_in() {
        let positions = Positions::of([7, 3, 4, 5, 9, 4]);
        assert_eq!(positions.iter().collect::<Vec<_>>(), [3, 4, 5, 7, 9]);
        assert_eq!(positions.len(), 5);
        for position in 0..12 {
            assert_eq!(positions.contains(position), [3, 4, 5, 7, 9].contains(&position), "{position}");
        }
        assert!(positions.is_normal(10) && !positions.is_normal(9));
        assert_eq!(serde_json::to_string(&positions).unwrap(), "[[3,6],[7,8],[9,10]]");
        assert!(!Positions(vec![(3, 3)]).is_normal(10) && !Positions(vec![(3, 5), (5, 6)]).is_normal(10));
    }

    #[test]
    fn a_set_in_which_a_task_waits_for_itself_is_none() {
        let set = |upstream: &[u32], downstream: &[u32]| DepSet {
            upstream: Positions::of(upstream.iter().copied()),
            downstream: Positions::of(downstream.iter().copied()),
        };
        assert_eq!(set(&[0, 1], &[2, 3]).problem(4), None);
        assert_eq!(set(&[0, 1], &[2, 3]).edges(), 4);
        assert!(set(&[0, 1], &[1, 2]).problem(4).is_some());
        assert!(set(&[0, 1], &[2, 3]).problem(3).is_some());
        assert!(set(&[], &[2]).problem(3).is_some());
    }
}
