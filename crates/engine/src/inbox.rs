//! Connections or datagrams that one thread accepts for the listener of another, by their greetings.

use linerate_sys::event::Event;
use linerate_sys::handle::{AsSocket, BorrowedSocket};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Test of the first bytes of a connection, or of a datagram, for a greeting with the key of a listener.
pub type Greets = Box<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// Connections or datagrams for one listener. It can be read, in the sense of poll(2), while there are some.
pub(crate) struct Inbox<T> {
    greets: Greets,
    items: Mutex<VecDeque<(T, SocketAddr)>>,
    event: Event,
    maximum: usize,
}

impl<T> Inbox<T> {
    /// Creates an inbox for greetings accepted by `greets`, with at most `maximum` items.
    pub(crate) fn new(greets: Greets, maximum: usize) -> io::Result<Self> {
        Ok(Self { greets, items: Mutex::default(), event: Event::new()?, maximum })
    }

    /// Returns whether `bytes` are a greeting for this listener.
    pub(crate) fn is_greeted_by(&self, bytes: &[u8]) -> bool {
        (self.greets)(bytes)
    }

    /// Adds an item from `peer`, or drops it if the inbox is full.
    pub(crate) fn add(&self, item: T, peer: SocketAddr) {
        let mut items = self.items();
        if items.len() < self.maximum {
            items.push_back((item, peer));
            self.event.add();
        }
    }

    /// Takes the oldest item. Returns `None` if the inbox is empty.
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

impl<T> AsSocket for Inbox<T> {
    fn as_socket(&self) -> BorrowedSocket<'_> {
        self.event.as_socket()
    }
}

impl<T> fmt::Debug for Inbox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("items", &self.items().len()).finish_non_exhaustive()
    }
}
