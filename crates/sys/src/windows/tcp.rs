//! TCP: sending and receiving without waiting, and the state of a connection (SIO_TCP_INFO).

use crate::Error;
pub use crate::discard::discard;
use crate::discard::with_scratch;
use crate::socket::{raw, read_option, wait_readable, write_option};
pub use crate::tcp_info::Info;
use socket2::{SockRef, TcpKeepalive};
use std::fs::File;
use std::io::{self, Read as _};
use std::mem;
use std::net::TcpStream;
use std::os::windows::fs::FileExt as _;
use std::os::windows::io::{AsSocket as _, BorrowedSocket};
use std::time::Duration;
use windows_sys::Win32::Networking::WinSock::{
    FIONBIO, FIONREAD, IPPROTO_TCP, SIO_TCP_INFO, TCP_INFO_v0, TCP_INFO_v1, TCP_KEEPCNT, TCP_MAXRT, WSAENOPROTOOPT,
    WSAEOPNOTSUPP, WSAIoctl, ioctlsocket,
};

/// Names of the calls of [`send_file`] and [`discard`], as records have them.
pub const SEND_FILE: &str = "ReadFile and send";
/// See [`SEND_FILE`].
pub const DISCARD: &str = "recv (copied)";

/// Returns `None`: Windows has congestion controls of templates (`netsh int tcp show supplemental`), not of sockets.
///
/// # Errors
/// None on this system.
pub fn congestion(_socket: BorrowedSocket<'_>) -> io::Result<Option<String>> {
    Ok(None)
}

/// Fails on Windows, which has congestion controls of templates, not of sockets.
///
/// # Errors
/// Always, with `Unsupported`.
pub fn set_congestion(_socket: BorrowedSocket<'_>, _name: &str) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Fails on Windows, where a program cannot set the segment size.
///
/// # Errors
/// Always, with `Unsupported`.
pub fn set_max_segment(_socket: BorrowedSocket<'_>, _bytes: u32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Probes an idle connection: first after `time`, then every `interval`, and ends it after `retries` without an answer. A
/// system that cannot set the number (Windows before 10 1703, Wine 8.0) sends its own, 10.
///
/// # Errors
/// `socket` is no TCP socket.
pub fn set_keepalive(socket: BorrowedSocket<'_>, time: Duration, interval: Duration, retries: u32) -> io::Result<()> {
    SockRef::from(&socket).set_tcp_keepalive(&TcpKeepalive::new().with_time(time).with_interval(interval))?;
    match write_option(socket, IPPROTO_TCP, TCP_KEEPCNT, &retries, "setsockopt(TCP_KEEPCNT)") {
        Err(error) if error.source.raw_os_error() != Some(WSAENOPROTOOPT) => Err(error.source),
        _ => Ok(()),
    }
}

/// Ends a connection whose sent data has been unacknowledged for `timeout`, in whole seconds (TCP_MAXRT). `None` is the system's own limit. A
/// system without the option (Wine 8.0) keeps its own.
///
/// # Errors
/// `socket` is no TCP socket.
pub fn set_user_timeout(socket: BorrowedSocket<'_>, timeout: Option<Duration>) -> io::Result<()> {
    let seconds = timeout.map_or(-1, |timeout| i32::try_from(timeout.as_secs().max(1)).unwrap_or(i32::MAX));
    match write_option(socket, IPPROTO_TCP, TCP_MAXRT, &seconds, "setsockopt(TCP_MAXRT)") {
        Err(error) if error.source.raw_os_error() != Some(WSAENOPROTOOPT) => Err(error.source),
        _ => Ok(()),
    }
}

/// Returns the limit that [`set_user_timeout`] set. `None` if the system's own applies.
///
/// # Errors
/// `socket` is no TCP socket.
pub fn user_timeout(socket: BorrowedSocket<'_>) -> io::Result<Option<Duration>> {
    match read_option::<i32>(socket, IPPROTO_TCP, TCP_MAXRT, "getsockopt(TCP_MAXRT)") {
        Ok(seconds) => Ok(u64::try_from(seconds).ok().filter(|seconds| *seconds > 0).map(Duration::from_secs)),
        Err(error) if error.source.raw_os_error() == Some(WSAENOPROTOOPT) => Ok(None),
        Err(error) => Err(error.source),
    }
}

/// Sends up to `length` bytes of `file` from `offset` on, 256 KiB at the most. It copies them through user space: TransmitFile waits until
/// all is sent, also on a socket that does not block.
///
/// # Errors
/// The file cannot be read, or the connection takes nothing.
pub fn send_file(mut connection: &TcpStream, file: &File, offset: u64, length: usize) -> io::Result<usize> {
    use std::io::Write as _;
    with_scratch(length, |scratch| {
        let read = file.seek_read(scratch, offset)?;
        connection.write(&scratch[..read])
    })
}

/// Sends what fits without waiting. The connection must be in blocking mode, and is in it again afterwards: Winsock has no flag for one
/// call, and a program cannot read the mode.
///
/// # Errors
/// `WouldBlock` if nothing fits; the connection has failed.
pub fn send_now(mut connection: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    use std::io::Write as _;
    set_nonblocking(connection, true)?;
    let sent = connection.write(bytes);
    set_nonblocking(connection, false)?;
    sent
}

/// Receives what is there; with `wait`, waits for it as long as the connection's read timeout says. Without it, only one thread may receive.
///
/// # Errors
/// `WouldBlock` or `TimedOut` if nothing is there; the connection has failed.
pub fn receive(mut connection: &TcpStream, into: &mut [u8], wait: bool) -> io::Result<usize> {
    if !wait {
        check_readable(connection)?;
    }
    connection.read(into)
}

/// Reads what is there and leaves it there, without waiting. Only one thread may receive.
///
/// # Errors
/// `WouldBlock` if nothing is there; the connection has failed.
pub fn peek(connection: &TcpStream, into: &mut [u8]) -> io::Result<usize> {
    check_readable(connection)?;
    connection.peek(into)
}

/// Returns false: Windows has no SO_RCVLOWAT that can be set.
///
/// # Errors
/// None on this system.
pub fn set_low_water(_connection: &TcpStream, _bytes: u32) -> Result<bool, Error> {
    Ok(false)
}

/// Returns the bytes that have arrived in order and wait to be received (FIONREAD).
///
/// # Errors
/// ioctlsocket() fails.
pub fn waiting(connection: &TcpStream) -> Result<u64, Error> {
    let mut bytes = 0;
    // SAFETY: FIONREAD writes one u32 that outlives the call; the socket is borrowed.
    let result = unsafe { ioctlsocket(raw(connection.as_socket()), FIONREAD, &raw mut bytes) };
    if result == 0 { Ok(bytes.into()) } else { Err(Error::last("ioctlsocket(FIONREAD)", "a TCP connection")) }
}

/// Returns `None`: Windows does not count the bytes in its send buffer for programs (SIO_TCP_INFO has those in flight only).
///
/// # Errors
/// None on this system.
pub fn unacknowledged(_connection: &TcpStream) -> Result<Option<u64>, Error> {
    Ok(None)
}

/// Reads the state of a connection (SIO_TCP_INFO; Windows 10 1703, with limits of the sender since 1709). Fields of [`Info`] that Windows
/// lacks are zero. `None` if the system lacks the call, as Wine 8.0 does.
///
/// # Errors
/// The socket is no TCP socket.
pub fn info(connection: BorrowedSocket<'_>) -> Result<Option<Info>, Error> {
    match read_info(connection, 1).or_else(|_| read_info(connection, 0)) {
        Ok(read) => Ok(Some(convert(&read))),
        Err(source) if source.raw_os_error() == Some(WSAEOPNOTSUPP) => Ok(None),
        Err(source) => Err(Error::new("WSAIoctl(SIO_TCP_INFO)", "a TCP connection", source)),
    }
}

/// Reads the state by `version` of the structure. Version 0 is the beginning of version 1, and leaves the rest zero.
fn read_info(connection: BorrowedSocket<'_>, version: u32) -> io::Result<TCP_INFO_v1> {
    // SAFETY: the structure is made of integers and one bool, for all of which zeroes are a value.
    let mut read: TCP_INFO_v1 = unsafe { mem::zeroed() };
    let length = if version == 0 { mem::size_of::<TCP_INFO_v0>() } else { mem::size_of::<TCP_INFO_v1>() };
    let mut returned = 0;
    // SAFETY: the call reads one u32 and writes at most `length` bytes, which `read` has, and one u32; without an overlapped structure it
    // has ended when it returns. The system writes the bool as 0 or 1.
    let result = unsafe {
        WSAIoctl(
            raw(connection),
            SIO_TCP_INFO,
            (&raw const version).cast(),
            mem::size_of::<u32>() as u32,
            (&raw mut read).cast(),
            length as u32,
            &raw mut returned,
            std::ptr::null_mut(),
            None,
        )
    };
    match result {
        0 if returned == 0 => Err(io::Error::from_raw_os_error(WSAEOPNOTSUPP)),
        0 => Ok(read),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Converts what Windows has. It counts bytes, not segments: the segments are those of full size, rounded up.
fn convert(read: &TCP_INFO_v1) -> Info {
    let mss = read.Mss.max(1);
    let limited_us = |ms: u32| u64::from(ms) * 1_000;
    // A 32-bit counter, as Linux has it, may wrap.
    let segments = |bytes: u64| bytes.div_ceil(mss.into()) as u32;
    let rwnd_limited = limited_us(read.SndLimTimeRwin);
    let sndbuf_limited = limited_us(read.SndLimTimeSnd);
    Info {
        snd_mss: read.Mss,
        unacked: read.BytesInFlight.div_ceil(mss),
        rtt: read.RttUs,
        min_rtt: read.MinRttUs,
        snd_cwnd: read.Cwnd.div_ceil(mss),
        total_retrans: read.BytesRetrans.div_ceil(mss),
        data_segs_out: segments(read.BytesOut + u64::from(read.BytesRetrans)),
        data_segs_in: segments(read.BytesIn),
        reord_seen: read.BytesReordered.div_ceil(mss),
        bytes_acked: read.BytesOut.saturating_sub(read.BytesInFlight.into()),
        bytes_received: read.BytesIn,
        bytes_sent: read.BytesOut,
        bytes_retrans: read.BytesRetrans.into(),
        busy_time: rwnd_limited + limited_us(read.SndLimTimeCwnd) + sndbuf_limited,
        rwnd_limited,
        sndbuf_limited,
        snd_wnd: read.SndWnd,
        rcv_wnd: read.RcvWnd,
        total_rto: u16::try_from(read.TimeoutEpisodes).unwrap_or(u16::MAX),
        ..Info::default()
    }
}

fn check_readable(connection: &TcpStream) -> io::Result<()> {
    match wait_readable(&[connection.as_socket()], 0) {
        Ok(true) => Ok(()),
        Ok(false) => Err(io::ErrorKind::WouldBlock.into()),
        Err(error) => Err(error.source),
    }
}

fn set_nonblocking(connection: &TcpStream, nonblocking: bool) -> io::Result<()> {
    let mut argument = u32::from(nonblocking);
    // SAFETY: FIONBIO reads one u32 that outlives the call; the socket is borrowed.
    let result = unsafe { ioctlsocket(raw(connection.as_socket()), FIONBIO, &raw mut argument) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::net::TcpListener;
    use std::time::Duration;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
        let opener = TcpStream::connect(listener.local_addr().expect("bound")).expect("connects");
        let (accepted, _) = listener.accept().expect("accepts");
        accepted.set_read_timeout(Some(Duration::from_secs(10))).expect("sets");
        (opener, accepted)
    }

    #[test]
    fn sends_and_receives_without_waiting() {
        let (opener, accepted) = pair();
        let mut bytes = [0; 8];
        assert_eq!(receive(&accepted, &mut bytes, false).expect_err("nothing came").kind(), io::ErrorKind::WouldBlock);
        assert_eq!(peek(&accepted, &mut bytes).expect_err("nothing came").kind(), io::ErrorKind::WouldBlock);
        assert_eq!(send_now(&opener, b"abc").expect("fits"), 3);
        assert_eq!(receive(&accepted, &mut bytes[..1], true).expect("waits"), 1);
        assert_eq!(waiting(&accepted).expect("counts"), 2);
        assert_eq!(peek(&accepted, &mut bytes).expect("came"), 2);
        assert_eq!(receive(&accepted, &mut bytes, false).expect("came"), 2);
        assert_eq!(&bytes[..2], b"bc");
        let mut sent = 0;
        let error = loop {
            match send_now(&opener, &[1; 65_536]) {
                Ok(more) => sent += more,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        while sent > 0 {
            sent -= discard(&accepted, sent).expect("discards");
        }
        drop(opener);
        assert_eq!(receive(&accepted, &mut bytes, true).expect("the end"), 0);
    }

    #[test]
    fn file_is_sent_from_its_offset() {
        let (mut opener, accepted) = pair();
        let file = crate::memory::file_of(&[7; 3_000]).expect("makes a file");
        opener.write_all(&[1; 1_000]).expect("writes");
        assert_eq!(send_file(&opener, &file, 1_000, 4_000).expect("sends"), 2_000);
        let mut left = 3_000;
        while left > 0 {
            left -= discard(&accepted, left).expect("discards");
        }
    }

    /// A structure as Windows writes it, by the documented offsets of TCP_INFO_v1: Wine 8.0 has none.
    #[test]
    fn documented_structure_is_converted() {
        let mut bytes = [0_u8; mem::size_of::<TCP_INFO_v1>()];
        let mut set = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        for (at, value) in [(4, 1_000_u32), (20, 50_000), (24, 40_000), (28, 2_500), (32, 20_000), (36, 65_535)] {
            set(at, &value.to_ne_bytes());
        }
        for (at, value) in [(48, 1_000_000_u64), (56, 7_000)] {
            set(at, &value.to_ne_bytes());
        }
        // Retransmitted bytes, time-outs, and milliseconds limited by the receiver, the congestion window and the sender.
        for (at, value) in [(68, 3_001_u32), (80, 2), (92, 600), (108, 300), (124, 100)] {
            set(at, &value.to_ne_bytes());
        }
        assert_eq!(bytes.len(), 136);
        // SAFETY: the bytes are those of a structure of integers and one bool, which is zero.
        let info = convert(&unsafe { mem::transmute::<[u8; 136], TCP_INFO_v1>(bytes) });
        assert_eq!((info.snd_mss, info.rtt, info.min_rtt), (1_000, 50_000, 40_000));
        assert_eq!((info.unacked, info.snd_cwnd, info.snd_wnd), (3, 20, 65_535));
        assert_eq!((info.bytes_acked, info.bytes_received), (997_500, 7_000));
        assert_eq!((info.data_segs_out, info.total_retrans, info.total_rto), (1_004, 4, 2));
        assert_eq!((info.busy_time, info.rwnd_limited, info.sndbuf_limited), (1_000_000, 600_000, 100_000));
    }

    #[test]
    fn info_is_read_or_refused() {
        let (opener, _accepted) = pair();
        if let Some(info) = info(opener.as_socket()).expect("read or not known") {
            assert!(info.snd_mss > 0);
        }
    }
}
