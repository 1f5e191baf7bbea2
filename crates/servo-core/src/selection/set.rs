//! A set of assets of one graph.

/// Positions of assets in a graph, one bit each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssetSet {
    words: Vec<u64>,
    assets: usize,
}

const BITS: usize = u64::BITS as usize;

impl AssetSet {
    /// No asset, of a graph of `assets`.
    pub(super) fn none(assets: usize) -> Self {
        Self { words: vec![0; assets.div_ceil(BITS)], assets }
    }

    /// Adds a position; returns whether it is new.
    pub(super) fn insert(&mut self, position: usize) -> bool {
        assert!(position < self.assets, "a position is below the number of assets");
        let (word, bit) = (&mut self.words[position / BITS], 1 << (position % BITS));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    pub(super) fn unite(&mut self, other: &Self) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word |= other;
        }
    }

    pub(super) fn intersect(&mut self, other: &Self) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= other;
        }
    }

    /// Every asset that is not in the set. The unused bits of the last word stay zero.
    pub(super) fn complement(mut self) -> Self {
        for word in &mut self.words {
            *word = !*word;
        }
        if let (Some(last), used @ 1..) = (self.words.last_mut(), self.assets % BITS) {
            *last &= (1 << used) - 1;
        }
        self
    }

    /// Whether the asset at `position` is in the set.
    pub fn contains(&self, position: usize) -> bool {
        self.words.get(position / BITS).is_some_and(|word| word & (1 << (position % BITS)) != 0)
    }

    /// How many assets are in the set.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether no asset is in the set.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// The positions, ascending: the order of the asset keys.
    pub fn positions(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(index, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros() as usize;
                left &= left.checked_sub(1)?;
                Some(index * BITS + bit)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_complement_has_no_positions_beyond_the_last_asset() {
        for assets in [0, 1, 63, 64, 65, 128, 200] {
            let mut set = AssetSet::none(assets);
            assert!(set.is_empty());
            assert_eq!(set.clone().complement().len(), assets);
            for position in (0..assets).step_by(3) {
                assert!(set.insert(position));
                assert!(!set.insert(position));
            }
            let rest: Vec<_> = set.complement().positions().collect();
            assert_eq!(rest, (0..assets).filter(|position| position % 3 != 0).collect::<Vec<_>>());
        }
    }
}
