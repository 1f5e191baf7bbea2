//! Deficit round-robin: whoever waits is served in turn, in proportion to weights.
//!
//! A visit gives a flow credit for its weight, and one item costs as much as the heaviest flow that waits gets in a
//! visit. So a round serves each flow once at most, and shares differ from the weights by less than one item. A flow
//! without items is not visited and keeps no credit.

use std::collections::{BTreeMap, VecDeque};

/// The weight of a flow that was given none.
const ORDINARY: u64 = 1_000;

/// Items of several flows, in the order in which they are served.
#[derive(Debug)]
pub(super) struct RoundRobin<K, T> {
    /// Flows that have items.
    flows: BTreeMap<K, Flow<T>>,
    /// The same in the order of their turns.
    turns: VecDeque<K>,
    /// Weights that were given, of all flows.
    weights: BTreeMap<K, u64>,
}

/// The items of one flow, oldest first.
#[derive(Debug)]
struct Flow<T> {
    credit: u64,
    items: VecDeque<T>,
}

impl<K, T> Default for RoundRobin<K, T> {
    fn default() -> Self {
        Self { flows: BTreeMap::new(), turns: VecDeque::new(), weights: BTreeMap::new() }
    }
}

impl<K: Ord + Clone, T> RoundRobin<K, T> {
    /// Gives a flow a weight, at least 1.
    pub(super) fn set_weight(&mut self, flow: K, weight: u64) {
        self.weights.insert(flow, weight.max(1));
    }

    /// Adds an item behind the others of its flow.
    pub(super) fn push(&mut self, flow: K, item: T) {
        let turns = &mut self.turns;
        let known = self.flows.entry(flow.clone()).or_insert_with(|| {
            turns.push_back(flow);
            Flow { credit: 0, items: VecDeque::new() }
        });
        known.items.push_back(item);
    }

    /// The next item.
    pub(super) fn next(&mut self) -> Option<T> {
        let cost = self.turns.iter().map(|flow| self.weight(flow)).max()?;
        loop {
            let turn = self.turns.pop_front()?;
            let weight = self.weight(&turn);
            let flow = self.flows.get_mut(&turn)?;
            // What was saved while a heavier one waited is worth one item at most.
            flow.credit = flow.credit.min(cost) + weight;
            if flow.credit < cost {
                self.turns.push_back(turn);
                continue;
            }
            flow.credit -= cost;
            let item = flow.items.pop_front();
            if flow.items.is_empty() {
                self.flows.remove(&turn);
            } else {
                self.turns.push_back(turn);
            }
            return item;
        }
    }

    fn weight(&self, flow: &K) -> u64 {
        self.weights.get(flow).copied().unwrap_or(ORDINARY)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Serves so many items of flows that never run out; how many each got.
    fn serve(weights: &[u64], items: usize) -> Vec<u64> {
        let mut line = RoundRobin::default();
        for (flow, weight) in weights.iter().enumerate() {
            line.set_weight(flow, *weight);
            line.push(flow, flow);
            line.push(flow, flow);
        }
        let mut served = vec![0; weights.len()];
        for _ in 0..items {
            let flow = line.next().expect("there is always one");
            served[flow] += 1;
            line.push(flow, flow);
        }
        served
    }

    #[test]
    fn equal_weights_take_turns() {
        assert_eq!(serve(&[1_000, 1_000, 1_000], 9), [3, 3, 3]);
        assert_eq!(serve(&[3_000, 1_000], 8), [6, 2]);
    }

    #[test]
    fn items_of_one_flow_stay_in_order_and_a_flow_that_was_idle_has_saved_nothing() {
        let mut line = RoundRobin::default();
        for number in 0..100 {
            line.push("flood", number);
        }
        for expected in 0..50 {
            assert_eq!(line.next(), Some(expected));
        }
        line.push("quiet", 1_000);
        line.push("quiet", 1_001);
        let next: Vec<i32> = (0..4).filter_map(|_| line.next()).collect();
        assert_eq!(next, [50, 1_000, 51, 1_001], "one each, from its first item on");
        assert_eq!(line.flows.len(), 1, "a flow without items is not there");
    }

    proptest! {
        #[test]
        fn shares_follow_weights_within_one_item_of_the_heaviest(
            weights in vec(1u64..20, 1..6),
            rounds in 1usize..20,
        ) {
            let (sum, most) = (weights.iter().sum::<u64>(), *weights.iter().max().expect("one at least"));
            let items = rounds * sum as usize;
            let served = serve(&weights, items);
            for (got, weight) in served.iter().zip(&weights) {
                let due = *weight as f64 * items as f64 / sum as f64;
                // One item for itself, and one visit by which the round is not complete.
                let slack = 1.0 + *weight as f64 / most as f64 + weights.len() as f64 * *weight as f64 / sum as f64;
                prop_assert!((*got as f64 - due).abs() <= slack, "{served:?} of {weights:?}");
            }
        }

        #[test]
        fn nothing_is_lost_doubled_or_starved(
            pushes in vec((0usize..4, 1u64..1_000_000), 1..60),
        ) {
            let mut line = RoundRobin::default();
            for (number, (flow, weight)) in pushes.iter().enumerate() {
                line.set_weight(*flow, *weight);
                line.push(*flow, number);
            }
            let mut seen: Vec<usize> = std::iter::from_fn(|| line.next()).collect();
            prop_assert_eq!(seen.len(), pushes.len());
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..pushes.len()).collect::<Vec<_>>());
            prop_assert!(line.flows.is_empty() && line.turns.is_empty());
        }
    }
}
