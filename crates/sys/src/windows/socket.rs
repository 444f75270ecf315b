//! Socket options that the standard library and socket2 lack, and waits for sockets.

use crate::netlink::Route;
pub use crate::wait::{wait_for_each, wait_readable, wait_ready, wait_ready_each, wait_writable};
use crate::{Error, path_mtu};
use std::io;
use std::mem;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::windows::io::{AsRawSocket as _, BorrowedSocket};
use windows_sys::Win32::Networking::WinSock::{
    IP_MTU, IP_MTU_DISCOVER, IP_PMTUDISC_DONT, IP_UNICAST_IF, IPPROTO_IP, IPPROTO_IPV6, IPV6_MTU, IPV6_MTU_DISCOVER,
    IPV6_UNICAST_IF, SO_EXCLUSIVEADDRUSE, SO_RCVBUF, SO_SNDBUF, SOCKET, SOL_SOCKET, getsockopt, setsockopt,
};

/// Error numbers that senders distinguish and `io::ErrorKind` does not name. A connection that is being opened has the number
/// WSAEWOULDBLOCK, not WSAEINPROGRESS (connect() of Winsock).
pub use windows_sys::Win32::Networking::WinSock::{
    WSA_NOT_ENOUGH_MEMORY as ENOMEM, WSAECONNREFUSED as ECONNREFUSED, WSAEMFILE as EMFILE, WSAEMSGSIZE as EMSGSIZE,
    WSAENOBUFS as ENOBUFS, WSAEWOULDBLOCK as EINPROGRESS,
};
/// Further error numbers by which Windows reports ICMP messages. It has neither ENONET nor EPROTO: those names have the closest numbers.
pub use windows_sys::Win32::Networking::WinSock::{
    WSAEACCES as EACCES, WSAECONNRESET as ECONNRESET, WSAEHOSTDOWN as EHOSTDOWN, WSAEHOSTUNREACH as EHOSTUNREACH,
    WSAENETDOWN as ENONET, WSAENETRESET as ENETRESET, WSAENETUNREACH as ENETUNREACH, WSAENOPROTOOPT as ENOPROTOOPT,
    WSAEOPNOTSUPP as EOPNOTSUPP, WSAEPROTONOSUPPORT as EPROTO,
};
/// ERROR_IO_DEVICE.
pub const EIO: i32 = 1117;
/// ERROR_TOO_MANY_OPEN_FILES.
pub const ENFILE: i32 = 4;

/// Size of a buffer as the system reports it, per byte requested.
pub const BUFFER_FACTOR: usize = 1;
/// Sockets can share a UDP port, but which of them a datagram is delivered to is undefined (SO_REUSEADDR of Winsock).
pub const SHARES_DATAGRAM_PORTS: bool = false;

/// Returns whether a call ended without data: by its timeout, by a signal, or because it must not wait.
pub fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// Returns `None`: Windows does not count the drops of a socket.
///
/// # Errors
/// None on this system.
pub fn drops(_socket: BorrowedSocket<'_>) -> Result<Option<u32>, Error> {
    Ok(None)
}

/// Fails on Windows, unless `class` is zero: it ignores IP_TOS, and lets policies mark packets (New-NetQosPolicy).
///
/// # Errors
/// `Unsupported`.
pub fn set_traffic_class(_socket: BorrowedSocket<'_>, _v6: bool, class: u8) -> io::Result<()> {
    if class == 0 { Ok(()) } else { Err(io::ErrorKind::Unsupported.into()) }
}

/// Sends by the interface `name` only (IP_UNICAST_IF, IPV6_UNICAST_IF).
///
/// # Errors
/// There is no such interface.
pub fn bind_device(socket: BorrowedSocket<'_>, v6: bool, name: &str) -> io::Result<()> {
    let links = Route::open().and_then(|mut route| route.links()).map_err(|error| error.source)?;
    let index = links.iter().find(|link| link.name == name).ok_or(io::ErrorKind::NotFound)?.index;
    let result = if v6 {
        write_option(socket, IPPROTO_IPV6, IPV6_UNICAST_IF, &index, "setsockopt(IPV6_UNICAST_IF)")
    } else {
        // IPv4 alone takes the number in network byte order.
        write_option(socket, IPPROTO_IP, IP_UNICAST_IF, &index.to_be(), "setsockopt(IP_UNICAST_IF)")
    };
    result.map_err(|error| error.source)
}

/// Accepts a connection of a listener that does not block. The connection does: Winsock passes the mode of the listener on.
///
/// # Errors
/// See accept() of Winsock.
pub fn accept(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let (stream, peer) = listener.accept()?;
    stream.set_nonblocking(false)?;
    Ok((stream, peer))
}

/// Keeps other programs from the port of a listener that is to be bound (SO_EXCLUSIVEADDRUSE). A port is free as soon as nobody listens there,
/// whatever connections of the last listener remain.
///
/// # Errors
/// The system refuses the option.
pub fn reuse_closed_port(socket: BorrowedSocket<'_>) -> io::Result<()> {
    let call = "setsockopt(SO_EXCLUSIVEADDRUSE)";
    write_option(socket, SOL_SOCKET, SO_EXCLUSIVEADDRUSE, &1u32, call).map_err(|error| error.source)
}

/// Fails on Windows: see [`SHARES_DATAGRAM_PORTS`].
///
/// # Errors
/// Always, with `Unsupported`.
pub fn share_port(_socket: BorrowedSocket<'_>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Lets `socket` share the port of a multicast group with other programs. Windows delivers to each the groups only that it joins itself.
///
/// # Errors
/// The system refuses the option.
pub fn share_multicast_port(socket: BorrowedSocket<'_>, _v6: bool) -> io::Result<()> {
    socket2::SockRef::from(&socket).set_reuse_address(true)
}

/// The path MTU of a connected socket in bytes, as far as the system has learnt it (IP_MTU, IPV6_MTU; Windows 10 1809). A system without the
/// option (Wine 8.0) has that of the interface.
///
/// # Errors
/// The socket is not connected.
pub fn path_mtu(socket: BorrowedSocket<'_>, v6: bool) -> Result<u32, Error> {
    let learnt = if v6 {
        read_option(socket, IPPROTO_IPV6, IPV6_MTU, "getsockopt(IPV6_MTU)")
    } else {
        read_option(socket, IPPROTO_IP, IP_MTU, "getsockopt(IP_MTU)")
    };
    match learnt {
        Err(error) if error.source.raw_os_error() == Some(ENOPROTOOPT) => path_mtu::of_interface(socket),
        learnt => learnt,
    }
}

/// Lets IP cut packets above the MTU into fragments instead of refusing them.
///
/// # Errors
/// The system refuses the option. One that lacks it (before Windows 10 1809) fragments unless the socket asks it not to.
pub fn allow_fragments(socket: BorrowedSocket<'_>, v6: bool) -> Result<(), Error> {
    use windows_sys::Win32::Networking::WinSock::{IP_DONTFRAGMENT, IPV6_DONTFRAG};
    let (level, discover, discover_call, dont, dont_call) = if v6 {
        (IPPROTO_IPV6, IPV6_MTU_DISCOVER, "setsockopt(IPV6_MTU_DISCOVER)", IPV6_DONTFRAG, "setsockopt(IPV6_DONTFRAG)")
    } else {
        (IPPROTO_IP, IP_MTU_DISCOVER, "setsockopt(IP_MTU_DISCOVER)", IP_DONTFRAGMENT, "setsockopt(IP_DONTFRAGMENT)")
    };
    write_option(socket, level, discover, &IP_PMTUDISC_DONT, discover_call)
        .or_else(|_| write_option(socket, level, dont, &0u32, dont_call))
}

/// Sets the receive buffer in bytes. Windows has no limit that takes privilege to exceed.
///
/// # Errors
/// The system refuses the size.
pub fn force_receive_buffer(socket: BorrowedSocket<'_>, bytes: i32) -> Result<(), Error> {
    write_option(socket, SOL_SOCKET, SO_RCVBUF, &bytes, "setsockopt(SO_RCVBUF)")
}

/// Sets the send buffer in bytes. Windows has no limit that takes privilege to exceed.
///
/// # Errors
/// The system refuses the size.
pub fn force_send_buffer(socket: BorrowedSocket<'_>, bytes: i32) -> Result<(), Error> {
    write_option(socket, SOL_SOCKET, SO_SNDBUF, &bytes, "setsockopt(SO_SNDBUF)")
}

/// The handle as Winsock takes it.
pub(crate) fn raw(socket: BorrowedSocket<'_>) -> SOCKET {
    socket.as_raw_socket() as SOCKET
}

pub(crate) fn write_option<T: Plain>(
    socket: BorrowedSocket<'_>,
    level: i32,
    option: i32,
    value: &T,
    call: &'static str,
) -> Result<(), Error> {
    // SAFETY: the system reads size_of::<T>() bytes from a live reference; the socket is borrowed for the call.
    let result =
        unsafe { setsockopt(raw(socket), level, option, std::ptr::from_ref(value).cast(), mem::size_of::<T>() as i32) };
    if result == 0 { Ok(()) } else { Err(Error::last(call, "a socket")) }
}

/// Reads an option into an integer; bytes that the system does not fill stay zero.
pub(crate) fn read_option<T: Plain>(
    socket: BorrowedSocket<'_>,
    level: i32,
    option: i32,
    call: &'static str,
) -> Result<T, Error> {
    let mut value = T::default();
    let mut length = mem::size_of::<T>() as i32;
    // SAFETY: the system writes at most `length` bytes, the size of `value`, and any bytes are a value of `T`.
    let result =
        unsafe { getsockopt(raw(socket), level, option, std::ptr::from_mut(&mut value).cast(), &raw mut length) };
    if result == 0 { Ok(value) } else { Err(Error::last(call, "a socket")) }
}

/// A type made of integers only.
///
/// # Safety
/// Every pattern of bytes must be a value of it.
pub(crate) unsafe trait Plain: Copy + Default {}

// SAFETY: an integer.
unsafe impl Plain for i32 {}
// SAFETY: an integer.
unsafe impl Plain for u32 {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use std::net::UdpSocket;
    use std::os::windows::io::AsSocket as _;

    #[test]
    fn waits_end_with_data_or_with_the_timeout() {
        let sockets: Vec<UdpSocket> = (0..2).map(|_| UdpSocket::bind("127.0.0.1:0").expect("binds")).collect();
        let borrowed: Vec<BorrowedSocket<'_>> = sockets.iter().map(|socket| socket.as_socket()).collect();
        let begun = clock::now();
        assert!(!wait_readable(&borrowed, 1_500_000).expect("polls"));
        assert!(clock::now() - begun >= 1_500_000);
        sockets[0].send_to(b"x", sockets[1].local_addr().expect("bound")).expect("sends");
        assert_eq!(wait_for_each(&borrowed, 10_000_000_000).expect("polls"), [1]);
        assert_eq!(wait_ready_each(&borrowed, 10_000_000_000).expect("polls"), [0, 1]);
        assert!(wait_writable(borrowed[0], 0).expect("polls"));
        assert!(!wait_readable(&[], 1_000).expect("waits"));
    }

    #[test]
    fn opening_connection_has_the_number_in_progress() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
        socket.set_nonblocking(true).expect("set");
        if let Err(error) = socket.connect(&listener.local_addr().expect("bound").into()) {
            assert_eq!(error.raw_os_error(), Some(EINPROGRESS), "{error}");
        }
        assert!(wait_writable(socket.as_socket(), 10_000_000_000).expect("polls"));
        assert!(socket.take_error().expect("reads").is_none());
    }

    #[test]
    fn buffers_are_set_and_read() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
        let stream = TcpStream::connect(listener.local_addr().expect("bound")).expect("connects");
        force_receive_buffer(stream.as_socket(), 1 << 20).expect("set");
        force_send_buffer(stream.as_socket(), 1 << 20).expect("set");
        let bytes: i32 = read_option(stream.as_socket(), SOL_SOCKET, SO_RCVBUF, "getsockopt(SO_RCVBUF)").expect("read");
        assert!(bytes >= 1 << 20, "{bytes}");
    }
}
