//! ICMP echo requests that the system sends, as Windows does. Other systems have ping sockets or raw sockets instead.

use crate::Error;
pub use crate::echo_answer::{EchoAnswer, EchoAnswerKind, EchoRequest};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Echo requests of this program. There are none on this system.
#[derive(Debug)]
pub enum EchoRequests {}

impl EchoRequests {
    /// Fails on this system.
    ///
    /// # Errors
    /// Always, with `Unsupported`.
    pub fn open(_v6: bool) -> Result<Self, Error> {
        Err(Error::new("IcmpCreateFile", "this host", io::ErrorKind::Unsupported))
    }

    /// Sends a request.
    ///
    /// # Errors
    /// It cannot be sent.
    pub fn send(&self, _request: EchoRequest<'_>) -> io::Result<()> {
        match *self {}
    }

    /// Takes the next answer.
    pub fn take(&self, _into: &mut [u8]) -> Option<EchoAnswer> {
        match *self {}
    }
}

impl AsFd for EchoRequests {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match *self {}
    }
}
