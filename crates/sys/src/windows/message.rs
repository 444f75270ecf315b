//! Datagrams with ancillary data (WSARecvMsg, WSASendMsg).

use crate::socket::raw;
use socket2::SockAddr;
use std::io;
use std::mem;
use std::net::SocketAddr;
use std::os::windows::io::BorrowedSocket;
use std::ptr;
use std::sync::OnceLock;
use windows_sys::Win32::Networking::WinSock::{
    CMSGHDR, LPFN_WSARECVMSG, MSG_TRUNC, SIO_GET_EXTENSION_FUNCTION_POINTER, WSABUF, WSAEMSGSIZE, WSAID_WSARECVMSG,
    WSAIoctl, WSAMSG, WSASendMsg,
};

const HEADER: usize = mem::size_of::<CMSGHDR>();
const ALIGNMENT: usize = mem::align_of::<CMSGHDR>();
const ROOM: usize = 256;

/// Ancillary data of one datagram, aligned as the system demands. Wine adds messages that were not requested.
#[repr(C, align(8))]
#[derive(Debug, Clone)]
pub(crate) struct Control {
    bytes: [u8; ROOM],
    length: usize,
}

impl Control {
    pub(crate) fn new() -> Self {
        Self { bytes: [0; ROOM], length: 0 }
    }

    /// Appends a message.
    ///
    /// # Panics
    /// There is no room. Four messages of 32 bytes fit.
    pub(crate) fn push(&mut self, level: i32, kind: i32, data: &[u8]) {
        let start = self.length;
        let end = start + HEADER + data.len();
        let header = &mut self.bytes[start..end];
        write(header, mem::offset_of!(CMSGHDR, cmsg_len), &(HEADER + data.len()).to_ne_bytes());
        write(header, mem::offset_of!(CMSGHDR, cmsg_level), &level.to_ne_bytes());
        write(header, mem::offset_of!(CMSGHDR, cmsg_type), &kind.to_ne_bytes());
        write(header, HEADER, data);
        self.length = end.next_multiple_of(ALIGNMENT);
    }

    /// Returns the level, the type and the data of each message.
    pub(crate) fn messages(&self) -> impl Iterator<Item = (i32, i32, &[u8])> {
        Messages { rest: &self.bytes[..self.length.min(ROOM)] }
    }
}

fn write(into: &mut [u8], at: usize, bytes: &[u8]) {
    into[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Messages of ancillary data. Headers and ends are aligned to the size of a pointer (WSA_CMSG_NXTHDR).
struct Messages<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Messages<'a> {
    type Item = (i32, i32, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let length = usize::from_ne_bytes(field(self.rest, mem::offset_of!(CMSGHDR, cmsg_len))?);
        let level = i32::from_ne_bytes(field(self.rest, mem::offset_of!(CMSGHDR, cmsg_level))?);
        let kind = i32::from_ne_bytes(field(self.rest, mem::offset_of!(CMSGHDR, cmsg_type))?);
        let data = self.rest.get(HEADER..length)?;
        self.rest = self.rest.get(length.next_multiple_of(ALIGNMENT)..).unwrap_or_default();
        Some((level, kind, data))
    }
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// A datagram as [`receive`] returns it.
#[derive(Debug)]
pub(crate) struct Message {
    /// Bytes written to the buffer.
    pub(crate) length: usize,
    /// Whether the datagram was longer than the buffer.
    pub(crate) truncated: bool,
    /// Sender.
    pub(crate) from: Option<SocketAddr>,
}

/// Receives one datagram and its ancillary data.
///
/// # Errors
/// WSARecvMsg fails, or the system lacks it.
pub(crate) fn receive(socket: BorrowedSocket<'_>, into: &mut [u8], control: &mut Control) -> io::Result<Message> {
    let receive = receive_call(socket)?.ok_or(io::ErrorKind::Unsupported)?;
    let mut piece = WSABUF { len: into.len() as u32, buf: into.as_mut_ptr() };
    let mut received = 0;
    let mut flags = 0;
    let mut result = Ok(());
    // SAFETY: the closure lets the system write at most `*length` bytes of a socket address, and its length.
    let (_, from) = unsafe {
        SockAddr::try_init(|storage, length| {
            let mut message = WSAMSG {
                name: storage.cast(),
                namelen: *length,
                lpBuffers: &raw mut piece,
                dwBufferCount: 1,
                Control: WSABUF { len: ROOM as u32, buf: control.bytes.as_mut_ptr() },
                dwFlags: 0,
            };
            // The message points to a live buffer, live control data and a live address of the lengths given. Without an overlapped
            // structure the call has ended when it returns.
            if receive(raw(socket), &raw mut message, &raw mut received, ptr::null_mut(), None) != 0 {
                result = Err(io::Error::last_os_error());
            }
            *length = message.namelen;
            flags = message.dwFlags;
            control.length = (message.Control.len as usize).min(ROOM);
            Ok(())
        })
    }?;
    let truncated = match result {
        Ok(()) => flags & MSG_TRUNC != 0,
        Err(error) if error.raw_os_error() == Some(WSAEMSGSIZE) => true,
        Err(error) => return Err(error),
    };
    let length = if truncated { into.len() } else { received as usize };
    Ok(Message { length, truncated, from: from.as_socket() })
}

/// Sends one datagram with ancillary data.
///
/// # Errors
/// WSASendMsg fails.
pub(crate) fn send(
    socket: BorrowedSocket<'_>,
    payload: &[u8],
    to: SocketAddr,
    control: &mut Control,
) -> io::Result<usize> {
    let to = SockAddr::from(to);
    let mut piece = WSABUF { len: payload.len() as u32, buf: payload.as_ptr().cast_mut() };
    let length = control.length;
    let message = WSAMSG {
        name: to.as_ptr().cast_mut().cast(),
        namelen: to.len(),
        lpBuffers: &raw mut piece,
        dwBufferCount: 1,
        Control: WSABUF {
            len: length as u32,
            buf: if length == 0 { ptr::null_mut() } else { control.bytes.as_mut_ptr() },
        },
        dwFlags: 0,
    };
    let mut sent = 0;
    // SAFETY: the system reads the address, the payload and the control data, which outlive the call, in the lengths given; it writes
    // the number of bytes. Without an overlapped structure the call has ended when it returns.
    let result = unsafe { WSASendMsg(raw(socket), &raw const message, 0, &raw mut sent, ptr::null_mut(), None) };
    if result == 0 { Ok(sent as usize) } else { Err(io::Error::last_os_error()) }
}

/// Returns WSARecvMsg, which the system hands out by a call. It is the same for all UDP sockets of a provider.
fn receive_call(socket: BorrowedSocket<'_>) -> io::Result<LPFN_WSARECVMSG> {
    static CALL: OnceLock<LPFN_WSARECVMSG> = OnceLock::new();
    if let Some(call) = CALL.get() {
        return Ok(*call);
    }
    let id = WSAID_WSARECVMSG;
    let mut call: LPFN_WSARECVMSG = None;
    let mut returned = 0;
    // SAFETY: the call reads one GUID and writes one function pointer, whose type is that of the GUID; both outlive it.
    let result = unsafe {
        WSAIoctl(
            raw(socket),
            SIO_GET_EXTENSION_FUNCTION_POINTER,
            (&raw const id).cast(),
            mem::size_of_val(&id) as u32,
            (&raw mut call).cast(),
            mem::size_of::<LPFN_WSARECVMSG>() as u32,
            &raw mut returned,
            ptr::null_mut(),
            None,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(*CALL.get_or_init(|| call))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_were_written() {
        let mut control = Control::new();
        control.push(1, 2, &[3]);
        control.push(4, 5, &7i32.to_ne_bytes());
        let messages: Vec<(i32, i32, Vec<u8>)> =
            control.messages().map(|(level, kind, data)| (level, kind, data.to_vec())).collect();
        assert_eq!(messages, [(1, 2, vec![3]), (4, 5, 7i32.to_ne_bytes().to_vec())]);
    }

    #[test]
    fn damaged_messages_end_the_list() {
        let mut control = Control::new();
        control.push(1, 2, &[3; 20]);
        for length in 0..control.length {
            control.length = length;
            control.messages().for_each(drop);
        }
        for byte in [0, 1, HEADER as u8, 0xff] {
            control.bytes = [byte; ROOM];
            control.length = ROOM;
            assert!(control.messages().count() <= ROOM / HEADER, "{byte}");
        }
    }
}
