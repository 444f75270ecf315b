//! What IP, UDP and TCP count in a network namespace: `/proc/net/snmp`, `snmp6`, `netstat` and `sockstat`.

use crate::conntrack::ConntrackTotals;
use crate::growth::growth;
use linerate_model::{IpCounters, NetworkCounters, TcpCounters, UdpCounters};

/// Counters read from `/proc/net/snmp`: IPv4, and TCP and UDP of RFC 4022 and RFC 4113.
const SNMP: &[&str] = &[
    "Ip InReceives",
    "Ip InHdrErrors",
    "Ip InAddrErrors",
    "Ip ForwDatagrams",
    "Ip InUnknownProtos",
    "Ip InDiscards",
    "Ip InDelivers",
    "Ip OutDiscards",
    "Ip OutNoRoutes",
    "Ip ReasmReqds",
    "Ip ReasmOKs",
    "Ip ReasmFails",
    "Ip ReasmTimeout",
    "Ip FragFails",
    "Tcp InSegs",
    "Tcp OutSegs",
    "Tcp RetransSegs",
    "Tcp InCsumErrors",
    "Udp NoPorts",
    "Udp RcvbufErrors",
    "Udp SndbufErrors",
    "Udp InCsumErrors",
    "Udp MemErrors",
];

/// The same of `/proc/net/snmp6`. TCP over IPv6 is counted with that over IPv4.
const SNMP6: &[&str] = &[
    "Ip6InReceives",
    "Ip6InHdrErrors",
    "Ip6InTooBigErrors",
    "Ip6InNoRoutes",
    "Ip6InAddrErrors",
    "Ip6InUnknownProtos",
    "Ip6InTruncatedPkts",
    "Ip6InDiscards",
    "Ip6InDelivers",
    "Ip6OutForwDatagrams",
    "Ip6OutDiscards",
    "Ip6OutNoRoutes",
    "Ip6ReasmReqds",
    "Ip6ReasmOKs",
    "Ip6ReasmFails",
    "Ip6ReasmTimeout",
    "Ip6FragFails",
    "Ip6InCEPkts",
    "Udp6NoPorts",
    "Udp6RcvbufErrors",
    "Udp6SndbufErrors",
    "Udp6InCsumErrors",
    "Udp6MemErrors",
];

/// The same of `/proc/net/netstat`: what only Linux counts.
const NETSTAT: &[&str] = &[
    "TcpExt RcvPruned",
    "TcpExt OfoPruned",
    "TcpExt ListenDrops",
    "TcpExt TCPFastRetrans",
    "TcpExt TCPTimeouts",
    "TcpExt TCPLossProbes",
    "TcpExt TCPRcvCollapsed",
    "TcpExt TCPAbortOnMemory",
    "TcpExt TCPAbortOnTimeout",
    "TcpExt TCPMemoryPressures",
    "TcpExt TCPSpuriousRTOs",
    "TcpExt TCPBacklogDrop",
    "TcpExt TCPOFODrop",
    "TcpExt TCPToZeroWindowAdv",
    "TcpExt TCPDeliveredCE",
    "TcpExt TCPZeroWindowDrop",
    "TcpExt TCPRcvQDrop",
    "IpExt InNoRoutes",
    "IpExt InTruncatedPkts",
    "IpExt InCsumErrors",
    "IpExt InCEPkts",
];

/// Values of counters by name. A counter that this kernel does not have is zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    names: &'static [&'static str],
    values: Vec<u64>,
}

impl Named {
    fn none(names: &'static [&'static str]) -> Self {
        Self { names, values: vec![0; names.len()] }
    }

    /// Reads a file that has a name and a value on each line, as `snmp6`.
    fn by_line(names: &'static [&'static str], text: &str) -> Self {
        let mut named = Self::none(names);
        let mut next = 0;
        // IP's lines and UDP's; the others tell of ICMP and UDP-Lite.
        for line in text.lines().filter(|line| line.starts_with("Ip6") || line.starts_with("Udp6")) {
            let mut words = line.split_ascii_whitespace();
            let (Some(head), Some(value)) = (words.next(), words.next()) else { continue };
            // Both are in the same order, but for what another kernel has.
            let expected = names.get(next).filter(|name| **name == head).map(|_| next);
            if let Some(at) = expected.or_else(|| names.iter().position(|name| *name == head)) {
                named.values[at] = value.parse().unwrap_or_default();
                next = at + 1;
            }
        }
        named
    }

    fn of(&self, name: &str) -> u64 {
        let at = self.names.iter().position(|own| *own == name);
        debug_assert!(at.is_some(), "{name} is not read");
        at.map_or(0, |at| self.values[at])
    }

    fn since(&self, before: &Self) -> Self {
        let grown = self.values.iter().zip(&before.values).map(|(now, then)| growth(*then, *now));
        Self { names: self.names, values: grown.collect() }
    }
}

/// How to read a file that has, for each protocol, a line of names and a line of values, as `snmp` and `netstat`. The
/// names stay the same while the kernel runs, so they are looked at once.
#[derive(Debug)]
struct ByProtocol {
    names: &'static [&'static str],
    protocols: Vec<Columns>,
}

/// Columns of a protocol's values to read, and the counters they belong to.
#[derive(Debug)]
struct Columns {
    protocol: String,
    wanted: Vec<(usize, usize)>,
}

impl ByProtocol {
    fn new(names: &'static [&'static str]) -> Self {
        Self { names, protocols: Vec::new() }
    }

    fn read(&mut self, text: &str) -> Named {
        let mut named = Named::none(self.names);
        let mut lines = text.lines();
        while let (Some(heads), Some(values)) = (lines.next(), lines.next()) {
            let Some((protocol, heads)) = heads.split_once(':') else { continue };
            let mut values = values.split_ascii_whitespace().skip(1);
            let mut passed = 0;
            for (column, at) in &self.columns(protocol, heads).wanted {
                named.values[*at] =
                    values.nth(column - passed).and_then(|value| value.parse().ok()).unwrap_or_default();
                passed = column + 1;
            }
        }
        named
    }

    fn columns(&mut self, protocol: &str, heads: &str) -> &Columns {
        let known = self.protocols.iter().position(|known| known.protocol == protocol).unwrap_or_else(|| {
            let own = |(at, name): (usize, &&'static str)| Some((at, name.strip_prefix(protocol)?.strip_prefix(' ')?));
            let own: Vec<_> = self.names.iter().enumerate().filter_map(own).collect();
            let of_name = |head: &str| own.iter().find(|(_, name)| *name == head).map(|(at, _)| *at);
            let heads = heads.split_ascii_whitespace().enumerate();
            let wanted = heads.filter_map(|(column, head)| Some((column, of_name(head)?))).collect();
            self.protocols.push(Columns { protocol: protocol.to_owned(), wanted });
            self.protocols.len() - 1
        });
        &self.protocols[known]
    }
}

/// Formats of the files, learnt once and kept from one reading to the next.
#[derive(Debug)]
pub(crate) struct ProtocolFormats {
    snmp: ByProtocol,
    netstat: ByProtocol,
}

impl ProtocolFormats {
    pub(crate) fn new() -> Self {
        Self { snmp: ByProtocol::new(SNMP), netstat: ByProtocol::new(NETSTAT) }
    }

    /// Reads the text of `/proc/net/snmp`.
    pub(crate) fn snmp(&mut self, text: &str) -> Named {
        self.snmp.read(text)
    }

    /// Reads the text of `/proc/net/snmp6`.
    pub(crate) fn snmp6(&self, text: &str) -> Named {
        Named::by_line(SNMP6, text)
    }

    /// Reads the text of `/proc/net/netstat`.
    pub(crate) fn netstat(&mut self, text: &str) -> Named {
        self.netstat.read(text)
    }
}

/// Packets of which some fragments are there and others not: `inuse` of the line `FRAG:` or `FRAG6:` in `sockstat` or
/// `sockstat6`.
pub(crate) fn incomplete(sockstat: &str) -> Option<u64> {
    let line =
        sockstat.lines().find_map(|line| line.strip_prefix("FRAG: ").or_else(|| line.strip_prefix("FRAG6: ")))?;
    line.strip_prefix("inuse ")?.split_ascii_whitespace().next()?.parse().ok()
}

/// What was counted since the namespace was made. A file that could not be read is none, so that no difference is taken
/// from a zero that never was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ProtocolTotals {
    pub(crate) snmp: Option<Named>,
    pub(crate) snmp6: Option<Named>,
    pub(crate) netstat: Option<Named>,
    /// Packets of which some fragments are there now, IPv4 and IPv6.
    pub(crate) incomplete: [Option<u64>; 2],
    pub(crate) conntrack: Option<ConntrackTotals>,
}

/// Choice between several readings, by the packets that were received and not yet delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transit {
    Most,
    Fewest,
}

impl ProtocolTotals {
    /// Of two readings in a row, takes of each file the one in which more, or fewer, packets had been received and were
    /// not yet delivered. Counters are not read at one moment, so that this number may be wrong by what passes in
    /// between: with the most when a window opens and the fewest when it ends, packets in transit never seem to have
    /// been filtered.
    pub(crate) fn chosen(self, later: Self, transit: Transit) -> Self {
        let best = |first: Option<Named>, second: Option<Named>, received: &str, delivered: &str| {
            let in_transit = |named: &Named| named.of(received).wrapping_sub(named.of(delivered)) as i64;
            let both = [first, second].into_iter().flatten();
            match transit {
                Transit::Most => both.max_by_key(in_transit),
                Transit::Fewest => both.min_by_key(in_transit),
            }
        };
        Self {
            snmp: best(self.snmp, later.snmp, "Ip InReceives", "Ip InDelivers"),
            snmp6: best(self.snmp6, later.snmp6, "Ip6InReceives", "Ip6InDelivers"),
            ..self
        }
    }

    /// Takes from `later` what could not be read before.
    pub(crate) fn complete(&mut self, later: &Self) {
        for (own, later) in [(&mut self.snmp, &later.snmp), (&mut self.snmp6, &later.snmp6)] {
            if own.is_none() {
                own.clone_from(later);
            }
        }
    }

    /// Returns the difference from `before`.
    pub(crate) fn since(&self, before: &Self) -> NetworkCounters {
        let grown = |now: &Option<Named>, then: &Option<Named>, names| match (now, then) {
            (Some(now), Some(then)) => now.since(then),
            _ => Named::none(names),
        };
        let snmp = grown(&self.snmp, &before.snmp, SNMP);
        let snmp6 = grown(&self.snmp6, &before.snmp6, SNMP6);
        let netstat = grown(&self.netstat, &before.netstat, NETSTAT);
        let mut ip = ip(&snmp, &snmp6, &netstat);
        // What was incomplete before and was given up meanwhile is among the failures.
        let incomplete = self.incomplete.into_iter().zip(before.incomplete).filter_map(|(now, then)| now.zip(then));
        let (now, then) = incomplete.fold((0, 0), |sum, both| (sum.0 + both.0, sum.1 + both.1));
        ip.unassembled = (now + ip.reassembly_failures).saturating_sub(then);
        NetworkCounters {
            ip,
            udp: udp(&snmp, &snmp6),
            tcp: tcp(&snmp, &netstat),
            conntrack: match (&self.conntrack, &before.conntrack) {
                (Some(now), Some(then)) => now.since(then),
                _ => Default::default(),
            },
        }
    }
}

fn ip(snmp: &Named, snmp6: &Named, netstat: &Named) -> IpCounters {
    let header_errors = [
        snmp.of("Ip InHdrErrors") + netstat.of("IpExt InTruncatedPkts"),
        snmp6.of("Ip6InHdrErrors") + snmp6.of("Ip6InTruncatedPkts"),
    ];
    let address_errors = [
        snmp.of("Ip InAddrErrors") + netstat.of("IpExt InNoRoutes"),
        snmp6.of("Ip6InAddrErrors") + snmp6.of("Ip6InNoRoutes"),
    ];
    let discards = [snmp.of("Ip InDiscards"), snmp6.of("Ip6InDiscards")];
    let received = [snmp.of("Ip InReceives"), snmp6.of("Ip6InReceives")];
    let delivered = [snmp.of("Ip InDelivers"), snmp6.of("Ip6InDelivers")];
    // Where else a packet goes. Of several fragments one packet goes on.
    let elsewhere = [
        snmp.of("Ip ForwDatagrams")
            + snmp.of("Ip InUnknownProtos")
            + snmp.of("Ip ReasmReqds").saturating_sub(snmp.of("Ip ReasmOKs")),
        snmp6.of("Ip6OutForwDatagrams")
            + snmp6.of("Ip6InUnknownProtos")
            + snmp6.of("Ip6InTooBigErrors")
            + snmp6.of("Ip6ReasmReqds").saturating_sub(snmp6.of("Ip6ReasmOKs")),
    ];
    let filtered = [0, 1].map(|family| {
        let counted = [&delivered, &header_errors, &address_errors, &discards, &elsewhere].map(|counts| counts[family]);
        received[family].saturating_sub(counted.into_iter().sum())
    });
    let sum = |counts: [u64; 2]| counts.into_iter().sum();
    IpCounters {
        received: sum(received),
        delivered: sum(delivered),
        header_errors: sum(header_errors),
        checksum_errors: netstat.of("IpExt InCsumErrors"),
        address_errors: sum(address_errors),
        receive_discards: sum(discards),
        filtered: sum(filtered),
        reassembly_failures: snmp.of("Ip ReasmFails") + snmp6.of("Ip6ReasmFails"),
        reassembly_timeouts: snmp.of("Ip ReasmTimeout") + snmp6.of("Ip6ReasmTimeout"),
        unassembled: 0,
        congestion_marked: netstat.of("IpExt InCEPkts") + snmp6.of("Ip6InCEPkts"),
        send_discards: snmp.of("Ip OutDiscards") + snmp6.of("Ip6OutDiscards"),
        send_no_routes: snmp.of("Ip OutNoRoutes") + snmp6.of("Ip6OutNoRoutes"),
        too_big: snmp.of("Ip FragFails") + snmp6.of("Ip6FragFails") + snmp6.of("Ip6InTooBigErrors"),
    }
}

fn udp(snmp: &Named, snmp6: &Named) -> UdpCounters {
    let both = |v4: &str, v6: &str| snmp.of(v4) + snmp6.of(v6);
    UdpCounters {
        receive_buffer_errors: both("Udp RcvbufErrors", "Udp6RcvbufErrors"),
        memory_errors: both("Udp MemErrors", "Udp6MemErrors"),
        checksum_errors: both("Udp InCsumErrors", "Udp6InCsumErrors"),
        unknown_ports: both("Udp NoPorts", "Udp6NoPorts"),
        send_buffer_errors: both("Udp SndbufErrors", "Udp6SndbufErrors"),
    }
}

fn tcp(snmp: &Named, netstat: &Named) -> TcpCounters {
    TcpCounters {
        segments_received: snmp.of("Tcp InSegs"),
        segments_sent: snmp.of("Tcp OutSegs"),
        segments_retransmitted: snmp.of("Tcp RetransSegs"),
        checksum_errors: snmp.of("Tcp InCsumErrors"),
        timeouts: netstat.of("TcpExt TCPTimeouts"),
        spurious_timeouts: netstat.of("TcpExt TCPSpuriousRTOs"),
        fast_retransmits: netstat.of("TcpExt TCPFastRetrans"),
        loss_probes: netstat.of("TcpExt TCPLossProbes"),
        backlog_drops: netstat.of("TcpExt TCPBacklogDrop"),
        receive_queue_drops: netstat.of("TcpExt TCPRcvQDrop"),
        out_of_order_drops: netstat.of("TcpExt TCPOFODrop") + netstat.of("TcpExt OfoPruned"),
        zero_window_drops: netstat.of("TcpExt TCPZeroWindowDrop"),
        pruned: netstat.of("TcpExt RcvPruned"),
        collapsed: netstat.of("TcpExt TCPRcvCollapsed"),
        zero_windows_advertised: netstat.of("TcpExt TCPToZeroWindowAdv"),
        memory_pressures: netstat.of("TcpExt TCPMemoryPressures"),
        aborted_on_timeout: netstat.of("TcpExt TCPAbortOnTimeout"),
        aborted_on_memory: netstat.of("TcpExt TCPAbortOnMemory"),
        listen_drops: netstat.of("TcpExt ListenDrops"),
        delivered_ce: netstat.of("TcpExt TCPDeliveredCE"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SNMP_TEXT: &str = "Ip: Forwarding DefaultTTL InReceives InHdrErrors InAddrErrors ForwDatagrams InUnknownProtos InDiscards \
        InDelivers OutRequests OutDiscards OutNoRoutes ReasmTimeout ReasmReqds ReasmOKs ReasmFails FragOKs FragFails\n\
        Ip: 1 64 1000 3 2 0 1 4 900 700 5 6 1 60 10 7 0 8\n\
        IcmpMsg: InType3\nIcmpMsg: 463\n\
        Tcp: RtoAlgorithm InSegs OutSegs RetransSegs InErrs OutRsts InCsumErrors\nTcp: 1 50 40 2 9 9 9\n\
        Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors\n\
        Udp: 181 2 18 182 17 3 5 0 1\n\
        UdpLite: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\nUdpLite: 0 0 0 0 99\n";
    const SNMP6_TEXT: &str = "Ip6InReceives                   \t30\nIp6InDelivers                   \t20\n\
        Udp6RcvbufErrors                \t23\nUdp6InCsumErrors \t100\nUdpLite6RcvbufErrors \t99\n";
    const NETSTAT_TEXT: &str = "TcpExt: SyncookiesSent TCPBacklogDrop TCPRcvQDrop\nTcpExt: 1 11 12\n\
        IpExt: InNoRoutes InTruncatedPkts InCsumErrors InCEPkts\nIpExt: 1 0 2 77\n";

    fn totals(snmp: &str, snmp6: &str, netstat: &str) -> ProtocolTotals {
        let mut formats = ProtocolFormats::new();
        ProtocolTotals {
            snmp: Some(formats.snmp(snmp)),
            snmp6: Some(formats.snmp6(snmp6)),
            netstat: Some(formats.netstat(netstat)),
            ..ProtocolTotals::default()
        }
    }

    #[test]
    fn counters_are_found_by_protocol_and_name() {
        let counted = totals(SNMP_TEXT, SNMP6_TEXT, NETSTAT_TEXT).since(&totals("", "", ""));
        let udp = UdpCounters {
            receive_buffer_errors: 17 + 23,
            memory_errors: 1,
            checksum_errors: 5 + 100,
            unknown_ports: 2,
            send_buffer_errors: 3,
        };
        assert_eq!(counted.udp, udp);
        let tcp = counted.tcp;
        assert_eq!(
            (tcp.segments_received, tcp.checksum_errors, tcp.backlog_drops, tcp.receive_queue_drops),
            (50, 9, 11, 12)
        );
        let ip = counted.ip;
        assert_eq!((ip.received, ip.delivered, ip.header_errors, ip.checksum_errors), (1_030, 920, 3, 2));
        assert_eq!((ip.address_errors, ip.receive_discards), (3, 4));
        assert_eq!((ip.reassembly_failures, ip.reassembly_timeouts), (7, 1));
        assert_eq!((ip.congestion_marked, ip.send_discards, ip.send_no_routes, ip.too_big), (77, 5, 6, 8));
    }

    #[test]
    fn names_are_looked_at_once_though_other_protocols_come_and_go() {
        let mut formats = ProtocolFormats::new();
        let first = formats.snmp(SNMP_TEXT);
        let without_icmp = SNMP_TEXT.replace("IcmpMsg: InType3\nIcmpMsg: 463\n", "");
        assert_eq!(formats.snmp(&without_icmp), first);
        assert_eq!(formats.snmp(""), Named::none(SNMP));
    }

    #[test]
    fn what_is_received_and_ends_nowhere_was_filtered() {
        let counted = totals(SNMP_TEXT, SNMP6_TEXT, NETSTAT_TEXT).since(&totals("", "", ""));
        // IPv4: 1000 less 900 delivered, 3 and 2 and 1 and 4 of errors, one without a route, and 50 that went into
        // others. IPv6: 30 less 20.
        assert_eq!(counted.ip.filtered, (1_000 - 900 - 3 - 2 - 1 - 4 - 1 - 50) + 10);
    }

    #[test]
    fn of_several_readings_those_are_taken_between_which_nothing_seems_filtered() {
        let at = |received: u64, delivered: u64| {
            totals(&format!("Ip: InReceives InDelivers\nIp: {received} {delivered}\n"), "", "")
        };
        let (cut, whole, later) = (at(100, 160), at(160, 159), at(200, 200));
        for [first, second] in [[&cut, &whole], [&whole, &cut]] {
            let chosen = |transit| first.clone().chosen(second.clone(), transit).snmp;
            assert_eq!((chosen(Transit::Most), chosen(Transit::Fewest)), (whole.snmp.clone(), cut.snmp.clone()));
        }
        assert_eq!(later.since(&cut).ip.filtered, 60, "what the choice is for");
        assert_eq!(later.since(&whole).ip.filtered, 0);
    }

    #[test]
    fn a_source_that_cannot_be_read_counts_nothing() {
        let now = totals(SNMP_TEXT, SNMP6_TEXT, NETSTAT_TEXT);
        assert_eq!(now.since(&ProtocolTotals::default()), NetworkCounters::default());
        assert_eq!(ProtocolTotals::default().since(&now), NetworkCounters::default());
        assert_eq!(now.since(&now), NetworkCounters::default());
    }

    #[test]
    fn packets_that_are_incomplete_at_the_end_count_and_those_from_before_do_not() {
        let at = |incomplete: u64, failures: u64| ProtocolTotals {
            incomplete: [Some(incomplete), None],
            ..totals(&format!("Ip: ReasmFails\nIp: {failures}\n"), "", "")
        };
        let unassembled = |before: ProtocolTotals, after: ProtocolTotals| after.since(&before).ip.unassembled;
        assert_eq!(unassembled(at(0, 0), at(5, 0)), 5);
        assert_eq!(unassembled(at(3, 0), at(0, 3)), 0, "they were there before");
        assert_eq!(unassembled(at(3, 0), at(2, 7)), 6);
        assert_eq!(incomplete("sockets: used 18\nUDP: inuse 7 mem 0\nFRAG: inuse 4 memory 9000\n"), Some(4));
        assert_eq!(incomplete("RAW6: inuse 2\nFRAG6: inuse 3 memory 0\n"), Some(3));
        assert_eq!(incomplete("RAW6: inuse 2\n"), None);
    }
}
