//! What goes wrong is named, the rest goes on or stops as asked, and nothing half-written has its final name.

use crate::pair::{OPTIONS, alone, assert_same, census, copy, ends, engine, folder, made, one, stage_micros, task};
use linerate_engine::FailedBy;
use linerate_engine::testing::{self, sessions};
use linerate_model::{CopyExisting, CopyFrom, CopyInto, CopyOnError, CopyOptions, CopyStage, CopyTree};
use linerate_testsuite::lab_test;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use tempfile::tempdir;

/// Names below `root` that a copy only uses while it writes.
fn temporary(root: &Path) -> Vec<String> {
    let names = census(root).into_keys().map(|path| String::from_utf8_lossy(&path).into_owned());
    names.filter(|name| name.ends_with(".part")).collect()
}

#[test]
fn an_interrupted_copy_goes_on_to_the_same_tree() {
    let tree = made("files=12000,folders=40,bytes=60M");
    let to = tempdir().expect("a folder");
    let whole = tempdir().expect("a folder");
    alone(OPTIONS, tree.clone(), CopyFrom::Memory, CopyInto::Folder(folder(whole.path()))).expect("copied");
    let into = || CopyInto::Folder(folder(to.path()));

    let ends = sessions(ends(&task(OPTIONS, tree.clone(), CopyFrom::Memory, into())));
    let [source, destination] = testing::scope(|scope| {
        let [source, destination] = [0, 1].map(|end| {
            let session = &ends[end];
            scope.spawn(move || session.run(&engine()))
        });
        while ends[1].meter().is_none_or(|meter| meter.operations < 300) {
            assert!(!destination.is_finished(), "it ended before it was interrupted");
            thread::sleep(Duration::from_micros(200));
        }
        assert!(ends[0].meter().is_some_and(|meter| meter.sent_bytes > 0), "what arrived was sent");
        for (end, stage) in [(0, "send"), (1, "receive"), (1, "write")] {
            assert!(stage_micros(&ends[end], stage).is_some_and(|micros| micros > 0), "{stage} while it works");
        }
        ends[1].stop("interrupted");
        [source, destination].map(|end| end.join().expect("no panic"))
    });
    assert!(matches!(destination.expect_err("it was stopped").error, FailedBy::Stop(_)));
    let sent = one(source.expect("it goes on as far as it can"));
    let got = ends[1].meter().expect("begun").operations;
    assert!(!sent.sides[0].complete);
    assert!((300..12_000).contains(&got), "{got}");
    assert!(sent.faults.iter().any(|fault| fault.reason.contains("broke")), "{:?}", sent.faults);
    assert_eq!(temporary(to.path()), Vec::<String>::new());
    let partly = census(to.path());
    let all = census(whole.path());
    for (path, about) in partly.iter().filter(|(_, about)| about.starts_with("100")) {
        assert_eq!(all.get(path), Some(about), "what has its name is whole: {}", String::from_utf8_lossy(path));
    }

    // As a kill leaves it.
    fs::write(to.path().join(".linerate-0-0.part"), "half").expect("written");
    let options = CopyOptions { existing: CopyExisting::Resume, ..OPTIONS };
    let resumed = copy(options, tree, CopyFrom::Memory, into()).expect("resumed");
    let again = &resumed.destination.sides[0];
    assert!(again.complete);
    assert_eq!(again.kept, got);
    assert_eq!(again.files + again.kept, 12_000);
    assert_same(whole.path(), to.path());
}

/// What is mounted in a folder, which could not be removed while it is.
struct Mounted<'a>(&'a Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = umount2(self.0, MntFlags::MNT_DETACH);
    }
}

#[lab_test]
fn a_full_disk_is_named_and_leaves_nothing_half_written() {
    let to = tempdir().expect("a folder");
    // The mount is this thread's and its threads' own.
    unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_FS)
        .and_then(|()| mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>))
        .and_then(|()| mount(Some("tmpfs"), to.path(), Some("tmpfs"), MsFlags::empty(), Some("size=2m")))
        .expect("a small tmpfs");
    let _mounted = Mounted(to.path());
    let from = tempdir().expect("a folder");
    fs::write(from.path().join("too large"), vec![7; 3 << 20]).expect("written");
    fs::write(from.path().join("small"), "s").expect("written");
    for (on_error, complete) in [(CopyOnError::Continue, true), (CopyOnError::Stop, false)] {
        let into = folder(&to.path().join(format!("{on_error:?}")));
        let options = CopyOptions { on_error, lanes: 1, ..OPTIONS };
        let tree = CopyTree::Folder(folder(from.path()));
        let copied = copy(options, tree, CopyFrom::Files, CopyInto::Folder(into.clone())).expect("begun");
        let [fault] = &copied.destination.faults[..] else { panic!("{:?}", copied.destination.faults) };
        assert_eq!((fault.path.as_str(), fault.stage), ("too large", CopyStage::Write));
        assert!(fault.reason.contains("No space left"), "{}", fault.reason);
        let got = &copied.destination.sides[0];
        assert_eq!((got.complete, copied.source.sides[0].complete), (complete, complete), "{on_error:?}");
        assert_eq!(copied.source.faults, [], "the destination says why");
        let there: Vec<_> =
            fs::read_dir(&into).expect("listed").map(|entry| entry.expect("read").file_name()).collect();
        assert!(
            !there.iter().any(|name| name == "too large" || name.to_string_lossy().ends_with(".part")),
            "{there:?}"
        );
        if complete {
            assert_eq!(there, ["small"]);
        }
        fs::remove_dir_all(into).expect("removed");
    }
}

#[test]
fn a_file_that_changes_while_it_is_read_is_named_and_left_out() {
    let from = tempdir().expect("a folder");
    let to = tempdir().expect("a folder");
    fs::write(from.path().join("steady"), "s").expect("written");
    let changing = from.path().join("changing");
    fs::write(&changing, vec![1; 64 << 20]).expect("written");
    let done = AtomicBool::new(false);
    let (began, begins) = mpsc::channel();
    let copied = testing::scope(|scope| {
        scope.spawn(|| {
            let mut file = File::options().append(true).open(&changing).expect("opened");
            // Without a pause: it never waits to be woken, so it has its turns on a core while the file is read.
            file.write_all(b"x").expect("written");
            began.send(()).expect("the test waits");
            while !done.load(Ordering::Relaxed) {
                file.write_all(b"x").expect("written");
            }
        });
        begins.recv().expect("it changes");
        let into = CopyInto::Folder(folder(to.path()));
        let copied = copy(OPTIONS, CopyTree::Folder(folder(from.path())), CopyFrom::Files, into);
        done.store(true, Ordering::Relaxed);
        copied.expect("begun")
    });
    let [fault] = &copied.source.faults[..] else { panic!("{:?}", copied.source.faults) };
    assert_eq!((fault.path.as_str(), fault.stage), ("changing", CopyStage::Read));
    assert!(fault.reason.contains("changed while it was read"), "{}", fault.reason);
    assert_eq!(census(to.path()).into_keys().collect::<Vec<_>>(), [b"steady".to_vec()]);
}

#[test]
fn what_cannot_be_copied_is_named_and_stops_what_is_to_stop() {
    let from = tempdir().expect("a folder");
    let to = tempdir().expect("a folder");
    nix::unistd::mkfifo(&from.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("made");
    fs::write(from.path().join("file"), "f").expect("written");
    let tree = || CopyTree::Folder(folder(from.path()));
    let into = |name: &str| CopyInto::Folder(folder(&to.path().join(name)));
    let copied = copy(OPTIONS, tree(), CopyFrom::Files, into("on")).expect("begun");
    assert_eq!(copied.source.faults.len(), 1);
    assert_eq!(copied.source.faults[0].path, "pipe");
    assert!(copied.destination.sides[0].complete, "the rest is there");
    assert_eq!(copied.destination.sides[0].files, 1);

    let options = CopyOptions { on_error: CopyOnError::Stop, ..OPTIONS };
    let copied = copy(options, tree(), CopyFrom::Files, into("stop")).expect("begun");
    assert!(!copied.destination.sides[0].complete && !copied.source.sides[0].complete);
    assert_eq!(copied.destination.faults, [], "the source says why");
}

/// A folder cannot be replaced by a file; the file is named, at the stage that names files.
#[test]
fn a_name_that_is_taken_by_a_folder_is_a_fault() {
    let from = tempdir().expect("a folder");
    let to = tempdir().expect("a folder");
    fs::write(from.path().join("x"), "file").expect("written");
    fs::create_dir_all(to.path().join("x/y")).expect("made");
    let options = CopyOptions { existing: CopyExisting::Replace, ..OPTIONS };
    let into = CopyInto::Folder(folder(to.path()));
    let copied = copy(options, CopyTree::Folder(folder(from.path())), CopyFrom::Files, into).expect("begun");
    let [fault] = &copied.destination.faults[..] else { panic!("{:?}", copied.destination.faults) };
    assert_eq!((fault.path.as_str(), fault.stage), ("x", CopyStage::Sync));
    assert_eq!(temporary(to.path()), Vec::<String>::new());
    assert!(to.path().join("x/y").is_dir());
}
