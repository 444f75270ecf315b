//! What one thread takes in for a listener of another: connections or datagrams whose greetings are the listener's.

use linerate_sys::event::Event;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Whether the bytes that begin a connection, or make a datagram, are a greeting with the key of a listener.
pub type Greets = Box<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// Connections or datagrams for one listener. It can be read, in the sense of poll(2), while there are some.
pub(crate) struct Inbox<T> {
    greets: Greets,
    items: Mutex<VecDeque<(T, SocketAddr)>>,
    event: Event,
    maximum: usize,
}

impl<T> Inbox<T> {
    /// Takes what `greets` knows, `maximum` at a time.
    pub(crate) fn new(greets: Greets, maximum: usize) -> io::Result<Self> {
        Ok(Self { greets, items: Mutex::default(), event: Event::new()?, maximum })
    }

    /// Whether `bytes` are a greeting for this listener.
    pub(crate) fn is_greeted_by(&self, bytes: &[u8]) -> bool {
        (self.greets)(bytes)
    }

    /// Adds what came from `peer`; drops it if there is no room.
    pub(crate) fn add(&self, item: T, peer: SocketAddr) {
        let mut items = self.items();
        if items.len() < self.maximum {
            items.push_back((item, peer));
            self.event.add();
        }
    }

    /// Takes the oldest; none if there is nothing.
    pub(crate) fn take(&self) -> Option<(T, SocketAddr)> {
        let mut items = self.items();
        let item = items.pop_front()?;
        // The event counts the items; an empty inbox costs no call of the kernel.
        self.event.take();
        Some(item)
    }

    fn items(&self) -> MutexGuard<'_, VecDeque<(T, SocketAddr)>> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> AsFd for Inbox<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

impl<T> fmt::Debug for Inbox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("items", &self.items().len()).finish_non_exhaustive()
    }
}
