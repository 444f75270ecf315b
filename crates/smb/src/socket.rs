//! The socket of a connection: one thread receives, others send meanwhile and never wait for more than room.
//!
//! Unix has a flag for one send that does not wait, and a time limit for each receive. Windows has the flag for the whole socket only, so
//! that a receive waits by polling.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, IoSlice, Read};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// Unsent bytes that may wait in the kernel: their leaving shows progress, too.
#[cfg(target_os = "linux")]
const UNSENT: u32 = 128 << 10;

/// A connected socket.
pub(crate) struct Socket {
    stream: TcpStream,
    /// Time after which a receive without a byte ends.
    #[cfg(windows)]
    patience: Duration,
}

impl Socket {
    /// Sets `stream` up. A receive ends after `patience` without a byte.
    pub(crate) fn new(stream: TcpStream, patience: Duration) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        #[cfg(target_os = "linux")]
        socket2::SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT)?;
        #[cfg(unix)]
        stream.set_read_timeout(Some(patience))?;
        #[cfg(windows)]
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            #[cfg(windows)]
            patience,
        })
    }

    /// The receiving side. Without a byte for a while, a receive fails with the kind `WouldBlock` or `TimedOut`.
    #[cfg(unix)]
    pub(crate) fn incoming(&self) -> impl Read {
        &self.stream
    }

    #[cfg(windows)]
    pub(crate) fn incoming(&self) -> impl Read {
        Patient(self)
    }

    /// Sends as much as goes at once.
    ///
    /// # Errors
    /// The kind is `WouldBlock` if there is no room.
    #[cfg(unix)]
    pub(crate) fn offer(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
        // The standard library switches the signal off for the whole socket where the flag is missing.
        #[cfg(target_vendor = "apple")]
        let flags = SendFlags::DONTWAIT;
        #[cfg(not(target_vendor = "apple"))]
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        Ok(sendmsg(&self.stream, parts, &mut SendAncillaryBuffer::default(), flags)?)
    }

    #[cfg(windows)]
    pub(crate) fn offer(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        io::Write::write_vectored(&mut &self.stream, parts)
    }

    /// Waits until something has come or there is room to send, at most `timeout`. Returns whether something has come.
    pub(crate) fn wait(&self, timeout: Duration) -> io::Result<bool> {
        Ok(self.poll(PollFlags::IN | PollFlags::OUT, timeout)?.contains(PollFlags::IN))
    }

    /// Waits until there is room to send, at most `timeout`.
    pub(crate) fn wait_for_room(&self, timeout: Duration) -> io::Result<()> {
        self.poll(PollFlags::OUT, timeout).map(drop)
    }

    fn poll(&self, events: PollFlags, timeout: Duration) -> io::Result<PollFlags> {
        let mut waits = [PollFd::new(&self.stream, events)];
        let timeout = Timespec::try_from(timeout).map_err(io::Error::other)?;
        match poll(&mut waits, Some(&timeout)) {
            Err(rustix::io::Errno::INTR) => Ok(PollFlags::empty()),
            polled => polled.map(|_| waits[0].revents()).map_err(io::Error::from),
        }
    }

    /// Returns whether nothing more will come.
    #[cfg(unix)]
    pub(crate) fn is_over(&self) -> bool {
        use rustix::net::{RecvFlags, recv};
        let peeked = recv(&self.stream, &mut [0_u8], RecvFlags::PEEK | RecvFlags::DONTWAIT);
        is_over(peeked.map(|(bytes, _)| bytes).map_err(io::Error::from))
    }

    #[cfg(windows)]
    pub(crate) fn is_over(&self) -> bool {
        is_over(self.stream.peek(&mut [0]))
    }

    /// Ends the connection in both directions.
    pub(crate) fn shut_down(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Returns whether a look at the next byte shows that there will be none.
fn is_over(peeked: io::Result<usize>) -> bool {
    match peeked {
        Ok(bytes) => bytes == 0,
        Err(error) => !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
    }
}

/// The receiving side where the socket itself has no time limit.
#[cfg(windows)]
struct Patient<'a>(&'a Socket);

#[cfg(windows)]
impl Read for Patient<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Self(socket) = self;
        match (&socket.stream).read(into) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                socket.poll(PollFlags::IN, socket.patience)?;
                (&socket.stream).read(into)
            }
            received => received,
        }
    }
}
