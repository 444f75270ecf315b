//! The memory that a store may take, and what of it is taken.

use crate::store::Result;
use nfs3_types::nfs3::nfsstat3;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Memory limit in bytes, shared by all objects of a store.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) bytes: u64,
    taken: AtomicU64,
}

impl Room {
    pub(super) fn new(bytes: u64) -> Arc<Self> {
        Arc::new(Self { bytes, taken: AtomicU64::new(0) })
    }

    pub(super) fn free(&self) -> u64 {
        self.bytes.saturating_sub(self.taken.load(Ordering::Relaxed))
    }
}

/// A part of the room, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Taken {
    room: Arc<Room>,
    bytes: u64,
}

impl Taken {
    pub(super) fn nothing(room: &Arc<Room>) -> Self {
        Self { room: Arc::clone(room), bytes: 0 }
    }

    /// Takes more, all of it or nothing.
    pub(super) fn grow(&mut self, bytes: u64) -> Result<()> {
        let fits = |taken: u64| taken.checked_add(bytes).filter(|sum| *sum <= self.room.bytes);
        let room = &self.room.taken;
        room.try_update(Ordering::Relaxed, Ordering::Relaxed, fits).map_err(|_| nfsstat3::NFS3ERR_NOSPC)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Gives some of it back.
    pub(super) fn shrink(&mut self, bytes: u64) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.room.taken.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.shrink(self.bytes);
    }
}
