//! Sends and receives the cross traffic of a bench.
//!
//! A child process of the lab does so by two connected sockets, so that nothing answers with ICMP.

use crate::LabError;
use crate::linux::bench::CrossTraffic;
use crate::linux::child_processes::ChildProcesses;
use crate::linux::lifeline::wait_for_end;
use crate::linux::wiring::WiredHost;
use linerate_sys::Error;
use linerate_sys::clock::{now, sleep_until};
use linerate_sys::socket::force_receive_buffer;
use linerate_sys::thread::sharpen_timers;
use linerate_sys::udp;
use linerate_units::Nanos;
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::thread;
use std::time::Duration;

/// Time that a late sender catches up on.
const LATE: Nanos = Nanos::from_millis(20);
/// The shortest sleep between datagrams: those that are due meanwhile leave together.
const PAUSE: Nanos = Nanos::new(200_000);
/// Size of the receive buffer, bytes: enough for the time that its process waits for a core.
const RECEIVE_BUFFER: i32 = 8 << 20;

/// Starts `traffic` between two hosts.
pub(crate) fn start(
    traffic: &CrossTraffic,
    from: &WiredHost,
    to: &WiredHost,
    children: &mut ChildProcesses,
) -> Result<(), LabError> {
    let step = format!("start the cross traffic from {} to {}", traffic.from, traffic.to);
    let receiver = bound(to).map_err(LabError::at(&step))?;
    let sender = bound(from).map_err(LabError::at(&step))?;
    for (socket, peer) in [(&sender, &receiver), (&receiver, &sender)] {
        peer.local_addr()
            .and_then(|address| socket.connect(address))
            .map_err(|error| LabError::at(&step)(Error::new("connect", "a UDP socket", error)))?;
    }
    children.exchange([sender, receiver].map(OwnedFd::from), traffic.interval(), traffic.size)
}

/// A socket at the first address of a host.
fn bound(host: &WiredHost) -> Result<UdpSocket, Error> {
    let address = host.addresses.first().copied().unwrap_or(IpAddr::from([0, 0, 0, 0]));
    let bound = host.namespace.enter(|| UdpSocket::bind((address, 0)))?;
    bound.map_err(|error| Error::new("bind", address.to_string(), error))
}

/// Sends datagrams of `size` bytes by the socket that is the standard output, one each `interval`, and receives by the
/// one that is the standard error, until standard input ends.
///
/// # Errors
/// Fails if standard output or standard error is no socket.
pub fn exchange(interval: Nanos, size: u16) -> Result<(), Error> {
    let owned = |socket: BorrowedFd<'_>| {
        let owned = socket.try_clone_to_owned().map(UdpSocket::from);
        owned.map_err(|error| Error::new("dup", "a socket of cross traffic", error))
    };
    let sender = owned(io::stdout().as_fd())?;
    let receiver = owned(io::stderr().as_fd())?;
    force_receive_buffer(receiver.as_fd(), RECEIVE_BUFFER)?;
    thread::spawn(move || send(&sender, interval, size));
    thread::spawn(move || receive(&receiver));
    wait_for_end()
}

fn send(socket: &UdpSocket, interval: Nanos, size: u16) {
    sharpen_timers();
    let datagram = vec![0; usize::from(size)];
    let interval = interval.get().max(1);
    let mut due = now();
    loop {
        due = due.max(now().saturating_sub(LATE.get()));
        while due <= now() {
            // What the host's own queue or filter drops is lost as any datagram.
            let _ = socket.send(&datagram);
            due += interval;
        }
        sleep_until(due.max(now() + PAUSE.get()));
    }
}

fn receive(socket: &UdpSocket) {
    let mut first = [0; 16];
    loop {
        if udp::receive_one(socket, &mut first, true).is_err() {
            thread::sleep(Duration::from_millis(1));
        }
    }
}
