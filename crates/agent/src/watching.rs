//! The host watched, the load sampled and progress told while an engine is at work.

use linerate_engine::{Meters, Timeline, Work};
use linerate_model::{
    LatencyBuckets, Observation, Readings, Sampling, Series, SeriesBuilder, SeriesQuantity, SessionProgress,
};
use linerate_observe::Watch;
use linerate_sys::clock;
use linerate_units::Nanos;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// SessionProgress is told this often: often enough for a person, too rare to cost anything.
const PROGRESS_EVERY: u64 = 200_000_000;
/// While the end of the warm-up is looked for, progress is what it is judged by.
const WARM_UP_PROGRESS_EVERY: u64 = 50_000_000;

/// A thread that watches the host and samples the load until the window closes.
pub(crate) struct Watching {
    signal: Arc<Signal>,
    thread: JoinHandle<Seen>,
}

/// What was seen of a load.
#[derive(Default)]
pub(crate) struct Seen {
    /// What the host saw in the window; none if no window opened.
    pub(crate) observation: Option<Observation>,
    /// The course of the load.
    pub(crate) series: Series,
}

/// Wakes the thread.
#[derive(Default)]
pub(crate) struct Signal {
    has_returned: Mutex<bool>,
    changed: Condvar,
}

impl Signal {
    /// The engine has returned.
    fn engine_returned(&self) {
        *self.has_returned.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// It is known now when the window opens.
    pub(crate) fn window_is_set(&self) {
        let _held = self.has_returned.lock().unwrap_or_else(PoisonError::into_inner);
        self.changed.notify_all();
    }

    /// Waits until `until`, or until something has changed. Returns whether the engine has returned.
    fn wait_until(&self, until: u64) -> bool {
        let held = self.has_returned.lock().unwrap_or_else(PoisonError::into_inner);
        let left = until.saturating_sub(clock::now());
        if *held || left == 0 {
            return *held;
        }
        let waited = self.changed.wait_timeout(held, Duration::from_nanos(left));
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Watching {
    /// Watches and samples `work`, and calls `tell` with how far it is. The thread begins in the caller's network namespace.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn begin(
        work: Work,
        sampling: Sampling,
        tell: impl Fn(SessionProgress) + Send + 'static,
    ) -> io::Result<Self> {
        let signal = Arc::<Signal>::default();
        let thread = Builder::new().name("watch".into()).spawn({
            let signal = Arc::clone(&signal);
            move || watch(&work, sampling, &signal, &tell)
        })?;
        Ok(Self { signal, thread })
    }

    /// What wakes it.
    pub(crate) fn signal(&self) -> Arc<Signal> {
        Arc::clone(&self.signal)
    }

    /// Ends the watch after the engine has returned and its stragglers have arrived.
    pub(crate) fn end(self) -> Seen {
        self.signal.engine_returned();
        self.thread.join().unwrap_or_default()
    }
}

fn watch(work: &Work, sampling: Sampling, signal: &Signal, tell: &dyn Fn(SessionProgress)) -> Seen {
    while clock::now() < work.start {
        if signal.wait_until(work.start) {
            return Seen::default();
        }
    }
    let mut sampler = Sampler::begin(work, sampling);
    let mut watch = None;
    let window = || work.window.as_ref().map_or((work.start, u64::MAX), |window| (window.open(), window.close()));
    let mut told = 0;
    let has_returned = loop {
        let now = clock::now();
        let (opens, closes) = window();
        if watch.is_none() && now >= opens {
            watch = Some(Watch::with_disks(&work.threads, &work.disks));
            sampler.sample(true);
        }
        if now >= closes || work.meters.has_ended() {
            break false;
        }
        if now >= sampler.due {
            sampler.sample(false);
        }
        let every = if work.window.as_ref().is_some_and(|window| !window.is_set()) {
            WARM_UP_PROGRESS_EVERY
        } else {
            PROGRESS_EVERY
        };
        if now >= told + every {
            told = now;
            tell(sampler.progress(now));
        }
        let next = if watch.is_none() { opens } else { closes };
        if signal.wait_until(next.min(sampler.due).min(told + every)) {
            break true;
        }
    };
    if let Some(watch) = &mut watch {
        watch.close();
    }
    let series = sampler.end();
    // Counters go on until stragglers have arrived.
    while !has_returned && !signal.wait_until(u64::MAX) {}
    Seen { observation: watch.map(Watch::finish), series }
}

/// Takes samples of a load and its host.
struct Sampler<'a> {
    work: &'a Work,
    period: u64,
    /// When the next sample is due.
    due: u64,
    /// The latest sample and its time.
    last: (u64, Readings),
    series: SeriesBuilder,
    busiest_core: Option<u8>,
}

impl<'a> Sampler<'a> {
    fn begin(work: &'a Work, sampling: Sampling) -> Self {
        let (now, readings) = (clock::now(), read(&*work.meters));
        let period = sampling.period.get().max(1);
        let series = SeriesBuilder::new(sampling, now, readings.clone());
        Self { work, period, due: now + period, last: (now, readings), series, busiest_core: None }
    }

    fn sample(&mut self, is_edge: bool) {
        let (now, readings) = (clock::now(), read(&*self.work.meters));
        self.series.take(now, readings.clone(), is_edge);
        self.busiest_core = busiest_core(&self.last, now, &readings).or(self.busiest_core);
        self.last = (now, readings);
        // Samples stay in step, and none is made up for.
        self.due += (now.saturating_sub(self.due) / self.period + u64::from(now >= self.due)) * self.period;
    }

    /// How far the load is at `now`.
    fn progress(&self, now: u64) -> SessionProgress {
        let mut readings = Readings::default();
        self.work.meters.sample(&mut readings);
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
            busiest_core: self.busiest_core,
            latency: readings.latency().map(LatencyBuckets::of),
        }
    }

    fn end(mut self) -> Series {
        self.sample(true);
        let end = self.last.0;
        let opened = self.work.window.as_ref().map_or(self.work.start, Timeline::open);
        self.series.finish(opened.min(end), end)
    }
}

/// What engine and host say now.
fn read(meters: &dyn Meters) -> Readings {
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
    readings
}

/// Busy share of the core that was busiest since the sample `before`, percent; none where cores are not read.
fn busiest_core(before: &(u64, Readings), now: u64, readings: &Readings) -> Option<u8> {
    const BUSY: [SeriesQuantity; 3] =
        [SeriesQuantity::CoreUser, SeriesQuantity::CoreSystem, SeriesQuantity::CoreSoftirq];
    let micros = (now.saturating_sub(before.0) / 1_000).max(1);
    let busy = |of: &Readings, core: &str| -> u64 {
        BUSY.iter().flat_map(|quantity| of.of(*quantity)).filter(|(name, _)| *name == core).map(|(_, time)| time).sum()
    };
    let cores = readings.of(SeriesQuantity::CoreUser);
    let share = |core: &str| (busy(readings, core).saturating_sub(busy(&before.1, core)) * 100 / micros).min(100) as u8;
    cores.map(|(core, _)| share(core)).max()
}
