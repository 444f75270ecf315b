//! Sockets as calls take them, whatever the operating system calls their handles.

use std::os::fd::AsFd;
pub use std::os::fd::{BorrowedFd as BorrowedSocket, OwnedFd as OwnedSocket};

/// What has a socket, or waits like one.
pub trait AsSocket {
    /// Borrows the socket.
    fn as_socket(&self) -> BorrowedSocket<'_>;
}

impl<T: AsFd> AsSocket for T {
    fn as_socket(&self) -> BorrowedSocket<'_> {
        self.as_fd()
    }
}
