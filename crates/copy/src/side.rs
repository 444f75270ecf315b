//! One side of a copy towards one other host: times of its stages and counts.

use crate::control::Control;
use crate::stage::Board;
use linerate_model::{CopySide, SizeClassTimes, TcpFlow};
use linerate_units::Nanos;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The smallest file of each size class.
const CLASSES: [u64; 6] = [0, 1, 4 << 10, 64 << 10, 1 << 20, 16 << 20];

/// State that a side's threads share.
#[derive(Debug, Default)]
pub(crate) struct Side {
    pub(crate) board: Board,
    pub(crate) tally: Tally,
    /// The other end is gone or has had enough: nothing more is to be listed.
    pub(crate) ended: AtomicBool,
    /// Times by size class.
    sizes: Mutex<BTreeMap<u64, SizeClassTimes>>,
    /// TCP counters of each connection.
    tcp: Mutex<Vec<TcpFlow>>,
}

/// Counts, each as the record has it.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) files: Count,
    pub(crate) folders: Count,
    pub(crate) links: Count,
    pub(crate) links_skipped: Count,
    pub(crate) bytes: Count,
    pub(crate) hole_bytes: Count,
    pub(crate) verified: Count,
    pub(crate) kept: Count,
}

/// A count that several threads add to.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The class that files of `size` bytes are in, by its smallest.
pub(crate) fn class(size: u64) -> u64 {
    CLASSES.into_iter().rev().find(|from| *from <= size).unwrap_or_default()
}

impl Side {
    /// A side of a copy under `control`.
    pub(crate) fn new(control: &Control) -> Self {
        Self { board: Board::new(Arc::clone(control.stages())), ..Self::default() }
    }

    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Adds the times of a thread that gives files their names.
    pub(crate) fn add_sizes(&self, sizes: &BTreeMap<u64, SizeClassTimes>) {
        let mut all = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        for (from, times) in sizes {
            let sum = all.entry(*from).or_default();
            sum.files += times.files;
            sum.bytes += times.bytes;
            sum.time.merge(&times.time);
        }
    }

    /// Adds what TCP says of a connection.
    pub(crate) fn add_connection(&self, account: TcpFlow) {
        self.tcp.lock().unwrap_or_else(PoisonError::into_inner).push(account);
    }

    /// Returns the counts after `time`.
    pub(crate) fn result(&self, time: Nanos, complete: bool) -> CopySide {
        let Tally { files, folders, links, links_skipped, bytes, hole_bytes, verified, kept } = &self.tally;
        CopySide {
            time,
            files: files.get(),
            folders: folders.get(),
            links: links.get(),
            links_skipped: links_skipped.get(),
            bytes: bytes.get(),
            hole_bytes: hole_bytes.get(),
            verified: verified.get(),
            kept: kept.get(),
            stages: self.board.finish(time),
            sizes: self.sizes.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            tcp: self.tcp.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            complete,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_goes_from_its_smallest_to_the_next() {
        for (size, from) in [(0, 0), (1, 1), (4_095, 1), (4_096, 4_096), (1 << 20, 1 << 20), (u64::MAX, 16 << 20)] {
            assert_eq!(class(size), from, "{size}");
        }
    }
}
