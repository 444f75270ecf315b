//! Reading from a control connection with a deadline and a stop flag.

use linerate_sys::clock;
use linerate_sys::socket::is_timeout;
use std::io::{self, Read as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Read timeout of the connection, so that a stop is seen.
pub(crate) const TICK: Duration = Duration::from_millis(20);

/// Reason that too few bytes were read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unread {
    /// The reader was stopped.
    #[error("it was stopped")]
    Stopped,
    /// The deadline came first.
    #[error("it did not answer in time")]
    Silent,
    /// The other end closed the connection.
    #[error("it closed the control connection")]
    Closed,
    /// The connection failed.
    #[error("it broke the control connection ({0})")]
    Broken(io::Error),
}

/// Fills `buffer` until `deadline`, from a connection with [`TICK`] as its read timeout.
///
/// A peer that sends a byte now and then gets no more time than a silent one.
pub(crate) fn fill(mut stream: &TcpStream, buffer: &mut [u8], deadline: u64, stop: &AtomicBool) -> Result<(), Unread> {
    let mut filled = 0;
    while filled < buffer.len() {
        if stop.load(Ordering::Relaxed) {
            return Err(Unread::Stopped);
        }
        match stream.read(&mut buffer[filled..]) {
            Ok(0) => return Err(Unread::Closed),
            Ok(bytes) => filled += bytes,
            Err(error) if is_timeout(&error) => (),
            Err(error) => return Err(Unread::Broken(error)),
        }
        if filled < buffer.len() && clock::now() >= deadline {
            return Err(Unread::Silent);
        }
    }
    Ok(())
}

/// Reads a text of `length` bytes. Memory is allocated only as bytes arrive.
pub(crate) fn text(stream: &TcpStream, length: usize, deadline: u64, stop: &AtomicBool) -> Result<Vec<u8>, Unread> {
    let mut text = Vec::new();
    let mut part = [0; 16 << 10];
    while text.len() < length {
        let next = part.len().min(length - text.len());
        fill(stream, &mut part[..next], deadline, stop)?;
        text.extend_from_slice(&part[..next]);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::net::{Ipv4Addr, TcpListener};
    use std::thread;

    #[test]
    fn peer_that_sends_byte_by_byte_gets_no_more_time() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("listens");
        let mut peer = TcpStream::connect(listener.local_addr().expect("listens")).expect("connects");
        let (stream, _) = listener.accept().expect("a peer");
        stream.set_read_timeout(Some(TICK)).expect("setsockopt");
        // The sender ends when the reader has closed.
        let sender = thread::spawn(move || {
            while peer.write_all(b"x").is_ok() {
                thread::sleep(TICK / 10);
            }
        });
        let result = text(&stream, 1 << 20, clock::now() + 100_000_000, &AtomicBool::new(false));
        assert!(matches!(result, Err(Unread::Silent)), "{result:?}");
        drop(stream);
        sender.join().expect("no panic");
    }
}
