//! PAUSE frames (IEEE 802.3 annex 31B) at ports with packet sockets. The MAC of a NIC obeys them and does not pass them
//! on; a virtual port has no MAC, so the sender obeys them.

use crate::linux::plan::Plan;
use linerate_model::Mac;
use linerate_sys::ethtool::Ethtool;
use std::sync::atomic::{AtomicU64, Ordering};

/// EtherType of MAC control frames.
const MAC_CONTROL: [u8; 2] = [0x88, 0x08];
/// Opcode of PAUSE.
const PAUSE: [u8; 2] = [0, 1];
/// Destination of PAUSE frames, unless it is the port itself.
const PAUSE_ADDRESS: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 1];
/// Bits of a quantum.
const QUANTUM: u128 = 512;
/// Speed of a port that reports none, bits per second.
const DEFAULT_SPEED: u64 = 1_000_000_000;

/// Ends of the pauses of all ports.
pub(crate) struct Pauses(Vec<PortPause>);

struct PortPause {
    mac: Mac,
    /// Bits per second.
    speed: u64,
    /// End of the latest pause, on the monotonic clock. Zero before the first.
    until: AtomicU64,
}

impl Pauses {
    pub(crate) fn of(plan: &Plan) -> Self {
        let ethtool = Ethtool::open().ok();
        let mut ports = Vec::with_capacity(plan.ports.len());
        for port in &plan.ports {
            let reported = ethtool.as_ref().and_then(|ethtool| ethtool.speed_mbps(&port.interface).ok().flatten());
            let speed = plan.line.map(|line| line.get()).or(reported.map(|mbps| u64::from(mbps) * 1_000_000));
            ports.push(PortPause {
                mac: port.mac,
                speed: speed.filter(|speed| *speed > 0).unwrap_or(DEFAULT_SPEED),
                until: AtomicU64::new(0),
            });
        }
        Self(ports)
    }

    /// Stops `port` if `frame`, which arrived there `at` this time, is a PAUSE frame.
    pub(crate) fn obey(&self, port: usize, frame: &[u8], at: u64) {
        let port = &self.0[port];
        if let Some(quanta) = quanta(frame, port.mac) {
            let time = u128::from(quanta) * QUANTUM * 1_000_000_000 / u128::from(port.speed);
            port.until.store(at + time as u64, Ordering::Relaxed);
        }
    }

    /// Returns the end of the latest pause of `port`, which may be over.
    pub(crate) fn until(&self, port: usize) -> u64 {
        self.0[port].until.load(Ordering::Relaxed)
    }
}

/// Returns the quanta of a PAUSE frame to the port with the address `mac`. Zero ends a pause.
fn quanta(frame: &[u8], mac: Mac) -> Option<u16> {
    let destination = frame.first_chunk::<6>()?;
    let is_pause = frame.get(12..14)? == MAC_CONTROL && frame.get(14..16)? == PAUSE;
    let quanta = u16::from_be_bytes([*frame.get(16)?, *frame.get(17)?]);
    (is_pause && (*destination == PAUSE_ADDRESS || *destination == mac.0)).then_some(quanta)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(destination: [u8; 6], opcode: u8) -> Vec<u8> {
        [&destination[..], &[2; 6], &MAC_CONTROL, &[0, opcode, 0x12, 0x34], &[0; 42]].concat()
    }

    #[test]
    fn quanta_of_pause_frames_are_read() {
        let mac = Mac([2, 0, 0, 0, 0, 7]);
        assert_eq!(quanta(&frame(PAUSE_ADDRESS, 1), mac), Some(0x1234));
        assert_eq!(quanta(&frame(mac.0, 1), mac), Some(0x1234));
        assert_eq!(quanta(&frame([2, 0, 0, 0, 0, 8], 1), mac), None, "to another port");
        assert_eq!(quanta(&frame(PAUSE_ADDRESS, 2), mac), None, "another opcode");
        assert_eq!(quanta(&frame(PAUSE_ADDRESS, 1)[..17], mac), None);
    }

    #[test]
    fn quantum_is_512_bit_times() {
        let port = PortPause { mac: Mac::default(), speed: 10_000_000_000, until: AtomicU64::new(0) };
        let pauses = Pauses(vec![port]);
        pauses.obey(0, &frame(PAUSE_ADDRESS, 1), 1_000);
        assert_eq!(pauses.until(0), 1_000 + 0x1234 * 512 / 10);
    }
}
