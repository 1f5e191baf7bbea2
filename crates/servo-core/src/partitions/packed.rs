//! Sets of very many blocks as a short text: a million scattered partitions are a few bytes each.
//!
//! Along a dimension of time a block is written as its distance from the one before, and keys that are listed as what
//! differs from the key before. A set is read again by the keys at its ends, so that it means the same when partitions
//! before it come and go, and as blocks by their corners do when listed keys do.

use data_encoding::BASE64_NOPAD;
use serde::{Deserialize, Serialize};

use super::block::Block;
use super::bounds::place;
use super::context::PartitionContext;
use super::dimension::Dimension;
use super::partition_set::PartitionSet;
use super::set::Partitions;
use crate::{PartitionKey, PartitionValue};

/// A set of partitions, packed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedPartitions {
    /// How many blocks there are.
    pub blocks: u64,
    /// The key with the least value along every dimension.
    pub first: PartitionKey,
    /// The key with the greatest value along every dimension.
    pub last: PartitionKey,
    /// The blocks, in base64.
    pub text: String,
}

impl Partitions {
    /// Packs a set; none if it is empty, or has partitions that do not exist.
    pub fn pack<'a>(
        &self,
        set: &PartitionSet,
        at: impl Into<PartitionContext<'a>>,
    ) -> Option<PackedPartitions> {
        let moment = at.into();
        let bounding = bounding(set)?;
        let (first, last) = self.corners(&bounding, moment)?;
        let mut bytes = Vec::new();
        let mut before: Vec<Before> = Vec::new();
        for ((_, dimension), range) in self.dims().iter().zip(bounding.ranges()) {
            before.push(Before { index: range.start, key: String::new() });
            if dimension.windows().is_some() {
                put(&mut bytes, range.end - 1 - range.start);
            }
        }
        for block in set.blocks() {
            for (((_, dimension), range), before) in self.dims().iter().zip(block.ranges()).zip(&mut before) {
                match dimension.windows() {
                    Some(_) => {
                        put(&mut bytes, zigzag(range.start.wrapping_sub(before.index)));
                        put(&mut bytes, range.end - range.start);
                        before.index = range.start;
                    }
                    None => {
                        put_key(&mut bytes, &mut before.key, dimension.listed(range.start, moment)?);
                        let last = range.end - 1;
                        put(&mut bytes, u64::from(last > range.start));
                        if last > range.start {
                            put_key(&mut bytes, &mut before.key, dimension.listed(last, moment)?);
                        }
                    }
                }
            }
        }
        let (blocks, text) = (set.blocks().len() as u64, BASE64_NOPAD.encode(&bytes));
        Some(PackedPartitions { blocks, first, last, text })
    }

    /// The set that was packed, or why there is no such set any more. Of dynamic partitions, what lies in its blocks by
    /// now.
    pub fn unpack<'a>(
        &self,
        packed: &PackedPartitions,
        at: impl Into<PartitionContext<'a>>,
    ) -> Result<PartitionSet, String> {
        let moment = at.into();
        let bytes = BASE64_NOPAD.decode(packed.text.as_bytes()).map_err(|error| error.to_string())?;
        let mut bytes = Bytes(&bytes);
        let ends = self.values(&packed.first).and_then(|first| Ok((first, self.values(&packed.last)?)));
        let (first, last) = ends.map_err(|reason| format!("{}: {reason}", packed.first))?;
        let mut before: Vec<Before> = Vec::new();
        for (((dim, dimension), first), last) in self.dims().iter().zip(&first).zip(&last) {
            let mut index = 0;
            if let Some(windows) = dimension.windows() {
                let find = |value, key: &PartitionKey| {
                    windows.index(dim, value, moment).map_err(|reason| format!("{key}: {reason}"))
                };
                index = find(first, &packed.first)?;
                let (there, then) = (find(last, &packed.last)?.checked_sub(index), bytes.number()?);
                if there != Some(then) {
                    return Err(format!(
                        "{} to {} are not the partitions that they were",
                        packed.first, packed.last
                    ));
                }
            }
            before.push(Before { index, key: String::new() });
        }
        let mut blocks = Vec::new();
        for _ in 0..packed.blocks {
            let mut ranges = Vec::with_capacity(before.len());
            for ((dim, dimension), before) in self.dims().iter().zip(&mut before) {
                ranges.push(match dimension.windows() {
                    Some(_) => {
                        before.index = before.index.wrapping_add(unzigzag(bytes.number()?));
                        before.index..before.index.saturating_add(bytes.number()?)
                    }
                    None => {
                        bytes.key(&mut before.key)?;
                        let first = find(dimension, dim, &before.key, moment)?;
                        if bytes.number()? == 0 {
                            first
                        } else {
                            bytes.key(&mut before.key)?;
                            let last = find(dimension, dim, &before.key, moment)?;
                            first.start..last.end.max(first.start)
                        }
                    }
                });
            }
            blocks.push(Block::new(ranges));
        }
        Ok(blocks.into_iter().collect())
    }
}

/// What stands before along a dimension.
struct Before {
    index: u64,
    key: String,
}

/// The smallest block that a set lies in.
fn bounding(set: &PartitionSet) -> Option<Block> {
    let mut blocks = set.blocks().iter();
    let mut ranges = blocks.next()?.ranges().to_vec();
    for block in blocks {
        for (all, range) in ranges.iter_mut().zip(block.ranges()) {
            *all = all.start.min(range.start)..all.end.max(range.end);
        }
    }
    Some(Block::new(ranges))
}

fn find(
    dimension: &Dimension,
    dim: &str,
    key: &str,
    moment: PartitionContext<'_>,
) -> Result<std::ops::Range<u64>, String> {
    let value = PartitionValue::Str(key.to_owned());
    place(dimension, dim, &value, moment).map_err(|reason| reason.to_string())
}

/// A distance as a number that is small if the distance is, to either side.
fn zigzag(distance: u64) -> u64 {
    (distance << 1) ^ ((distance as i64 >> 63) as u64)
}

fn unzigzag(number: u64) -> u64 {
    (number >> 1) ^ (number & 1).wrapping_neg()
}

/// Seven bits in a byte, the lowest first.
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// What a key shares with the one before, and the rest of it.
fn put_key(bytes: &mut Vec<u8>, before: &mut String, key: &str) {
    let shared = before.bytes().zip(key.bytes()).take_while(|(a, b)| a == b).count();
    put(bytes, shared as u64);
    put(bytes, (key.len() - shared) as u64);
    bytes.extend(&key.as_bytes()[shared..]);
    key.clone_into(before);
}

/// Bytes that are read from the front.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn number(&mut self) -> Result<u64, String> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or("it ends too early")?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err("a number is too long".to_owned())
    }

    fn key(&mut self, before: &mut String) -> Result<(), String> {
        let (shared, more) = (self.number()? as usize, self.number()? as usize);
        let suffix = self.0.get(..more).ok_or("it ends too early")?;
        self.0 = &self.0[more..];
        // A character may be shared in part.
        let shared = before.as_bytes().get(..shared).ok_or("a key shares more than there is")?;
        *before = String::from_utf8([shared, suffix].concat()).map_err(|error| error.to_string())?;
        Ok(())
    }
}
