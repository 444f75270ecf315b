//! Structures of the kernel, read from bytes. Nothing here calls the system, so that the tests run on Linux too.

#[cfg(any(test, target_os = "freebsd"))]
use crate::core_time::CoreTime;
#[cfg(any(test, target_os = "macos"))]
use crate::interface::LinkCounters;
use crate::protocol_counts::ProtocolStatistics;
use linerate_units::Nanos;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Positions of counters in `struct tcpstat`, `struct udpstat` and `struct ipstat`, which are made of integers of one size. Later versions of
/// the systems have appended to them.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Bytes of a counter.
    width: usize,
    /// tcps_sndtotal.
    tcp_sent: usize,
    /// tcps_sndrexmitpack.
    tcp_retransmits: usize,
    /// tcps_rcvtotal.
    tcp_received: usize,
    /// tcps_rcvbadsum, tcps_rcvbadoff.
    tcp_receive_errors: [usize; 2],
    /// udps_badsum.
    udp_checksum_errors: usize,
    /// udps_noport.
    udp_without_port: usize,
    /// udps_fullsock.
    udp_full_sockets: usize,
}

/// FreeBSD 10 and later (netinet/tcp_var.h, netinet/udp_var.h).
#[cfg(any(test, target_os = "freebsd"))]
pub(crate) const FREEBSD: Layout = Layout {
    width: 8,
    tcp_sent: 16,
    tcp_retransmits: 19,
    tcp_received: 27,
    tcp_receive_errors: [30, 31],
    udp_checksum_errors: 2,
    udp_without_port: 5,
    udp_full_sockets: 7,
};

/// macOS (bsd/netinet/tcp_var.h, bsd/netinet/udp_var.h of XNU).
#[cfg(any(test, target_os = "macos"))]
pub(crate) const MACOS: Layout = Layout {
    width: 4,
    tcp_sent: 15,
    tcp_retransmits: 18,
    tcp_received: 25,
    tcp_receive_errors: [28, 29],
    udp_checksum_errors: 2,
    udp_without_port: 4,
    udp_full_sockets: 6,
};

/// Positions in `struct ipstat`, which both systems have alike (netinet/ip_var.h): ips_badsum, ips_tooshort, ips_toosmall, ips_badhlen,
/// ips_badlen, ips_badoptions, ips_badvers.
const IP_HEADER_ERRORS: [usize; 7] = [1, 2, 3, 4, 5, 21, 23];
/// ips_fragdropped, ips_fragtimeout.
const IP_REASSEMBLY_FAILURES: [usize; 2] = [7, 8];
/// ips_odropped.
const IP_SEND_DISCARDS: usize = 16;
/// ips_noroute.
const IP_WITHOUT_ROUTE: usize = 22;

impl Layout {
    /// Reads the counters of TCP, UDP and IPv4. What has no such position is `None`; so is a structure of zeroes, which macOS shows to users
    /// that may not see the counters.
    pub(crate) fn statistics(&self, tcp: &[u8], udp: &[u8], ip: &[u8]) -> ProtocolStatistics {
        let [tcp, udp, ip] =
            [tcp, udp, ip].map(|counters| if counters.iter().all(|byte| *byte == 0) { &[] } else { counters });
        ProtocolStatistics {
            ip_header_errors: self.sum(ip, &IP_HEADER_ERRORS),
            ip_receive_discards: None,
            ip_send_discards: self.counter(ip, IP_SEND_DISCARDS),
            ip_without_route: self.counter(ip, IP_WITHOUT_ROUTE),
            ip_reassembly_failures: self.sum(ip, &IP_REASSEMBLY_FAILURES),
            udp_without_port: self.counter(udp, self.udp_without_port),
            udp_full_sockets: self.counter(udp, self.udp_full_sockets),
            udp_checksum_errors: self.counter(udp, self.udp_checksum_errors),
            tcp_received: self.counter(tcp, self.tcp_received),
            tcp_sent: self.counter(tcp, self.tcp_sent),
            tcp_retransmits: self.counter(tcp, self.tcp_retransmits),
            tcp_receive_errors: self.sum(tcp, &self.tcp_receive_errors),
        }
    }

    fn sum(&self, counters: &[u8], positions: &[usize]) -> Option<u64> {
        positions.iter().map(|position| self.counter(counters, *position)).sum()
    }

    fn counter(&self, counters: &[u8], position: usize) -> Option<u64> {
        let start = position * self.width;
        if self.width == 4 { u32_at(counters, start).map(u64::from) } else { u64_at(counters, start) }
    }
}

/// Reads the times of the cores from `kern.cp_times` of FreeBSD: for each core ticks in user space, of low priority there, in the kernel, in
/// interrupts, and idle (sys/resource.h).
#[cfg(any(test, target_os = "freebsd"))]
pub(crate) fn core_times(ticks: &[u8], ticks_per_second: u64) -> Vec<CoreTime> {
    let (counts, _) = ticks.as_chunks::<8>();
    let (cores, _) = counts.as_chunks::<5>();
    let time = |ticks: u64| ticks_to_time(ticks, ticks_per_second);
    cores
        .iter()
        .map(|core| {
            let [user, nice, kernel, interrupt, idle] = core.map(u64::from_ne_bytes);
            CoreTime {
                user: time(user + nice),
                kernel: time(kernel),
                deferred: Nanos::default(),
                interrupt: time(interrupt),
                idle: time(idle),
            }
        })
        .collect()
}

/// Converts ticks to a time without running over.
pub(crate) fn ticks_to_time(ticks: u64, ticks_per_second: u64) -> Nanos {
    let nanoseconds = u128::from(ticks) * 1_000_000_000 / u128::from(ticks_per_second.max(1));
    Nanos::new(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}

/// Reads the counters of interfaces, by their numbers, from the messages of NET_RT_IFLIST2 of macOS (`struct if_msghdr2` and its
/// `struct if_data64` in net/if.h and net/if_var.h, packed to four bytes). Other messages are skipped.
#[cfg(any(test, target_os = "macos"))]
pub(crate) fn interface_counters(mut messages: &[u8]) -> Vec<(u32, LinkCounters)> {
    const RTM_IFINFO2: u8 = 0x12;
    let mut interfaces = Vec::new();
    while let Some(length) = u16_at(messages, 0).filter(|length| *length > 0) {
        let Some((message, rest)) = messages.split_at_checked(length.into()) else { break };
        if message.get(3) == Some(&RTM_IFINFO2) {
            interfaces.extend(counters_of_message(message));
        }
        messages = rest;
    }
    interfaces
}

#[cfg(any(test, target_os = "macos"))]
fn counters_of_message(message: &[u8]) -> Option<(u32, LinkCounters)> {
    let index = u16_at(message, offset::INDEX)?;
    let counter = |at: usize| u64_at(message, offset::DATA + at);
    Some((
        index.into(),
        LinkCounters {
            rx_packets: counter(offset::IPACKETS)?,
            rx_errors: counter(offset::IERRORS)?,
            tx_packets: counter(offset::OPACKETS)?,
            tx_errors: counter(offset::OERRORS)?,
            rx_bytes: counter(offset::IBYTES)?,
            tx_bytes: counter(offset::OBYTES)?,
            rx_dropped: counter(offset::IQDROPS)?,
            tx_dropped: u32_at(message, offset::SEND_DROPS)?.into(),
            ..LinkCounters::default()
        },
    ))
}

/// Offsets in `struct if_msghdr2`, and in the `struct if_data64` at [`offset::DATA`] of it.
#[cfg(any(test, target_os = "macos"))]
mod offset {
    pub(super) const INDEX: usize = 12;
    pub(super) const SEND_DROPS: usize = 24;
    pub(super) const DATA: usize = 32;
    pub(super) const IPACKETS: usize = 24;
    pub(super) const IERRORS: usize = 32;
    pub(super) const OPACKETS: usize = 40;
    pub(super) const OERRORS: usize = 48;
    pub(super) const IBYTES: usize = 64;
    pub(super) const OBYTES: usize = 72;
    pub(super) const IQDROPS: usize = 96;

    #[cfg(target_os = "macos")]
    const _: () = {
        use libc::{if_data64, if_msghdr2};
        use std::mem::offset_of;
        assert!(offset_of!(if_msghdr2, ifm_index) == INDEX);
        assert!(offset_of!(if_msghdr2, ifm_snd_drops) == SEND_DROPS);
        assert!(offset_of!(if_msghdr2, ifm_data) == DATA);
        assert!(offset_of!(if_data64, ifi_ipackets) == IPACKETS);
        assert!(offset_of!(if_data64, ifi_ierrors) == IERRORS);
        assert!(offset_of!(if_data64, ifi_opackets) == OPACKETS);
        assert!(offset_of!(if_data64, ifi_oerrors) == OERRORS);
        assert!(offset_of!(if_data64, ifi_ibytes) == IBYTES);
        assert!(offset_of!(if_data64, ifi_obytes) == OBYTES);
        assert!(offset_of!(if_data64, ifi_iqdrops) == IQDROPS);
    };
}

/// Reads the address in a `struct sockaddr_in` or, with `v6`, a `struct sockaddr_in6`. The kernel keeps the number of the interface in the second
/// 16 bits of link-local addresses.
pub(crate) fn address(socket_address: &[u8], v6: bool) -> Option<IpAddr> {
    if !v6 {
        return Some(Ipv4Addr::from(*socket_address.get(4..)?.first_chunk::<4>()?).into());
    }
    let mut octets = *socket_address.get(8..)?.first_chunk::<16>()?;
    if Ipv6Addr::from(octets).is_unicast_link_local() {
        octets[2..4].fill(0);
    }
    Some(Ipv6Addr::from(octets).into())
}

/// Returns the number of bits that a mask, which is a socket address, has set. The kernel leaves out trailing zeroes.
pub(crate) fn prefix_length(mask: &[u8], v6: bool) -> u8 {
    let (start, end) = if v6 { (8, 24) } else { (4, 8) };
    let octets = mask.get(start..end.min(mask.len())).unwrap_or_default();
    octets.iter().map(|octet| octet.leading_ones() as u8).sum()
}

#[cfg(any(test, target_os = "macos"))]
fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    bytes.get(offset..)?.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes))
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    bytes.get(offset..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    bytes.get(offset..)?.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A structure whose counters are their positions times ten.
    fn counters(width: usize, count: usize) -> Vec<u8> {
        let number = |position: usize| (10 * position as u64).to_le_bytes();
        (0..count).flat_map(|position| number(position)[..width].to_vec()).collect()
    }

    #[test]
    fn statistics_are_read_by_position() {
        let [freebsd, macos] = [&FREEBSD, &MACOS].map(|layout| {
            let of = |count| counters(layout.width, count);
            layout.statistics(&of(90), &of(14), &of(29))
        });
        assert_eq!((freebsd.tcp_sent, macos.tcp_sent), (Some(160), Some(150)));
        assert_eq!((freebsd.tcp_receive_errors, macos.tcp_receive_errors), (Some(610), Some(570)));
        assert_eq!((freebsd.udp_full_sockets, macos.udp_full_sockets), (Some(70), Some(60)));
        assert_eq!((freebsd.ip_header_errors, macos.ip_without_route), (Some(590), Some(220)));
        assert_eq!(freebsd.ip_receive_discards, None);
    }

    #[test]
    fn hidden_and_short_structures_count_nothing() {
        assert_eq!(MACOS.statistics(&[0; 400], &[0; 88], &[0; 180]), ProtocolStatistics::default());
        let short = MACOS.statistics(&counters(4, 20), &[], &[]);
        assert_eq!((short.tcp_sent, short.tcp_received, short.udp_without_port), (Some(150), None, None));
    }

    #[test]
    fn core_times_are_five_counts_each() {
        let ticks: Vec<u8> = (0..11_u64).flat_map(u64::to_ne_bytes).collect();
        let cores = core_times(&ticks, 128);
        assert_eq!(cores.len(), 2, "the last count is of no whole core");
        let CoreTime { user, kernel, deferred, interrupt, idle } = cores[1];
        let ticks = [user, kernel, deferred, interrupt, idle].map(|time| time.get() * 128 / 1_000_000_000);
        assert_eq!(ticks, [5 + 6, 7, 0, 8, 9]);
        assert_eq!(ticks_to_time(u64::MAX, 1).get(), u64::MAX);
    }

    #[test]
    fn interface_messages_are_found_among_others() {
        let mut message = vec![0_u8; 160];
        message[..4].copy_from_slice(&[160, 0, 5, 0x12]);
        message[12] = 7;
        message[24] = 9;
        for (at, value) in [(24, 1_u8), (32, 2), (40, 3), (48, 4), (64, 5), (72, 6), (96, 8)] {
            message[32 + at] = value;
        }
        let mut other = message[..20].to_vec();
        other[..4].copy_from_slice(&[20, 0, 5, 0x0c]);
        let read = interface_counters(&[other.as_slice(), &message, &message[..100]].concat());
        let expected = LinkCounters {
            rx_packets: 1,
            rx_errors: 2,
            tx_packets: 3,
            tx_errors: 4,
            rx_bytes: 5,
            tx_bytes: 6,
            rx_dropped: 8,
            tx_dropped: 9,
            ..LinkCounters::default()
        };
        assert_eq!(read, [(7, expected)]);
        assert_eq!(interface_counters(&[0; 40]), []);
    }

    #[test]
    fn addresses_lose_the_number_of_their_interface() {
        let mut bytes = [0; 28];
        bytes[4..8].copy_from_slice(&[192, 0, 2, 1]);
        assert_eq!(address(&bytes, false), Some(Ipv4Addr::new(192, 0, 2, 1).into()));
        bytes[8..12].copy_from_slice(&[0xfe, 0x80, 0, 3]);
        bytes[23] = 1;
        assert_eq!(address(&bytes, true), "fe80::1".parse().ok());
        assert_eq!(address(&bytes[..12], true), None);
    }

    #[test]
    fn masks_may_be_cut_short() {
        assert_eq!(prefix_length(&[7, 0, 0, 0, 255, 255, 240], false), 20);
        assert_eq!(prefix_length(&[0], false), 0);
        let mut mask = [0; 28];
        mask[8..16].fill(255);
        assert_eq!(prefix_length(&mask, true), 64);
    }
}
