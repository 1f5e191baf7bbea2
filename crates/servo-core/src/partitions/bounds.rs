//! Blocks by the keys of their corners: a block that is written down and read again when other partitions may exist.

use std::ops::Range;

use super::block::Block;
use super::context::PartitionContext;
use super::dimension::Dimension;
use super::error::{KeyError, Reason};
use super::set::Partitions;
use crate::{PartitionKey, PartitionValue};

impl Partitions {
    /// The keys with the first and with the last index of a block along every dimension; none if it is empty.
    pub fn corners<'a>(
        &self,
        block: &Block,
        at: impl Into<PartitionContext<'a>>,
    ) -> Option<(PartitionKey, PartitionKey)> {
        let moment = at.into();
        let counts = self.counts(moment);
        let exists = block.ranges().len() == counts.len()
            && block
                .ranges()
                .iter()
                .zip(&counts)
                .all(|(range, count)| range.start < range.end && range.end <= *count);
        let first: Vec<u64> = block.ranges().iter().map(|range| range.start).collect();
        let last: Vec<u64> = block.ranges().iter().map(|range| range.end.saturating_sub(1)).collect();
        exists.then(|| (self.key_at(&first, moment), self.key_at(&last, moment)))
    }

    /// The block with these corners. Of dynamic partitions, what lies between them by now: a key at a corner may be gone.
    pub fn between<'a>(
        &self,
        from: &PartitionKey,
        to: &PartitionKey,
        at: impl Into<PartitionContext<'a>>,
    ) -> Result<Block, KeyError> {
        let moment = at.into();
        let (first, last) = (self.bounds(from, moment)?, self.bounds(to, moment)?);
        let ranges = first.into_iter().zip(last).map(|(first, last)| first.start..last.end.max(first.start));
        Ok(Block::new(ranges.collect::<Vec<_>>()))
    }

    /// The least indexes of a partition after a key, in the order in which the first dimension counts slowest. The
    /// key may be one of dynamic partitions that is gone.
    pub fn after<'a>(
        &self,
        key: &PartitionKey,
        at: impl Into<PartitionContext<'a>>,
    ) -> Result<Vec<u64>, KeyError> {
        let mut digits = Vec::new();
        let bounds = self.bounds(key, at.into())?;
        let gone = bounds.iter().position(|range| range.start == range.end);
        let last = gone.unwrap_or(bounds.len().saturating_sub(1));
        for (dimension, range) in bounds.iter().enumerate() {
            digits.push(match dimension.cmp(&last) {
                std::cmp::Ordering::Less => range.start,
                std::cmp::Ordering::Equal => range.end,
                std::cmp::Ordering::Greater => 0,
            });
        }
        Ok(digits)
    }

    /// Where the value of a key is along each dimension: one index, or the place between two where it would be.
    fn bounds(&self, key: &PartitionKey, moment: PartitionContext<'_>) -> Result<Vec<Range<u64>>, KeyError> {
        let values = self.values(key).and_then(|values| {
            let dims = self.dims().iter().zip(values);
            dims.map(|((dim, dimension), value)| place(dimension, dim, &value, moment)).collect()
        });
        values.map_err(|reason| KeyError { key: key.to_string(), reason })
    }
}

/// Where a value is along a dimension: one index, or the place between two where a dynamic key would be.
pub(super) fn place(
    dimension: &Dimension,
    dim: &str,
    value: &PartitionValue,
    moment: PartitionContext<'_>,
) -> Result<Range<u64>, Reason> {
    let found = dimension.index(dim, value, moment);
    match (&found, dimension, value) {
        (Err(_), Dimension::Dynamic(name), PartitionValue::Str(text)) => {
            let before = moment.keys(name).partition_point(|key| key.as_str() < text.as_str()) as u64;
            Ok(before..before)
        }
        _ => found.map(|index| index..index + 1),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::PartitionsDef;
    use crate::Timestamp;
    use crate::partitions::{PartitionSet, Span};

    fn regions(keys: &[&str]) -> BTreeMap<String, Vec<String>> {
        BTreeMap::from([("regions".to_owned(), keys.iter().map(|key| (*key).to_owned()).collect())])
    }

    fn by_day_and_region() -> Partitions {
        let days = PartitionsDef::Daily { span: Span::new("2013-01-01").until("2013-01-03") };
        let regions = PartitionsDef::Dynamic { name: "regions".to_owned() };
        let dims = BTreeMap::from([("date".to_owned(), days), ("region".to_owned(), regions)]);
        PartitionsDef::Multi { dims }.validate().expect("two dimensions")
    }

    #[test]
    fn a_block_is_read_back_by_its_corners_when_keys_between_them_came_and_went() {
        let partitions = by_day_and_region();
        let before = regions(&["de", "nl", "us"]);
        let at = PartitionContext::new(Timestamp::MAX, &before);
        let (from, to) = partitions.corners(&Block::new([0..2, 1..3]), at).expect("it exists");
        assert_eq!(
            (from.to_string(), to.to_string()),
            ("date=2013-01-01,region=nl".to_owned(), "date=2013-01-02,region=us".to_owned(),)
        );
        let after = regions(&["de", "fr", "pl", "uk"]);
        let at = PartitionContext::new(Timestamp::MAX, &after);
        assert_eq!(partitions.between(&from, &to, at).unwrap(), Block::new([0..2, 2..4]));
        assert_eq!(partitions.after(&from, at).unwrap(), [0, 2], "nl is gone, and pl follows it");
        let known = PartitionKey::parse("date=d:2013-01-02,region=s:ZGU").expect("a key");
        assert_eq!(partitions.after(&known, at).unwrap(), [1, 1]);
    }

    #[test]
    fn the_first_and_those_after_are_all_of_them_in_order() {
        let set: PartitionSet =
            [Block::new([0..3, 0..1]), Block::new([0..2, 2..4]), Block::new([4..5, 0..2])]
                .into_iter()
                .collect();
        let mut expected: Vec<Vec<u64>> = set.iter().collect();
        expected.sort();
        let (mut rest, mut found) = (set.clone(), Vec::new());
        while !rest.is_empty() {
            let (chunk, last) = rest.first(2);
            let mut members: Vec<Vec<u64>> = chunk.iter().collect();
            members.sort();
            found.extend(members);
            let mut next = last.expect("there is one");
            *next.last_mut().expect("two dimensions") += 1;
            rest = rest.starting_at(&next);
        }
        assert_eq!(found, expected);
        assert_eq!(PartitionSet::unpartitioned().first(3), (PartitionSet::unpartitioned(), Some(Vec::new())));
    }
}
