//! A counter that threads wait for next to their sockets: it is readable by a datagram in a socket of its own. Windows waits for sockets and
//! for events by different calls, and macOS has no counters in its kernel.

use crate::handle::{AsSocket, BorrowedSocket};
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Longest wait for a datagram on its way through the loopback interface.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(5);

/// A counter that can be read, in the sense of poll(2), while it is above zero.
#[derive(Debug)]
pub struct Event {
    /// The datagram is in the receiver, or on its way to it, while this is above zero.
    count: Mutex<u64>,
    sender: UdpSocket,
    receiver: UdpSocket,
}

impl Event {
    /// Creates a counter at zero.
    ///
    /// # Errors
    /// The loopback interface has no free port, or the process no free socket.
    pub fn new() -> io::Result<Self> {
        let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        sender.connect(receiver.local_addr()?)?;
        receiver.connect(sender.local_addr()?)?;
        receiver.set_read_timeout(Some(DELIVERY_TIMEOUT))?;
        Ok(Self { count: Mutex::new(0), sender, receiver })
    }

    /// Adds one, and wakes the threads that wait.
    pub fn add(&self) {
        let mut count = self.count();
        if *count == 0 && self.sender.send(&[0]).is_err() {
            return;
        }
        *count += 1;
    }

    /// Subtracts one; returns false if the counter is at zero.
    pub fn take(&self) -> bool {
        let mut count = self.count();
        if *count == 0 {
            return false;
        }
        *count -= 1;
        if *count == 0 {
            // A failure leaves a readable socket at most: those that wait look in vain once.
            let _ = self.receiver.recv(&mut [0]);
        }
        true
    }

    fn count(&self) -> MutexGuard<'_, u64> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(unix)]
impl std::os::fd::AsFd for Event {
    fn as_fd(&self) -> BorrowedSocket<'_> {
        self.receiver.as_socket()
    }
}

#[cfg(windows)]
impl AsSocket for Event {
    fn as_socket(&self) -> BorrowedSocket<'_> {
        self.receiver.as_socket()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::wait_readable;

    #[test]
    fn takes_succeed_once_for_each_add() {
        let event = Event::new().expect("a counter");
        for _ in 0..100 {
            assert!(!event.take() && !wait_readable(&[event.as_socket()], 0).expect("polls"));
            event.add();
            event.add();
            assert!(wait_readable(&[event.as_socket()], 1_000_000_000).expect("polls"));
            assert!(event.take());
            assert!(wait_readable(&[event.as_socket()], 1_000_000_000).expect("polls"));
            assert_eq!([event.take(), event.take()], [true, false]);
        }
    }
}
