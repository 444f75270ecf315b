//! Packet sockets: whole frames out of and into one interface. packet(7).

use super::mmsg;
use crate::Error;
use crate::socket::write_option;
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Every protocol (linux/if_ether.h).
pub const ALL_PROTOCOLS: u16 = 3;
/// Bytes of a frame that are looked at: the longest headers and a signature.
const KEPT: usize = 128;
/// Room for SCM_TIMESTAMPNS, aligned as control messages are.
const CONTROL_WORDS: usize = 8;

/// A socket on one interface.
#[derive(Debug)]
pub struct PacketSocket {
    fd: OwnedFd,
    link: u32,
}

impl PacketSocket {
    /// Opens one on the interface with the number `link`. It receives frames of `protocol`; none receives nothing.
    pub fn open(link: u32, protocol: Option<u16>) -> Result<Self, Error> {
        let object = || format!("interface {link}");
        // SAFETY: the call takes no pointer.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(Error::last("socket(AF_PACKET)", object()));
        }
        // SAFETY: the call returned a new descriptor, which nobody else knows.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        if protocol.is_some() {
            // Its own frames are none of a receiver's business. Kernels before 4.20 do not know the option: the receiver
            // tells those frames by their port.
            const PACKET_IGNORE_OUTGOING: i32 = 23;
            let _ = write_option(
                fd.as_fd(),
                libc::SOL_PACKET,
                PACKET_IGNORE_OUTGOING,
                &1i32,
                "setsockopt(PACKET_IGNORE_OUTGOING)",
            );
        }
        // SAFETY: sockaddr_ll is plain data for which all zeros is valid.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol.unwrap_or_default().to_be();
        address.sll_ifindex = link as i32;
        // SAFETY: the address is a sockaddr_ll of the size given and outlives the call.
        let bound = unsafe {
            libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size_of::<libc::sockaddr_ll>() as libc::socklen_t)
        };
        if bound < 0 {
            return Err(Error::last("bind(AF_PACKET)", object()));
        }
        Ok(Self { fd, link })
    }

    /// The interface hears frames for other stations too, until the socket is closed.
    pub fn hear_all(&self) -> Result<(), Error> {
        let wish = libc::packet_mreq {
            mr_ifindex: self.link as i32,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        let option = libc::PACKET_ADD_MEMBERSHIP;
        write_option(self.fd.as_fd(), libc::SOL_PACKET, option, &wish, "setsockopt(PACKET_ADD_MEMBERSHIP)")
    }

    /// Frames sent go to the driver past the queueing discipline.
    pub fn bypass_queue(&self) -> Result<(), Error> {
        let option = libc::PACKET_QDISC_BYPASS;
        write_option(self.fd.as_fd(), libc::SOL_PACKET, option, &1i32, "setsockopt(PACKET_QDISC_BYPASS)")
    }

    /// Leaves the FCS of frames to the caller, who appends it. Returns `false` if the driver of the interface does not
    /// permit that.
    pub fn carry_own_fcs(&self) -> Result<bool, Error> {
        const SO_NOFCS: i32 = 43;
        write_option(self.fd.as_fd(), libc::SOL_SOCKET, SO_NOFCS, &1i32, "setsockopt(SO_NOFCS)")?;
        // Longer than any MTU, so that the kernel refuses it in any case. It asks for the driver's permission first.
        let refused = self.send(&[0; 1 << 17]).map_or_else(|error| error.source.raw_os_error(), |()| None);
        match refused {
            Some(libc::EMSGSIZE) => Ok(true),
            _ => Ok(false),
        }
    }

    /// Only what may be a question from one host to another arrives from here on: ARP, ICMP, ICMPv6, without VLAN tags or
    /// further headers.
    pub fn hear_questions_only(&self) -> Result<(), Error> {
        // Classic BPF: Documentation/networking/filter.rst. Jumps count the instructions to leave out.
        const HALF_WORD: u16 = 0x28;
        const BYTE: u16 = 0x30;
        const IF_EQUAL: u16 = 0x15;
        const RETURN: u16 = 0x06;
        const VLAN_TAG_PRESENT: u32 = 0xffff_f000 + 48;
        let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
        let mut steps = [
            step(BYTE, 0, 0, VLAN_TAG_PRESENT),
            step(IF_EQUAL, 0, 9, 0),
            step(HALF_WORD, 0, 0, 12),
            step(IF_EQUAL, 6, 0, 0x0806),
            step(IF_EQUAL, 0, 2, 0x0800),
            step(BYTE, 0, 0, 23),
            step(IF_EQUAL, 3, 4, 1),
            step(IF_EQUAL, 0, 3, 0x86dd),
            step(BYTE, 0, 0, 20),
            step(IF_EQUAL, 0, 1, 58),
            // The whole frame.
            step(RETURN, 0, 0, u32::MAX),
            // Nothing.
            step(RETURN, 0, 0, 0),
        ];
        let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
        write_option(
            self.fd.as_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            &program,
            "setsockopt(SO_ATTACH_FILTER)",
        )
    }

    /// Limits the socket to IPv4 and IPv6 packets with a TTL of 0 or 1, without VLAN tags.
    pub fn hear_expiring_only(&self) -> Result<(), Error> {
        // As above.
        const HALF_WORD: u16 = 0x28;
        const BYTE: u16 = 0x30;
        const IF_EQUAL: u16 = 0x15;
        const IF_GREATER: u16 = 0x25;
        const RETURN: u16 = 0x06;
        let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
        let mut steps = [
            step(HALF_WORD, 0, 0, 12),
            step(IF_EQUAL, 0, 2, 0x0800),
            step(BYTE, 0, 0, 22),
            step(IF_GREATER, 4, 3, 1),
            step(IF_EQUAL, 0, 3, 0x86dd),
            step(BYTE, 0, 0, 21),
            step(IF_GREATER, 1, 0, 1),
            // The whole frame.
            step(RETURN, 0, 0, u32::MAX),
            // Nothing.
            step(RETURN, 0, 0, 0),
        ];
        let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
        write_option(
            self.fd.as_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            &program,
            "setsockopt(SO_ATTACH_FILTER)",
        )
    }

    /// Frames received carry the time (since 1970) at which the kernel had them, and up to `bytes` of them wait.
    pub fn stamp_and_hold(&self, bytes: i32) -> Result<(), Error> {
        let socket = self.fd.as_fd();
        write_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1i32, "setsockopt(SO_TIMESTAMPNS)")?;
        // Beyond the system's limit with privilege, up to it without.
        write_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &bytes, "setsockopt(SO_RCVBUFFORCE)")
            .or_else(|_| write_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &bytes, "setsockopt(SO_RCVBUF)"))
    }

    /// Frames that found no room since the last call.
    pub fn overflowed(&self) -> Result<u64, Error> {
        without_room(self.fd.as_fd())
            .ok_or_else(|| Error::last("getsockopt(PACKET_STATISTICS)", format!("interface {}", self.link)))
    }

    /// Sends one frame.
    pub fn send(&self, frame: &[u8]) -> Result<(), Error> {
        // SAFETY: the kernel reads `frame.len()` bytes of `frame`.
        match unsafe { libc::send(self.fd.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) } {
            sent if sent < 0 => Err(Error::last("send", format!("interface {}", self.link))),
            _ => Ok(()),
        }
    }

    /// Sends `frames` in one call; returns how many the kernel took.
    pub fn send_many(&self, frames: &[&[u8]]) -> io::Result<usize> {
        let mut pieces: Vec<libc::iovec> = frames
            .iter()
            .map(|frame| libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() })
            .collect();
        let mut headers: Vec<libc::mmsghdr> = pieces.iter_mut().map(|piece| header(piece, &mut [])).collect();
        // SAFETY: the headers point to `pieces` and those into `frames`, all of which outlive the call, which only reads.
        unsafe { mmsg::send(self.fd.as_fd(), &mut headers, 0) }
    }

    /// Waits up to `milliseconds` for frames.
    pub fn wait(&self, milliseconds: u16) -> bool {
        let mut wish = [nix::poll::PollFd::new(self.fd.as_fd(), nix::poll::PollFlags::POLLIN)];
        nix::poll::poll(&mut wish, milliseconds).is_ok_and(|ready| ready > 0)
    }
}

/// Frames that found no room in a packet socket since the last call; none if it cannot be asked, which errno explains.
pub(crate) fn without_room(socket: BorrowedFd<'_>) -> Option<u64> {
    // struct tpacket_stats: packets, drops.
    let mut statistics = [0u32; 2];
    let mut length = size_of_val(&statistics) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `statistics`.
    let asked = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            statistics.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    (asked == 0).then(|| u64::from(statistics[1]))
}

/// Frames taken from a socket: the beginning of each.
#[derive(Debug)]
pub struct Incoming {
    frames: Vec<u8>,
    /// Bytes of each that there is room for.
    room: usize,
    control: Vec<[u64; CONTROL_WORDS]>,
    lengths: Vec<usize>,
}

impl Incoming {
    /// Room for the headers of `count` frames a call.
    pub fn new(count: usize) -> Self {
        Self::with_room(count, KEPT)
    }

    /// Room for the first `room` bytes of `count` frames a call.
    pub fn with_room(count: usize, room: usize) -> Self {
        Self { frames: vec![0; count * room], room, control: vec![[0; CONTROL_WORDS]; count], lengths: Vec::new() }
    }

    /// Takes what is there without waiting; returns how many frames.
    pub fn take(&mut self, socket: &PacketSocket) -> io::Result<usize> {
        let mut pieces: Vec<libc::iovec> = self
            .frames
            .chunks_exact_mut(self.room)
            .map(|frame| libc::iovec { iov_base: frame.as_mut_ptr().cast(), iov_len: self.room })
            .collect();
        let mut headers: Vec<libc::mmsghdr> =
            pieces.iter_mut().zip(&mut self.control).map(|(piece, control)| header(piece, control)).collect();
        self.lengths.clear();
        // SAFETY: the headers point to `pieces` and `control`, those to `frames`; the lengths are those of the buffers,
        // and nothing of it moves before the call returns.
        let taken = match unsafe { mmsg::receive(socket.fd.as_fd(), &mut headers, libc::MSG_DONTWAIT) } {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            taken => taken?,
        };
        self.lengths.extend(headers[..taken].iter().map(|header| (header.msg_len as usize).min(self.room)));
        Ok(taken)
    }

    /// The beginning of each frame, and when the kernel had it (nanoseconds since 1970; 0 if it did not say).
    pub fn frames(&self) -> impl Iterator<Item = (&[u8], u64)> {
        self.lengths
            .iter()
            .zip(self.frames.chunks_exact(self.room))
            .zip(&self.control)
            .map(|((&length, frame), control)| (&frame[..length], stamp(control)))
    }
}

/// The time in a control message of SO_TIMESTAMPNS: struct cmsghdr (length, level, type), then struct timespec.
fn stamp(control: &[u64; CONTROL_WORDS]) -> u64 {
    const HEADER_WORDS: usize = size_of::<libc::cmsghdr>() / 8;
    // SAFETY: a cmsghdr is plain data, and `control` is longer and as strictly aligned.
    let header = unsafe { &*control.as_ptr().cast::<libc::cmsghdr>() };
    if (header.cmsg_level, header.cmsg_type) != (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
        return 0;
    }
    control[HEADER_WORDS] * 1_000_000_000 + control[HEADER_WORDS + 1]
}

fn header(piece: &mut libc::iovec, control: &mut [u64]) -> libc::mmsghdr {
    // SAFETY: mmsghdr is plain data for which all zeros is valid.
    let mut header: libc::mmsghdr = unsafe { mem::zeroed() };
    header.msg_hdr.msg_iov = piece;
    header.msg_hdr.msg_iovlen = 1;
    if !control.is_empty() {
        header.msg_hdr.msg_control = control.as_mut_ptr().cast();
        header.msg_hdr.msg_controllen = size_of_val(control) as _;
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_message_of_that_kind_is_a_time() {
        let of = |level: i32, kind: i32| {
            let words = [u64::from(level as u32) | u64::from(kind as u32) << 32, 2, 5];
            let mut control = [0; CONTROL_WORDS];
            control[0] = (size_of::<libc::cmsghdr>() + 16) as u64;
            control[1..4].copy_from_slice(&words);
            stamp(&control)
        };
        assert_eq!(of(libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS), 2_000_000_005);
        assert_eq!(of(libc::SOL_SOCKET, libc::SCM_RIGHTS), 0);
        assert_eq!(stamp(&[0; CONTROL_WORDS]), 0);
    }
}
