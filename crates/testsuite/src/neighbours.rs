//! The table of IPv6 neighbours. The kernel has one for all network namespaces, and each lab that comes up needs room in it.

use std::fs::{File, OpenOptions};
use std::path::Path;

/// A share of the table of IPv6 neighbours, or all of it, until it is dropped. `#[lab_test]` takes a share for each test, and all
/// of it for a test that lists `AllIpv6Neighbours`.
#[derive(Debug)]
pub struct Ipv6Neighbours {
    /// The kernel takes the lock on this file away when the file is closed, however the test ends.
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

    /// Waits until no other test of any program has a share of the table. None gets one meanwhile.
    ///
    /// # Panics
    /// A lock file cannot be opened or locked.
    pub fn fill() -> Self {
        Self::take(&std::env::temp_dir(), File::lock)
    }

    fn take(folder: &Path, lock: fn(&File) -> std::io::Result<()>) -> Self {
        // Who waits for all of the table keeps this turn meanwhile, or there would always be one more test with a share.
        let _turn = locked(folder, "turn", File::lock);
        Self { _lock: locked(folder, "table", lock) }
    }
}

/// Opens one of the two lock files, and locks it.
fn locked(folder: &Path, name: &str, lock: fn(&File) -> std::io::Result<()>) -> File {
    let path = folder.join(format!("linerate-tests-ipv6-neighbours-{name}.lock"));
    let file = OpenOptions::new().create(true).append(true).open(&path);
    let file = file.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    lock(&file).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    #[test]
    fn shares_are_held_side_by_side_and_the_whole_table_alone() {
        let folder = tempfile::tempdir().expect("a directory");
        let share = || Ipv6Neighbours::take(folder.path(), File::lock_shared);
        let (first, second) = (share(), share());
        let released = AtomicBool::new(false);
        thread::scope(|scope| {
            let filling = scope.spawn(|| {
                let _all = Ipv6Neighbours::take(folder.path(), File::lock);
                assert!(released.load(Ordering::SeqCst), "others had a share");
            });
            released.store(true, Ordering::SeqCst);
            drop((first, second));
            filling.join().expect("it fills the table");
        });
    }
}
