//! Connecting with a deadline and a stop flag.

use linerate_sys::clock;
use linerate_sys::handle::AsSocket as _;
use linerate_sys::socket::{EINPROGRESS, wait_writable};
use socket2::{SockAddr, Socket};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Longest time until a stop is seen.
const TICK_NS: u64 = 20_000_000;

/// Connects `socket` to `peer` until `deadline`, nanoseconds on the clock of [`clock::now`]. Returns false if `stop`
/// was set meanwhile. The socket blocks afterwards.
///
/// # Errors
/// The peer refused, could not be reached, or did not answer in time ([`io::ErrorKind::TimedOut`]).
pub fn connect(socket: &Socket, peer: SocketAddr, deadline: u64, stop: &AtomicBool) -> io::Result<bool> {
    socket.set_nonblocking(true)?;
    match socket.connect(&SockAddr::from(peer)) {
        Err(error) if error.raw_os_error() == Some(EINPROGRESS) => {
            while !wait_writable(socket.as_socket(), TICK_NS).map_err(io::Error::other)? {
                if stop.load(Ordering::Relaxed) {
                    return Ok(false);
                }
                if clock::now() >= deadline {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
            if let Some(error) = socket.take_error()? {
                return Err(error);
            }
        }
        other => other?,
    }
    socket.set_nonblocking(false)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::{Domain, Type};
    use std::net::{Ipv4Addr, TcpListener};

    const SECOND: u64 = 1_000_000_000;

    fn socket() -> Socket {
        Socket::new(Domain::IPV4, Type::STREAM, None).expect("socket")
    }

    #[test]
    fn connects_or_returns_the_refusal() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("binds");
        let address = listener.local_addr().expect("listens");
        let stop = AtomicBool::new(false);
        assert!(connect(&socket(), address, clock::now() + SECOND, &stop).expect("the listener accepts"));
        drop(listener);
        let error = connect(&socket(), address, clock::now() + SECOND, &stop).expect_err("nobody listens");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn connecting_to_a_silent_peer_ends_at_the_deadline_or_a_stop() {
        // A listener whose queue is full answers nobody.
        let listener = socket();
        listener.bind(&SockAddr::from(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))).expect("binds");
        listener.listen(0).expect("listens");
        let address = listener.local_addr().expect("bound").as_socket().expect("of the Internet");
        let stop = AtomicBool::new(false);
        let first = socket();
        assert!(connect(&first, address, clock::now() + SECOND, &stop).expect("the queue takes one"));
        let second = socket();
        let start = clock::now();
        let late = connect(&second, address, start + SECOND / 10, &stop).expect_err("the queue is full");
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        assert!(clock::now() - start >= SECOND / 10);
        stop.store(true, Ordering::Relaxed);
        assert!(!connect(&socket(), address, clock::now() + 600 * SECOND, &stop).expect("no failure"));
    }
}
