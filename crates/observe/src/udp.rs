//! UDP datagrams dropped for want of socket buffer, from `/proc/net/snmp` and `/proc/net/snmp6`.

/// `RcvbufErrors` of UDP over IPv4: the file has a line of names and a line of values for each protocol.
pub(crate) fn receive_buffer_errors_v4(snmp: &str) -> Option<u64> {
    let mut lines = snmp.lines().filter(|line| line.starts_with("Udp:"));
    let mut pairs = lines.next()?.split_ascii_whitespace().zip(lines.next()?.split_ascii_whitespace());
    pairs.find(|(name, _)| *name == "RcvbufErrors")?.1.parse().ok()
}

/// The same over IPv6: the file has a name and a value on each line.
pub(crate) fn receive_buffer_errors_v6(snmp6: &str) -> Option<u64> {
    snmp6.lines().find_map(|line| line.strip_prefix("Udp6RcvbufErrors"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_counter_by_its_name() {
        let snmp = "Ip: Forwarding DefaultTTL\nIp: 1 64\n\
            Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors\n\
            Udp: 181 0 18 182 17 0 0 0 1\n\
            UdpLite: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\nUdpLite: 0 0 0 0 99\n";
        assert_eq!(receive_buffer_errors_v4(snmp), Some(17));
        let snmp6 = "Ip6InReceives                   \t0\nUdp6RcvbufErrors                \t23\n\
            UdpLite6RcvbufErrors \t99\n";
        assert_eq!(receive_buffer_errors_v6(snmp6), Some(23));
        assert_eq!((receive_buffer_errors_v4(""), receive_buffer_errors_v6("")), (None, None));
    }
}
