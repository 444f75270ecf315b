//! A counter in the kernel that threads wait for beside their sockets (eventfd(2)).

use nix::sys::eventfd::{EfdFlags, EventFd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// A counter that can be read, in the sense of poll(2), while it is above zero.
#[derive(Debug)]
pub struct Event(EventFd);

impl Event {
    /// A counter at zero.
    pub fn new() -> io::Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_SEMAPHORE;
        Ok(Self(EventFd::from_value_and_flags(0, flags)?))
    }

    /// Adds one, and wakes those that wait.
    pub fn add(&self) {
        // It fails beyond 2^64 - 2 only: then they are awake.
        let _ = self.0.write(1);
    }

    /// Takes one off; false if the counter is at zero.
    pub fn take(&self) -> bool {
        self.0.read().is_ok()
    }
}

impl AsFd for Event {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::wait_readable;

    #[test]
    fn whoever_waits_takes_as_many_as_were_added() {
        let event = Event::new().expect("a counter");
        assert!(!event.take() && !wait_readable(&[event.as_fd()], 0).expect("polls"));
        event.add();
        event.add();
        assert!(wait_readable(&[event.as_fd()], 0).expect("polls"));
        assert_eq!([event.take(), event.take(), event.take()], [true, true, false]);
    }
}
