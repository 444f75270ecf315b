//! The table of IPv6 neighbours. The kernel has one for all network namespaces, and each lab that comes up needs room
//! in it.

use crate::file_lock::locked;
use std::fs::File;
use std::path::Path;

/// Share of the table of IPv6 neighbours, or the whole table, until it is dropped.
///
/// `#[lab_test]` takes a share for each test, and the whole table for a test that lists `AllIpv6Neighbours`.
#[derive(Debug)]
pub struct Ipv6Neighbours {
    _lock: File,
}

impl Ipv6Neighbours {
    /// Waits until no test of any program fills the table.
    ///
    /// # Panics
    /// A lock file cannot be opened or locked.
    pub fn share() -> Self {
        Self::take(&std::env::temp_dir(), File::lock_shared)
    }

    /// Waits until no other test of any program has a share of the table, and takes the whole table.
    ///
    /// # Panics
    /// A lock file cannot be opened or locked.
    pub fn fill() -> Self {
        Self::take(&std::env::temp_dir(), File::lock)
    }

    fn take(folder: &Path, lock: fn(&File) -> std::io::Result<()>) -> Self {
        // A test that waits for the whole table holds this turn, so that no other test takes a share before it.
        let _turn = locked(folder, "ipv6-neighbours-turn", File::lock);
        Self { _lock: locked(folder, "ipv6-neighbours-table", lock) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_table_excludes_shares() {
        let folder = tempfile::tempdir().expect("a directory");
        let share = || Ipv6Neighbours::take(folder.path(), File::lock_shared);
        let first = share();
        let second = share();
        let table = File::open(folder.path().join("linerate-tests-ipv6-neighbours-table.lock")).expect("opens");
        assert!(table.try_lock().is_err(), "two tests have a share");
        drop((first, second));
        table.try_lock().expect("no test has a share");
        drop(table);
        let _all = Ipv6Neighbours::take(folder.path(), File::lock);
    }
}
