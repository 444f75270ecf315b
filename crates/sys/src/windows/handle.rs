//! Sockets as calls take them, whatever the operating system calls their handles.

pub use std::os::windows::io::{AsSocket, BorrowedSocket, OwnedSocket};
