//! Disks that are full or cannot be written.

use crate::feed::{begins, start};
use crate::sample::{folder, open, record, summary, trial};
use linerate_model::{Caveat, CaveatKind, Message, RecordId, TrialResult};
use linerate_store::{Query, State, Store, StoreError, StoreLocation};
use linerate_testsuite::{lab_test, wait_until};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use std::path::Path;
use std::thread;
use tempfile::TempDir;

/// A small disk in a folder, which could not be removed while there is one.
struct Disk<'a>(&'a Path);

impl<'a> Disk<'a> {
    fn mount(folder: &'a TempDir, size: &str) -> Self {
        mount(Some("tmpfs"), folder.path(), Some("tmpfs"), MsFlags::empty(), Some(size)).expect("a small disk");
        Self(folder.path())
    }
}

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        let _ = umount2(self.0, MntFlags::MNT_DETACH);
    }
}

/// Runs `test` in a thread with mounts of its own; they go with it.
fn with_private_mounts(test: impl FnOnce() + Send) {
    thread::scope(|scope| {
        let run = scope.spawn(|| {
            unshare(CloneFlags::CLONE_FS | CloneFlags::CLONE_NEWNS)
                .and_then(|()| {
                    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)
                })
                .expect("mounts of its own");
            test();
        });
        run.join().expect("the test in private mounts passes");
    });
}

#[lab_test]
fn a_full_disk_is_named_and_costs_only_the_trial_at_hand() {
    with_private_mounts(|| {
        let folder = folder();
        let _disk = Disk::mount(&folder, "size=512k");
        let path = folder.path().join("results.db");
        let store = open(&path);
        let mut live = store.begin(&record("full", 1)).expect("begin");
        let mut stored = 0;
        let error = loop {
            let big = TrialResult {
                caveats: vec![Caveat::new(CaveatKind::Fallback, Message::untranslated("x".repeat(20_000)))],
                ..trial(stored)
            };
            match live.trial(&big, &summary(stored as f64)) {
                Ok(()) => stored += 1,
                Err(error) => break error,
            }
            assert!(stored < 100, "the disk has room for some 20 trials");
        };
        assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
        assert!(error.to_string().contains("free some space"), "{error}");
        assert!(stored > 3, "{stored}");
        assert_eq!(store.row("full").expect("a row").state, State::Running);
        drop(live);
        // Also for one who opens it while nothing can be written.
        std::fs::write(folder.path().join("rest"), vec![0; 1 << 20]).expect_err("the rest of the disk is taken");
        for store in [store, open(&path)] {
            let loaded = store.load("full").expect("what was stored is kept");
            assert_eq!(loaded.trials.len() as u64, stored);
            let rows = store.list(&Query::default(), 0, 9).expect("list");
            assert_eq!((rows[0].trials as u64, rows[0].state), (stored, State::Killed));
            assert_eq!(rows[0].headline.as_ref().expect("a headline").value, stored as f64 - 1.0);
        }
    });
}

#[lab_test]
fn a_disk_that_is_almost_full_is_left_to_the_store() {
    with_private_mounts(|| {
        for (size, told) in [("size=60m", false), ("size=80m", true)] {
            let folder = folder();
            let _disk = Disk::mount(&folder, size);
            let store = open(&folder.path().join("results.db"));
            let mut writer = store.feed(&RecordId("run".into()));
            writer.tell(start("run"));
            if told {
                wait_until("the feed is there", || store.feeds().pop());
                std::fs::write(folder.path().join("rest"), vec![0; 40 << 20]).expect("half of the disk is taken");
                writer.tell(begins("tcp", 0));
                wait_until("the feed gives way", || store.feeds().is_empty().then_some(()));
            }
            drop(writer);
            let feeds = folder.path().join("results.db-live.d");
            assert_eq!(std::fs::read_dir(feeds).expect("a folder").count(), 0, "{size}");
        }
    });
}

#[lab_test]
fn a_disk_without_any_room_is_named() {
    with_private_mounts(|| {
        let folder = folder();
        let _disk = Disk::mount(&folder, "size=16k");
        let error = Store::open(&StoreLocation::file(folder.path().join("results.db"))).err().expect("no room");
        assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    });
}

#[lab_test]
fn a_read_only_disk_is_named() {
    with_private_mounts(|| {
        let folder = folder();
        let _disk = Disk::mount(&folder, "size=1m");
        let path = folder.path().join("results.db");
        drop(open(&path).begin(&record("one", 1)).expect("begin"));
        let read_only = MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
        mount(None::<&str>, folder.path(), None::<&str>, read_only, None::<&str>).expect("read-only");
        let error = Store::open(&StoreLocation::file(&path)).err().expect("read-only");
        assert!(matches!(error, StoreError::NotWritable { .. }), "{error:?}");
        let error = Store::open(&StoreLocation::file(folder.path().join("other/results.db"))).err().expect("read-only");
        assert!(error.to_string().contains("--store"), "{error}");
    });
}
