//! What each port has sent and received so far of a trial.

use linerate_engine::Meters;
use linerate_model::{Meter, Readings, SeriesQuantity};
use linerate_sys::clock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// To read the kernel's counts takes a call or two for each stream: of the reader's time this share at the most.
const SHARE: u64 = 32;

/// Counts of a trial under way, port by port.
pub(crate) struct Progress {
    ports: Vec<PortMeter>,
    kernel: Mutex<Kernel>,
}

/// Frames of the trial that a port sent, and that arrived at it where they were meant to; their bytes, FCS counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PortCounts {
    pub(crate) sent: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) received: u64,
    pub(crate) received_bytes: u64,
}

/// A port's counts, on a cache line (pair) of its own.
#[derive(Debug)]
#[repr(align(128))]
struct PortMeter {
    name: String,
    sent: AtomicU64,
    sent_bytes: AtomicU64,
    received: AtomicU64,
    received_bytes: AtomicU64,
}

/// Where the kernel counts.
pub(crate) trait KernelCounts: Send + Sync {
    /// Adds what was counted so far to its ports.
    fn add_to(&self, ports: &mut [PortCounts]);
}

#[derive(Default)]
struct Kernel {
    /// What counts at the moment; none where the engine's threads do.
    counts: Option<Arc<dyn KernelCounts>>,
    /// It is not read again before this.
    due: u64,
}

/// As long as it lives, the kernel's counts are the progress. Progress may be kept longer than the trial lasts, and its programs must not.
pub(crate) struct Counting<'a>(&'a Progress);

impl Drop for Counting<'_> {
    fn drop(&mut self) {
        let mut kernel = self.0.kernel();
        self.0.take_over(&kernel);
        *kernel = Kernel::default();
    }
}

impl Progress {
    /// Counts of the ports with these names.
    pub(crate) fn of(names: impl Iterator<Item = String>) -> Self {
        let zero = || AtomicU64::new(0);
        let ports = names.map(|name| PortMeter {
            name,
            sent: zero(),
            sent_bytes: zero(),
            received: zero(),
            received_bytes: zero(),
        });
        Self { ports: ports.collect(), kernel: Mutex::default() }
    }

    /// Counts from zero.
    pub(crate) fn begin(&self) {
        self.ports.iter().for_each(|port| port.set(PortCounts::default()));
    }

    /// Adds `frames` of `bytes` in all, FCS counted, that `port` sent.
    pub(crate) fn add_sent(&self, port: usize, frames: u64, bytes: u64) {
        self.ports[port].sent.fetch_add(frames, Ordering::Relaxed);
        self.ports[port].sent_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Adds `frames` of `bytes` in all, FCS counted, that were meant for `port` and arrived there.
    pub(crate) fn add_received(&self, port: usize, frames: u64, bytes: u64) {
        self.ports[port].received.fetch_add(frames, Ordering::Relaxed);
        self.ports[port].received_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns the frames that have arrived at `port`.
    pub(crate) fn received(&self, port: usize) -> u64 {
        self.refresh();
        self.ports[port].received.load(Ordering::Relaxed)
    }

    /// Takes progress from `counts` from now on.
    pub(crate) fn counted_by(&self, counts: Arc<dyn KernelCounts>) -> Counting<'_> {
        *self.kernel() = Kernel { counts: Some(counts), due: 0 };
        Counting(self)
    }

    /// Reads what the kernel counts, unless that was done just now.
    fn refresh(&self) {
        let mut kernel = self.kernel();
        if clock::now() >= kernel.due {
            // What the thread worked, not how long it was kept from its core meanwhile.
            let begun = clock::thread_cpu();
            self.take_over(&kernel);
            kernel.due = clock::now() + (clock::thread_cpu() - begun) * SHARE;
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
        let sum =
            |of: fn(&PortMeter) -> &AtomicU64| self.ports.iter().map(|port| of(port).load(Ordering::Relaxed)).sum();
        Meter {
            sent_bytes: sum(|port| &port.sent_bytes),
            received_bytes: sum(|port| &port.received_bytes),
            operations: sum(|port| &port.sent),
            ..Meter::default()
        }
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
        let of = |quantity, name| readings.of(quantity).find(|(subject, _)| *subject == name).map(|(_, count)| count);
        let [sent, received] = [SeriesQuantity::FramesSent, SeriesQuantity::FramesReceived];
        [of(sent, "left"), of(received, "left"), of(sent, "right"), of(received, "right")]
    }

    #[test]
    fn what_the_kernel_counts_is_read_when_it_is_asked_for_and_not_kept() {
        let progress = Progress::of(["left", "right"].map(String::from).into_iter());
        let counted = Arc::<Counted>::default();
        let counting = progress.counted_by(Arc::clone(&counted) as Arc<dyn KernelCounts>);
        for sent in [7, 9] {
            counted.0.store(sent, Ordering::Relaxed);
            // What was read just now serves for a moment.
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
