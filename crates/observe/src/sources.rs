//! Where a host's counters are read, kept open: they show the network namespace of the thread that opened them.

use crate::conntrack::ConntrackTotals;
use crate::cores::CoreTimes;
use crate::proc::ProcFile;
use crate::protocols::{self, ProtocolTotals};
use crate::softnet::SoftnetCounts;
use linerate_sys::netlink::{Link, Qdisc, Route};

/// The files and the netlink socket. What this kernel does not have reads as none, so that no difference is taken from a zero
/// that never was.
pub(crate) struct Sources {
    stat: ProcFile,
    softnet: ProcFile,
    snmp: ProcFile,
    snmp6: ProcFile,
    netstat: ProcFile,
    sockstat: [ProcFile; 2],
    conntrack: ProcFile,
    route: Option<Route>,
    buffer: Vec<u8>,
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
            buffer: Vec::new(),
        }
    }

    pub(crate) fn cores(&mut self) -> Option<CoreTimes> {
        self.stat.read_into(&mut self.buffer).map(CoreTimes::parse)
    }

    pub(crate) fn softnet(&mut self) -> Option<SoftnetCounts> {
        self.softnet.read_into(&mut self.buffer).map(SoftnetCounts::parse)
    }

    /// What the protocols counted, as far as it is read for each sample: `snmp` and `snmp6`.
    pub(crate) fn protocols_sampled(&mut self) -> ProtocolTotals {
        let mut totals = ProtocolTotals::default();
        totals.take_snmp(self.snmp.read_into(&mut self.buffer));
        totals.take_snmp6(self.snmp6.read_into(&mut self.buffer));
        totals
    }

    /// All that the protocols counted.
    pub(crate) fn protocols(&mut self) -> ProtocolTotals {
        let mut totals = self.protocols_sampled();
        totals.take_netstat(self.netstat.read_into(&mut self.buffer));
        let Self { sockstat, conntrack, buffer, .. } = self;
        totals.incomplete = sockstat.each_ref().map(|file| file.read_into(buffer).and_then(protocols::incomplete));
        totals.conntrack = conntrack.read_into(buffer).map(ConntrackTotals::parse);
        totals
    }

    pub(crate) fn links(&mut self) -> Option<Vec<Link>> {
        self.route.as_mut().and_then(|route| route.links().ok())
    }

    pub(crate) fn qdiscs(&mut self) -> Option<Vec<Qdisc>> {
        self.route.as_mut().and_then(|route| route.qdiscs().ok())
    }
}
