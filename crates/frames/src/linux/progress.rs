//! Progress of a trial: frames sent and received by each port.

use linerate_engine::Meters;
use linerate_model::{Meter, Readings, SeriesQuantity};
use linerate_sys::clock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Divisor of the reader's time for reading the kernel's counts, which takes a call or two per stream.
const SHARE: u64 = 32;

/// Counts of a running trial, port by port.
pub(crate) struct Progress {
    ports: Vec<PortMeter>,
    kernel: Mutex<Kernel>,
}

/// Frames of the trial that a port sent, and frames for it that arrived; their bytes, with FCS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PortCounts {
    pub(crate) sent: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) received: u64,
    pub(crate) received_bytes: u64,
}

/// Counts of a port, on a cache line (pair) of its own.
#[derive(Debug)]
#[repr(align(128))]
struct PortMeter {
    name: String,
    sent: AtomicU64,
    sent_bytes: AtomicU64,
    received: AtomicU64,
    received_bytes: AtomicU64,
}

/// Counters in the kernel.
pub(crate) trait KernelCounts: Send + Sync {
    /// Adds the counts so far to their ports.
    fn add_to(&self, ports: &mut [PortCounts]);
}

#[derive(Default)]
struct Kernel {
    /// Current counters. `None` if the engine's threads count.
    counts: Option<Arc<dyn KernelCounts>>,
    /// Time of the next reading.
    due: u64,
}

/// Guard that makes the kernel's counts the progress. Progress may outlive the trial, but its programs must not.
pub(crate) struct Counting<'a>(&'a Progress);

impl Drop for Counting<'_> {
    fn drop(&mut self) {
        let mut kernel = self.0.kernel();
        self.0.take_over(&kernel);
        *kernel = Kernel::default();
    }
}

impl Progress {
    /// Creates the counts of the ports with these names.
    pub(crate) fn of(names: impl Iterator<Item = String>) -> Self {
        let ports = names.map(|name| PortMeter {
            name,
            sent: AtomicU64::new(0),
            sent_bytes: AtomicU64::new(0),
            received: AtomicU64::new(0),
            received_bytes: AtomicU64::new(0),
        });
        Self { ports: ports.collect(), kernel: Mutex::default() }
    }

    /// Resets the counts to zero.
    pub(crate) fn begin(&self) {
        self.ports.iter().for_each(|port| port.set(PortCounts::default()));
    }

    /// Adds `frames` of `bytes` in all, with FCS, that `port` sent.
    pub(crate) fn add_sent(&self, port: usize, frames: u64, bytes: u64) {
        self.ports[port].sent.fetch_add(frames, Ordering::Relaxed);
        self.ports[port].sent_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Adds `frames` of `bytes` in all, with FCS, that were addressed to `port` and arrived there.
    pub(crate) fn add_received(&self, port: usize, frames: u64, bytes: u64) {
        self.ports[port].received.fetch_add(frames, Ordering::Relaxed);
        self.ports[port].received_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns the frames that have arrived at `port`.
    pub(crate) fn received(&self, port: usize) -> u64 {
        self.refresh();
        self.ports[port].received.load(Ordering::Relaxed)
    }

    /// Reads progress from `counts` from now on.
    pub(crate) fn counted_by(&self, counts: Arc<dyn KernelCounts>) -> Counting<'_> {
        *self.kernel() = Kernel { counts: Some(counts), due: 0 };
        Counting(self)
    }

    /// Reads the kernel's counts, unless they were read just now.
    fn refresh(&self) {
        let mut kernel = self.kernel();
        if clock::now() >= kernel.due {
            // CPU time of the thread, without the time in which it was descheduled.
            let start = clock::thread_cpu();
            self.take_over(&kernel);
            kernel.due = clock::now() + (clock::thread_cpu() - start) * SHARE;
        }
    }

    fn take_over(&self, kernel: &Kernel) {
        let Some(counts) = &kernel.counts else { return };
        let mut ports = vec![PortCounts::default(); self.ports.len()];
        counts.add_to(&mut ports);
        self.ports.iter().zip(ports).for_each(|(port, counts)| port.set(counts));
    }

    fn kernel(&self) -> MutexGuard<'_, Kernel> {
        self.kernel.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PortMeter {
    fn set(&self, counts: PortCounts) {
        self.sent.store(counts.sent, Ordering::Relaxed);
        self.sent_bytes.store(counts.sent_bytes, Ordering::Relaxed);
        self.received.store(counts.received, Ordering::Relaxed);
        self.received_bytes.store(counts.received_bytes, Ordering::Relaxed);
    }
}

impl Meters for Progress {
    fn read(&self) -> Meter {
        self.refresh();
        let mut meter = Meter::default();
        for port in &self.ports {
            meter.sent_bytes += port.sent_bytes.load(Ordering::Relaxed);
            meter.received_bytes += port.received_bytes.load(Ordering::Relaxed);
            meter.operations += port.sent.load(Ordering::Relaxed);
        }
        meter
    }

    fn sample(&self, readings: &mut Readings) {
        self.refresh();
        for port in &self.ports {
            readings.add(SeriesQuantity::FramesSent, &port.name, port.sent.load(Ordering::Relaxed));
            readings.add(SeriesQuantity::FramesReceived, &port.name, port.received.load(Ordering::Relaxed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_testsuite::wait_until;

    #[derive(Default)]
    struct Counted(AtomicU64);

    impl KernelCounts for Counted {
        fn add_to(&self, ports: &mut [PortCounts]) {
            let sent = self.0.load(Ordering::Relaxed);
            ports[1].sent += sent;
            ports[1].sent_bytes += 64 * sent;
            ports[0].received += sent;
        }
    }

    fn sampled(progress: &Progress) -> [Option<u64>; 4] {
        let mut readings = Readings::default();
        progress.sample(&mut readings);
        let value =
            |quantity, name| readings.of(quantity).find(|(subject, _)| *subject == name).map(|(_, count)| count);
        let [sent, received] = [SeriesQuantity::FramesSent, SeriesQuantity::FramesReceived];
        [value(sent, "left"), value(received, "left"), value(sent, "right"), value(received, "right")]
    }

    #[test]
    fn kernel_counts_are_read_on_demand_and_released() {
        let progress = Progress::of(["left", "right"].map(String::from).into_iter());
        let counted = Arc::<Counted>::default();
        let counting = progress.counted_by(Arc::clone(&counted) as Arc<dyn KernelCounts>);
        for sent in [7, 9] {
            counted.0.store(sent, Ordering::Relaxed);
            // The previous reading is used for a moment.
            wait_until("it is read", || (progress.read().operations == sent).then_some(()));
            assert_eq!(progress.read().sent_bytes, 64 * sent);
            assert_eq!(sampled(&progress), [Some(0), Some(sent), Some(sent), Some(0)]);
        }
        counted.0.store(11, Ordering::Relaxed);
        drop(counting);
        assert_eq!(Arc::strong_count(&counted), 1);
        assert_eq!(progress.read().operations, 11, "the last counts stay");
        progress.begin();
        progress.add_sent(0, 3, 300);
        progress.add_received(1, 2, 200);
        assert_eq!(sampled(&progress), [Some(3), Some(0), Some(0), Some(2)]);
    }
}
