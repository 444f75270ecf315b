//! A copy: files from the storage of one host to that of the other, verified and made durable. The top of the ladder, where all that is
//! below comes together with both ends' storage.
//!
//! The tree is made for it, of as many bytes as TCP carries in a second, so that a slow path need not be waited for and a fast one
//! shows what it can. Heads of files and the end of the copy are part of its figure: that is what a copy costs.

use super::{Facts, Figure, Layer, efficiency, tcp, unmeasured};
use crate::context::Context;
use crate::copy::CELL;
use linerate_model::{
    CopyCache, CopyExisting, CopyFrom, CopyInto, CopyLinks, CopyOnError, CopyOptions, CopySync, CopyTask, CopyTree,
    CopyVerify, CopyWay, Firmness, LadderPlan, LayerName, Limit, MadeTree, Measurement, Message, Task, Timing,
    Transport, TreeKind, Trial, message,
};
use linerate_units::ByteCount;

/// The smallest tree: less is over before TCP is up to speed.
const LEAST: u64 = 1_000_000;
/// The largest: a second at 2 Gbit/s, and no burden to any disk.
const MOST: u64 = 256_000_000;
/// Files of about this size: a copy's own overhead for each is not what a path is judged by.
const FILE: u64 = 1_000_000;
/// The least files: both lanes have some.
const FILES: u64 = 8;

pub(super) struct Copy;

/// The copy of a ladder whose `results` stand; none before TCP has been measured.
pub(super) fn trial(plan: &LadderPlan, results: &[Measurement]) -> Option<Trial> {
    let tcp = results.iter().find(|result| result.name == tcp::STREAM)?;
    let carried = tcp.received()?;
    Some(copy_of(plan, (carried.payload_bps.median / 8.0) as u64))
}

/// The copy of a tree of `bytes`, as far as that is neither too small nor too large.
pub(crate) fn copy_of(plan: &LadderPlan, bytes: u64) -> Trial {
    let bytes = bytes.clamp(LEAST, MOST);
    let tree = MadeTree {
        like: TreeKind::Photos,
        files: (bytes / FILE).max(FILES),
        folders: 1,
        bytes: ByteCount::new(bytes),
        seed: 1,
    };
    let task = CopyTask {
        tree: CopyTree::Made(tree),
        each: Vec::new(),
        way: CopyWay::Linerate,
        sources: vec![plan.path.client.clone()],
        destinations: vec![plan.path.server.name().clone()],
        from: CopyFrom::Files,
        into: CopyInto::Scratch,
        options: CopyOptions {
            lanes: 2,
            verify: CopyVerify::Received,
            sync: CopySync::End,
            cache: CopyCache::AsIs,
            on_error: CopyOnError::Stop,
            existing: CopyExisting::Refuse,
            links: CopyLinks::Copy,
        },
        ip: plan.ip,
    };
    Trial::new(CELL, Task::Copy(task), Timing::UntilDone)
}

/// What the copies came to; none without any.
fn found(facts: &Facts<'_>) -> Option<Measurement> {
    let copies = &facts.beside.copies;
    let with = Context { hosts: facts.hosts, repeats: facts.plan.repeats, calibrated: &[], idle: &[] };
    Some(crate::copy::measure(&copies.first()?.trial, copies, &with))
}

impl Layer for Copy {
    fn name(&self) -> LayerName {
        LayerName::Copy
    }

    fn figure(&self, facts: &Facts<'_>) -> Result<Figure, Message> {
        let why = match facts.failed.get(tcp::STREAM) {
            Some(_) => {
                message!("ladder-copy-unsized", "its size follows from what TCP carries, which was not measured")
            }
            None => unmeasured(),
        };
        let found = found(facts).ok_or(why)?;
        Ok(Figure {
            payload_bps: found.main,
            efficiency: efficiency(Transport::Tcp, facts.plan.ip, FILE, facts.plan.mtu),
            latency: None,
            verdict: Some(found.verdict),
            results: Vec::new(),
            bears: true,
            firmness: Firmness::Firm,
        })
    }

    fn advice(&self, facts: &Facts<'_>) -> Option<Message> {
        let limit = found(facts).map(|found| found.verdict.limit);
        let tried = match limit {
            Some(Limit::StorageRead) => {
                message!(
                    "ladder-next-copy-source",
                    "the source's storage is slower than the path: `linerate copy --from memory` leaves it out"
                )
            }
            Some(Limit::StorageWrite) => {
                message!(
                    "ladder-next-copy-destination",
                    "the destination's storage is slower than the path: `linerate copy --to discard` leaves it \
                     out, --sync none does not wait until all is durable"
                )
            }
            _ => {
                message!(
                    "ladder-next-copy",
                    "`linerate copy --from memory --to discard` leaves both ends' storage out; try --lanes 4 for \
                     more cores"
                )
            }
        };
        Some(tried)
    }
}
