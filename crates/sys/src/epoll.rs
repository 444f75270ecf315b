//! Very many sockets waited for at a time. poll(2) and WSAPoll take all of them with each call, so that the cost of a call grows with
//! their number.

use crate::Error;
use crate::handle::BorrowedSocket;
use crate::poll::{POLLIN, POLLOUT, PollEntry, poll, poll_entry};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most sockets that one call returns. The next call begins after them, so that none is left out.
const AT_ONCE: usize = 64;

/// Condition that a socket is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// It can be read.
    Read,
    /// It can be written.
    Write,
}

/// Sockets that are waited for, each with a number of the caller's.
pub struct Epoll(Mutex<Sockets>);

#[derive(Default)]
struct Sockets {
    entries: Vec<PollEntry>,
    /// Number of the socket in the entry of the same index.
    numbers: Vec<usize>,
    /// Index of the entry that the next call looks at first.
    next: usize,
}

impl std::fmt::Debug for Epoll {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Epoll").field(&self.sockets().numbers).finish()
    }
}

impl Epoll {
    /// Creates a list without sockets.
    ///
    /// # Errors
    /// None on this system.
    pub fn new() -> Result<Self, Error> {
        Ok(Self(Mutex::default()))
    }

    /// Adds `socket`, which is reported by `number` while it is ready or has failed. Remove it before it is closed.
    ///
    /// # Errors
    /// It was added before.
    pub fn add(&self, socket: BorrowedSocket<'_>, interest: Interest, number: usize) -> Result<(), Error> {
        let events = match interest {
            Interest::Read => POLLIN,
            Interest::Write => POLLOUT,
        };
        let mut sockets = self.sockets();
        if let Some(index) = sockets.index(socket) {
            // A closed socket that was not removed has left its handle to this one.
            if sockets.numbers[index] == number {
                return Err(Error::new("adding to poll", "a socket", io::ErrorKind::AlreadyExists));
            }
            sockets.remove(index);
        }
        sockets.entries.push(poll_entry(socket, events));
        sockets.numbers.push(number);
        Ok(())
    }

    /// Stops waiting for `socket`.
    ///
    /// # Errors
    /// It was not added.
    pub fn remove(&self, socket: BorrowedSocket<'_>) -> Result<(), Error> {
        let mut sockets = self.sockets();
        let missing = || Error::new("removing from poll", "a socket", io::ErrorKind::NotFound);
        let index = sockets.index(socket).ok_or_else(missing)?;
        sockets.remove(index);
        Ok(())
    }

    /// Waits until sockets are ready, at most `timeout_ns`, and adds their numbers to `ready`, 64 at the most.
    ///
    /// # Errors
    /// The system refuses the wait.
    pub fn wait(&mut self, timeout_ns: u64, ready: &mut Vec<usize>) -> Result<(), Error> {
        let sockets = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        poll(&mut sockets.entries, timeout_ns)?;
        let count = sockets.entries.len();
        let start = sockets.next;
        let mut taken = 0;
        for index in (0..count).map(|step| (start + step) % count) {
            if sockets.entries[index].revents == 0 {
                continue;
            }
            ready.push(sockets.numbers[index]);
            taken += 1;
            if taken == AT_ONCE {
                sockets.next = index + 1;
                break;
            }
        }
        Ok(())
    }

    fn sockets(&self) -> MutexGuard<'_, Sockets> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sockets {
    fn index(&self, socket: BorrowedSocket<'_>) -> Option<usize> {
        let wanted = poll_entry(socket, 0).fd;
        self.entries.iter().position(|entry| entry.fd == wanted)
    }

    fn remove(&mut self, index: usize) {
        self.entries.swap_remove(index);
        self.numbers.swap_remove(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use crate::handle::AsSocket as _;
    use crate::socket::wait_readable;
    use std::net::UdpSocket;

    fn ready(epoll: &mut Epoll) -> Vec<usize> {
        let mut ready = Vec::new();
        epoll.wait(50_000_000, &mut ready).expect("waits");
        ready.sort_unstable();
        ready
    }

    #[test]
    fn sockets_are_reported_while_they_are_ready() {
        let sockets: Vec<UdpSocket> = (0..3).map(|_| UdpSocket::bind("127.0.0.1:0").expect("binds")).collect();
        let mut epoll = Epoll::new().expect("a list");
        for (number, socket) in sockets.iter().enumerate() {
            epoll.add(socket.as_socket(), Interest::Read, 10 + number).expect("added");
        }
        let begun = clock::now();
        epoll.wait(1_500_000, &mut Vec::new()).expect("waits");
        assert!(clock::now() - begun >= 1_500_000);
        for socket in &sockets[1..] {
            sockets[0].send_to(b"x", socket.local_addr().expect("bound")).expect("sends");
        }
        for socket in &sockets[1..] {
            assert!(wait_readable(&[socket.as_socket()], 60_000_000_000).expect("polls"));
        }
        assert_eq!((ready(&mut epoll), ready(&mut epoll)), (vec![11, 12], vec![11, 12]));
        sockets[1].recv(&mut [0; 1]).expect("receives");
        assert_eq!(ready(&mut epoll), [12]);
        epoll.remove(sockets[2].as_socket()).expect("removed");
        assert!(epoll.remove(sockets[2].as_socket()).is_err());
        assert_eq!(ready(&mut epoll), [0; 0]);
        epoll.add(sockets[2].as_socket(), Interest::Write, 7).expect("added again");
        assert_eq!(ready(&mut epoll), [7]);
    }

    #[test]
    fn none_of_many_ready_sockets_is_left_out() {
        let sockets: Vec<UdpSocket> = (0..150).map(|_| UdpSocket::bind("127.0.0.1:0").expect("binds")).collect();
        let mut epoll = Epoll::new().expect("a list");
        for (number, socket) in sockets.iter().enumerate() {
            epoll.add(socket.as_socket(), Interest::Write, number).expect("added");
        }
        let mut all: Vec<usize> = (0..3).flat_map(|_| ready(&mut epoll)).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all, (0..150).collect::<Vec<_>>());
    }
}
