//! Many messages in one call. The kernel is called directly: musl's `sendmmsg` calls `sendmsg` once for each message, and the types
//! of its flags are not glibc's.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Sends one message for each header. Returns how many the kernel took.
///
/// # Safety
///
/// Each header began as zeroes, since the kernel takes musl's padding for the upper half of a length. What it points to is valid
/// for reading, in the lengths that it says, until the call returns.
pub(crate) unsafe fn send(socket: BorrowedFd<'_>, headers: &mut [libc::mmsghdr], flags: i32) -> io::Result<usize> {
    // SAFETY: the caller answers for the headers, and their number is that of the slice.
    let sent = unsafe {
        libc::syscall(
            libc::SYS_sendmmsg,
            socket.as_raw_fd(),
            headers.as_mut_ptr(),
            headers.len() as libc::c_uint,
            flags,
        )
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
}

/// Receives at most one message for each header, by the flags of recvmmsg(2). Returns how many there were.
///
/// # Safety
///
/// As for [`send`]; and what the headers point to is valid for writing.
pub(crate) unsafe fn receive(socket: BorrowedFd<'_>, headers: &mut [libc::mmsghdr], flags: i32) -> io::Result<usize> {
    // SAFETY: the caller answers for the headers, their number is that of the slice, and there is no limit of time.
    let taken = unsafe {
        libc::syscall(
            libc::SYS_recvmmsg,
            socket.as_raw_fd(),
            headers.as_mut_ptr(),
            headers.len() as libc::c_uint,
            flags,
            std::ptr::null_mut::<libc::timespec>(),
        )
    };
    if taken < 0 { Err(io::Error::last_os_error()) } else { Ok(taken as usize) }
}
