//! Waits for sockets. Each operating system has its own call, `poll`.

use crate::Error;
use crate::handle::BorrowedSocket;
use crate::poll::{POLLIN, POLLOUT, PollEntry, poll, poll_entry};

/// Waits until one of `sockets` can be read (or has failed), at most `timeout_ns`; false if none can.
///
/// # Errors
/// The system refuses the wait.
pub fn wait_readable(sockets: &[BorrowedSocket<'_>], timeout_ns: u64) -> Result<bool, Error> {
    wait(sockets, POLLIN, timeout_ns)
}

/// Waits until one of `sockets` can be read (or has failed), at most `timeout_ns`. Returns the numbers of those that can.
///
/// # Errors
/// The system refuses the wait.
pub fn wait_for_each(sockets: &[BorrowedSocket<'_>], timeout_ns: u64) -> Result<Vec<usize>, Error> {
    wait_each(sockets, POLLIN, timeout_ns)
}

/// Waits until one of `sockets` can be read or written (or has failed), at most `timeout_ns`. Returns the numbers of those that can.
///
/// # Errors
/// The system refuses the wait.
pub fn wait_ready_each(sockets: &[BorrowedSocket<'_>], timeout_ns: u64) -> Result<Vec<usize>, Error> {
    wait_each(sockets, POLLIN | POLLOUT, timeout_ns)
}

/// Waits until `socket` can be written (or has failed), at most `timeout_ns`; false if it cannot.
///
/// # Errors
/// The system refuses the wait.
pub fn wait_writable(socket: BorrowedSocket<'_>, timeout_ns: u64) -> Result<bool, Error> {
    wait(&[socket], POLLOUT, timeout_ns)
}

/// Waits until `socket` can be read or written (or has failed), at most `timeout_ns`; false if it cannot.
///
/// # Errors
/// The system refuses the wait.
pub fn wait_ready(socket: BorrowedSocket<'_>, timeout_ns: u64) -> Result<bool, Error> {
    wait(&[socket], POLLIN | POLLOUT, timeout_ns)
}

fn wait(sockets: &[BorrowedSocket<'_>], events: i16, timeout_ns: u64) -> Result<bool, Error> {
    Ok(poll(&mut entries(sockets, events), timeout_ns)? > 0)
}

fn wait_each(sockets: &[BorrowedSocket<'_>], events: i16, timeout_ns: u64) -> Result<Vec<usize>, Error> {
    let mut entries = entries(sockets, events);
    poll(&mut entries, timeout_ns)?;
    Ok(entries.iter().enumerate().filter_map(|(number, entry)| (entry.revents != 0).then_some(number)).collect())
}

fn entries(sockets: &[BorrowedSocket<'_>], events: i16) -> Vec<PollEntry> {
    sockets.iter().map(|socket| poll_entry(*socket, events)).collect()
}
