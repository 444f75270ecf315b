//! A link of a set rate: what its ends let out, and how much they hold.

use linerate_sys::shaping::EthernetShape;
use linerate_units::BitRate;

/// Ethernet header and one VLAN tag, bytes.
const HEADERS: u16 = 14 + 4;
/// Burst that an end may send after a delay, in milliseconds of its rate; at least two frames, which a bucket passes
/// without a wait inside a frame. A NIC is never late, an end of the bench is whenever its core is, and line time that
/// passed unused does not come back: on two busy cores 1 ms cost TCP up to 1.7 % of 1 Gbit/s, 2 ms 1.1 %, 3 ms 0.4 %, 4
/// ms 0.1 %. It is also what a link carries on top after a rest: 0.2 % of 2 s.
const BURST_MS: u64 = 4;
/// Queue of a small switch's port, bytes.
const DEVICE_QUEUE: u32 = 256 << 10;
/// A faster port holds what passes it in a hundredth of a second: a real one never stops sending, this one does
/// whenever its core is late, and what it had no room for then would be loss that no switch would have caused.
const DEVICE_QUEUE_SHARE: u64 = 100;
/// Queue of a host, bytes. It is so large that the buffers of the sending sockets fill first and their senders wait, as
/// they do with a NIC, instead of losing datagrams in their own host.
const HOST_QUEUE: u32 = 64 << 20;

/// End of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// A host's.
    Host,
    /// The device's.
    Device,
}

/// Returns the shape of an end that sends at `rate` with packets of at most `mtu` bytes.
pub(crate) fn shape(end: End, rate: BitRate, mtu: u32) -> EthernetShape {
    let longest_frame = u16::try_from(mtu).unwrap_or(u16::MAX - HEADERS - 1) + HEADERS;
    let late = rate.get() / 8 * BURST_MS / 1_000;
    let burst_bytes = late.max(2 * (u64::from(longest_frame) + 24)).try_into().unwrap_or(u32::MAX);
    let queue_bytes = match end {
        End::Host => HOST_QUEUE,
        End::Device => DEVICE_QUEUE.max(u32::try_from(rate.get() / 8 / DEVICE_QUEUE_SHARE).unwrap_or(u32::MAX)),
    };
    EthernetShape { rate, longest_frame, burst_bytes, queue_bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_burst_is_four_milliseconds_and_two_frames_at_the_least() {
        let burst = |rate, mtu| shape(End::Host, BitRate::per_second(rate), mtu).burst_bytes;
        assert_eq!(burst(100_000_000, 1500), 50_000);
        assert_eq!(burst(1_000_000, 1500), 2 * 1542);
        assert_eq!(burst(10_000_000, 9216), 2 * 9258);
        assert_eq!(burst(10_000_000_000, 1500), 5_000_000);
    }
}
