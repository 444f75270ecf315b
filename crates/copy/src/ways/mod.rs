//! Ways of a tree from its source to its destination: a file for each way, as [`CopyWay`](linerate_model::CopyWay)
//! lists them.

pub(crate) mod linerate;
pub(crate) mod path;

use crate::control::Control;
use crate::destination::root::Root;
use crate::side::Side;
use linerate_model::{CopyStage, CopySync, WorkTime};
use linerate_sys::clock;
use linerate_sys::thread::ThreadCost;
use linerate_units::Nanos;

/// Folders get their modes and times, and all becomes durable if it is to be at the end. All lanes wait for that, so it
/// is work of all their last stages.
pub(crate) fn settle(root: Option<&Root>, sync: CopySync, lanes: usize, side: &Side, control: &Control) {
    let Some(root) = root else { return };
    let begun = clock::now();
    let cost = ThreadCost::of_caller();
    let _told = side.board.each_works(CopyStage::Sync, lanes, begun);
    root.settle(control);
    if sync != CopySync::None
        && let Err(error) = root.storage.sync()
    {
        control.failed(b"", CopyStage::Sync, &error);
    }
    let now = ThreadCost::of_caller();
    let busy = Nanos::new(clock::now().saturating_sub(begun));
    let work = WorkTime { busy, cpu: now.cpu - cost.cpu, queued: now.queued - cost.queued };
    side.board.add_to_each(CopyStage::Sync, lanes, work);
}
