//! Replies whose time has not come.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A reply to be sent, and where to.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Held<T> {
    pub(super) due: u64,
    /// Replies due at once keep their order.
    number: u64,
    pub(super) arrived: u64,
    pub(super) bytes: Vec<u8>,
    pub(super) to: T,
}

/// The replies held back, by when they are due.
#[derive(Debug)]
pub(super) struct Later<T: Ord> {
    held: BinaryHeap<Reverse<Held<T>>>,
    number: u64,
    /// Of all replies held.
    bytes: usize,
}

impl<T: Ord> Later<T> {
    pub(super) fn new() -> Self {
        Self { held: BinaryHeap::new(), number: 0, bytes: 0 }
    }

    pub(super) fn hold(&mut self, due: u64, arrived: u64, bytes: Vec<u8>, to: T) {
        self.number += 1;
        self.bytes += bytes.len();
        self.held.push(Reverse(Held { due, number: self.number, arrived, bytes, to }));
    }

    /// When the next is due.
    pub(super) fn next_due(&self) -> Option<u64> {
        self.held.peek().map(|Reverse(held)| held.due)
    }

    /// Takes one that is due at `now`.
    pub(super) fn take(&mut self, now: u64) -> Option<Held<T>> {
        if self.next_due()? > now {
            return None;
        }
        let Reverse(held) = self.held.pop()?;
        self.bytes -= held.bytes.len();
        Some(held)
    }

    /// Bytes of the replies held.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}
