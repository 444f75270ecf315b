//! The host watched, the load sampled and progress told while an engine is at work.

use linerate_engine::{Meters, Timeline, Work};
use linerate_model::{
    LatencyBuckets, Observation, Readings, Sampling, Series, SeriesBuilder, SeriesQuantity, SessionProgress,
};
use linerate_observe::{HostSampler, Watch};
use linerate_sys::clock;
use linerate_units::Nanos;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Progress is told this often, nanoseconds: intervals of 200 ms can be made of it, and it is too rare to cost
/// anything.
const PROGRESS_EVERY: u64 = 100_000_000;
/// The same while the end of the warm-up is looked for, which is judged by what is told.
const WARM_UP_PROGRESS_EVERY: u64 = 50_000_000;

/// A thread that watches the host and samples the load until the window closes. Dropping it ends it.
#[derive(Debug)]
pub struct Watching {
    signal: Arc<Signal>,
    thread: Option<JoinHandle<Seen>>,
}

/// Observations of a load.
#[derive(Debug, Default)]
pub struct Seen {
    /// Observation of the host in the window. `None` if no window opened.
    pub observation: Option<Observation>,
    /// The course of the load.
    pub series: Series,
}

/// Wakes the thread.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    state: Mutex<Signalled>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Signalled {
    has_returned: bool,
    /// An edge of the window was set, and the thread has not heard of it.
    is_set: bool,
}

impl Signal {
    /// The engine has returned.
    fn engine_returned(&self) {
        self.state().has_returned = true;
        self.changed.notify_all();
    }

    /// Announces that the opening or the closing of the window is known.
    pub(crate) fn window_is_set(&self) {
        self.state().is_set = true;
        self.changed.notify_all();
    }

    /// Waits until `until`, until the window is set, or until the engine has returned. Returns whether it has.
    fn wait_until(&self, until: u64) -> bool {
        let left = Duration::from_nanos(until.saturating_sub(clock::now()));
        let nothing = |state: &mut Signalled| !state.has_returned && !state.is_set;
        let waited = self.changed.wait_timeout_while(self.state(), left, nothing);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.is_set = false;
        state.has_returned
    }

    fn state(&self) -> MutexGuard<'_, Signalled> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watching {
    /// Watches and samples `work`, and calls `tell` with how far it is. The thread begins in the caller's network
    /// namespace.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn begin(work: Work, sampling: Sampling, tell: impl Fn(SessionProgress) + Send + 'static) -> io::Result<Self> {
        let signal = Arc::<Signal>::default();
        let thread = Builder::new().name("watch".into()).spawn({
            let signal = Arc::clone(&signal);
            move || watch(&work, sampling, &signal, &tell)
        })?;
        Ok(Self { signal, thread: Some(thread) })
    }

    /// Returns the signal that wakes it.
    pub(crate) fn signal(&self) -> Arc<Signal> {
        Arc::clone(&self.signal)
    }

    /// Ends the watch after the engine has returned and its stragglers have arrived.
    pub fn end(mut self) -> Seen {
        self.signal.engine_returned();
        self.thread.take().map(|thread| thread.join().unwrap_or_default()).unwrap_or_default()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.signal.engine_returned();
    }
}

fn watch(work: &Work, sampling: Sampling, signal: &Signal, tell: &dyn Fn(SessionProgress)) -> Seen {
    // This takes a while, so that it is done before the load begins.
    let host = HostSampler::open(&work.threads);
    while clock::now() < work.start {
        // One that wakes late, when the load is over, still sees its end.
        if signal.wait_until(work.start) && clock::now() < work.start {
            return Seen::default();
        }
    }
    let mut sampler = Sampler::begin(work, sampling, host);
    let mut watch = None;
    let mut told = 0;
    let has_returned = loop {
        let (now, opens, closes) = (clock::now(), sampler.opens(), sampler.closes());
        if watch.is_none() && now >= opens {
            sampler.open_window();
            watch = Some(Watch::with_disks(&work.threads, &work.disks));
        }
        if now >= closes || work.meters.has_ended() {
            // First of all: what a thread has cost is lost when it ends, soon after the close.
            if let Some(watch) = &mut watch {
                watch.close();
            }
            tell(sampler.progress(now.min(closes)));
            break false;
        }
        let edge = if watch.is_some() { closes } else { opens };
        if now >= sampler.due_before(edge) {
            sampler.sample(false);
        }
        let every = progress_every(work.window.as_ref());
        if now >= told + every {
            told = now;
            tell(sampler.progress(now));
        }
        if signal.wait_until(edge.min(sampler.due_before(edge)).min(told + every)) {
            break true;
        }
    };
    if has_returned && let Some(watch) = &mut watch {
        watch.close();
    }
    let series = sampler.end();
    // Counters go on until stragglers have arrived.
    while !has_returned && !signal.wait_until(u64::MAX) {}
    Seen { observation: watch.map(Watch::finish), series }
}

/// Returns the interval of progress reports for a load with that window, in nanoseconds.
fn progress_every(window: Option<&Timeline>) -> u64 {
    if window.is_some_and(|window| !window.is_set()) { WARM_UP_PROGRESS_EVERY } else { PROGRESS_EVERY }
}

/// Takes samples of a load and its host.
struct Sampler<'a> {
    work: &'a Work,
    host: HostSampler,
    period: u64,
    /// Samples are taken in step with this moment: the start, then the opening of the window.
    step: u64,
    /// Times of the next sample and of the latest one.
    due: u64,
    latest: u64,
    /// Time of the sample at the beginning of the window. `None` in the warm-up.
    opened: Option<u64>,
    /// Greatest delay of the sender behind its schedule in the reports since the latest sample; reading clears it.
    late: u64,
    series: SeriesBuilder,
}

impl<'a> Sampler<'a> {
    fn begin(work: &'a Work, sampling: Sampling, mut host: HostSampler) -> Self {
        let (now, readings) = (clock::now(), read(&*work.meters, &mut host));
        let (period, step) = (sampling.period.get().max(1), work.start);
        let series = SeriesBuilder::new(sampling, now, readings);
        let mut begun = Self { work, host, period, step, due: step, latest: now, opened: None, late: 0, series };
        // Without a warm-up the window begins with this sample.
        begun.opened = (now >= begun.opens()).then_some(now);
        begun.step_on();
        begun
    }

    /// Returns the opening of the window. Without a window, all of the load is measured.
    fn opens(&self) -> u64 {
        self.work.window.as_ref().map_or(self.work.start, Timeline::open)
    }

    /// Returns the closing of the window; beyond any clock if it does not close.
    fn closes(&self) -> u64 {
        self.work.window.as_ref().map_or(u64::MAX, Timeline::close)
    }

    /// When the next sample is due; beyond any clock if that is so close to the `edge` of the window that the one taken
    /// there serves.
    fn due_before(&self, edge: u64) -> u64 {
        if edge.saturating_sub(self.due) >= self.period / 2 { self.due } else { u64::MAX }
    }

    fn sample(&mut self, is_edge: bool) {
        let (now, mut readings) = (clock::now(), read(&*self.work.meters, &mut self.host));
        readings.raise(SeriesQuantity::Lateness, "", std::mem::take(&mut self.late));
        self.series.take(now, readings, is_edge);
        self.latest = now;
        self.step_on();
    }

    /// Begins the window with a sample, unless the load began with it.
    fn open_window(&mut self) {
        if self.opened.is_none() {
            self.step = self.opens();
            self.sample(true);
            self.opened = Some(self.latest);
        }
    }

    /// Finds when the next sample is due: in step, and none is made up for.
    fn step_on(&mut self) {
        self.due = self.step + (self.latest.saturating_sub(self.step) / self.period + 1) * self.period;
    }

    /// Returns the progress of the load at `now`.
    fn progress(&mut self, now: u64) -> SessionProgress {
        let mut readings = Readings::default();
        self.work.meters.sample(&mut readings);
        self.late = self.late.max(readings.get(SeriesQuantity::Lateness).unwrap_or_default());
        let running = Nanos::new(now.saturating_sub(self.work.start));
        let since_open = |window: &Timeline| {
            let open = window.open();
            (now >= open).then(|| Nanos::new(now.min(window.close()) - open))
        };
        SessionProgress {
            running,
            measured: self.work.window.as_ref().map_or(Some(running), since_open),
            meter: self.work.meters.read(),
            srtt: readings.get(SeriesQuantity::Srtt).map(|micros| Nanos::new(micros * 1_000)),
            busiest_thread: self.host.busiest_thread(),
            latency: readings.latency().map(LatencyBuckets::of),
        }
    }

    /// Ends the series with a sample. The window's edges are where samples were taken, so that none of its intervals
    /// lies across one.
    fn end(mut self) -> Series {
        self.sample(true);
        self.series.finish(self.opened.unwrap_or(self.latest), self.latest)
    }
}

/// Reads the meters of engine and host.
fn read(meters: &dyn Meters, host: &mut HostSampler) -> Readings {
    let mut readings = Readings::default();
    let meter = meters.read();
    for (quantity, value) in [
        (SeriesQuantity::SentBytes, meter.sent_bytes),
        (SeriesQuantity::ReceivedBytes, meter.received_bytes),
        (SeriesQuantity::Operations, meter.operations),
        (SeriesQuantity::Retransmits, meter.retransmits),
        (SeriesQuantity::Lost, meter.lost),
    ] {
        readings.add(quantity, "", value);
    }
    meters.sample(&mut readings);
    host.sample(&mut readings);
    readings
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{Warmup, Window};

    #[test]
    fn progress_is_told_more_often_until_the_window_is_set() {
        let measure = Nanos::from_secs(1);
        let steady = Timeline::new(0, Window { warmup: Warmup::STEADY, measure });
        assert_eq!(progress_every(Some(&steady)), WARM_UP_PROGRESS_EVERY);
        assert!(steady.set_open(5));
        assert_eq!(progress_every(Some(&steady)), PROGRESS_EVERY);
        let fixed = Timeline::new(0, Window { warmup: Warmup::Fixed(measure), measure });
        assert_eq!((progress_every(Some(&fixed)), progress_every(None)), (PROGRESS_EVERY, PROGRESS_EVERY));
    }
}
