//! TCP: sending without copies, and the state of a connection.

use crate::Error;
pub use crate::discard::discard;
use crate::socket_option::{Plain, read_option, write_option};
pub use crate::stream::{peek, receive, send_now, set_keepalive, set_low_water, waiting};
pub use crate::tcp_info::Info;
use nix::sys::sendfile::sendfile;
use socket2::SockRef;
use std::fs::File;
use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;

#[cfg(target_os = "freebsd")]
use libc::TCP_MAXUNACKTIME as USER_TIMEOUT;
/// TCP_RXT_CONNDROPTIME of netinet/tcp.h.
#[cfg(target_os = "macos")]
const USER_TIMEOUT: i32 = 0x80;

/// Names of the calls of [`send_file`] and [`discard`], as records have them.
pub const SEND_FILE: &str = "sendfile";
/// See [`SEND_FILE`].
pub const DISCARD: &str = "recv (copied)";

/// Returns the name of a socket's congestion control.
///
/// # Errors
/// `socket` is no TCP socket.
#[cfg(target_os = "freebsd")]
pub fn congestion(socket: BorrowedFd<'_>) -> io::Result<Option<String>> {
    let mut name = SockRef::from(&socket).tcp_congestion()?;
    name.retain(|byte| *byte != 0);
    Ok(Some(String::from_utf8_lossy(&name).into_owned()))
}

/// Sets the congestion control of a socket.
///
/// # Errors
/// The kernel has no such control.
#[cfg(target_os = "freebsd")]
pub fn set_congestion(socket: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    SockRef::from(&socket).set_tcp_congestion(name.as_bytes())
}

/// Returns `None`: macOS does not report the congestion control of a socket.
///
/// # Errors
/// None on this system.
#[cfg(target_os = "macos")]
pub fn congestion(_socket: BorrowedFd<'_>) -> io::Result<Option<String>> {
    Ok(None)
}

/// Fails: macOS has one congestion control for all sockets.
///
/// # Errors
/// Always, with `Unsupported`.
#[cfg(target_os = "macos")]
pub fn set_congestion(_socket: BorrowedFd<'_>, _name: &str) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Limits the segments of a connection to `bytes` of payload (TCP_MAXSEG), and announces that to its peer.
///
/// # Errors
/// The kernel refuses the size.
pub fn set_max_segment(socket: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
    SockRef::from(&socket).set_tcp_mss(bytes)
}

/// Ends a connection whose sent data has been unacknowledged for `timeout`, in whole seconds (TCP_MAXUNACKTIME of FreeBSD, TCP_RXT_CONNDROPTIME of
/// macOS). `None` is the system's own limit.
///
/// # Errors
/// `socket` is no TCP socket.
pub fn set_user_timeout(socket: BorrowedFd<'_>, timeout: Option<Duration>) -> io::Result<()> {
    let seconds = timeout.map_or(0, |timeout| i32::try_from(timeout.as_secs().max(1)).unwrap_or(i32::MAX));
    let call = "setsockopt(user timeout)";
    write_option(socket, libc::IPPROTO_TCP, USER_TIMEOUT, &seconds, call).map_err(|error| error.source)
}

/// Returns the limit that [`set_user_timeout`] set. `None` if the system's own applies.
///
/// # Errors
/// `socket` is no TCP socket.
pub fn user_timeout(socket: BorrowedFd<'_>) -> io::Result<Option<Duration>> {
    let call = "getsockopt(user timeout)";
    let seconds: i32 = read_option(socket, libc::IPPROTO_TCP, USER_TIMEOUT, call).map_err(|error| error.source)?;
    Ok((seconds > 0).then(|| Duration::from_secs(seconds.unsigned_abs().into())))
}

/// Sends up to `length` bytes of `file` from `offset` on, without a copy in user space.
///
/// # Errors
/// The file cannot be read, or the connection takes nothing.
pub fn send_file(connection: &TcpStream, file: &File, offset: u64, length: usize) -> io::Result<usize> {
    let offset = offset as libc::off_t;
    // Zero means to the end of the file.
    if length == 0 {
        return Ok(0);
    }
    #[cfg(target_os = "freebsd")]
    let (result, sent) = {
        let flags = nix::sys::sendfile::SfFlags::empty();
        sendfile(file.as_fd(), connection.as_fd(), offset, Some(length), None, None, flags, 0)
    };
    #[cfg(target_os = "macos")]
    let (result, sent) = {
        let length = libc::off_t::try_from(length).unwrap_or(libc::off_t::MAX);
        sendfile(file.as_fd(), connection.as_fd(), offset, Some(length), None, None)
    };
    match result {
        // A part may have been sent before the connection took no more, or a signal came.
        Err(error) if sent == 0 => Err(error.into()),
        _ => Ok(sent.unsigned_abs() as usize),
    }
}

/// Returns the bytes that were handed over and that the peer has not acknowledged yet, unsent ones included (FIONWRITE).
///
/// # Errors
/// ioctl(2) fails.
#[cfg(target_os = "freebsd")]
pub fn unacknowledged(connection: &TcpStream) -> Result<Option<u64>, Error> {
    use std::os::fd::AsRawFd as _;
    let mut bytes: libc::c_int = 0;
    // SAFETY: FIONWRITE writes one int to where it points; the descriptor is borrowed.
    let result = unsafe { libc::ioctl(connection.as_raw_fd(), libc::FIONWRITE, &raw mut bytes) };
    if result == 0 {
        Ok(Some(bytes.unsigned_abs().into()))
    } else {
        Err(Error::last("ioctl(FIONWRITE)", "a TCP connection"))
    }
}

/// Returns the bytes that were handed over and that the peer has not acknowledged yet, unsent ones included (SO_NWRITE).
///
/// # Errors
/// getsockopt(2) fails.
#[cfg(target_os = "macos")]
pub fn unacknowledged(connection: &TcpStream) -> Result<Option<u64>, Error> {
    let bytes: i32 = read_option(connection.as_fd(), libc::SOL_SOCKET, libc::SO_NWRITE, "getsockopt(SO_NWRITE)")?;
    Ok(Some(bytes.unsigned_abs().into()))
}

/// Reads the state of a connection (TCP_INFO of tcp(4)). Fields of [`Info`] that FreeBSD lacks are zero.
///
/// # Errors
/// getsockopt(2) fails.
#[cfg(target_os = "freebsd")]
pub fn info(connection: BorrowedFd<'_>) -> Result<Option<Info>, Error> {
    let read: libc::tcp_info = read_option(connection, libc::IPPROTO_TCP, libc::TCP_INFO, "getsockopt(TCP_INFO)")?;
    // The kernel counts bytes where Linux counts segments.
    let mss = read.tcpi_snd_mss.max(1);
    Ok(Some(Info {
        rto: read.tcpi_rto,
        snd_mss: read.tcpi_snd_mss,
        rcv_mss: read.tcpi_rcv_mss,
        rtt: read.tcpi_rtt,
        rttvar: read.tcpi_rttvar,
        snd_ssthresh: read.tcpi_snd_ssthresh.div_ceil(mss),
        snd_cwnd: read.tcpi_snd_cwnd.div_ceil(mss),
        rcv_space: read.tcpi_rcv_space,
        total_retrans: read.tcpi_snd_rexmitpack,
        rcv_ooopack: read.tcpi_rcv_ooopack,
        snd_wnd: read.tcpi_snd_wnd,
        ..Info::default()
    }))
}

/// Reads the state of a connection (TCP_CONNECTION_INFO of netinet/tcp.h). Fields of [`Info`] that macOS lacks are zero. It has times in
/// milliseconds, and counts retransmitted bytes: the segments are those of one full size each, rounded up.
///
/// # Errors
/// getsockopt(2) fails.
#[cfg(target_os = "macos")]
pub fn info(connection: BorrowedFd<'_>) -> Result<Option<Info>, Error> {
    const MICROS_PER_MS: u32 = 1_000;
    let call = "getsockopt(TCP_CONNECTION_INFO)";
    let read: libc::tcp_connection_info = read_option(connection, libc::IPPROTO_TCP, libc::TCP_CONNECTION_INFO, call)?;
    let mss = read.tcpi_maxseg.max(1);
    let retransmits = read.tcpi_txretransmitbytes.div_ceil(mss.into());
    Ok(Some(Info {
        rto: read.tcpi_rto.saturating_mul(MICROS_PER_MS),
        snd_mss: read.tcpi_maxseg,
        rtt: read.tcpi_srtt.saturating_mul(MICROS_PER_MS),
        rttvar: read.tcpi_rttvar.saturating_mul(MICROS_PER_MS),
        snd_ssthresh: read.tcpi_snd_ssthresh.div_ceil(mss),
        snd_cwnd: read.tcpi_snd_cwnd.div_ceil(mss),
        total_retrans: u32::try_from(retransmits).unwrap_or(u32::MAX),
        bytes_received: read.tcpi_rxbytes,
        bytes_sent: read.tcpi_txbytes,
        bytes_retrans: read.tcpi_txretransmitbytes,
        snd_wnd: read.tcpi_snd_wnd,
        rcv_wnd: read.tcpi_rcv_wnd,
        ..Info::default()
    }))
}

#[cfg(target_os = "freebsd")]
// SAFETY: made of integers only.
unsafe impl Plain for libc::tcp_info {}
#[cfg(target_os = "macos")]
// SAFETY: made of integers only.
unsafe impl Plain for libc::tcp_connection_info {}
