//! A copy: files from the storage of one host to that of the other, verified and made durable. The top of the ladder, where all that is
//! below comes together with both ends' storage.
//!
//! The tree is made for it, of as many bytes as TCP carries in a second, so that a slow path need not be waited for and a fast one
//! shows what it can. Heads of files and the end of the copy are part of its figure: that is what a copy costs.

use super::{Facts, Figure, Layer, efficiency, tcp};
use crate::repeat::{Need, need};
use crate::statistics::summary;
use linerate_model::{
    CopyCache, CopyExisting, CopyFrom, CopyInto, CopyLinks, CopyOnError, CopyOptions, CopyPlan, CopySync, CopyTree,
    CopyVerify, CopyWay, Limit, MadeTree, Record, RungName, Transport, TreeKind,
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

/// The next copy that the ladder of `record` wants; none when there are enough, or none can be made.
pub fn next_copy(record: &Record) -> Option<CopyPlan> {
    let ladder = record.plan.ladder.as_ref()?;
    if ladder.without.contains_key(&RungName::Copy) {
        return None;
    }
    if let Some(plan) = &ladder.copy {
        let figures: Vec<f64> = found(plan, record)?.runs_bytes_per_s;
        return (need(&record.plan.repeats, &figures) == Need::More).then(|| plan.clone());
    }
    let carried = record.results.iter().find(|result| result.name == tcp::STREAM)?.received.as_ref()?;
    let bytes = ((carried.payload_bps.median / 8.0) as u64).clamp(LEAST, MOST);
    let tree = MadeTree {
        like: TreeKind::Photos,
        files: (bytes / FILE).max(FILES),
        folders: 1,
        bytes: ByteCount::new(bytes),
        seed: 1,
    };
    Some(CopyPlan {
        tree: CopyTree::Made(tree),
        way: CopyWay::Linerate,
        sources: vec![ladder.path.opener.clone()],
        destinations: vec![ladder.path.listener.clone()],
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
        ip: ladder.ip,
    })
}

/// What the copies of `plan` in `record` came to.
pub(super) fn found(plan: &CopyPlan, record: &Record) -> Option<linerate_model::CopyOutcome> {
    crate::copy::found(plan, &record.hosts, &record.copy_trials)
}

impl Layer for Copy {
    fn name(&self) -> RungName {
        RungName::Copy
    }

    fn figure(&self, facts: &Facts<'_>) -> Result<Figure, String> {
        let found = facts.copy.as_ref().ok_or("the run ended before it was measured")?;
        let runs = found.runs_bytes_per_s.iter().map(|bytes| bytes * 8.0).collect();
        Ok(Figure {
            payload_bps: summary(runs).ok_or("the run ended before it was measured")?,
            efficiency: efficiency(Transport::Tcp, facts.plan.ip, FILE, facts.plan.mtu),
            latency: None,
            verdict: found.verdict.clone(),
            results: Vec::new(),
            bears: true,
        })
    }

    fn advice(&self, facts: &Facts<'_>) -> String {
        let limit = facts.copy.as_ref().and_then(|found| Some(found.verdict.as_ref()?.limit));
        let tried = match limit {
            Some(Limit::StorageRead) => {
                "the source's storage is slower than the path: `linerate copy --from memory` leaves it out"
            }
            Some(Limit::StorageWrite) => {
                "the destination's storage is slower than the path: `linerate copy --to discard` leaves it out, --sync none does not \
                 wait until all is durable"
            }
            _ => {
                "`linerate copy --from memory --to discard` leaves both ends' storage out; try --lanes 4 for more cores"
            }
        };
        tried.to_owned()
    }
}
