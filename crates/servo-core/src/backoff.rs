//! Delays between tries of something that keeps failing.

use std::time::Duration;

/// Delays that double up to a longest one, with jitter, so that many who failed together do not come back together.
///
/// A plain value: whoever waits brings the timer, and the chance comes from the seed, so a simulation sees the same
/// delays every time.
///
/// ```
/// use std::time::Duration;
/// use servo_core::Backoff;
///
/// let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5), 42);
/// let first = backoff.next_delay();
/// assert!(first >= Duration::from_millis(50) && first <= Duration::from_millis(100));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    /// Upper end of the next delay.
    ceiling: Duration,
    chance: u64,
}

impl Backoff {
    /// Delays from `first` up to `longest`. Callers that may fail at the same time use different seeds.
    pub const fn new(first: Duration, longest: Duration, seed: u64) -> Self {
        Self { first, longest, ceiling: first, chance: seed }
    }

    /// How long to wait before the next try: between half of the current step and all of it. The step then doubles.
    pub fn next_delay(&mut self) -> Duration {
        let ceiling = self.ceiling.min(self.longest);
        self.ceiling = ceiling.saturating_mul(2);
        let half = ceiling / 2;
        let span = u64::try_from((ceiling - half).as_nanos()).unwrap_or(u64::MAX - 1);
        half + Duration::from_nanos(self.draw() % (span + 1))
    }

    /// Starts over, after a success.
    pub fn reset(&mut self) {
        self.ceiling = self.first;
    }

    /// The next number of splitmix64.
    fn draw(&mut self) -> u64 {
        self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.chance;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_millis(100);
    const LONGEST: Duration = Duration::from_secs(5);

    fn delays(backoff: &mut Backoff, count: usize) -> Vec<Duration> {
        std::iter::repeat_with(|| backoff.next_delay()).take(count).collect()
    }

    #[test]
    fn delays_double_up_to_the_longest_and_stay_between_half_and_all_of_it() {
        for seed in 0..100 {
            let mut ceiling = FIRST;
            for delay in delays(&mut Backoff::new(FIRST, LONGEST, seed), 20) {
                assert!(delay >= ceiling / 2 && delay <= ceiling, "{delay:?} of {ceiling:?}");
                ceiling = (ceiling * 2).min(LONGEST);
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_delays_and_another_one_others() {
        let of = |seed| delays(&mut Backoff::new(FIRST, LONGEST, seed), 8);
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8));
    }

    #[test]
    fn after_a_success_delays_begin_anew() {
        let mut backoff = Backoff::new(FIRST, LONGEST, 1);
        delays(&mut backoff, 10);
        backoff.reset();
        assert!(backoff.next_delay() <= FIRST);
    }

    #[test]
    fn extreme_durations_neither_overflow_nor_divide_by_zero() {
        let mut longest = Backoff::new(Duration::MAX, Duration::MAX, 1);
        assert!(delays(&mut longest, 3).iter().all(|delay| *delay >= Duration::MAX / 2));
        assert_eq!(delays(&mut Backoff::new(Duration::ZERO, Duration::ZERO, 1), 3), [Duration::ZERO; 3]);
    }
}
