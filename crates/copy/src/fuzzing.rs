//! Entry points for fuzzing: what a source sends to a destination.

use crate::Control;
use crate::block::{BLOCK, Block, Blocks, Record};
use crate::destination::root::Root;
use crate::destination::write::Ending;
use crate::lane::{Shared, written_here};
use crate::side::Side;
use crate::storage::Storage as _;
use crate::storage::local::LocalFolder;
use linerate_model::{CopyCache, CopyExisting, CopyLinks, CopyOnError, CopyOptions, CopySync, CopyVerify};
use linerate_sys::folder::Folder;
use std::path::Path;
use std::sync::Arc;

/// Blocks of an input; more are not read.
const BLOCKS: usize = 4;
/// Bytes of holes that are hashed and compared; inputs with more take long and show nothing new.
const MOST_HOLES: u64 = 4 << 20;

/// Receives blocks as a destination does, into the folder at `into`. The first byte selects the options, and each block
/// comes after two bytes with its length.
pub fn blocks(bytes: &[u8], into: &Path) {
    let Some((&how, mut rest)) = bytes.split_first() else { return };
    let pool = Blocks::new(BLOCKS);
    let (blocks_in, blocks) = crossbeam_channel::bounded::<Block>(BLOCKS);
    let mut holes = 0_u64;
    while let Some((&length, after)) = rest.split_first_chunk()
        && blocks_in.len() < BLOCKS
    {
        let content;
        (content, rest) = after.split_at(usize::from(u16::from_le_bytes(length)).min(after.len()));
        let mut block = pool.take();
        block.expect(content.len()).expect("shorter than a block").copy_from_slice(content);
        for (_, record) in block.records().flatten() {
            if let Record::Hole(bytes) = record {
                holes = holes.saturating_add(bytes);
            }
        }
        blocks_in.send(block).expect("there is room");
    }
    drop(blocks_in);
    if holes > MOST_HOLES {
        return;
    }
    let options = CopyOptions {
        lanes: 1,
        verify: if how & 1 == 0 { CopyVerify::None } else { CopyVerify::Received },
        sync: CopySync::None,
        cache: CopyCache::AsIs,
        on_error: if how & 2 == 0 { CopyOnError::Continue } else { CopyOnError::Stop },
        existing: CopyExisting::Replace,
        links: CopyLinks::Copy,
    };
    let control = Control::new(options.on_error, Arc::default());
    let side = Side::new(&control);
    let root = (how & 4 == 0).then(|| {
        let storage = LocalFolder::new(Folder::open(into).expect("it is there")).another();
        Root::new(storage, options.existing, "fuzz".to_owned())
    });
    let ending = written_here(root.as_ref(), &blocks, Shared { options: &options, side: &side, control: &control });
    if let Some(root) = &root {
        root.settle(&control);
    }
    let (faults, total) = control.faults();
    assert!(faults.len() as u64 <= total);
    assert!(ending != Ending::Complete || side.tally.files.get() <= (BLOCKS * BLOCK) as u64);
}
