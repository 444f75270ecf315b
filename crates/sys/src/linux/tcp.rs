//! TCP: sending without copies, receiving without copies, TCP_INFO.

use crate::Error;
use crate::socket_option::{Plain, read_option};
pub use crate::stream::{peek, receive, send_now, set_keepalive, set_low_water, waiting};
pub use crate::tcp_info::Info;
use nix::errno::Errno;
use nix::sys::sendfile::sendfile;
use socket2::SockRef;
use std::fs::File;
use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::time::Duration;

/// Names of the calls of [`send_file`] and [`discard`], as records have them.
pub const SEND_FILE: &str = "sendfile";
/// See [`SEND_FILE`].
pub const DISCARD: &str = "recv with MSG_TRUNC (not copied)";

/// Returns the name of a socket's congestion control. `None` if the system does not report it.
///
/// # Errors
/// `socket` is no TCP socket.
pub fn congestion(socket: BorrowedFd<'_>) -> io::Result<Option<String>> {
    let mut name = SockRef::from(&socket).tcp_congestion()?;
    name.retain(|byte| *byte != 0);
    Ok(Some(String::from_utf8_lossy(&name).into_owned()))
}

/// Sets the congestion control of a socket.
///
/// # Errors
/// `NotFound` if the kernel has no such control, `PermissionDenied` if this process may not use it.
pub fn set_congestion(socket: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    // The final zero is for emulators (qemu-user), which refuse values shorter than an integer.
    let name = format!("{name}\0");
    SockRef::from(&socket).set_tcp_congestion(name.as_bytes())
}

/// Limits the segments of a connection to `bytes` of payload (TCP_MAXSEG), and announces that to its peer.
///
/// # Errors
/// The kernel refuses the size.
pub fn set_max_segment(socket: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
    SockRef::from(&socket).set_tcp_mss(bytes)
}

/// Ends a connection whose sent data has been unacknowledged for `timeout` (TCP_USER_TIMEOUT, RFC 5482). `None` is the system's own limit.
///
/// # Errors
/// `socket` is no TCP socket.
pub fn set_user_timeout(socket: BorrowedFd<'_>, timeout: Option<Duration>) -> io::Result<()> {
    SockRef::from(&socket).set_tcp_user_timeout(timeout)
}

/// Returns the limit that [`set_user_timeout`] set. `None` if the system's own applies.
///
/// # Errors
/// `socket` is no TCP socket.
pub fn user_timeout(socket: BorrowedFd<'_>) -> io::Result<Option<Duration>> {
    Ok(SockRef::from(&socket).tcp_user_timeout()?.filter(|timeout| !timeout.is_zero()))
}

/// Hands up to `length` bytes of `file` from `offset` on to the connection, without a copy in user space.
pub fn send_file(connection: &TcpStream, file: &File, offset: u64, length: usize) -> io::Result<usize> {
    let mut offset = offset as libc::off_t;
    sendfile(connection.as_fd(), file.as_fd(), Some(&mut offset), length).map_err(Errno::into)
}

/// Takes up to `length` bytes from the connection and throws them away uncopied (MSG_TRUNC, tcp(7)).
pub fn discard(connection: &TcpStream, length: usize) -> io::Result<usize> {
    // SAFETY: with MSG_TRUNC TCP writes nothing to the buffer, so a null one is allowed; the descriptor is borrowed.
    let result = unsafe { libc::recv(connection.as_raw_fd(), std::ptr::null_mut(), length, libc::MSG_TRUNC) };
    if result >= 0 { Ok(result as usize) } else { Err(io::Error::last_os_error()) }
}

/// Returns the bytes that were sent and that the peer has not acknowledged yet, those in the send buffer included (SIOCOUTQ, tcp(7)). `None`
/// if the system does not count them.
///
/// # Errors
/// ioctl(2) fails.
pub fn unacknowledged(connection: &TcpStream) -> Result<Option<u64>, Error> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: SIOCOUTQ, which is TIOCOUTQ, writes one int to where it points; the descriptor is borrowed.
    let result = unsafe { libc::ioctl(connection.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if result == 0 {
        Ok(Some(bytes.unsigned_abs().into()))
    } else {
        Err(Error::last("ioctl(SIOCOUTQ)", "a TCP connection"))
    }
}

/// Reads the state of a connection (TCP_INFO). Fields that an older kernel lacks are zero. `None` if the system has no such call.
///
/// # Errors
/// The socket is no TCP socket.
pub fn info(connection: BorrowedFd<'_>) -> Result<Option<Info>, Error> {
    read_option(connection, libc::IPPROTO_TCP, libc::TCP_INFO, "getsockopt(TCP_INFO)").map(Some)
}

// SAFETY: integers only, and `repr(C)` leaves no gaps: eight bytes, 24 u32, then u64 and pairs of u32, the last
// but one of them as two u16.
unsafe impl Plain for Info {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::mem::offset_of;
    use std::net::TcpListener;
    use std::time::{Duration, Instant};

    #[test]
    fn the_layout_is_the_kernels() {
        // From <linux/tcp.h>, as pahole prints it.
        assert_eq!(offset_of!(Info, total_retrans), 100);
        assert_eq!(offset_of!(Info, pacing_rate), 104);
        assert_eq!(offset_of!(Info, delivery_rate), 160);
        assert_eq!(offset_of!(Info, snd_wnd), 228);
        assert_eq!((offset_of!(Info, total_rto), size_of::<Info>()), (240, 248));
    }

    /// A connection whose reader takes nothing: what it has no room for waits at the sender, and goes once it is taken.
    #[test]
    fn what_the_peer_has_not_acknowledged_is_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
        let opener = TcpStream::connect(listener.local_addr().expect("bound")).expect("connects");
        let (accepted, _) = listener.accept().expect("accepts");
        let mut sent = 0;
        while let Ok(more) = send_now(&opener, &[1; 65_536]) {
            sent += more as u64;
        }
        let left = unacknowledged(&opener).expect("counts").expect("counted");
        assert!(0 < left && left <= sent, "{left} of {sent}");
        accepted.set_nonblocking(true).expect("it need not wait");
        let deadline = Instant::now() + Duration::from_secs(30);
        while unacknowledged(&opener).expect("counts") > Some(0) {
            assert!(Instant::now() < deadline, "what was taken is acknowledged");
            // Nothing may be there while an acknowledgement is on its way.
            let _ = discard(&accepted, 65_536);
        }
    }

    #[test]
    fn a_reader_sleeps_until_enough_has_come() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
        let mut sender = TcpStream::connect(listener.local_addr().expect("listens")).expect("connects");
        let (mut accepted, _) = listener.accept().expect("accepts");
        assert!(set_low_water(&accepted, 4_000).expect("set"));
        sender.write_all(&[0; 1_000]).expect("sent");
        let is_readable = |timeout_ns| crate::socket::wait_readable(&[accepted.as_fd()], timeout_ns).expect("polls");
        assert!(!is_readable(20_000_000));
        sender.write_all(&[0; 3_000]).expect("sent");
        assert!(is_readable(60_000_000_000));
        let mut taken = [0; 8_000];
        assert_eq!(accepted.read(&mut taken).expect("read"), 4_000);
        // The end of the stream wakes it as well.
        sender.write_all(&[0; 10]).expect("sent");
        drop(sender);
        assert_eq!(accepted.read(&mut taken).expect("read"), 10);
    }

    #[test]
    fn discards_and_tells_of_it() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
        let mut opener = TcpStream::connect(listener.local_addr().expect("bound")).expect("connects");
        let (accepted, _) = listener.accept().expect("accepts");
        let file = crate::memory::file_of(&[7; 3_000]).expect("makes a file");
        opener.write_all(&[1; 1_000]).expect("writes");
        assert_eq!(send_file(&opener, &file, 1_000, 2_000).expect("sends"), 2_000);
        let mut left = 3_000;
        while left > 0 {
            left -= discard(&accepted, left).expect("discards");
        }
        let info = info(accepted.as_fd()).expect("reads").expect("it has the call");
        assert_eq!(info.bytes_received, 3_000);
        assert!(info.snd_mss > 0);
    }
}
