//! Versions that the blocks of a file may hold, by the writes that were sent and answered.

use std::ops::Range;

/// The blocks of one file.
///
/// The server may do writes that are under way together in any order. So a block holds, for certain, none older than
/// the first write of the last group with all writes answered, and none newer than the last that was sent.
#[derive(Debug)]
pub(crate) struct Versions {
    blocks: Vec<Block>,
    /// Blocks that were there from the beginning, in version 0.
    made: u32,
    /// The blocks up to here are there for certain.
    there: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Block {
    /// The oldest it may hold.
    least: u32,
    /// The newest it may hold.
    most: u32,
    /// The first write of the group under way.
    first: u32,
    /// Writes under way.
    under_way: u16,
    /// A write of the group failed: whether it was done is not known.
    unsure: bool,
}

impl Versions {
    /// A file of `made` blocks in version 0, with room up to `room`.
    pub(crate) fn new(made: u32, room: u32) -> Self {
        Self { blocks: vec![Block::default(); room as usize], made, there: made }
    }

    /// Blocks that can be read.
    pub(crate) fn there(&self) -> u32 {
        self.there
    }

    /// A write of `range` goes out; calls `each` with every block and the version it is to get.
    pub(crate) fn write(&mut self, range: Range<u32>, mut each: impl FnMut(u32, u32)) {
        for index in range {
            let block = &mut self.blocks[index as usize];
            block.most += 1;
            if block.under_way == 0 {
                block.first = block.most;
            }
            block.under_way += 1;
            each(index, block.most);
        }
    }

    /// The write of `range` was answered, or given up.
    pub(crate) fn written(&mut self, range: Range<u32>, done: bool) {
        for block in &mut self.blocks[range.start as usize..range.end as usize] {
            block.under_way -= 1;
            block.unsure |= !done;
            if block.under_way == 0 {
                if !block.unsure {
                    block.least = block.first;
                }
                block.unsure = false;
            }
        }
        // Beyond the blocks made at first, only what was surely written is there; version 0 never was.
        while self.blocks.get(self.there as usize).is_some_and(|block| block.least > 0) {
            self.there += 1;
        }
    }

    /// The oldest version that each block of `range` may hold, appended to `into`.
    pub(crate) fn oldest(&self, range: Range<u32>, into: &mut Vec<u32>) {
        into.extend(self.blocks[range.start as usize..range.end as usize].iter().map(|block| block.least));
    }

    /// The newest version that a block may hold.
    pub(crate) fn newest(&self, block: u32) -> u32 {
        self.blocks[block as usize].most
    }

    /// The server has lost what it had not committed: any version may be there, and what was appended may be gone.
    pub(crate) fn doubt(&mut self) {
        self.blocks.iter_mut().for_each(|block| (block.least, block.unsure) = (0, block.under_way > 0));
        self.there = self.made;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(versions: &Versions, block: u32) -> (u32, u32) {
        let mut oldest = Vec::new();
        versions.oldest(block..block + 1, &mut oldest);
        (oldest[0], versions.newest(block))
    }

    #[test]
    fn writes_one_after_another_leave_no_doubt() {
        let mut versions = Versions::new(4, 8);
        assert_eq!(span(&versions, 1), (0, 0));
        let mut results = Vec::new();
        versions.write(1..3, |block, version| results.push((block, version)));
        assert_eq!(results, [(1, 1), (2, 1)]);
        assert_eq!(span(&versions, 1), (0, 1), "under way");
        versions.written(1..3, true);
        assert_eq!([span(&versions, 0), span(&versions, 1), span(&versions, 2)], [(0, 0), (1, 1), (1, 1)]);
    }

    #[test]
    fn of_writes_that_overlap_any_may_be_last() {
        let mut versions = Versions::new(4, 4);
        versions.write(0..1, |_, _| ());
        versions.written(0..1, true);
        versions.write(0..1, |_, _| ());
        versions.write(0..1, |_, _| ());
        versions.written(0..1, true);
        assert_eq!(span(&versions, 0), (1, 3), "the other is still under way");
        versions.written(0..1, true);
        assert_eq!(span(&versions, 0), (2, 3), "either may have been last");
        versions.write(0..1, |_, _| ());
        versions.written(0..1, true);
        assert_eq!(span(&versions, 0), (4, 4));
    }

    #[test]
    fn a_failed_write_may_have_been_done() {
        let mut versions = Versions::new(4, 4);
        versions.write(0..1, |_, _| ());
        versions.written(0..1, false);
        assert_eq!(span(&versions, 0), (0, 1));
        versions.write(0..1, |_, _| ());
        versions.written(0..1, true);
        assert_eq!(span(&versions, 0), (2, 2), "one that was done leaves no doubt");
    }

    #[test]
    fn appended_blocks_are_there_once_all_before_them_are() {
        let mut versions = Versions::new(2, 6);
        versions.write(2..4, |_, _| ());
        versions.write(4..5, |_, _| ());
        versions.written(4..5, true);
        assert_eq!(versions.there(), 2, "a hole");
        versions.written(2..4, true);
        assert_eq!(versions.there(), 5);
        versions.doubt();
        assert_eq!((versions.there(), span(&versions, 4)), (2, (0, 1)));
    }
}
