//! A seeded random number generator: small, fast, and the same on every machine.

use std::ops::Range;

/// A stream of random numbers (SplitMix64).
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed ^ 0x5e72_0c0d_e000_0001)
    }

    /// An independent stream for a purpose: drawing from it does not affect the others.
    pub fn fork(seed: u64, purpose: u64) -> Self {
        let mut rng = Self::new(seed.wrapping_add(purpose.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        Self(rng.draw())
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is not zero.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.draw()) * n as u128) >> 64) as usize
    }

    /// A number of a non-empty range.
    pub fn within(&mut self, range: Range<u64>) -> u64 {
        let length = range.end.saturating_sub(range.start).max(1);
        range.start + ((u128::from(self.draw()) * u128::from(length)) >> 64) as u64
    }

    /// True this many times in a thousand.
    pub fn chance(&mut self, per_mille: u32) -> bool {
        self.within(0..1000) < u64::from(per_mille)
    }

    /// A random element.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_purposes_do_not_meet() {
        let numbers = |mut rng: Rng| (0..8).map(|_| rng.draw()).collect::<Vec<_>>();
        assert_eq!(numbers(Rng::new(7)), numbers(Rng::new(7)));
        assert_ne!(numbers(Rng::new(7)), numbers(Rng::new(8)));
        assert_ne!(numbers(Rng::fork(7, 1)), numbers(Rng::fork(7, 2)));
        let mut rng = Rng::new(1);
        assert!((0..10_000).all(|_| rng.below(3) < 3 && (5..9).contains(&rng.within(5..9))));
        assert_eq!((0..10_000).filter(|_| rng.chance(0)).count(), 0);
        let often = (0..10_000).filter(|_| rng.chance(250)).count();
        assert!((2_000..3_000).contains(&often), "{often}");
    }
}
