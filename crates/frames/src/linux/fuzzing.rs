//! Entry points for fuzzing: frames that arrive at a port from any host on its link.

use crate::linux::headers::find_signature;
use crate::linux::neighbours::{Hosts, Link, Macs};
use linerate_model::Mac;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Looks for the signature of a trial in a frame, and answers it for hosts of either family.
pub fn frame(bytes: &[u8]) {
    let _ = find_signature(bytes);
    let mac = Mac([2, 0, 0, 0, 0, 1]);
    for first in [IpAddr::from(Ipv4Addr::new(198, 18, 0, 1)), IpAddr::from(Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 1))]
    {
        for mac in [Macs::One(mac), Macs::From(mac)] {
            let Some(answer) = Link(vec![Hosts { first, count: 4, mac }]).answer(bytes) else { continue };
            // A solicitation without a source link-layer address (72 bytes) is answered with one (86).
            assert!(answer.len() <= bytes.len().max(86), "{} bytes draw {}", bytes.len(), answer.len());
        }
    }
}
