//! Money in whole numbers: millionths of a US dollar for costs, billionths for prices.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Micro-USD in a dollar.
const MICROS: u64 = 1_000_000;
/// Decimals that an amount is shown with at least.
const CENTS: usize = 2;

/// An amount of money in millionths of a US dollar, never negative; serialized as that integer. Its `Display` is for
/// people: a dollar sign, and as many decimals as the amount has, two at least.
///
/// ```
/// use servo_core::MicroUsd;
/// assert_eq!(MicroUsd::new(1_234_500).to_string(), "$1.2345");
/// assert_eq!(MicroUsd::new(24).to_string(), "$0.000024");
/// assert_eq!(MicroUsd::new(3_000_000).to_string(), "$3.00");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MicroUsd(u64);

impl MicroUsd {
    /// No money.
    pub const ZERO: MicroUsd = MicroUsd(0);

    /// A number of millionths of a dollar.
    pub const fn new(micros: u64) -> Self {
        Self(micros)
    }

    /// The number of millionths of a dollar.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Whether it is no money.
    pub const fn is_zero(&self) -> bool {
        self.0 == 0
    }

    /// The sum, or the largest representable amount.
    #[must_use]
    pub const fn saturating_add(self, other: MicroUsd) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The nearest amount to a fraction of a millionth of a dollar; halves are rounded up.
    pub fn rounded(numerator: u128, denominator: u128) -> Self {
        let nearest = numerator.saturating_add(denominator / 2) / denominator;
        Self(u64::try_from(nearest).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for MicroUsd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = format!("{:06}", self.0 % MICROS);
        let shown = decimals.trim_end_matches('0').len().max(CENTS);
        f.pad(&format!("${}.{}", self.0 / MICROS, &decimals[..shown]))
    }
}

/// A price for a unit of something, in billionths of a US dollar.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NanoUsd(u64);

impl NanoUsd {
    /// A number of billionths of a dollar.
    pub const fn new(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The number of billionths of a dollar.
    pub const fn get(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_rounded_to_the_nearest_amount_and_never_overflow() {
        let of = |numerator| MicroUsd::rounded(numerator, 10).get();
        assert_eq!([of(0), of(4), of(5), of(14), of(15)], [0, 0, 1, 1, 2]);
        assert_eq!(MicroUsd::rounded(u128::MAX, 1), MicroUsd::new(u64::MAX));
        assert_eq!(MicroUsd::new(u64::MAX).saturating_add(MicroUsd::new(1)), MicroUsd::new(u64::MAX));
    }
}
