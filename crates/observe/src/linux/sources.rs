//! Where a host's counters are read, kept open: they show the network namespace of the thread that opened them.

use crate::conntrack::ConntrackTotals;
use crate::cores::CoreTimes;
use crate::driver::{DriverStatistics, DriverTotals};
use crate::proc::ProcFile;
use crate::protocols::{self, ProtocolFormats, ProtocolTotals, Transit};
use crate::softnet::SoftnetCounts;
use crate::stat;
use linerate_model::{DriverCounter, NetworkCounters, Softnet};
use linerate_sys::interface::{Link, Qdisc};
use linerate_sys::netlink::Route;

/// Number of readings of the protocol counters when a window opens and when it ends.
const READINGS: usize = 2;

/// The files and the netlink socket. What this kernel does not have reads as none, so that no difference is taken from
/// a zero that never was.
pub(crate) struct Sources {
    stat: ProcFile,
    softnet: ProcFile,
    snmp: ProcFile,
    snmp6: ProcFile,
    netstat: ProcFile,
    sockstat: [ProcFile; 2],
    conntrack: ProcFile,
    route: Option<Route>,
    drivers: Option<DriverStatistics>,
    formats: ProtocolFormats,
    buffer: Vec<u8>,
    /// Input queues as they were read last, and their growth since the first reading.
    queues: (SoftnetCounts, Softnet),
    /// Protocol counters as they were read first.
    first_protocols: ProtocolTotals,
}

impl Sources {
    pub(crate) fn open() -> Self {
        Self {
            stat: ProcFile::open("/proc/stat"),
            // `thread-self`, because another thread of this process may be in another network namespace.
            softnet: ProcFile::open("/proc/thread-self/net/softnet_stat"),
            snmp: ProcFile::open("/proc/thread-self/net/snmp"),
            snmp6: ProcFile::open("/proc/thread-self/net/snmp6"),
            netstat: ProcFile::open("/proc/thread-self/net/netstat"),
            sockstat: ["/proc/thread-self/net/sockstat", "/proc/thread-self/net/sockstat6"].map(ProcFile::open),
            conntrack: ProcFile::open("/proc/thread-self/net/stat/nf_conntrack"),
            route: Route::open().ok(),
            drivers: None,
            formats: ProtocolFormats::new(),
            buffer: Vec::new(),
            queues: Default::default(),
            first_protocols: ProtocolTotals::default(),
        }
    }

    /// The same, and the statistics of the drivers. NICs may take a millisecond to tell theirs, so this is not for each
    /// sample.
    pub(crate) fn with_drivers() -> Self {
        let mut sources = Self::open();
        sources.drivers = sources.links().map(|links| DriverStatistics::open(&links));
        sources
    }

    pub(crate) fn cores(&mut self) -> Option<CoreTimes> {
        self.stat.read_into(&mut self.buffer).map(stat::cores)
    }

    pub(crate) fn softnet(&mut self) -> Option<SoftnetCounts> {
        self.softnet.read_into(&mut self.buffer).map(SoftnetCounts::parse)
    }

    /// Reads the input queues. Returns their growth since this was called first.
    pub(crate) fn softnet_grown(&mut self) -> Softnet {
        if let Some(now) = self.softnet() {
            let (before, sums) = &mut self.queues;
            let grown = now.since(before);
            sums.processed += grown.processed;
            sums.dropped += grown.dropped;
            sums.squeezed += grown.squeezed;
            *before = now;
        }
        self.queues.1
    }

    /// Reads the protocol counters that each sample needs. Returns their growth since this was called first.
    pub(crate) fn protocols_grown(&mut self) -> NetworkCounters {
        let now = self.protocols_sampled();
        self.first_protocols.complete(&now);
        now.since(&self.first_protocols)
    }

    /// Reads the protocol counters that each sample needs: `snmp` and `snmp6`.
    ///
    /// Their counters are not read at one moment, and a packet that is received meanwhile may be missing from one and
    /// not from another.
    fn protocols_sampled(&mut self) -> ProtocolTotals {
        let Self { snmp, snmp6, formats, buffer, .. } = self;
        ProtocolTotals {
            snmp: snmp.read_into(buffer).map(|text| formats.snmp(text)),
            snmp6: snmp6.read_into(buffer).map(|text| formats.snmp6(text)),
            ..ProtocolTotals::default()
        }
    }

    /// Reads all protocol counters: of two readings the one with the most packets in transit, or the fewest.
    pub(crate) fn protocols(&mut self, transit: Transit) -> ProtocolTotals {
        let mut totals = self.protocols_sampled();
        // An interrupt between two counters may hide many packets: it is unlikely to do so twice.
        for _ in 1..READINGS {
            totals = totals.chosen(self.protocols_sampled(), transit);
        }
        let Self { netstat, sockstat, conntrack, formats, buffer, .. } = self;
        totals.netstat = netstat.read_into(buffer).map(|text| formats.netstat(text));
        totals.incomplete = sockstat.each_ref().map(|file| file.read_into(buffer).and_then(protocols::incomplete));
        totals.conntrack = conntrack.read_into(buffer).map(ConntrackTotals::parse);
        totals
    }

    /// Reads the driver statistics. `None` unless they were opened with the rest.
    pub(crate) fn drivers(&self) -> Option<DriverTotals> {
        self.drivers.as_ref().map(DriverStatistics::read)
    }

    /// Returns the driver statistics that grew between two readings.
    pub(crate) fn drivers_since(
        &self,
        after: Option<&DriverTotals>,
        before: Option<&DriverTotals>,
    ) -> Vec<DriverCounter> {
        let (Some(drivers), Some(after), Some(before)) = (&self.drivers, after, before) else { return Vec::new() };
        drivers.since(after, before)
    }

    pub(crate) fn links(&mut self) -> Option<Vec<Link>> {
        self.route.as_mut().and_then(|route| route.links().ok())
    }

    pub(crate) fn qdiscs(&mut self) -> Option<Vec<Qdisc>> {
        self.route.as_mut().and_then(|route| route.qdiscs().ok())
    }
}
