//! Where a host's counters are read, kept open: they show the network namespace of the thread that opened them.

use crate::cores::CoreTimes;
use crate::proc::ProcFile;
use crate::softnet::SoftnetCounts;
use crate::udp;
use linerate_sys::netlink::{Link, Qdisc, Route};

/// The files and the netlink socket. What this kernel does not have reads as none, so that no difference is taken from a zero
/// that never was.
pub(crate) struct Sources {
    stat: ProcFile,
    softnet: ProcFile,
    snmp: ProcFile,
    snmp6: ProcFile,
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

    /// UDP datagrams dropped for want of socket buffer, over IPv4 and over IPv6.
    pub(crate) fn udp_receive_buffer_errors(&mut self) -> [Option<u64>; 2] {
        let v4 = self.snmp.read_into(&mut self.buffer).and_then(udp::receive_buffer_errors_v4);
        let v6 = self.snmp6.read_into(&mut self.buffer).and_then(udp::receive_buffer_errors_v6);
        [v4, v6]
    }

    pub(crate) fn links(&mut self) -> Option<Vec<Link>> {
        self.route.as_mut().and_then(|route| route.links().ok())
    }

    pub(crate) fn qdiscs(&mut self) -> Option<Vec<Qdisc>> {
        self.route.as_mut().and_then(|route| route.qdiscs().ok())
    }
}
