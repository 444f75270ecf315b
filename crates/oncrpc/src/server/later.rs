//! Replies that are not due yet.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Bytes that an allocator keeps for itself of each allocation.
const ALLOCATION: usize = 16;

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
    /// Memory of all replies held, bytes.
    memory: usize,
}

impl<T: Ord> Later<T> {
    pub(super) fn new() -> Self {
        Self { held: BinaryHeap::new(), number: 0, memory: 0 }
    }

    pub(super) fn hold(&mut self, due: u64, arrived: u64, bytes: Vec<u8>, to: T) {
        self.number += 1;
        let reply = Held { due, number: self.number, arrived, bytes, to };
        self.memory += reply.memory();
        self.held.push(Reverse(reply));
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
        self.memory -= held.memory();
        Some(held)
    }

    /// Returns the memory of the replies held, bytes. A reply of a few bytes takes ten times as many.
    pub(super) fn memory(&self) -> usize {
        self.memory
    }
}

impl<T> Held<T> {
    /// Memory of the reply, its place in the heap, which grows by doubling, and the allocator's head.
    fn memory(&self) -> usize {
        self.bytes.capacity() + 2 * size_of::<Self>() + ALLOCATION
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_replies_count_with_what_keeps_them() {
        let mut later = Later::new();
        for due in 0..1_000 {
            later.hold(due, 0, vec![0; 28], ());
        }
        assert!(later.memory() >= 1_000 * (28 + size_of::<Held<()>>()), "{} bytes", later.memory());
        while later.take(1_000).is_some() {}
        assert_eq!(later.memory(), 0);
    }
}
