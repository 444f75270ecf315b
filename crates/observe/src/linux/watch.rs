//! Watching a host over the measured window of a trial.

use crate::cores::CoreTimes;
use crate::disk::Disk;
use crate::driver::DriverTotals;
use crate::kernel_thread::{KernelThreads, KernelTimes};
use crate::pressure::{self, PressureFiles};
use crate::protocols::{ProtocolTotals, Transit};
use crate::quota::{QuotaCounts, Quotas};
use crate::softnet::SoftnetCounts;
use crate::sources::Sources;
use crate::thread::ThreadTimes;
use crate::{disk, interface_counters, qdisc};
use linerate_model::{DiskUse, Observation, Pressure};
use linerate_sys::interface::{Link, Qdisc};
use linerate_sys::thread::EngineThread;
use linerate_units::Nanos;
use std::collections::BTreeMap;
use std::time::Instant;

/// A watch over this process's engine threads, this machine's cores and the network namespace it was opened in.
///
/// A source that this kernel does not have leaves its part of the observation empty; [`crate::capabilities`] names it.
pub struct Watch {
    threads: Vec<EngineThread>,
    sources: Sources,
    cpu_sources: CpuSources,
    cpu_opened: CpuSample,
    cpu_closed: Option<CpuSample>,
    counters_opened: CounterSample,
    links_closed: Option<Vec<Link>>,
}

impl Watch {
    /// Opens the window. CPU is sampled first, so that the window begins when this is called.
    pub fn open(threads: &[EngineThread]) -> Self {
        Self::with_disks(threads, &[])
    }

    /// The same, over the disks with these device numbers (`st_dev`) too.
    pub fn with_disks(threads: &[EngineThread], devices: &[u64]) -> Self {
        let (mut sources, cpu_sources) = (Sources::with_drivers(), CpuSources::open(devices));
        Self {
            cpu_opened: CpuSample::take(threads, &mut sources, &cpu_sources),
            cpu_closed: None,
            counters_opened: CounterSample::opened(&mut sources),
            links_closed: None,
            threads: threads.to_vec(),
            sources,
            cpu_sources,
        }
    }

    /// Closes the window: CPU figures end here. The engine's threads must still live, or their time is lost.
    pub fn close(&mut self) {
        self.cpu_closed = Some(CpuSample::take(&self.threads, &mut self.sources, &self.cpu_sources));
        self.links_closed = self.sources.links();
    }

    /// Ends the counters (call it once stragglers have arrived) and says what was seen.
    pub fn finish(mut self) -> Observation {
        let counters = CounterSample::ended(&mut self.sources);
        let take = || CpuSample::take(&self.threads, &mut self.sources, &self.cpu_sources);
        let cpu = self.cpu_closed.unwrap_or_else(take);
        let (cpu_before, before) = (&self.cpu_opened, &self.counters_opened);
        let window = cpu.at.saturating_duration_since(cpu_before.at).as_nanos();
        let links = counters.links.as_ref().zip(before.links.as_ref());
        let carried = self.links_closed.as_ref().zip(before.links.as_ref());
        let qdiscs = counters.qdiscs.as_ref().zip(before.qdiscs.as_ref());
        let names: BTreeMap<u32, String> =
            counters.links.iter().flatten().map(|link| (link.index, link.name.clone())).collect();
        Observation {
            window: Nanos::new(u64::try_from(window).unwrap_or(u64::MAX)),
            cores: cpu.cores.since(&cpu_before.cores),
            threads: cpu.threads.threads_since(&cpu_before.threads, &self.threads),
            kernel_threads: cpu.kernel_threads.since(&cpu_before.kernel_threads),
            agent_cpu: cpu.threads.process_since(&cpu_before.threads),
            interfaces: links.map(|(now, then)| interface_counters::since(now, then)).unwrap_or_default(),
            carried: carried.map(|(now, then)| interface_counters::since(now, then)).unwrap_or_default(),
            driver_counters: self.sources.drivers_since(counters.drivers.as_ref(), before.drivers.as_ref()),
            qdiscs: qdiscs.map(|(now, then)| qdisc::since(now, then, &names)).unwrap_or_default(),
            softnet: counters.softnet.since(&before.softnet),
            network: counters.protocols.since(&before.protocols),
            pressure: cpu
                .pressure
                .as_ref()
                .zip(cpu_before.pressure.as_ref())
                .map(|(now, then)| pressure::since(now, then)),
            quota: cpu.quotas.since(&cpu_before.quotas),
            disks: disk::since(&cpu.disks, &cpu_before.disks),
        }
    }
}

/// Where else is read what belongs to the measured window alone, kept open.
struct CpuSources {
    pressure: PressureFiles,
    quotas: Quotas,
    kernel_threads: KernelThreads,
    disks: Vec<Disk>,
}

impl CpuSources {
    fn open(devices: &[u64]) -> Self {
        Self {
            pressure: PressureFiles::open(),
            quotas: Quotas::open(),
            kernel_threads: KernelThreads::open(),
            disks: devices.iter().filter_map(|device| Disk::of(*device)).collect(),
        }
    }
}

/// What belongs to the measured window alone.
struct CpuSample {
    at: Instant,
    threads: ThreadTimes,
    cores: CoreTimes,
    pressure: Option<Pressure>,
    quotas: QuotaCounts,
    kernel_threads: KernelTimes,
    disks: Vec<Option<DiskUse>>,
}

impl CpuSample {
    fn take(threads: &[EngineThread], sources: &mut Sources, cpu: &CpuSources) -> Self {
        Self {
            at: Instant::now(),
            threads: ThreadTimes::read(threads),
            cores: sources.cores().unwrap_or_default(),
            pressure: cpu.pressure.read(),
            quotas: cpu.quotas.read(),
            kernel_threads: cpu.kernel_threads.read(),
            disks: cpu.disks.iter().map(Disk::read).collect(),
        }
    }
}

/// What goes on counting until stragglers have arrived. A source that could not be read is none, so that no difference is
/// taken from a zero that never was.
struct CounterSample {
    links: Option<Vec<Link>>,
    qdiscs: Option<Vec<Qdisc>>,
    softnet: SoftnetCounts,
    protocols: ProtocolTotals,
    drivers: Option<DriverTotals>,
}

impl CounterSample {
    fn opened(sources: &mut Sources) -> Self {
        let protocols = sources.protocols(Transit::Most);
        Self { protocols, ..Self::without_protocols(sources) }
    }

    fn ended(sources: &mut Sources) -> Self {
        let counters = Self::without_protocols(sources);
        Self { protocols: sources.protocols(Transit::Fewest), ..counters }
    }

    fn without_protocols(sources: &mut Sources) -> Self {
        Self {
            links: sources.links(),
            qdiscs: sources.qdiscs(),
            softnet: sources.softnet().unwrap_or_default(),
            protocols: ProtocolTotals::default(),
            drivers: sources.drivers(),
        }
    }
}
