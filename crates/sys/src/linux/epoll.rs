//! Very many sockets waited for at a time (epoll(7)): what one call costs does not grow with their number.

use crate::Error;
use crate::socket::wait_readable;
use nix::errno::Errno;
use nix::sys::epoll::{EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use std::os::fd::{AsFd, BorrowedFd};

/// Sockets told in one call. Those that are told come last the next time, so that none is left out.
const AT_ONCE: usize = 64;

/// What a socket is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// That it can be read.
    Read,
    /// That it can be written.
    Write,
}

/// Sockets that are waited for, each with a number of the caller's.
#[derive(Debug)]
pub struct Epoll {
    epoll: nix::sys::epoll::Epoll,
    events: Box<[EpollEvent]>,
}

impl Epoll {
    /// No sockets yet.
    ///
    /// # Errors
    /// There is no descriptor left.
    pub fn new() -> Result<Self, Error> {
        let epoll = nix::sys::epoll::Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)
            .map_err(|errno| Error::new("epoll_create1", "sockets", errno))?;
        Ok(Self { epoll, events: vec![EpollEvent::empty(); AT_ONCE].into() })
    }

    /// Adds `socket`, which is told by `number` while it is ready or has failed. It is to be removed before it is closed if its
    /// description has other descriptors.
    ///
    /// # Errors
    /// It was added before, or the kernel lets this user wait for no more (`fs.epoll.max_user_watches`).
    pub fn add(&self, socket: BorrowedFd<'_>, interest: Interest, number: usize) -> Result<(), Error> {
        let flags = match interest {
            Interest::Read => EpollFlags::EPOLLIN,
            Interest::Write => EpollFlags::EPOLLOUT,
        };
        let added = self.epoll.add(socket, EpollEvent::new(flags, number as u64));
        added.map_err(|errno| Error::new("epoll_ctl(EPOLL_CTL_ADD)", "a socket", errno))
    }

    /// Waits for `socket` no longer.
    ///
    /// # Errors
    /// It was not added.
    pub fn remove(&self, socket: BorrowedFd<'_>) -> Result<(), Error> {
        self.epoll.delete(socket).map_err(|errno| Error::new("epoll_ctl(EPOLL_CTL_DEL)", "a socket", errno))
    }

    /// Waits until sockets are ready, at most `timeout_ns`, and adds their numbers to `ready`, 64 at the most.
    ///
    /// # Errors
    /// epoll_wait(2) fails.
    pub fn wait(&mut self, timeout_ns: u64, ready: &mut Vec<usize>) -> Result<(), Error> {
        // The timeout of epoll_wait(2) has milliseconds. An epoll is itself ready while one of its sockets is.
        if self.take(ready)? == 0 && timeout_ns > 0 && wait_readable(&[self.epoll.0.as_fd()], timeout_ns)? {
            self.take(ready)?;
        }
        Ok(())
    }

    fn take(&mut self, ready: &mut Vec<usize>) -> Result<usize, Error> {
        match self.epoll.wait(&mut self.events, EpollTimeout::ZERO) {
            Ok(taken) => {
                ready.extend(self.events[..taken].iter().map(|event| event.data() as usize));
                Ok(taken)
            }
            Err(Errno::EINTR) => Ok(0),
            Err(errno) => Err(Error::new("epoll_wait", "sockets", errno)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use std::net::UdpSocket;

    fn told(epoll: &mut Epoll) -> Vec<usize> {
        let mut ready = Vec::new();
        epoll.wait(0, &mut ready).expect("waits");
        ready.sort_unstable();
        ready
    }

    #[test]
    fn sockets_are_told_while_they_are_ready() {
        let sockets: Vec<UdpSocket> = (0..3).map(|_| UdpSocket::bind("127.0.0.1:0").expect("binds")).collect();
        let mut epoll = Epoll::new().expect("an epoll");
        for (number, socket) in sockets.iter().enumerate() {
            epoll.add(socket.as_fd(), Interest::Read, 10 + number).expect("added");
        }
        let begun = clock::now();
        epoll.wait(1_500_000, &mut Vec::new()).expect("waits");
        assert!(clock::now() - begun >= 1_500_000, "nothing has come");
        for socket in &sockets[1..] {
            sockets[0].send_to(b"x", socket.local_addr().expect("bound")).expect("sends");
        }
        let mut first = Vec::new();
        epoll.wait(60_000_000_000, &mut first).expect("waits");
        assert!(!first.is_empty());
        assert_eq!((told(&mut epoll), told(&mut epoll)), (vec![11, 12], vec![11, 12]));
        sockets[1].recv(&mut [0; 1]).expect("receives");
        assert_eq!(told(&mut epoll), [12]);
        epoll.remove(sockets[2].as_fd()).expect("removed");
        assert_eq!(told(&mut epoll), [0; 0]);
        epoll.add(sockets[2].as_fd(), Interest::Write, 7).expect("added again");
        assert_eq!(told(&mut epoll), [7]);
    }

    #[test]
    fn none_of_many_ready_sockets_is_left_out() {
        let sockets: Vec<UdpSocket> = (0..150).map(|_| UdpSocket::bind("127.0.0.1:0").expect("binds")).collect();
        let mut epoll = Epoll::new().expect("an epoll");
        for (number, socket) in sockets.iter().enumerate() {
            epoll.add(socket.as_fd(), Interest::Write, number).expect("added");
        }
        let mut all: Vec<usize> = (0..3).flat_map(|_| told(&mut epoll)).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all, (0..150).collect::<Vec<_>>());
    }
}
