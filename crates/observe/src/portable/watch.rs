//! Watching a host over the measured window of a trial.

use crate::cores::CoreTimes;
use crate::interface_counters;
use crate::protocols::ProtocolTotals;
use crate::sources::Sources;
use crate::thread::ThreadTimes;
use linerate_model::{Observation, Softnet};
use linerate_sys::interface::Link;
use linerate_sys::thread::EngineThread;
use linerate_units::Nanos;
use std::time::Instant;

/// A watch over this process's engine threads and this machine.
///
/// Parts of the observation that the system does not count are empty; [`crate::capabilities`] names them.
pub struct Watch {
    threads: Vec<EngineThread>,
    sources: Sources,
    cpu_opened: CpuSample,
    cpu_closed: Option<CpuSample>,
    links_opened: Option<Vec<Link>>,
    links_closed: Option<Vec<Link>>,
    protocols_opened: ProtocolTotals,
}

impl Watch {
    /// Opens the window. CPU is sampled first, so that the window begins when this is called.
    pub fn open(threads: &[EngineThread]) -> Self {
        let mut sources = Sources::open();
        Self {
            cpu_opened: CpuSample::take(threads, &mut sources),
            cpu_closed: None,
            links_opened: sources.links(),
            links_closed: None,
            protocols_opened: ProtocolTotals::read(),
            threads: threads.to_vec(),
            sources,
        }
    }

    /// Opens the window as [`Watch::open`] does. Disks are not known here.
    pub fn with_disks(threads: &[EngineThread], _: &[u64]) -> Self {
        Self::open(threads)
    }

    /// Closes the window: CPU figures end here. The engine's threads must still live, or their time is lost.
    pub fn close(&mut self) {
        self.cpu_closed = Some(CpuSample::take(&self.threads, &mut self.sources));
        self.links_closed = self.sources.links();
    }

    /// Ends the counters (call it once stragglers have arrived) and says what was seen.
    pub fn finish(mut self) -> Observation {
        let links = self.sources.links();
        let protocols = ProtocolTotals::read();
        let cpu = self.cpu_closed.take().unwrap_or_else(|| CpuSample::take(&self.threads, &mut self.sources));
        let before = &self.cpu_opened;
        let window = cpu.at.saturating_duration_since(before.at).as_nanos();
        let grown = |links: Option<&Vec<Link>>| {
            let both = links.zip(self.links_opened.as_ref());
            both.map(|(now, then)| interface_counters::since(now, then)).unwrap_or_default()
        };
        Observation {
            window: Nanos::new(u64::try_from(window).unwrap_or(u64::MAX)),
            cores: cpu.cores.since(&before.cores),
            threads: cpu.threads.threads_since(&before.threads, &self.threads),
            kernel_threads: Vec::new(),
            agent_cpu: cpu.threads.process_since(&before.threads),
            interfaces: grown(links.as_ref()),
            carried: grown(self.links_closed.as_ref()),
            driver_counters: Vec::new(),
            qdiscs: Vec::new(),
            softnet: Softnet::default(),
            network: protocols.since(&self.protocols_opened),
            pressure: None,
            quota: None,
            disks: Vec::new(),
        }
    }
}

/// CPU times, which belong to the measured window alone.
struct CpuSample {
    at: Instant,
    threads: ThreadTimes,
    cores: CoreTimes,
}

impl CpuSample {
    fn take(threads: &[EngineThread], sources: &mut Sources) -> Self {
        Self { at: Instant::now(), threads: ThreadTimes::read(threads), cores: sources.cores().unwrap_or_default() }
    }
}
