//! Datagrams with their ancillary data, cmsg(3): what IP says about them.

use socket2::SockAddr;
use std::io;
use std::mem;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::ptr;
use std::slice;

/// Words of ancillary data, which are aligned as the kernel demands: enough for all that it is asked for here.
type Room = [u64; 32];

/// A datagram as [`receive`] returns it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message {
    /// Bytes written to the buffer.
    pub(super) length: usize,
    /// The datagram was longer than the buffer.
    pub(super) truncated: bool,
    /// Its sender.
    pub(super) from: Option<SocketAddr>,
    /// Ancillary data.
    pub(super) details: Details,
}

/// Ancillary data of a datagram. A part is `None` unless the kernel was asked for it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Details {
    /// Address that it was sent to.
    pub(super) to: Option<IpAddr>,
    /// TTL or hop limit.
    pub(super) ttl: Option<u8>,
    /// Type of service or traffic class.
    pub(super) traffic_class: Option<u8>,
    /// Time of reception, in nanoseconds since 1970.
    pub(super) arrived_unix_ns: Option<u64>,
}

/// Receives one datagram by the flags of recvmsg(2).
///
/// # Errors
/// recvmsg(2) fails.
pub(super) fn receive(socket: BorrowedFd<'_>, into: &mut [u8], flags: i32) -> io::Result<Message> {
    let mut piece = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let mut room: Room = [0; 32];
    // SAFETY: a header of zeroes and null pointers is a valid, empty one.
    let mut header: libc::msghdr = unsafe { mem::zeroed() };
    header.msg_iov = &raw mut piece;
    header.msg_iovlen = 1;
    header.msg_control = room.as_mut_ptr().cast();
    header.msg_controllen = mem::size_of::<Room>() as libc::socklen_t;
    let receive = |storage: *mut socket2::SockAddrStorage, length: *mut libc::socklen_t| {
        header.msg_name = storage.cast();
        // SAFETY: the caller lends a live integer with the size of the storage.
        header.msg_namelen = unsafe { *length };
        // SAFETY: the header points to live memory of the lengths that it says; the descriptor is borrowed.
        let received = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, flags) };
        // SAFETY: as above.
        unsafe { *length = header.msg_namelen };
        usize::try_from(received).map_err(|_| io::Error::last_os_error())
    };
    // SAFETY: the kernel writes an address of the length that it returns.
    let (length, from) = unsafe { SockAddr::try_init(receive) }?;
    let mut details = Details::default();
    // SAFETY: the kernel has filled `room` as the header says.
    let mut at = unsafe { libc::CMSG_FIRSTHDR(&raw const header) };
    while !at.is_null() {
        // SAFETY: the macros return headers that lie within the room, and the kernel's lengths are right. Each is aligned.
        unsafe {
            let data = libc::CMSG_DATA(at);
            let bytes = ((*at).cmsg_len as usize).saturating_sub(data as usize - at as usize);
            details.add((*at).cmsg_level, (*at).cmsg_type, slice::from_raw_parts(data, bytes));
            at = libc::CMSG_NXTHDR(&raw const header, at);
        }
    }
    Ok(Message { length, truncated: header.msg_flags & libc::MSG_TRUNC != 0, from: from.as_socket(), details })
}

impl Details {
    fn add(&mut self, level: i32, kind: i32, value: &[u8]) {
        let byte = value.first().copied();
        let integer =
            value.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes)).and_then(|value| u8::try_from(value).ok());
        match (level, kind) {
            (libc::IPPROTO_IP, libc::IP_RECVDSTADDR) => {
                self.to = value.first_chunk::<4>().map(|octets| Ipv4Addr::from(*octets).into());
            }
            (libc::IPPROTO_IP, libc::IP_RECVTTL) => self.ttl = byte,
            (libc::IPPROTO_IP, libc::IP_RECVTOS) => self.traffic_class = byte,
            // struct in6_pktinfo: the address comes first.
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                self.to = value.first_chunk::<16>().map(|octets| IpAddr::from(*octets).to_canonical());
            }
            (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) => self.ttl = integer,
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => self.traffic_class = integer,
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMP) if value.len() >= mem::size_of::<libc::timeval>() => {
                // SAFETY: the kernel has written a `timeval`, which need not be aligned.
                let time: libc::timeval = unsafe { ptr::read_unaligned(value.as_ptr().cast()) };
                let seconds = time.tv_sec.unsigned_abs() * 1_000_000_000;
                self.arrived_unix_ns = Some(seconds + time.tv_usec.unsigned_abs() as u64 * 1_000);
            }
            _ => {}
        }
    }
}

/// Ancillary data of a datagram to be sent.
#[derive(Debug, Default)]
pub(super) struct Control {
    room: Room,
    length: usize,
}

impl Control {
    /// Adds a value.
    pub(super) fn push<T: Copy>(&mut self, level: i32, kind: i32, value: T) {
        let bytes = mem::size_of::<T>() as u32;
        // SAFETY: the macros compute lengths only.
        let (space, length, data) =
            unsafe { (libc::CMSG_SPACE(bytes) as usize, libc::CMSG_LEN(bytes), libc::CMSG_LEN(0) as usize) };
        assert!(self.length + space <= mem::size_of::<Room>(), "room for all values that IP takes");
        // SAFETY: the header and the value lie within the room, as asserted. The writes need no alignment.
        unsafe {
            let at = self.room.as_mut_ptr().cast::<u8>().add(self.length);
            let header = libc::cmsghdr { cmsg_len: length, cmsg_level: level, cmsg_type: kind };
            ptr::write_unaligned(at.cast(), header);
            ptr::write_unaligned(at.add(data).cast(), value);
        }
        self.length += space;
    }

    /// Sends one datagram with the values.
    ///
    /// # Errors
    /// sendmsg(2) fails.
    pub(super) fn send(&mut self, socket: BorrowedFd<'_>, payload: &[u8], to: SocketAddr) -> io::Result<usize> {
        let to = SockAddr::from(to);
        let mut piece = libc::iovec { iov_base: payload.as_ptr().cast_mut().cast(), iov_len: payload.len() };
        // SAFETY: a header of zeroes and null pointers is a valid, empty one.
        let mut header: libc::msghdr = unsafe { mem::zeroed() };
        header.msg_name = to.as_ptr().cast_mut().cast();
        header.msg_namelen = to.len();
        header.msg_iov = &raw mut piece;
        header.msg_iovlen = 1;
        if self.length > 0 {
            header.msg_control = self.room.as_mut_ptr().cast();
            header.msg_controllen = self.length as libc::socklen_t;
        }
        // SAFETY: the header points to live memory of the lengths that it says, of which the kernel only reads.
        let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const header, 0) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}
