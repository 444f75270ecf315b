//! Main memory.

use crate::UsableMemory;
use linerate_sys::system::memory_bytes;

/// Returns the main memory that this process may use.
pub fn usable_memory() -> UsableMemory {
    memory_bytes().map_or(UsableMemory::Unknown, UsableMemory::Known)
}
