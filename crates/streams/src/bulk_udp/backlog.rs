//! How much a UDP sender lets wait in its own host.
//!
//! A socket's usual send buffer holds what a slow link carries in many seconds: 17 s at 64 kbit/s. Datagrams would then arrive long
//! after the window in which they were sent, and into the next run. So the buffer begins small, grows while the path takes what is
//! handed over, and shrinks where a call waits.

use crate::error::StreamError;
use linerate_sys::socket::force_send_buffer;
use socket2::SockRef;
use std::net::UdpSocket;
use std::os::fd::AsFd as _;

/// The buffer grows if the path takes all that it holds within this time ...
const SHORT_NS: u64 = 25_000_000;
/// ... and shrinks if a call waits for longer than this. A sender waits until half of its buffer is empty.
const LONG_NS: u64 = 100_000_000;
/// Datagrams that the smallest buffer holds.
const FEWEST: u64 = 2;
/// What the kernel adds to a packet: room for the link's header, and its own records within and beside the buffer.
const HEADROOM: u64 = 16 + 320;
const RECORD: u64 = 256;

/// Keeps the send buffer of a UDP socket to what the path takes in a fraction of a second, and at most at its first size.
#[derive(Debug)]
pub(super) struct Backlog {
    size: BufferSize,
    /// When the socket had no room for a call that did not wait.
    full_since: Option<u64>,
}

impl Backlog {
    /// Makes the buffer of `socket` small, whose datagrams leave in `packets` packets of `bytes` bytes.
    pub(super) fn new(socket: &UdpSocket, bytes: u64, packets: u64) -> Result<Self, StreamError> {
        let most = SockRef::from(socket).send_buffer_size().map_err(StreamError::socket("getsockopt(SO_SNDBUF)"))?;
        let least = FEWEST * packets.max(1) * memory(bytes);
        let size = BufferSize::new(least, most as u64);
        if size.bytes < size.most {
            set(socket, size.bytes)?;
        }
        Ok(Self { size, full_since: None })
    }

    /// Returns how many datagrams of `bytes` bytes the buffer holds, at least one.
    pub(super) fn holds(&self, bytes: u64) -> usize {
        (self.size.bytes / memory(bytes)).max(1) as usize
    }

    /// Notes that the socket had no room at `now`.
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
    let asked = i32::try_from(bytes / 2).unwrap_or(i32::MAX);
    if force_send_buffer(socket.as_fd(), asked).is_ok() {
        return Ok(());
    }
    SockRef::from(socket).set_send_buffer_size(asked as usize).map_err(StreamError::socket("setsockopt(SO_SNDBUF)"))
}

/// The size of a send buffer that follows what the path takes.
#[derive(Debug, PartialEq, Eq)]
struct BufferSize {
    least: u64,
    most: u64,
    bytes: u64,
    /// Bytes handed over since a time.
    recent: (u64, u64),
}

impl BufferSize {
    fn new(least: u64, most: u64) -> Self {
        Self { least: least.min(most), most, bytes: least.min(most), recent: (0, 0) }
    }

    /// Follows a call that took from `from` to `to`. Returns whether the size has changed.
    #[inline]
    fn handed_over(&mut self, bytes: u64, from: u64, to: u64) -> bool {
        let before = self.bytes;
        if to.saturating_sub(from) > LONG_NS {
            self.bytes = (before / 2).max(self.least);
        } else if before < self.most {
            let (recent, since) = self.recent;
            self.recent = if to.saturating_sub(since) > SHORT_NS { (bytes, from) } else { (recent + bytes, since) };
            // The buffer never holds more than its size, so the rest has left.
            if self.recent.0 >= 2 * before {
                self.bytes = (2 * before).min(self.most);
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

    /// Hands over datagrams of 1,472 bytes, one a call, to a link that takes one in `each` nanoseconds, for two seconds. Returns the
    /// longest time that a datagram waited.
    fn longest_wait(size: &mut BufferSize, each: u64) -> u64 {
        let (mut now, mut free_at, mut longest) = (0, 0, 0);
        while now < 2_000 * MS {
            let from = now;
            let room = size.bytes.div_ceil(memory(1_500));
            // The kernel wakes a sender that waits when half of the buffer is empty.
            if free_at > now && (free_at - now).div_ceil(each) >= room {
                now = free_at - room / 2 * each;
            }
            free_at = free_at.max(now) + each;
            longest = longest.max(free_at - now);
            now += 1_000;
            size.handed_over(1_472, from, now);
        }
        longest
    }

    #[test]
    fn slow_links_have_little_waiting_and_fast_links_a_whole_buffer() {
        let of = |bits_per_s: u64| {
            let mut size = BufferSize::new(FEWEST * memory(1_500), USUAL);
            let each = 1_538 * 8 * 1_000 * MS / bits_per_s;
            (longest_wait(&mut size, each) / MS, size.bytes)
        };
        let (wait, bytes) = of(64_000);
        assert!(wait <= 600 && bytes == 4_608, "64 kbit/s: {wait} ms, {bytes} bytes");
        for rate in [256_000, 1_000_000, 4_000_000] {
            let (wait, bytes) = of(rate);
            assert!(wait <= 250, "{rate} bit/s: {wait} ms, {bytes} bytes");
        }
        assert!(of(100_000_000).1 > USUAL / 2);
        assert_eq!(of(10_000_000_000).1, USUAL);
    }

    #[test]
    fn a_path_that_becomes_slow_shrinks_the_buffer() {
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
    fn the_memory_of_a_packet_is_the_kernels() {
        // As SIOCOUTQ reports it on Linux 6.18.
        assert_eq!((memory(1_500), memory(92)), (2_304, 768));
    }

    #[test]
    fn a_socket_begins_with_a_small_buffer() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("binds");
        let size = || SockRef::from(&socket).send_buffer_size().expect("has one") as u64;
        let usual = size();
        let mut backlog = Backlog::new(&socket, 1_500, 1).expect("is set");
        assert_eq!(size(), 4_608);
        for call in 0..10 {
            backlog.handed_over(&socket, usual, call, call + 1).expect("is set");
        }
        assert_eq!(size(), usual);
    }
}
