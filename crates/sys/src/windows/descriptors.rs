//! How many files and sockets this process may have open at a time.

/// Returns how many descriptors this process may have. Always `None`: Windows has no such limit of a process but its memory.
pub fn most() -> Option<u64> {
    None
}

/// Does nothing: there is no limit to raise.
pub fn raise_limit() {}
