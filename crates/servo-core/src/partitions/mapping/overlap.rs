//! Mapping of partitions that overlap in time, of any two grains and zones.

use std::ops::Range;

use super::super::ranges::{clipped, overlap};
use super::super::time::Windows;
use super::axis::{Read, Side};
use super::missing::Kind;

/// An index reads the windows that overlap its own window.
#[derive(Debug, Clone)]
pub(super) struct Overlap {
    down: Windows,
    up: Windows,
    /// The indexes of `down` that overlap any window of `up` that can ever exist.
    touching: Range<u64>,
}

impl Overlap {
    pub(super) fn new(down: &Windows, up: &Windows) -> Self {
        let (from, to) = up.seconds(&(0..up.total()));
        let touching = clipped(&down.around(from, to), down.total());
        Self { down: down.clone(), up: up.clone(), touching }
    }

    pub(super) fn upstream(&self, of: &Range<u64>, down: &Side<'_>, up: &Side<'_>, read: &mut Read<'_>) {
        let touching = overlap(of, &self.touching);
        if touching.start < touching.end {
            let (from, to) = self.down.seconds(&touching);
            read.add(&self.up.around(from, to), up);
        }
        let kind = Kind::Apart { source: down.position };
        read.gaps.add(up.position, kind, overlap(of, &(0..self.touching.start)));
        read.gaps.add(up.position, kind, overlap(of, &(self.touching.end..u64::MAX)));
    }

    pub(super) fn downstream(&self, of: &Range<u64>, down: &Side<'_>) -> Range<u64> {
        let (from, to) = self.up.seconds(of);
        clipped(&self.down.around(from, to), down.count)
    }
}
