//! Learning frames: before a trial each port announces its addresses, so that a switch need not flood the first test
//! frames (RFC 2544 section 23, RFC 2889 section 5).

use crate::linux::headers::link_header;
use crate::linux::plan::Plan;
use linerate_model::{Mac, RawFrame};
use linerate_sys::Error;
use linerate_sys::packet::PacketSocket;
use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

const TIMES: u32 = 3;
/// Pause between the rounds, and for the switch to learn.
const PAUSE: Duration = Duration::from_millis(20);

/// Sends a few frames from each port with the addresses behind it, in the streams' VLANs.
pub(crate) fn send(plan: &Plan, sockets: &[PacketSocket]) -> Result<(), Error> {
    // Port, local address, peer's address, VLANs.
    let mut announcements: BTreeSet<(usize, Mac, Mac, &[u16])> = BTreeSet::new();
    // Ports that only listen are announced too, so that frames do not flood to them.
    let first = plan.ports.first().map(|port| port.mac).unwrap_or_default();
    announcements.extend(plan.ports.iter().enumerate().map(|(index, port)| (index, port.mac, first, &[][..])));
    for stream in &plan.streams {
        let headers = &stream.wish.headers;
        let vlans = headers.vlans.as_slice();
        // A receiving port on another host has the frames' destination, or is behind the router that has it.
        let peer = stream.to.map_or(headers.destination_mac, |to| plan.ports[to].mac);
        if let Some(from) = stream.from {
            announcements.insert((from, headers.source_mac, peer, vlans));
        }
        // The other end of a stream back to its own port is the device itself.
        if let Some(to) = stream.to.filter(|to| stream.from != Some(*to)) {
            announcements.insert((to, peer, headers.source_mac, vlans));
        }
        let copies = stream.copies.iter().filter(|copy| stream.from != Some(**copy));
        announcements.extend(copies.map(|copy| (*copy, plan.ports[*copy].mac, headers.source_mac, vlans)));
    }
    for _ in 0..TIMES {
        for (port, local, peer, vlans) in &announcements {
            // No host answers frames of this type. Without a signature no port counts them.
            let mut frame = link_header(peer.0, local.0, vlans, RawFrame::EXPERIMENTAL);
            frame.resize(60, 0);
            sockets[*port].send(&frame)?;
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}
