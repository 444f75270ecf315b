//! Running times at work of a session's stages, for observers of a copy under way.

use linerate_model::CopyStage;
use linerate_sys::clock;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Times of all stages of a session, all its sides and threads together.
#[derive(Debug, Default)]
pub(crate) struct StageMeters(Mutex<BTreeMap<CopyStage, Stage>>);

#[derive(Debug, Default)]
struct Stage {
    /// Time of threads that have ended, nanoseconds.
    ended: u64,
    running: Vec<Arc<AtWork>>,
}

/// Time of one thread in one stage. Dropping it ends that time.
#[derive(Debug)]
pub(crate) struct StageMeter {
    all: Arc<StageMeters>,
    stage: CopyStage,
    time: Arc<AtWork>,
}

/// Time at work so far, nanoseconds, while at rest. While at work: [`AtWork::NOW`] and the present less the time at
/// work. It is one number, so that no reader sees half of a change. It has a cache line (pair) of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct AtWork(AtomicU64);

impl AtWork {
    const NOW: u64 = 1 << 63;

    fn nanos(&self) -> u64 {
        match self.0.load(Ordering::Acquire) {
            rests if rests & Self::NOW == 0 => rests,
            works => clock::now().saturating_sub(works & !Self::NOW),
        }
    }
}

impl StageMeters {
    /// Counts the calling thread's time in `stage`, which rests.
    pub(crate) fn begin(self: &Arc<Self>, stage: CopyStage) -> StageMeter {
        let time = Arc::<AtWork>::default();
        self.stages().entry(stage).or_default().running.push(Arc::clone(&time));
        StageMeter { all: Arc::clone(self), stage, time }
    }

    /// The time at work of each stage that there is, microseconds.
    pub(crate) fn micros(&self) -> Vec<(CopyStage, u64)> {
        let nanos = |stage: &Stage| stage.ended + stage.running.iter().map(|time| time.nanos()).sum::<u64>();
        self.stages().iter().map(|(name, stage)| (*name, nanos(stage) / 1_000)).collect()
    }

    fn stages(&self) -> MutexGuard<'_, BTreeMap<CopyStage, Stage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StageMeter {
    /// Notes that the stage is at work since `since`, after `before` nanoseconds at work before that.
    pub(crate) fn works(&self, since: u64, before: u64) {
        self.time.0.store(AtWork::NOW | since.saturating_sub(before), Ordering::Release);
    }

    /// Notes that the stage rests, after `nanos` nanoseconds at work.
    pub(crate) fn rests(&self, nanos: u64) {
        self.time.0.store(nanos, Ordering::Release);
    }
}

impl Drop for StageMeter {
    fn drop(&mut self) {
        let mut stages = self.all.stages();
        let stage = stages.entry(self.stage).or_default();
        stage.ended += self.time.nanos();
        stage.running.retain(|time| !Arc::ptr_eq(time, &self.time));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_at_work_is_counted_while_it_works() {
        let all = Arc::<StageMeters>::default();
        let [reads, also_reads, writes] =
            [CopyStage::Read, CopyStage::Read, CopyStage::Write].map(|stage| all.begin(stage));
        assert_eq!(all.micros(), [(CopyStage::Read, 0), (CopyStage::Write, 0)]);
        let since = clock::now();
        reads.works(since, 7_000_000);
        also_reads.rests(2_000_000);
        let lived = |since: u64| (clock::now() - since) / 1_000;
        let read = all.micros()[0].1;
        assert!((9_000..=9_000 + lived(since)).contains(&read), "{read}");
        reads.rests(8_000_000);
        drop(reads);
        assert_eq!(all.micros(), [(CopyStage::Read, 10_000), (CopyStage::Write, 0)]);
        // One that is dropped at work has worked until then.
        writes.works(clock::now().saturating_sub(5_000_000), 0);
        drop((also_reads, writes));
        let ended = all.micros();
        assert!(ended[1].1 >= 5_000, "{ended:?}");
        assert_eq!(all.micros(), ended);
    }
}
