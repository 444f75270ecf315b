//! What IP, UDP and TCP count on this system.

use crate::growth::growth_32;
use linerate_model::{IpCounters, NetworkCounters, TcpCounters, UdpCounters};
use linerate_sys::protocol_counts::ProtocolStatistics;
use linerate_sys::protocol_statistics::protocol_statistics;

/// Counters since the start of the system, of IPv4 and IPv6. `None` for a version whose counters could not be read.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ProtocolTotals([Option<ProtocolStatistics>; 2]);

impl ProtocolTotals {
    pub(crate) fn read() -> Self {
        Self([false, true].map(|v6| protocol_statistics(v6).ok()))
    }

    /// Takes from `later` what could not be read before.
    pub(crate) fn complete(&mut self, later: &Self) {
        for (own, later) in self.0.iter_mut().zip(later.0) {
            *own = own.or(later);
        }
    }

    /// Returns the difference from `before`.
    pub(crate) fn since(&self, before: &Self) -> NetworkCounters {
        let both = || self.0.iter().zip(&before.0).filter_map(|(now, then)| (*now).zip(*then));
        // A counter of 64 bits never falls.
        let grown = |counter: fn(&ProtocolStatistics) -> Option<u64>| -> u64 {
            let counts = both().filter_map(|(now, then)| counter(&then).zip(counter(&now)));
            counts.map(|(then, now)| growth_32(then, now)).sum()
        };
        NetworkCounters {
            ip: IpCounters {
                header_errors: grown(|counts| counts.ip_header_errors),
                receive_discards: grown(|counts| counts.ip_receive_discards),
                send_discards: grown(|counts| counts.ip_send_discards),
                send_no_routes: grown(|counts| counts.ip_without_route),
                reassembly_failures: grown(|counts| counts.ip_reassembly_failures),
                ..IpCounters::default()
            },
            udp: UdpCounters {
                unknown_ports: grown(|counts| counts.udp_without_port),
                receive_buffer_errors: grown(|counts| counts.udp_full_sockets),
                checksum_errors: grown(|counts| counts.udp_checksum_errors),
                ..UdpCounters::default()
            },
            tcp: TcpCounters {
                segments_received: grown(|counts| counts.tcp_received),
                segments_sent: grown(|counts| counts.tcp_sent),
                segments_retransmitted: grown(|counts| counts.tcp_retransmits),
                checksum_errors: grown(|counts| counts.tcp_receive_errors),
                ..TcpCounters::default()
            },
            ..NetworkCounters::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_grow_from_what_was_read_first() {
        let read = |sent| ProtocolStatistics { tcp_sent: Some(sent), ..ProtocolStatistics::default() };
        let sent = |before, after| ProtocolTotals(after).since(&ProtocolTotals(before)).tcp.segments_sent;
        assert_eq!(sent([Some(read(5)), Some(read(1))], [Some(read(9)), Some(read(2))]), 5);
        assert_eq!(sent([Some(read((1 << 32) - 2)), None], [Some(read(3)), Some(read(7))]), 5);
        assert_eq!(sent([Some(ProtocolStatistics::default()), None], [Some(read(3)), None]), 0);
        assert_eq!(sent([Some(read(1 << 40)), None], [Some(read((1 << 40) + 4)), None]), 4);
    }
}
