//! Ethernet address of an IP address, by ARP (RFC 826) and neighbour discovery (RFC 4861), on a chosen port and from an
//! address that the kernel need not have.

use crate::FrameError;
use crate::linux::headers::{link_header, octets};
use crate::linux::port::usable;
use crate::linux::signature::sum;
use linerate_model::Mac;
use linerate_sys::netlink::Route;
use linerate_sys::packet::{ALL_PROTOCOLS, Incoming, PacketSocket};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

const ARP: u16 = 0x0806;
const IPV6: u16 = 0x86dd;
const ICMPV6: u8 = 58;
const NEIGHBOUR_SOLICITATION: u8 = 135;
const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
/// Interval of repeating the request (RFC 4861 section 10 has one second; a tester may ask more often).
const ASK_AGAIN: Duration = Duration::from_millis(250);

/// Requests the Ethernet address of `target` on `interface`, from the addresses `own`, until `timeout`.
pub fn resolve(interface: &str, own: (Mac, IpAddr), target: IpAddr, timeout: Duration) -> Result<Mac, FrameError> {
    let link = usable(&Route::open()?.links()?, interface)?;
    let question = match (own.1, target) {
        (IpAddr::V4(source), IpAddr::V4(target)) => arp_request(own.0, source, target),
        (IpAddr::V6(source), IpAddr::V6(target)) => solicitation(own.0, source, target),
        (source, target) => {
            let why = format!("{source} and {target} are of two families: give both in one");
            return Err(FrameError::BadTrial(why));
        }
    };
    let socket = PacketSocket::open(link.index, Some(ALL_PROTOCOLS))?;
    socket.hear_all()?;
    let mut incoming = Incoming::new(16);
    let start = Instant::now();
    let mut last_request = None::<Instant>;
    while start.elapsed() < timeout {
        if last_request.is_none_or(|time| time.elapsed() >= ASK_AGAIN) {
            socket.send(&question)?;
            last_request = Some(Instant::now());
        }
        if !socket.wait(10) {
            continue;
        }
        incoming
            .take(&socket)
            .map_err(|error| linerate_sys::Error::new("recvmmsg", format!("interface {interface}"), error))?;
        let answer = incoming.frames().find_map(|(frame, _)| match target {
            IpAddr::V4(target) => read_arp_reply(frame, target),
            IpAddr::V6(target) => read_advertisement(frame, target),
        });
        if let Some(mac) = answer {
            return Ok(mac);
        }
    }
    Err(FrameError::NoAnswer { interface: interface.to_owned(), target, timeout })
}

fn arp_request(mac: Mac, source: Ipv4Addr, target: Ipv4Addr) -> Vec<u8> {
    let mut frame = link_header([0xff; 6], mac.0, &[], ARP);
    // Ethernet, IPv4, 6 and 4 bytes of address, request.
    frame.extend([0, 1, 8, 0, 6, 4, 0, 1]);
    frame.extend(mac.0);
    frame.extend(source.octets());
    frame.extend([0; 6]);
    frame.extend(target.octets());
    frame.resize(60, 0);
    frame
}

fn read_arp_reply(frame: &[u8], target: Ipv4Addr) -> Option<Mac> {
    let reply = frame.get(12..42)?;
    let ours = reply[..10] == [8, 6, 0, 1, 8, 0, 6, 4, 0, 2] && reply[16..20] == target.octets();
    ours.then(|| reply[10..16].try_into().ok().map(Mac)).flatten()
}

fn solicitation(mac: Mac, source: Ipv6Addr, target: Ipv6Addr) -> Vec<u8> {
    let [.., a, b, c] = target.octets();
    // RFC 4291 section 2.7.1 and RFC 2464 section 7.
    let group = Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c]);
    let mut message = vec![NEIGHBOUR_SOLICITATION, 0, 0, 0, 0, 0, 0, 0];
    message.extend(target.octets());
    // Option: source link-layer address, 8 bytes.
    message.extend([1, 1]);
    message.extend(mac.0);

    let mut covered = octets(source.into());
    covered.extend(group.octets());
    covered.extend((message.len() as u32).to_be_bytes());
    covered.extend([0, 0, 0, ICMPV6]);
    covered.extend(&message);
    let checksum = !sum(&covered);
    message[2..4].copy_from_slice(&checksum.to_be_bytes());

    let mut frame = link_header([0x33, 0x33, 0xff, a, b, c], mac.0, &[], IPV6);
    frame.extend([0x60, 0, 0, 0, 0, message.len() as u8, ICMPV6, 255]);
    frame.extend(source.octets());
    frame.extend(group.octets());
    frame.extend(message);
    frame
}

fn read_advertisement(frame: &[u8], target: Ipv6Addr) -> Option<Mac> {
    let message = frame.get(54..)?;
    let ours = frame[12..14] == IPV6.to_be_bytes()
        && frame[20] == ICMPV6
        && *message.first()? == NEIGHBOUR_ADVERTISEMENT
        && *message.get(8..24)? == target.octets();
    // Without the option, the source of the frame is the address.
    let option = message.get(24..32).filter(|option| option[..2] == [2, 1]).map(|option| &option[2..]);
    ours.then(|| option.unwrap_or(&frame[6..12]).try_into().ok().map(Mac)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{SlicedPacket, TransportSlice};

    const OWN: Mac = Mac([2, 0, 0, 0, 0, 1]);
    const PEER: Mac = Mac([2, 0, 0, 0, 0, 9]);

    #[test]
    fn arp_request_and_reply_are_valid() {
        let target = Ipv4Addr::new(198, 18, 0, 9);
        let mut frame = arp_request(OWN, Ipv4Addr::new(198, 18, 0, 1), target);
        assert_eq!(read_arp_reply(&frame, target), None, "a question is no answer");
        frame[21] = 2;
        frame[22..28].copy_from_slice(&PEER.0);
        frame[28..32].copy_from_slice(&target.octets());
        assert_eq!(read_arp_reply(&frame, target), Some(PEER));
        assert_eq!(read_arp_reply(&frame, Ipv4Addr::new(198, 18, 0, 8)), None);
        assert_eq!(read_arp_reply(&frame[..41], target), None);
    }

    #[test]
    fn solicitation_and_advertisement_are_valid() {
        let source: Ipv6Addr = "2001:2::1".parse().unwrap();
        let target: Ipv6Addr = "2001:2::9".parse().unwrap();
        let mut frame = solicitation(OWN, source, target);
        let request = frame.clone();
        let packet = SlicedPacket::from_ethernet(&request).unwrap();
        let Some(TransportSlice::Icmpv6(icmp)) = packet.transport else { panic!("not ICMPv6") };
        let header = packet.net.as_ref().and_then(|net| net.ipv6_ref()).unwrap().header();
        assert!(icmp.is_checksum_valid(header.source(), header.destination()));
        assert_eq!(read_advertisement(&frame, target), None, "a question is no answer");
        frame[54] = NEIGHBOUR_ADVERTISEMENT;
        assert_eq!(read_advertisement(&frame, target), Some(OWN), "from the frame's source");
        frame[78] = 2;
        frame[80..86].copy_from_slice(&PEER.0);
        assert_eq!(read_advertisement(&frame, target), Some(PEER), "from the option");
        assert_eq!(read_advertisement(&frame, source), None);
    }
}
