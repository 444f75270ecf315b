//! Times of stages: each stage keeps a clock in each of its threads. It is at work, or waits for one of its neighbours.

use crate::stage_meter::{StageMeter, StageMeters};
use linerate_model::{CopyStage, StageTime, WorkTime};
use linerate_sys::clock;
use linerate_sys::thread::ThreadCost;
use linerate_units::Nanos;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The times of one side's stages.
#[derive(Debug, Default)]
pub(crate) struct Board {
    times: Mutex<BTreeMap<CopyStage, StageTime>>,
    /// Running times at work.
    meters: Arc<StageMeters>,
}

/// Time off its core that is not looked into, nanoseconds: it would take as long to ask why.
const SHORT: u64 = 20_000;

thread_local! {
    /// Time without a core that the thread's clocks have accounted for.
    static QUEUED: Cell<Nanos> = Cell::new(ThreadCost::of_caller().queued);
}

/// The clock of one stage. Those of a lane may share a thread, of which at most one is at work at a time.
pub(crate) struct Clock<'a> {
    board: &'a Board,
    stage: CopyStage,
    time: StageTime,
    /// Since when the stage has been doing what it does.
    since: u64,
    /// CPU time of the thread at that moment.
    cpu: u64,
    /// Whether it is at work.
    works: bool,
    meter: StageMeter,
}

impl Board {
    /// Makes a board with clocks that report their time at work to `meters`.
    pub(crate) fn new(meters: Arc<StageMeters>) -> Self {
        Self { times: Mutex::default(), meters }
    }

    /// Starts a clock in the calling thread, at work.
    pub(crate) fn clock(&self, stage: CopyStage) -> Clock<'_> {
        let time = StageTime { threads: 1, ..StageTime::default() };
        QUEUED.with(|_| ());
        let since = clock::now();
        let cpu = clock::thread_cpu();
        let meter = self.meters.begin(stage);
        meter.works(since, 0);
        Clock { board: self, stage, time, since, cpu, works: true, meter }
    }

    /// Reports, as long as the result is kept, that `threads` threads of a stage are at work since `since`.
    pub(crate) fn each_works(&self, stage: CopyStage, threads: usize, since: u64) -> Vec<StageMeter> {
        let meters: Vec<_> = (0..threads).map(|_| self.meters.begin(stage)).collect();
        meters.iter().for_each(|meter| meter.works(since, 0));
        meters
    }

    /// Returns the times of all stages after `wall`: a thread without further work counts as waiting.
    pub(crate) fn finish(&self, wall: Nanos) -> BTreeMap<CopyStage, StageTime> {
        let mut stages = self.times.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for time in stages.values_mut() {
            let all = Nanos::new(wall.get().saturating_mul(time.threads.into()));
            let counted = time.busy + time.waiting_for_previous + time.waiting_for_next;
            time.waiting_for_previous = time.waiting_for_previous + (all - counted);
        }
        stages
    }

    /// Adds `work` to the time of each of `threads` threads of a stage.
    pub(crate) fn add_to_each(&self, stage: CopyStage, threads: usize, work: WorkTime) {
        let of_all = |time: Nanos| Nanos::new(time.get().saturating_mul(threads as u64));
        let mut stages = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = stages.entry(stage).or_default();
        sum.busy = sum.busy + of_all(work.busy);
        sum.cpu = sum.cpu + of_all(work.cpu);
        sum.queued = sum.queued + of_all(work.queued);
        let busiest = &mut sum.busiest;
        busiest.busy = busiest.busy + work.busy;
        busiest.cpu = busiest.cpu + work.cpu;
        busiest.queued = busiest.queued + work.queued;
    }

    /// Adds the time of a thread to its stage's.
    fn add(&self, stage: CopyStage, time: StageTime) {
        let mut stages = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        stages.entry(stage).or_default().add(time);
    }
}

impl Clock<'_> {
    /// Something came from the stage before.
    pub(crate) fn begins(&mut self) {
        let (waited, _) = self.turn();
        self.time.waiting_for_previous = self.time.waiting_for_previous + waited;
        self.works();
    }

    /// Ends the time at work.
    pub(crate) fn rests(&mut self) {
        let (busy, cpu) = self.turn();
        self.time.busy = self.time.busy + busy;
        self.time.cpu = self.time.cpu + cpu;
        self.works = false;
        self.meter.rests(self.time.busy.get());
    }

    /// Begins the time at work at the latest turn.
    fn works(&mut self) {
        self.works = true;
        self.meter.works(self.since, self.time.busy.get());
    }

    /// Waits for something from the stage before.
    pub(crate) fn await_previous<T>(&mut self, wait: impl FnOnce() -> T) -> T {
        self.rests();
        let got = wait();
        self.begins();
        got
    }

    /// Waits until the stage after takes something.
    pub(crate) fn await_next<T>(&mut self, wait: impl FnOnce() -> T) -> T {
        self.rests();
        let got = wait();
        let (waited, _) = self.turn();
        self.time.waiting_for_next = self.time.waiting_for_next + waited;
        self.works();
        got
    }

    /// Time since the last turn, and how much of it the thread was on a core. What it was ready to run besides is added
    /// up.
    fn turn(&mut self) -> (Nanos, Nanos) {
        let now = clock::now();
        let cpu = clock::thread_cpu();
        let passed = Nanos::new(now.saturating_sub(self.since));
        let on_core = Nanos::new(cpu.saturating_sub(self.cpu));
        (self.since, self.cpu) = (now, cpu);
        self.time.queued = self.time.queued + queued(passed - on_core);
        (passed, on_core)
    }
}

/// Returns how much of the calling thread's latest time off its core it was runnable. Each moment is counted once.
fn queued(off: Nanos) -> Nanos {
    if off.get() < SHORT {
        return Nanos::default();
    }
    let queued = ThreadCost::of_caller().queued;
    Nanos::new((queued - QUEUED.replace(queued)).get().min(off.get()))
}

impl Drop for Clock<'_> {
    fn drop(&mut self) {
        if self.works {
            self.rests();
        }
        let StageTime { busy, cpu, queued, .. } = self.time;
        self.time.busiest = WorkTime { busy, cpu, queued };
        self.board.add(self.stage, self.time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;
    use std::time::Duration;

    const MS: u64 = 1_000_000;

    #[test]
    fn every_moment_counts_once() {
        let board = Board::default();
        let begun = clock::now();
        let mut clock = board.clock(CopyStage::Read);
        sleep(Duration::from_millis(10));
        clock.await_previous(|| sleep(Duration::from_millis(20)));
        clock.await_next(|| sleep(Duration::from_millis(30)));
        drop(clock);
        let lived = clock::now() - begun;
        let wall = Nanos::new(lived + 100 * MS);
        let time = board.finish(wall)[&CopyStage::Read];
        assert!(time.busy.get() >= 10 * MS && time.waiting_for_next.get() >= 30 * MS, "{time:?}");
        assert!(time.waiting_for_previous.get() >= 120 * MS, "what came after its end is waiting too: {time:?}");
        assert_eq!(time.busy + time.waiting_for_previous + time.waiting_for_next, wall);
    }

    #[test]
    fn what_is_computed_is_told_from_what_is_waited_for() {
        let board = Board::default();
        let mut clock = board.clock(CopyStage::Hash);
        let begun = clock::thread_cpu();
        while clock::thread_cpu() - begun < 20 * MS {}
        sleep(Duration::from_millis(30));
        clock.await_next(|| ());
        drop(clock);
        let time = board.finish(Nanos::default())[&CopyStage::Hash];
        assert!(time.cpu.get() >= 20 * MS && time.busy.get() >= 50 * MS, "{time:?}");
        assert!((time.busy - time.cpu).get() >= 30 * MS, "sleeping is no computing: {time:?}");
    }

    #[test]
    fn the_busiest_thread_is_known_and_what_all_wait_for_is_work_of_each() {
        let board = Board::default();
        for busy in [3, 30, 2] {
            let clock = board.clock(CopyStage::Sync);
            sleep(Duration::from_millis(busy));
            drop(clock);
        }
        let before = board.finish(Nanos::default())[&CopyStage::Sync];
        assert!((30 * MS..before.busy.get()).contains(&before.busiest.busy.get()), "{before:?}");
        let last = WorkTime { busy: Nanos::new(5 * MS), ..WorkTime::default() };
        board.add_to_each(CopyStage::Sync, 3, last);
        let after = board.finish(Nanos::default())[&CopyStage::Sync];
        assert_eq!((after.busy - before.busy, after.threads), (Nanos::new(15 * MS), 3));
        assert_eq!(after.busiest.busy - before.busiest.busy, Nanos::new(5 * MS));
    }

    #[test]
    fn threads_of_a_stage_are_summed() {
        let board = Board::default();
        drop([board.clock(CopyStage::Write), board.clock(CopyStage::Write)]);
        let time = board.finish(Nanos::new(50 * MS))[&CopyStage::Write];
        assert_eq!(time.threads, 2);
        assert_eq!(time.busy + time.waiting_for_previous + time.waiting_for_next, Nanos::new(100 * MS));
    }
}
