//! A buffer of each thread for bytes that only pass through.

use std::cell::RefCell;
use std::io::{self, Read as _};
use std::net::TcpStream;

/// Bytes of the calling thread's buffer.
const SCRATCH_BYTES: usize = 256 << 10;

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; SCRATCH_BYTES]);
}

/// Lends the calling thread's buffer of 256 KiB, cut to `length`.
pub(crate) fn with_scratch<T>(length: usize, work: impl FnOnce(&mut [u8]) -> T) -> T {
    SCRATCH.with_borrow_mut(|scratch| {
        let length = length.min(scratch.len());
        work(&mut scratch[..length])
    })
}

/// Receives up to `length` bytes, 256 KiB at the most, and drops them.
///
/// # Errors
/// recv() fails.
pub fn discard(mut connection: &TcpStream, length: usize) -> io::Result<usize> {
    with_scratch(length, |scratch| connection.read(scratch))
}
