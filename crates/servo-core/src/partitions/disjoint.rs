//! One list of blocks for every set of partitions: disjoint, joined where they can be, in ascending order.
//!
//! The first dimension is cut wherever what lies behind an index changes; each piece has the list of the
//! remaining dimensions behind it, made by the same rule, and neighbours with the same list are one piece. Equal sets
//! so have equal lists, and lengths add up.

use std::ops::Range;

use super::block::Block;
use super::ranges::joined;

/// The ranges of several blocks.
type Boxes = Vec<Vec<Range<u64>>>;

/// The list of blocks for the union of any blocks, all with the same number of dimensions.
pub(super) fn disjoint(mut blocks: Vec<Block>) -> Vec<Block> {
    blocks.retain(|block| !block.is_empty());
    if blocks.len() < 2 {
        return blocks;
    }
    debug_assert!(
        blocks.iter().all(|block| block.ranges().len() == blocks[0].ranges().len()),
        "a set has blocks of one asset"
    );
    let boxes: Vec<&[Range<u64>]> = blocks.iter().map(Block::ranges).collect();
    sweep(&boxes).into_iter().map(Block::new).collect()
}

fn sweep(boxes: &[&[Range<u64>]]) -> Boxes {
    if let [only] = boxes {
        return vec![only.to_vec()];
    }
    let mut split: Vec<(&Range<u64>, &[Range<u64>])> =
        boxes.iter().filter_map(|ranges| ranges.split_first()).collect();
    if split.is_empty() {
        // All that is left of boxes without further dimensions is that there are any.
        return if boxes.is_empty() { Vec::new() } else { vec![Vec::new()] };
    }
    if split.iter().all(|(_, behind)| behind.is_empty()) {
        let ranges = joined(split.into_iter().map(|(range, _)| range.clone()).collect());
        return ranges.into_iter().map(|range| vec![range]).collect();
    }
    split.sort_unstable_by_key(|(range, _)| range.start);
    let mut cuts: Vec<u64> = split.iter().flat_map(|(range, _)| [range.start, range.end]).collect();
    cuts.sort_unstable();
    cuts.dedup();

    let mut pieces = Pieces::default();
    let mut open: Vec<(u64, &[Range<u64>])> = Vec::new();
    let mut ahead = split.into_iter().peekable();
    for cut in cuts.windows(2) {
        open.retain(|(end, _)| *end > cut[0]);
        while let Some((range, behind)) = ahead.next_if(|(range, _)| range.start == cut[0]) {
            open.push((range.end, behind));
        }
        if !open.is_empty() {
            let behind: Vec<&[Range<u64>]> = open.iter().map(|(_, behind)| *behind).collect();
            pieces.push(cut[0]..cut[1], sweep(&behind));
        }
    }
    pieces.finish()
}

/// Pieces of the first dimension in ascending order, with what is behind the last one.
#[derive(Default)]
struct Pieces {
    done: Boxes,
    last: Option<(Range<u64>, Boxes)>,
}

impl Pieces {
    fn push(&mut self, range: Range<u64>, behind: Boxes) {
        match &mut self.last {
            Some((last, same)) if last.end == range.start && *same == behind => last.end = range.end,
            Some(_) | None => {
                self.flush();
                self.last = Some((range, behind));
            }
        }
    }

    fn flush(&mut self) {
        if let Some((range, behind)) = self.last.take() {
            self.done.extend(behind.into_iter().map(|mut ranges| {
                ranges.insert(0, range.clone());
                ranges
            }));
        }
    }

    fn finish(mut self) -> Boxes {
        self.flush();
        self.done
    }
}
