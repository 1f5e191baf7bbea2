//! Costs of attempts: what they used, times the prices in force when they ended (ADR-290). Whole numbers throughout.

use servo_core::{MicroUsd, Timestamp};

use crate::settings::Settings;
use crate::state::Task;

const BYTES_PER_MB: u128 = 1_000_000;

/// What an attempt used, in the units that are charged for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Used {
    /// Time of processors.
    pub cpu_ms: u64,
    /// Memory times the time it was held, in megabytes (10⁶ bytes) times milliseconds.
    pub memory_mb_ms: u64,
    /// Time of graphics processors: as many as the asset declares, as long as the attempt took.
    pub gpu_ms: u64,
    /// Bytes that it read of its inputs.
    pub input_bytes_read: u64,
    /// Bytes that it wrote.
    pub output_bytes_written: u64,
    /// Bytes that it sent out of the network of its worker, if that was reported.
    pub network_egress_bytes: u64,
}

/// What an attempt cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// For processors and memory.
    pub compute: MicroUsd,
    /// For reading and writing.
    pub storage: MicroUsd,
    /// For what left the network.
    pub network: MicroUsd,
}

impl Used {
    /// What the newest attempt of a task used, which ends at this time; none if nobody began it.
    ///
    /// Memory that the asset declares is held from the first moment to the last, whatever the attempt makes of it; else
    /// the most that it had counts. A call of several partitions holds both once: they are those of its leader (ADR-210).
    pub(crate) fn of(task: &Task, at: Timestamp) -> Option<Self> {
        if task.execution.is_none() && task.usage.is_none() {
            return None;
        }
        let usage = task.usage.unwrap_or_default();
        let compute = task.options.compute.as_ref();
        let is_follower = task.leader().is_some();
        let held = task.started_at().filter(|_| !is_follower).map_or(0, |from| at.since(from).get());
        let memory = compute.and_then(|compute| compute.memory_bytes).unwrap_or(usage.max_rss_bytes);
        let gpus = compute.and_then(|compute| compute.gpus).unwrap_or_default();
        Some(Self {
            cpu_ms: usage.cpu_ms,
            memory_mb_ms: clamped(u128::from(memory) * u128::from(held) / BYTES_PER_MB),
            gpu_ms: held.saturating_mul(u64::from(gpus)),
            input_bytes_read: usage.bytes_read,
            output_bytes_written: usage.bytes_written,
            network_egress_bytes: usage.network_egress_bytes,
        })
    }
}

fn clamped(amount: u128) -> u64 {
    u64::try_from(amount).unwrap_or(u64::MAX)
}

impl Cost {
    /// What this costs. Each part is rounded to the nearest millionth of a dollar, once.
    ///
    /// ```
    /// use servo_core::MicroUsd;
    /// use servo_engine::{Settings, costs};
    ///
    /// let used = costs::Used { cpu_ms: 60_000, memory_mb_ms: 4_000 * 60_000, ..Default::default() };
    /// let cost = costs::Cost::of(&used, &Settings::default());
    /// assert_eq!(cost.total(), MicroUsd::new(60 * 24 + 4 * 60 * 5 / 2));
    /// ```
    pub fn of(used: &Used, prices: &Settings) -> Self {
        let of = |amount: u64, price: servo_core::NanoUsd| {
            u128::from(amount).saturating_mul(u128::from(price.get()))
        };
        // Milliseconds times billionths per second are 10⁻¹² dollars, and those of megabytes 10⁻¹⁵.
        let processors = of(used.cpu_ms, prices.nano_usd_per_cpu_second)
            .saturating_add(of(used.gpu_ms, prices.nano_usd_per_gpu_second));
        let memory = of(used.memory_mb_ms, prices.nano_usd_per_memory_gb_second);
        let compute = processors.saturating_mul(1_000).saturating_add(memory);
        let bytes = used.input_bytes_read.saturating_add(used.output_bytes_written);
        let storage = of(bytes, prices.nano_usd_per_storage_gb);
        let network = of(used.network_egress_bytes, prices.nano_usd_per_egress_gb);
        Self {
            compute: MicroUsd::rounded(compute, 1_000_000_000),
            storage: MicroUsd::rounded(storage, 1_000_000_000_000),
            network: MicroUsd::rounded(network, 1_000_000_000_000),
        }
    }

    /// The sum of the parts.
    pub fn total(&self) -> MicroUsd {
        self.compute.saturating_add(self.storage).saturating_add(self.network)
    }
}

#[cfg(test)]
mod tests {
    use servo_core::NanoUsd;

    use super::*;

    fn micros(used: Used, prices: &Settings) -> [u64; 4] {
        let cost = Cost::of(&used, prices);
        [cost.compute, cost.storage, cost.network, cost.total()].map(MicroUsd::get)
    }

    #[test]
    fn the_default_prices_are_those_of_the_units() {
        let prices = Settings::default();
        let second = Used { cpu_ms: 1_000, ..Used::default() };
        assert_eq!(micros(second, &prices), [24, 0, 0, 24]);
        let memory = Used { memory_mb_ms: 1_000 * 1_000_000, ..Used::default() };
        assert_eq!(micros(memory, &prices), [2_500, 0, 0, 2_500], "a gigabyte for 1000 s");
        let gpu = Used { gpu_ms: 3_600_000, ..Used::default() };
        assert_eq!(micros(gpu, &prices), [1_260_000, 0, 0, 1_260_000], "$1.26 an hour");
        let storage = Used { input_bytes_read: 700_000_000, output_bytes_written: 300_000_000, ..second };
        assert_eq!(micros(storage, &prices), [24, 20_000, 0, 20_024]);
        let egress = Used { network_egress_bytes: 500_000_000, ..Used::default() };
        assert_eq!(micros(egress, &prices), [0, 0, 60_000, 60_000]);
    }

    #[test]
    fn parts_are_rounded_once_and_the_total_is_their_sum() {
        let prices = Settings::default();
        // 0.48 + 0.02 of a millionth are a half, which neither of them is alone.
        let used = Used { cpu_ms: 20, memory_mb_ms: 8_000, ..Used::default() };
        assert_eq!(micros(used, &prices), [1, 0, 0, 1]);
        assert_eq!(micros(Used { memory_mb_ms: 7_999, ..used }, &prices), [0, 0, 0, 0]);
        let used = Used { input_bytes_read: 25_000, network_egress_bytes: 4_166, ..Used::default() };
        assert_eq!(micros(used, &prices), [0, 1, 0, 1], "a half is rounded up");
    }

    #[test]
    fn no_report_and_no_price_overflows() {
        let most = u64::MAX;
        let used = Used {
            cpu_ms: most,
            memory_mb_ms: most,
            gpu_ms: most,
            input_bytes_read: most,
            output_bytes_written: most,
            network_egress_bytes: most,
        };
        let dearest = NanoUsd::new(most);
        let prices = Settings {
            nano_usd_per_cpu_second: dearest,
            nano_usd_per_memory_gb_second: dearest,
            nano_usd_per_gpu_second: dearest,
            nano_usd_per_storage_gb: dearest,
            nano_usd_per_egress_gb: dearest,
            ..Settings::default()
        };
        assert_eq!(micros(used, &prices), [most; 4]);
    }
}
