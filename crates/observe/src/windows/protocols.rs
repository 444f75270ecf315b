//! What IP, UDP and TCP count on this system.

use crate::growth::growth_32;
use linerate_model::{IpCounters, NetworkCounters, TcpCounters, UdpCounters};
use linerate_sys::protocol_statistics::{ProtocolStatistics, protocol_statistics};

/// Counters since the start of the system. A version of IP whose counters could not be read is none, so that no difference is taken from a zero
/// that never was.
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
        let grown = |counter: fn(&ProtocolStatistics) -> u32| -> u64 {
            both().map(|(now, then)| growth_32(counter(&then).into(), counter(&now).into())).sum()
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
            udp: UdpCounters { unknown_ports: grown(|counts| counts.udp_without_port), ..UdpCounters::default() },
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
