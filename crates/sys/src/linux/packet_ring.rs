//! Frames of all interfaces of a network namespace, received through a ring of shared memory and sent in batches.
//!
//! The kernel copies each frame into the ring as it arrives (PACKET_MMAP, TPACKET_V2: Documentation/networking/packet_mmap.rst),
//! so receiving takes no system call. Version 3 would hand frames over in blocks, a millisecond late.

use crate::Error;
use crate::packet::{ALL_PROTOCOLS, without_room};
use crate::socket::write_option;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicU32, Ordering};

/// The kernel allocates the ring in blocks of so many bytes.
const BLOCK: usize = 1 << 17;
/// Where the receiving interface stands in a slot: after the header, aligned as TPACKET_ALIGN says.
const ADDRESS_AT: usize = size_of::<libc::tpacket2_hdr>().next_multiple_of(16);
/// Room for headers ahead of a frame in its slot.
const AHEAD: usize = 128;
/// Frames sent in one call at most.
const BATCH: usize = 16;
/// Wanted as send buffer, bytes.
const SEND_BUFFER: i32 = 16 << 20;

/// A frame in the ring.
#[derive(Debug, Clone, Copy)]
pub struct RingFrame<'a> {
    /// The frame from its destination address on, without FCS and without the VLAN tag in `vlan`.
    pub bytes: &'a [u8],
    /// Its length; more than `bytes` if it did not fit into its slot.
    pub length: usize,
    /// The VLAN tag (protocol and control information) that the kernel took out of the frame.
    pub vlan: Option<(u16, u16)>,
    /// The number of the interface that received it.
    pub link: u32,
    /// When the kernel had it, nanoseconds since 1970.
    pub arrived_unix: u64,
    /// Its transport checksum was left to hardware and is not in it.
    pub lacks_checksum: bool,
}

/// A ring that receives every frame that arrives at any interface of a network namespace.
#[derive(Debug)]
pub struct PacketRing {
    fd: OwnedFd,
    memory: NonNull<u8>,
    bytes: usize,
    slot: usize,
    slots: usize,
    next: usize,
}

// SAFETY: the memory is this value's own mapping, which no other value refers to.
unsafe impl Send for PacketRing {}

impl PacketRing {
    /// Opens a ring of about `bytes` bytes in the calling thread's network namespace, for frames of at most `longest` bytes.
    ///
    /// # Errors
    ///
    /// Fails without CAP_NET_RAW, and where the kernel has no memory for the ring.
    pub fn open(longest: usize, bytes: usize) -> Result<Self, Error> {
        let object = || String::from("the frames of all interfaces");
        // Protocol 0: nothing arrives before the ring is there.
        let fd = socket(&object)?;
        let option = |name, value: i32, call| write_option(fd.as_fd(), libc::SOL_PACKET, name, &value, call);
        option(libc::PACKET_VERSION, libc::tpacket_versions::TPACKET_V2 as i32, "setsockopt(PACKET_VERSION)")?;
        // Linux 4.20.
        const PACKET_IGNORE_OUTGOING: i32 = 23;
        option(PACKET_IGNORE_OUTGOING, 1, "setsockopt(PACKET_IGNORE_OUTGOING)")?;
        let slot = (longest + AHEAD).next_power_of_two();
        let blocks = bytes.div_ceil(BLOCK).max(1);
        let block = BLOCK.max(slot);
        let request = libc::tpacket_req {
            tp_block_size: block as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: slot as u32,
            tp_frame_nr: (blocks * (block / slot)) as u32,
        };
        write_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_RX_RING, &request, "setsockopt(PACKET_RX_RING)")?;
        let bytes = blocks * block;
        // SAFETY: a new mapping of the socket's ring, of exactly the size that was requested.
        let memory = unsafe {
            libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, fd.as_raw_fd(), 0)
        };
        let memory = match NonNull::new(memory.cast::<u8>()) {
            Some(memory) if memory.as_ptr().cast() != libc::MAP_FAILED => memory,
            _ => return Err(Error::last("mmap", object())),
        };
        let ring = Self { fd, memory, bytes, slot, slots: blocks * (block / slot), next: 0 };
        // SAFETY: sockaddr_ll is plain data for which all zeros is valid.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = ALL_PROTOCOLS.to_be();
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the address is a sockaddr_ll of the size given and outlives the call.
        if unsafe { libc::bind(ring.fd.as_raw_fd(), (&raw const address).cast(), length) } < 0 {
            return Err(Error::last("bind(AF_PACKET)", object()));
        }
        Ok(ring)
    }

    /// Gives the next frame to `take` and frees its slot; none if there is no frame.
    pub fn take<T>(&mut self, take: impl FnOnce(&RingFrame<'_>) -> T) -> Option<T> {
        // SAFETY: `next` is below `slots`, so the slot lies within the mapping.
        let slot = unsafe { self.memory.add(self.next * self.slot) };
        // SAFETY: a slot begins with tp_status, 32 bits, aligned as the slot is. The kernel writes it concurrently, so it is
        // only read and written as an atomic.
        let status = unsafe { AtomicU32::from_ptr(slot.as_ptr().cast()) };
        let state = status.load(Ordering::Acquire);
        if state & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: with TP_STATUS_USER the slot is this program's until the status is given back: the header is in place, and the
        // kernel writes no more.
        let header = unsafe { &*slot.as_ptr().cast::<libc::tpacket2_hdr>() };
        // SAFETY: as above; the kernel put a sockaddr_ll there.
        let address = unsafe { &*slot.as_ptr().add(ADDRESS_AT).cast::<libc::sockaddr_ll>() };
        let (at, kept) = (usize::from(header.tp_mac), header.tp_snaplen as usize);
        let kept = kept.min(self.slot.saturating_sub(at));
        // SAFETY: `at` and `kept` lie within the slot, whose bytes are this program's.
        let bytes = unsafe { slice::from_raw_parts(slot.as_ptr().add(at.min(self.slot)), kept) };
        let frame = RingFrame {
            bytes,
            length: header.tp_len as usize,
            vlan: (state & libc::TP_STATUS_VLAN_VALID != 0).then_some((header.tp_vlan_tpid, header.tp_vlan_tci)),
            link: address.sll_ifindex as u32,
            arrived_unix: u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec),
            lacks_checksum: state & libc::TP_STATUS_CSUMNOTREADY != 0,
        };
        let taken = take(&frame);
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.slots;
        Some(taken)
    }

    /// Waits until a frame is there, or for `timeout_ns`.
    pub fn wait(&self, timeout_ns: u64) {
        let mut wish = [PollFd::new(self.fd.as_fd(), PollFlags::POLLIN)];
        let timeout = TimeSpec::new((timeout_ns / 1_000_000_000) as i64, (timeout_ns % 1_000_000_000) as i64);
        // A signal ends the wait early, which a caller cannot tell from a frame that another has taken.
        let _ = ppoll(&mut wish, Some(timeout), None);
    }

    /// Frames that found no free slot since the last call.
    pub fn missed(&self) -> Result<u64, Error> {
        without_room(self.fd.as_fd())
            .ok_or_else(|| Error::last("getsockopt(PACKET_STATISTICS)", "the frames of all interfaces"))
    }
}

impl Drop for PacketRing {
    fn drop(&mut self) {
        // SAFETY: the mapping of `open`, which no reference outlives: frames are borrowed for the time of a closure only.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.bytes) };
    }
}

/// Sends frames out of any interface of a network namespace, many in one call.
#[derive(Debug)]
pub struct FrameSender {
    fd: OwnedFd,
}

impl FrameSender {
    /// Opens one in the calling thread's network namespace. With `bypass` frames go to the driver past queueing disciplines.
    ///
    /// # Errors
    ///
    /// Fails without CAP_NET_RAW.
    pub fn open(bypass: bool) -> Result<Self, Error> {
        let fd = socket(&|| String::from("frames to send"))?;
        if bypass {
            // Without it frames only take longer.
            let option = libc::PACKET_QDISC_BYPASS;
            let _ = write_option(fd.as_fd(), libc::SOL_PACKET, option, &1i32, "setsockopt(PACKET_QDISC_BYPASS)");
        }
        // The default holds frames that wait in a queue; without privilege it has to do.
        let _ = crate::socket::force_send_buffer(fd.as_fd(), SEND_BUFFER);
        Ok(Self { fd })
    }

    /// Sends each of `frames` out of the interface of its number; returns how many the kernel refused.
    pub fn send<'a>(&self, frames: impl IntoIterator<Item = (u32, &'a [u8])>) -> u64 {
        let (mut frames, mut refused) = (frames.into_iter(), 0);
        // SAFETY: these are plain data for which all zeros is valid.
        let (mut addresses, mut pieces, mut headers) = unsafe {
            (
                mem::zeroed::<[libc::sockaddr_ll; BATCH]>(),
                mem::zeroed::<[libc::iovec; BATCH]>(),
                mem::zeroed::<[libc::mmsghdr; BATCH]>(),
            )
        };
        loop {
            let mut count = 0;
            for (link, frame) in frames.by_ref().take(BATCH) {
                addresses[count].sll_family = libc::AF_PACKET as u16;
                addresses[count].sll_ifindex = link as i32;
                pieces[count] = libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() };
                let header = &mut headers[count].msg_hdr;
                header.msg_name = (&raw mut addresses[count]).cast();
                header.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
                header.msg_iov = &raw mut pieces[count];
                header.msg_iovlen = 1;
                count += 1;
            }
            if count == 0 {
                return refused;
            }
            let mut first = 0;
            while first < count {
                let left = &mut headers[first..count];
                // SAFETY: the headers point to `addresses` and `pieces`, and those into `frames`; all of it outlives the call,
                // which only reads.
                let sent =
                    unsafe { libc::sendmmsg(self.fd.as_raw_fd(), left.as_mut_ptr(), left.len() as libc::c_uint, 0) };
                match usize::try_from(sent) {
                    Ok(sent @ 1..) => first += sent,
                    _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                    // The first of these: the next call goes on behind it.
                    _ => (first, refused) = (first + 1, refused + 1),
                }
            }
        }
    }
}

fn socket(object: &dyn Fn() -> String) -> Result<OwnedFd, Error> {
    // SAFETY: the call takes no pointer.
    let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(Error::last("socket(AF_PACKET)", object()));
    }
    // SAFETY: the call returned a new descriptor, which nobody else knows.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    const SLOT: usize = 256;
    const SLOTS: usize = 2;

    /// A ring of two slots that no kernel fills.
    fn ring() -> PacketRing {
        let bytes = SLOT * SLOTS;
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping of memory.
        let memory = unsafe { libc::mmap(ptr::null_mut(), bytes, access, flags, -1, 0) };
        assert_ne!(memory, libc::MAP_FAILED);
        let memory = NonNull::new(memory.cast()).expect("mapped");
        let fd = File::open("/dev/null").expect("it is there").into();
        PacketRing { fd, memory, bytes, slot: SLOT, slots: SLOTS, next: 0 }
    }

    /// Puts a frame that begins at `mac` into the slot `index`, as the kernel does.
    fn put(ring: &PacketRing, index: usize, mac: u16, kept: u32, status: u32) {
        // SAFETY: zeros are valid for both.
        let (mut header, mut address): (libc::tpacket2_hdr, libc::sockaddr_ll) =
            unsafe { (mem::zeroed(), mem::zeroed()) };
        header.tp_status = libc::TP_STATUS_USER | status;
        (header.tp_len, header.tp_snaplen, header.tp_mac) = (1_514, kept, mac);
        (header.tp_sec, header.tp_nsec, header.tp_vlan_tpid, header.tp_vlan_tci) = (3, 7, 0x8100, 42);
        address.sll_ifindex = 9;
        // SAFETY: both lie within the slot, which is mapped, and aligned as the mapping is.
        unsafe {
            let slot = ring.memory.as_ptr().add(index * SLOT);
            slot.cast::<libc::tpacket2_hdr>().write(header);
            slot.add(ADDRESS_AT).cast::<libc::sockaddr_ll>().write(address);
            (0..SLOT).skip(100).for_each(|at| slot.add(at).write(at as u8));
        }
    }

    #[test]
    fn frames_are_taken_in_turn_and_their_slots_are_freed() {
        let mut ring = ring();
        assert_eq!(ring.take(|_| ()), None);
        put(&ring, 0, 100, 3, libc::TP_STATUS_VLAN_VALID);
        put(&ring, 1, 110, 2, libc::TP_STATUS_CSUMNOTREADY);
        let first = ring.take(|frame| {
            assert_eq!((frame.length, frame.link, frame.arrived_unix), (1_514, 9, 3_000_000_007));
            (frame.bytes.to_vec(), frame.vlan, frame.lacks_checksum)
        });
        assert_eq!(first, Some((vec![100, 101, 102], Some((0x8100, 42)), false)));
        let second = ring.take(|frame| (frame.bytes.to_vec(), frame.vlan, frame.lacks_checksum));
        assert_eq!(second, Some((vec![110, 111], None, true)));
        assert_eq!(ring.take(|_| ()), None, "the first slot is the kernel's again");
    }

    #[test]
    fn a_frame_is_never_read_beyond_its_slot() {
        let mut ring = ring();
        for (mac, kept, left) in [(200, 1_514, 56), (256, 1, 0), (u16::MAX, u32::MAX, 0)] {
            let index = ring.next;
            put(&ring, index, mac, kept, 0);
            assert_eq!(ring.take(|frame| frame.bytes.len()), Some(left), "at {mac}");
        }
    }
}
