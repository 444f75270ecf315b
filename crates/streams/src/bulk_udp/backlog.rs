//! Send buffer of a UDP sender, kept small on slow paths.
//!
//! A socket's default send buffer holds the data of many seconds of a slow link: 17 s at 64 kbit/s. Datagrams would
//! arrive long after the window in which they were sent, and into the next run. So the buffer begins small, grows while
//! the path keeps up, and shrinks when a call waits.

use crate::error::StreamError;
use linerate_engine::failed;
use linerate_sys::handle::AsSocket as _;
use linerate_sys::socket::force_send_buffer;
use socket2::SockRef;
use std::net::UdpSocket;

/// The buffer grows if the path empties it within this time ...
const SHORT_NS: u64 = 25_000_000;
/// ... and shrinks if a call waits for longer than this. A sender waits until half of its buffer is empty.
const LONG_NS: u64 = 100_000_000;
/// Datagrams that the smallest buffer holds.
const FEWEST: u64 = 2;
/// Overhead of the kernel per packet: room for the link's header, and its own records inside and outside the buffer.
const HEADROOM: u64 = 16 + 320;
const RECORD: u64 = 256;

/// Limits the send buffer of a UDP socket to the data of a fraction of a second, and to its first size.
#[derive(Debug)]
pub(super) struct Backlog {
    size: BufferSize,
    /// Time when the socket first had no room for a non-blocking call.
    full_since: Option<u64>,
}

impl Backlog {
    /// Makes the buffer of `socket` small. Each datagram leaves in `packets` packets of `bytes` bytes.
    pub(super) fn new(socket: &UdpSocket, bytes: u64, packets: u64) -> Result<Self, StreamError> {
        let maximum = SockRef::from(socket).send_buffer_size().map_err(failed("getsockopt(SO_SNDBUF)"))?;
        let minimum = FEWEST * packets.max(1) * memory(bytes);
        let size = BufferSize::new(minimum, maximum as u64);
        if size.bytes < size.maximum {
            set(socket, size.bytes)?;
        }
        Ok(Self { size, full_since: None })
    }

    /// Returns the number of datagrams of `bytes` bytes that the buffer holds, at least one.
    pub(super) fn holds(&self, bytes: u64) -> usize {
        (self.size.bytes / memory(bytes)).max(1) as usize
    }

    /// Records that the socket had no room at `now`.
    pub(super) fn full(&mut self, now: u64) {
        self.full_since.get_or_insert(now);
    }

    /// Adjusts the buffer after a call that took from `from` to `to` and handed over `bytes` bytes.
    pub(super) fn handed_over(
        &mut self,
        socket: &UdpSocket,
        bytes: u64,
        from: u64,
        to: u64,
    ) -> Result<(), StreamError> {
        let from = self.full_since.take().unwrap_or(from);
        if self.size.handed_over(bytes, from, to) { set(socket, self.size.bytes) } else { Ok(()) }
    }
}

/// Returns the memory that the kernel takes for a packet of `bytes` bytes.
fn memory(bytes: u64) -> u64 {
    (bytes + HEADROOM).next_power_of_two() + RECORD
}

/// Sets the send buffer, beyond the system's limit where permitted. The kernel doubles what it is given (socket(7)).
fn set(socket: &UdpSocket, bytes: u64) -> Result<(), StreamError> {
    let half = i32::try_from(bytes / 2).unwrap_or(i32::MAX);
    if force_send_buffer(socket.as_socket(), half).is_ok() {
        return Ok(());
    }
    Ok(SockRef::from(socket).set_send_buffer_size(half as usize).map_err(failed("setsockopt(SO_SNDBUF)"))?)
}

/// Size of a send buffer that follows the rate of the path.
#[derive(Debug, PartialEq, Eq)]
struct BufferSize {
    minimum: u64,
    maximum: u64,
    bytes: u64,
    /// Bytes handed over since a time, and that time.
    recent: (u64, u64),
}

impl BufferSize {
    fn new(minimum: u64, maximum: u64) -> Self {
        let minimum = minimum.min(maximum);
        Self { minimum, maximum, bytes: minimum, recent: (0, 0) }
    }

    /// Adapts the size to a call that took from `from` to `to`. Returns whether the size has changed.
    #[inline]
    fn handed_over(&mut self, bytes: u64, from: u64, to: u64) -> bool {
        let before = self.bytes;
        if to.saturating_sub(from) > LONG_NS {
            self.bytes = (before / 2).max(self.minimum);
        } else if before < self.maximum {
            let (recent, since) = self.recent;
            self.recent = if to.saturating_sub(since) > SHORT_NS { (bytes, from) } else { (recent + bytes, since) };
            // The buffer never holds more than its size, so the rest has left.
            if self.recent.0 >= 2 * before {
                self.bytes = (2 * before).min(self.maximum);
                self.recent = (0, to);
            }
        }
        self.bytes != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const USUAL: u64 = 212_992;

    /// Hands over datagrams of 1,472 bytes, one per call, for two seconds. The link takes one in `interval`
    /// nanoseconds.
    ///
    /// Returns the longest time that a datagram waited.
    fn longest_wait(size: &mut BufferSize, interval: u64) -> u64 {
        let mut now = 0;
        let mut free_at = 0;
        let mut longest = 0;
        while now < 2_000 * MS {
            let from = now;
            let room = size.bytes.div_ceil(memory(1_500));
            // The kernel wakes a waiting sender when half of the buffer is empty.
            if free_at > now && (free_at - now).div_ceil(interval) >= room {
                now = free_at - room / 2 * interval;
            }
            free_at = free_at.max(now) + interval;
            longest = longest.max(free_at - now);
            now += 1_000;
            size.handed_over(1_472, from, now);
        }
        longest
    }

    #[test]
    fn slow_links_keep_a_small_buffer_and_fast_links_a_whole_one() {
        let (wait, bytes) = wait_and_size(64_000);
        assert!(wait <= 600 && bytes == 4_608, "64 kbit/s: {wait} ms, {bytes} bytes");
        for rate in [256_000, 1_000_000, 4_000_000] {
            let (wait, bytes) = wait_and_size(rate);
            assert!(wait <= 250, "{rate} bit/s: {wait} ms, {bytes} bytes");
        }
        assert!(wait_and_size(100_000_000).1 > USUAL / 2);
        assert_eq!(wait_and_size(10_000_000_000).1, USUAL);
    }

    /// Returns the longest wait in milliseconds and the final size at a link rate.
    fn wait_and_size(bits_per_s: u64) -> (u64, u64) {
        let mut size = BufferSize::new(FEWEST * memory(1_500), USUAL);
        let interval = 1_538 * 8 * 1_000 * MS / bits_per_s;
        (longest_wait(&mut size, interval) / MS, size.bytes)
    }

    #[test]
    fn slower_path_shrinks_the_buffer() {
        let mut size = BufferSize::new(4_608, USUAL);
        let mut now = 0;
        while size.bytes < USUAL {
            size.handed_over(100_000, now, now + MS);
            now += MS;
        }
        for expected in [USUAL / 2, USUAL / 4] {
            assert!(size.handed_over(1_472, now, now + 200 * MS));
            now += 200 * MS;
            assert_eq!(size.bytes, expected);
        }
    }

    #[test]
    fn packet_memory_matches_the_kernel() {
        // As SIOCOUTQ reports it on Linux 6.18.
        assert_eq!((memory(1_500), memory(92)), (2_304, 768));
    }

    #[test]
    fn socket_begins_with_a_small_buffer() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("binds");
        let default_size = send_buffer(&socket);
        let mut backlog = Backlog::new(&socket, 1_500, 1).expect("is set");
        assert_eq!(send_buffer(&socket), 4_608);
        for call in 0..10 {
            backlog.handed_over(&socket, default_size, call, call + 1).expect("is set");
        }
        assert_eq!(send_buffer(&socket), default_size);
    }

    fn send_buffer(socket: &UdpSocket) -> u64 {
        SockRef::from(socket).send_buffer_size().expect("has a buffer") as u64
    }
}
