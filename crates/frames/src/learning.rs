//! Learning frames: before a trial each port says where it is, so that a switch need not flood the first test frames
//! (RFC 2544 section 23, RFC 2889 section 5).

use crate::headers::link_header;
use crate::plan::Plan;
use linerate_model::Mac;
use linerate_sys::Error;
use linerate_sys::packet::PacketSocket;
use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

/// IEEE 802 local experimental EtherType 1: nobody answers it.
const EXPERIMENTAL: u16 = 0x88b5;
const TIMES: u32 = 3;
/// Between the rounds, and for the switch to take it in.
const PAUSE: Duration = Duration::from_millis(20);

/// Lets every port send a few frames from the addresses that are behind it, in the streams' VLANs.
pub(crate) fn send(plan: &Plan) -> Result<(), Error> {
    // Port, own address, peer's address, VLANs.
    let mut whereabouts: BTreeSet<(usize, Mac, Mac, &[u16])> = BTreeSet::new();
    // A port that only listens is known too: what floods to it was not meant for it.
    let first = plan.ports.first().map(|port| port.mac).unwrap_or_default();
    whereabouts.extend(plan.ports.iter().enumerate().map(|(index, port)| (index, port.mac, first, &[][..])));
    for stream in &plan.streams {
        let headers = &stream.wish.headers;
        let vlans = headers.vlans.as_slice();
        // A receiving port elsewhere has the frames' destination, or it is behind the router that has.
        let peer = stream.to.map_or(headers.destination_mac, |to| plan.ports[to].mac);
        if let Some(from) = stream.from {
            whereabouts.insert((from, headers.source_mac, peer, vlans));
        }
        // Of a stream that comes back to its own port the other end is the device itself.
        if let Some(to) = stream.to.filter(|to| stream.from != Some(*to)) {
            whereabouts.insert((to, peer, headers.source_mac, vlans));
        }
    }
    for _ in 0..TIMES {
        for (port, own, peer, vlans) in &whereabouts {
            let mut frame = link_header(peer.0, own.0, vlans, EXPERIMENTAL);
            frame.resize(60, 0);
            PacketSocket::open(plan.ports[*port].link, None)?.send(&frame)?;
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}
