//! The table of IPv6 neighbours. The kernel has one for all network namespaces, so a test that fills it disturbs all others that
//! speak IPv6, of other programs too.

use std::fs::{File, OpenOptions};
use std::path::PathBuf;

/// A share of the table of IPv6 neighbours, or all of it, until it is dropped.
#[derive(Debug)]
pub struct Ipv6Neighbours {
    /// The kernel takes the lock on this file away when the file is closed, however the test ends.
    _lock: File,
}

impl Ipv6Neighbours {
    /// Waits until no test fills the table. Each test that sends IPv6 packets between kernels holds this while it does.
    ///
    /// # Panics
    /// A lock file cannot be opened or locked.
    pub fn share() -> Self {
        let turn = locked("turn", File::lock);
        let table = locked("table", File::lock_shared);
        drop(turn);
        Self { _lock: table }
    }

    /// Waits until no other test has a share of the table. None gets one meanwhile.
    ///
    /// # Panics
    /// A lock file cannot be opened or locked.
    pub fn fill() -> Self {
        // Who waits for a share waits for this turn, or there would always be one more test with a share.
        let turn = locked("turn", File::lock);
        let table = locked("table", File::lock);
        drop(turn);
        Self { _lock: table }
    }
}

/// Opens one of the two lock files, and locks it.
fn locked(name: &str, lock: impl FnOnce(&File) -> std::io::Result<()>) -> File {
    let path: PathBuf = std::env::temp_dir().join(format!("linerate-tests-ipv6-neighbours-{name}.lock"));
    let failed = |error| panic!("{}: {error}", path.display());
    let file = OpenOptions::new().create(true).append(true).open(&path).unwrap_or_else(failed);
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
        let first = Ipv6Neighbours::share();
        let second = Ipv6Neighbours::share();
        let released = AtomicBool::new(false);
        thread::scope(|scope| {
            let filling = scope.spawn(|| {
                let _all = Ipv6Neighbours::fill();
                assert!(released.load(Ordering::SeqCst), "others had a share");
            });
            released.store(true, Ordering::SeqCst);
            drop((first, second));
            filling.join().expect("it fills the table");
        });
    }
}
