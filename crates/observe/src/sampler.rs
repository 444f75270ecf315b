//! A host's counters read again and again while a load runs, as the readings of a series.
//!
//! Every counter is told as its growth since the sampler was opened, so it never falls: not when the kernel's counter
//! runs over its 32 bits, not when a thread, an interface or a queueing discipline goes away, and not when a source
//! cannot be read for once.

use crate::growth::{growth, growth_32};
use crate::sources::Sources;
use crate::thread_clock::cpu_of;
use linerate_model::{CoreUse, NetworkCounters, Readings, SeriesQuantity, Softnet};
use linerate_sys::clock;
use linerate_sys::interface::{Link, Qdisc};
use linerate_sys::thread::EngineThread;
use linerate_units::Nanos;
use std::collections::BTreeMap;

/// The busiest thread is told over this time at least: over a shorter one its share would jump with every batch of
/// work.
const BUSIEST_OVER: Nanos = Nanos::from_millis(500);

/// Samples this process's engine threads, this machine's cores and input queues, and the network namespace that it was
/// opened in.
pub struct HostSampler {
    sources: Sources,
    threads: Vec<Thread>,
    cores: BTreeMap<u32, Core>,
    /// By their numbers; none before they could be read. So are the disciplines.
    interfaces: Option<BTreeMap<u32, Interface>>,
    qdiscs: Option<BTreeMap<QdiscPlace, Discipline>>,
    softnet: Softnet,
    /// Growth of the protocol counters that are reported.
    protocols: [u64; PROTOCOL_COUNTERS.len()],
    busiest: Busiest,
}

impl HostSampler {
    /// Opens all sources in the calling thread's network namespace. Counters are told as growth from now on.
    pub fn open(threads: &[EngineThread]) -> Self {
        let mut sampler = Self {
            sources: Sources::open(),
            threads: threads.iter().map(Thread::new).collect(),
            cores: BTreeMap::new(),
            interfaces: None,
            qdiscs: None,
            softnet: Default::default(),
            protocols: Default::default(),
            busiest: Busiest::default(),
        };
        sampler.look();
        sampler
    }

    /// Adds what the host counts now to `readings`: counters since the sampler was opened, in the units of their
    /// quantities, and the queues as they stand. What is zero is left out.
    ///
    /// Cores have their numbers as subjects, threads and interfaces their names, and queueing disciplines both names, as in
    /// `eth0 fq`. Threads of one name add up, and so do disciplines of one kind on one interface.
    pub fn sample(&mut self, readings: &mut Readings) {
        self.look();
        self.tell(readings);
    }

    /// Share of a core that the busiest of the engine's threads used over the last half second or more, percent; none
    /// before that time has passed, or without threads.
    pub fn busiest_thread(&self) -> Option<u8> {
        self.busiest.share
    }

    /// Reads all sources.
    fn look(&mut self) {
        self.threads.iter_mut().for_each(Thread::look);
        self.busiest.look(clock::now(), || self.threads.iter().map(Thread::cpu).collect());
        if let Some(cores) = self.sources.cores() {
            for core in cores.since_start() {
                self.cores.entry(core.core).or_insert_with(|| Core::new(core)).look(core);
            }
        }
        if let Some(links) = self.sources.links() {
            self.look_at_interfaces(&links);
        }
        self.softnet = self.sources.softnet_grown();
        let grown = self.sources.protocols_grown();
        for ((.., counter), told) in PROTOCOL_COUNTERS.iter().zip(&mut self.protocols) {
            // What is filtered is a difference of counters, which may fall by some packets.
            *told = counter(&grown).max(*told);
        }
    }

    fn look_at_interfaces(&mut self, links: &[Link]) {
        let beginning = Beginning::after(&self.interfaces);
        let interfaces = self.interfaces.get_or_insert_default();
        for link in links {
            interfaces.entry(link.index).or_insert_with(|| Interface::new(link, beginning)).look(link);
        }
        let Some(all) = self.sources.qdiscs() else { return };
        let beginning = Beginning::after(&self.qdiscs);
        let qdiscs = self.qdiscs.get_or_insert_default();
        qdiscs.values_mut().for_each(|discipline| discipline.backlog_bytes = 0);
        for qdisc in &all {
            let Some(interface) = interfaces.get(&qdisc.link) else { continue };
            let new = || Discipline::new(qdisc, &interface.name, beginning);
            qdiscs.entry(QdiscPlace::of(qdisc)).or_insert_with(new).look(qdisc);
        }
    }

    fn tell(&self, readings: &mut Readings) {
        use SeriesQuantity as Of;
        let mut add = |quantity, subject: &str, value| {
            if value > 0 {
                readings.add(quantity, subject, value);
            }
        };
        for thread in &self.threads {
            add(Of::ThreadCpu, &thread.name, micros(thread.cpu()));
        }
        for core in self.cores.values() {
            let Core { name, user, system, softirq, steal, .. } = core;
            for (quantity, time) in
                [(Of::CoreUser, user), (Of::CoreSystem, system), (Of::CoreSoftirq, softirq), (Of::CoreSteal, steal)]
            {
                add(quantity, name, micros(*time));
            }
        }
        for interface in self.interfaces.iter().flat_map(BTreeMap::values) {
            for (quantity, counter) in INTERFACE_COUNTERS.iter().zip(&interface.counters) {
                add(*quantity, &interface.name, counter.grown);
            }
        }
        for discipline in self.qdiscs.iter().flat_map(BTreeMap::values) {
            add(Of::QdiscBacklog, &discipline.name, discipline.backlog_bytes);
            add(Of::QdiscOverlimits, &discipline.name, discipline.overlimits.grown);
            add(Of::QdiscDrops, &discipline.name, discipline.drops.grown);
        }
        let softnet = &self.softnet;
        add(Of::SoftnetProcessed, "", softnet.processed);
        add(Of::SoftnetDropped, "", softnet.dropped);
        add(Of::SoftnetSqueezed, "", softnet.squeezed);
        for ((quantity, subject, _), grown) in PROTOCOL_COUNTERS.iter().zip(&self.protocols) {
            add(*quantity, subject, *grown);
        }
    }
}

/// Reads one of the counters of the protocols.
type ProtocolCounter = fn(&NetworkCounters) -> u64;

/// Packets that IP may have received and not yet delivered when its counters are read: a few for each core that
/// receives.
const IN_TRANSIT: u64 = 16;

/// Protocol counters that are reported: quantity, subject and counter.
const PROTOCOL_COUNTERS: [(SeriesQuantity, &str, ProtocolCounter); 9] = [
    (SeriesQuantity::UdpReceiveBufferErrors, "", |all| all.udp.receive_buffer_errors),
    (SeriesQuantity::KernelDrops, "udp checksum", |all| all.udp.checksum_errors),
    (SeriesQuantity::KernelDrops, "udp memory", |all| all.udp.memory_errors),
    (SeriesQuantity::KernelDrops, "tcp checksum", |all| all.tcp.checksum_errors),
    (SeriesQuantity::KernelDrops, "ip header", |all| all.ip.header_errors),
    (SeriesQuantity::KernelDrops, "ip discards", |all| all.ip.receive_discards),
    (SeriesQuantity::KernelDrops, "ip filtered", |all| all.ip.filtered.saturating_sub(IN_TRANSIT)),
    (SeriesQuantity::KernelDrops, "ip reassembly", |all| all.ip.reassembly_failures),
    (SeriesQuantity::KernelDrops, "ip not sent", |all| all.ip.send_discards),
];

/// From where something counts that is seen for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beginning {
    /// From what it reads now.
    Now,
    /// From zero: it was made since.
    Zero,
}

impl Beginning {
    /// For what was not among those `seen` before, if any had been looked for.
    fn after<T>(seen: &Option<T>) -> Self {
        if seen.is_some() { Self::Zero } else { Self::Now }
    }

    fn of(self, now: u64) -> Growing {
        match self {
            Self::Now => Growing::from(now),
            Self::Zero => Growing::from(0),
        }
    }
}

/// A counter of the kernel's and how far it has grown.
#[derive(Debug, Clone, Copy)]
struct Growing {
    latest: u64,
    grown: u64,
}

impl Growing {
    fn from(latest: u64) -> Self {
        Self { latest, grown: 0 }
    }

    fn look(&mut self, now: u64, growth: fn(u64, u64) -> u64) {
        self.grown += growth(self.latest, now);
        self.latest = now;
    }
}

/// An engine thread's CPU time. One that has ended keeps what it had used when it was last looked at.
struct Thread {
    name: String,
    tid: i32,
    opened: Nanos,
    latest: Nanos,
    has_ended: bool,
}

impl Thread {
    fn new(thread: &EngineThread) -> Self {
        let cpu = cpu_of(thread.tid);
        let opened = cpu.unwrap_or_default();
        Self { name: thread.name.clone(), tid: thread.tid, opened, latest: opened, has_ended: cpu.is_none() }
    }

    fn look(&mut self) {
        if self.has_ended {
            return;
        }
        // Time that fell is another thread's, which was given the number meanwhile.
        match cpu_of(self.tid).filter(|cpu| *cpu >= self.latest) {
            Some(cpu) => self.latest = cpu,
            None => self.has_ended = true,
        }
    }

    fn cpu(&self) -> Nanos {
        self.latest - self.opened
    }
}

/// CPU time of one core.
struct Core {
    name: String,
    latest: CoreUse,
    user: Nanos,
    system: Nanos,
    softirq: Nanos,
    steal: Nanos,
}

impl Core {
    /// A core that comes online later has been counted since the machine was started: its time begins now.
    fn new(latest: &CoreUse) -> Self {
        let (name, zero) = (latest.core.to_string(), Nanos::default());
        Self { name, latest: *latest, user: zero, system: zero, softirq: zero, steal: zero }
    }

    fn look(&mut self, now: &CoreUse) {
        let passed = now.since(&self.latest);
        self.user = self.user + passed.user;
        self.system = self.system + passed.system;
        self.softirq = self.softirq + passed.softirq;
        self.steal = self.steal + passed.steal;
        self.latest = *now;
    }
}

/// Quantities of an interface, in the order of its counters.
const INTERFACE_COUNTERS: [SeriesQuantity; 5] = [
    SeriesQuantity::InterfaceSentBytes,
    SeriesQuantity::InterfaceSentPackets,
    SeriesQuantity::InterfaceReceivedBytes,
    SeriesQuantity::InterfaceReceivedPackets,
    SeriesQuantity::InterfaceDrops,
];

struct Interface {
    name: String,
    counters: [Growing; INTERFACE_COUNTERS.len()],
}

impl Interface {
    fn new(link: &Link, beginning: Beginning) -> Self {
        Self { name: link.name.clone(), counters: Self::read(link).map(|now| beginning.of(now)) }
    }

    fn look(&mut self, link: &Link) {
        for (counter, now) in self.counters.iter_mut().zip(Self::read(link)) {
            counter.look(now, growth);
        }
    }

    fn read(link: &Link) -> [u64; INTERFACE_COUNTERS.len()] {
        let counters = &link.counters;
        // linux/if_link.h: rx_dropped does not hold the frames that the NIC had no buffer for.
        let drops = counters.rx_dropped + counters.rx_missed_errors + counters.tx_dropped;
        [counters.tx_bytes, counters.tx_packets, counters.rx_bytes, counters.rx_packets, drops]
    }
}

/// Position of a queueing discipline. Another kind in the same position is another discipline.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct QdiscPlace {
    link: u32,
    parent: u32,
    handle: u32,
    kind: String,
}

impl QdiscPlace {
    fn of(qdisc: &Qdisc) -> Self {
        Self { link: qdisc.link, parent: qdisc.parent, handle: qdisc.handle, kind: qdisc.kind.clone() }
    }
}

struct Discipline {
    name: String,
    backlog_bytes: u64,
    overlimits: Growing,
    drops: Growing,
}

impl Discipline {
    fn new(qdisc: &Qdisc, interface: &str, beginning: Beginning) -> Self {
        Self {
            name: format!("{interface} {}", qdisc.kind),
            backlog_bytes: 0,
            overlimits: beginning.of(qdisc.overlimits),
            drops: beginning.of(qdisc.drops),
        }
    }

    fn look(&mut self, qdisc: &Qdisc) {
        self.backlog_bytes = qdisc.backlog_bytes;
        // struct gnet_stats_queue has 32 bits for these.
        self.overlimits.look(qdisc.overlimits, growth_32);
        self.drops.look(qdisc.drops, growth_32);
    }
}

/// Finds the busiest thread.
#[derive(Default)]
struct Busiest {
    /// Time of the reading that the next share counts from, and the CPU time of each thread.
    before: Option<(Nanos, Vec<Nanos>)>,
    share: Option<u8>,
}

impl Busiest {
    fn look(&mut self, now: u64, threads: impl FnOnce() -> Vec<Nanos>) {
        let now = Nanos::new(now);
        match &self.before {
            Some((at, _)) if now - *at < BUSIEST_OVER => {}
            Some((at, before)) => {
                let (passed, threads) = ((now - *at).as_secs_f64(), threads());
                let used = threads.iter().zip(before).map(|(now, then)| (*now - *then).as_secs_f64());
                // The clock is read after the threads' times, so a share may pass the whole by a little.
                self.share = used.map(|used| (used / passed * 100.0).round().min(100.0) as u8).max();
                self.before = Some((now, threads));
            }
            None => self.before = Some((now, threads())),
        }
    }
}

fn micros(time: Nanos) -> u64 {
    time.get() / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::tests::{Worker, worker};
    use linerate_sys::interface::LinkCounters;

    fn values(sampler: &mut HostSampler, quantity: SeriesQuantity) -> Vec<(String, u64)> {
        let mut readings = Readings::default();
        sampler.sample(&mut readings);
        readings.of(quantity).map(|(subject, value)| (subject.to_owned(), value)).collect()
    }

    #[test]
    fn a_counter_that_runs_over_or_begins_anew_does_not_fall() {
        let mut drops = Beginning::Now.of((1 << 32) - 10);
        drops.look((1 << 32) - 3, growth_32);
        assert_eq!(drops.grown, 7);
        drops.look(5, growth_32);
        assert_eq!(drops.grown, 15, "over the top");
        drops.look(2, growth_32);
        assert_eq!(drops.grown, 17, "replaced");
    }

    #[test]
    fn what_is_new_counts_from_zero_and_what_was_there_from_now() {
        let counters = LinkCounters { tx_bytes: 500, rx_missed_errors: 2, tx_dropped: 1, ..LinkCounters::default() };
        let link = Link { index: 7, name: "eth0".into(), counters, ..Link::default() };
        let (mut there, mut new) = (Interface::new(&link, Beginning::Now), Interface::new(&link, Beginning::Zero));
        there.look(&link);
        new.look(&link);
        assert_eq!(there.counters.map(|counter| counter.grown), [0; 5]);
        assert_eq!(new.counters.map(|counter| counter.grown), [500, 0, 0, 0, 3]);
    }

    #[test]
    fn a_queue_is_told_as_it_stands() {
        let at = |backlog_bytes, overlimits| Qdisc { backlog_bytes, overlimits, kind: "fq".into(), ..Qdisc::default() };
        let mut discipline = Discipline::new(&at(900, 40), "eth0", Beginning::Now);
        discipline.look(&at(300, 41));
        assert_eq!(
            (discipline.name.as_str(), discipline.backlog_bytes, discipline.overlimits.grown),
            ("eth0 fq", 300, 1)
        );
    }

    #[test]
    fn the_busiest_thread_is_told_over_half_a_second() {
        let mut busiest = Busiest::default();
        let mut share = |at_ms: u64, one_ms: u64, other_ms: u64| {
            busiest.look(at_ms * 1_000_000, || [one_ms, other_ms].map(Nanos::from_millis).into());
            busiest.share
        };
        assert_eq!(share(0, 100, 900), None);
        assert_eq!(share(490, 500, 900), None, "it is too early");
        assert_eq!(share(500, 400, 950), Some(60));
        assert_eq!(share(900, 800, 950), Some(60), "of the 500 ms before");
        assert_eq!(share(1_000, 410, 1_050), Some(20), "the other thread is the busiest now");
        assert_eq!(share(1_500, 911, 1_050), Some(100), "no more than the whole");
        let mut none = Busiest::default();
        none.look(0, Vec::new);
        none.look(1_000_000_000, Vec::new);
        assert_eq!(none.share, None, "without threads");
    }

    #[test]
    fn threads_of_one_name_add_up_and_keep_their_time_when_they_end() {
        let workers = ["send 0", "send 0"].map(worker);
        let threads = workers.each_ref().map(|worker| worker.engine.clone());
        let mut sampler = HostSampler::open(&threads);
        let amount = Nanos::from_millis(20);
        for worker in &workers {
            worker.orders.send(amount).expect("it waits");
            worker.done.recv().expect("it works");
        }
        let worked = values(&mut sampler, SeriesQuantity::ThreadCpu);
        assert!(worked.len() == 1 && worked[0].0 == "send 0" && worked[0].1 >= 40_000, "{worked:?}");
        for Worker { orders, thread, .. } in workers {
            drop(orders);
            thread.join().expect("it ends");
        }
        let after = values(&mut sampler, SeriesQuantity::ThreadCpu);
        assert_eq!(after, values(&mut sampler, SeriesQuantity::ThreadCpu));
        assert!(after.len() == 1 && after[0].1 >= worked[0].1, "{after:?} after {worked:?}");
    }
}
