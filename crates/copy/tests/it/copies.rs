//! Copies between two ends on loopback, and within one host: what arrives is what was there.

use crate::pair::{OPTIONS, alone, assert_same, census, copy, folder, made};
use linerate_model::{
    CopyExisting, CopyFrom, CopyInto, CopyLinks, CopyOptions, CopyStage, CopySync, CopyTree, CopyVerify, StageTime,
};
use linerate_sys::clock;
use linerate_testsuite::lab_test;
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};
use tempfile::tempdir;

/// One of everything that a tree may hold.
fn oddities(root: &Path) {
    let deep = root.join(vec!["a folder in a folder"; 60].join("/"));
    fs::create_dir_all(&deep).expect("made");
    fs::write(deep.join("at the bottom"), "deep").expect("written");
    fs::write(root.join("empty"), "").expect("written");
    fs::write(root.join("n".repeat(255)), "long name").expect("written");
    fs::write(root.join("\u{65e5}\u{672c} \u{e9}\u{e8}\n.txt"), "odd name").expect("written");
    fs::write(root.join(std::ffi::OsStr::from_bytes(b"no \xff\xfe UTF-8")), "odder").expect("written");
    symlink("empty", root.join("link")).expect("a link");
    symlink("/nowhere/at all", root.join("broken link")).expect("a link");
    fs::create_dir(root.join("closed")).expect("made");
    fs::write(root.join("closed/read only"), "r").expect("written");
    fs::set_permissions(root.join("closed/read only"), Permissions::from_mode(0o400)).expect("set");
    let sparse = File::create(root.join("sparse")).expect("made");
    sparse.set_len(64 << 20).expect("grown");
    sparse.write_all_at(b"in the middle", 31 << 20).expect("written");
    File::create(root.join("nothing but a hole")).expect("made").set_len(1 << 20).expect("grown");
    let content: Vec<u8> = (0..3_000_000_u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::write(root.join("several blocks"), content).expect("written");
    let past = SystemTime::UNIX_EPOCH + Duration::new(987_654_321, 123_456_789);
    File::open(root.join("several blocks")).expect("opened").set_modified(past).expect("set");
    fs::set_permissions(root.join("closed"), Permissions::from_mode(0o555)).expect("set");
    File::open(root.join("closed")).expect("opened").set_modified(past).expect("set");
}

#[test]
fn everything_a_tree_may_hold_arrives() {
    let (from, to, by_path) =
        (tempdir().expect("a folder"), tempdir().expect("a folder"), tempdir().expect("a folder"));
    oddities(from.path());
    let before = census(from.path());
    let into = CopyInto::Folder(folder(&to.path().join("new")));
    let copied = copy(OPTIONS, CopyTree::Folder(folder(from.path())), CopyFrom::Files, into).expect("copied");
    assert_eq!(copied.source.faults, []);
    assert_eq!(copied.destination.faults, []);
    let sent = &copied.source.sides[0];
    let got = &copied.destination.sides[0];
    assert!(sent.complete && got.complete);
    assert_eq!((got.files, got.links, got.folders), (9, 2, 61));
    assert_eq!((got.files, got.bytes, got.verified), (sent.files, sent.bytes, 9));
    assert!(got.hole_bytes > 60 << 20, "{}", got.hole_bytes);
    assert_same(from.path(), &to.path().join("new"));
    let blocks = to.path().join("new/sparse").metadata().expect("there").blocks();
    assert!(blocks * 512 < 8 << 20, "a sparse file stays sparse: {blocks} blocks");

    let options = CopyOptions { sync: CopySync::Each, ..OPTIONS };
    let into = CopyInto::Folder(folder(by_path.path()));
    let counts = alone(options, CopyTree::Folder(folder(from.path())), CopyFrom::Files, into).expect("copied");
    assert_eq!(counts.faults, []);
    assert_eq!((counts.sides[0].files, counts.sides[0].verified), (9, 9));
    assert_same(from.path(), by_path.path());
    assert_eq!(census(from.path()), before, "the source is as it was");
}

#[test]
fn a_made_tree_is_the_same_from_memory_from_files_and_by_path() {
    let tree = made("files=700,folders=30,bytes=9M,seed=4");
    let targets: Vec<_> = (0..3).map(|_| tempdir().expect("a folder")).collect();
    let into = |index: usize| CopyInto::Folder(folder(targets[index].path()));
    for (index, from) in [CopyFrom::Memory, CopyFrom::Files].into_iter().enumerate() {
        let copied = copy(OPTIONS, tree.clone(), from.clone(), into(index)).expect("copied");
        let got = &copied.destination.sides[0];
        assert_eq!((got.files, got.folders, got.bytes, got.verified), (700, 30, 9_000_000, 700), "{from:?}");
        assert!(copied.destination.faults.is_empty() && copied.source.faults.is_empty());
    }
    alone(OPTIONS, tree, CopyFrom::Memory, into(2)).expect("copied");
    assert_same(targets[0].path(), targets[1].path());
    assert_same(targets[0].path(), targets[2].path());
    assert!(census(targets[0].path()).len() >= 730);
}

/// Asserts that a stage accounts for all the time of its side, and for no more than its threads had: these begin before
/// the side's time does, and may end after it.
fn assert_within(stage: CopyStage, time: &StageTime, side_ns: u64, elapsed_ns: u64) {
    let all = (time.busy + time.waiting_for_previous + time.waiting_for_next).get();
    let threads = u64::from(time.threads);
    assert!(
        all >= threads * side_ns && all <= threads * elapsed_ns,
        "{stage:?}: {time:?} of {side_ns} to {elapsed_ns} ns"
    );
}

#[test]
fn each_stage_tells_where_its_time_went() {
    let tree = made("files=200,folders=5,bytes=20M");
    let begun = clock::now();
    let copied = copy(OPTIONS, tree.clone(), CopyFrom::Memory, CopyInto::Scratch).expect("copied");
    let elapsed = clock::now() - begun;
    for (side, stages) in
        [(&copied.source.sides[0], &CopyStage::ALL[..5]), (&copied.destination.sides[0], &CopyStage::ALL[5..])]
    {
        assert_eq!(side.stages.keys().copied().collect::<Vec<_>>(), stages);
        for (stage, time) in &side.stages {
            assert_within(*stage, time, side.time.get(), elapsed);
        }
        let files: u64 = side.sizes.values().map(|class| class.files).sum();
        assert!(files == 0 || files == 200);
    }
    let options = CopyOptions { verify: CopyVerify::None, ..OPTIONS };
    let copied = copy(options, tree, CopyFrom::Memory, CopyInto::Discard).expect("copied");
    let got = &copied.destination.sides[0];
    assert_eq!((got.files, got.verified, got.bytes), (200, 0, 20_000_000));
    assert!(!got.stages.contains_key(&CopyStage::Verify));
}

/// Within one host a lane's thread does all stages in turn: while one works, those before and after it wait.
#[test]
fn stages_that_share_a_thread_share_its_time() {
    let to = tempdir().expect("a folder");
    let tree = made("files=300,folders=5,bytes=20M");
    let into = CopyInto::Folder(folder(to.path()));
    let begun = clock::now();
    let counts = alone(OPTIONS, tree, CopyFrom::Files, into).expect("copied");
    let elapsed = clock::now() - begun;
    let side = &counts.sides[0];
    let mut in_turn = 0;
    for (stage, time) in &side.stages {
        assert_within(*stage, time, side.time.get(), elapsed);
        assert!(time.busy.get() > 0, "{stage:?} did nothing");
        assert_eq!(time.threads, if *stage == CopyStage::List { 1 } else { 2 }, "{stage:?}");
        in_turn += if *stage == CopyStage::List { 0 } else { time.busy.get() };
    }
    // What is still there when it is read back need not be hashed.
    let expected: Vec<_> = CopyStage::ALL
        .into_iter()
        .filter(|stage| !matches!(stage, CopyStage::Hash | CopyStage::Send | CopyStage::Receive))
        .collect();
    assert_eq!(side.stages.keys().copied().collect::<Vec<_>>(), expected);
    assert!(in_turn <= 2 * elapsed, "{in_turn} ns of two threads in {elapsed} ns");
}

/// Copies a file of each mode within this host.
fn modes_arrive(modes: &[u32]) {
    let from = tempdir().expect("a folder");
    let to = tempdir().expect("a folder");
    for mode in modes {
        let path = from.path().join(format!("{mode:o}"));
        fs::write(&path, "x").expect("written");
        fs::set_permissions(&path, Permissions::from_mode(*mode)).expect("set");
    }
    let tree = || CopyTree::Folder(folder(from.path()));
    alone(OPTIONS, tree(), CopyFrom::Files, CopyInto::Folder(folder(to.path()))).expect("copied");
    assert_same(from.path(), to.path());
}

/// Whatever the mask of the process, and whatever the mode: it arrives.
#[test]
fn permissions_arrive_as_they_are() {
    modes_arrive(&[0o400, 0o600, 0o644, 0o666, 0o777, 0o1755]);
}

#[lab_test]
fn files_that_only_root_may_read_keep_their_permissions() {
    modes_arrive(&[0o000, 0o200]);
}

#[test]
fn links_are_left_out_where_that_is_asked_and_counted() {
    let from = tempdir().expect("a folder");
    let to = tempdir().expect("a folder");
    fs::write(from.path().join("file"), "x").expect("written");
    symlink("file", from.path().join("one")).expect("a link");
    symlink("/nowhere", from.path().join("two")).expect("a link");
    let options = CopyOptions { links: CopyLinks::Skip, ..OPTIONS };
    let tree = || CopyTree::Folder(folder(from.path()));
    let into = |name: &str| CopyInto::Folder(folder(&to.path().join(name)));
    let within = alone(options, tree(), CopyFrom::Files, into("within")).expect("copied");
    let across = copy(options, tree(), CopyFrom::Files, into("across")).expect("copied");
    for (faults, side) in [(&within.faults, &within.sides[0]), (&across.source.faults, &across.source.sides[0])] {
        assert_eq!(*faults, []);
        assert_eq!((side.files, side.links, side.links_skipped, side.complete), (1, 0, 2, true));
    }
    assert_eq!(across.destination.sides[0].links_skipped, 0, "who lists counts");
    assert_eq!(census(to.path()).len(), 4, "two folders with a file each");
}

#[test]
fn what_is_there_is_refused_replaced_or_kept() {
    let to = tempdir().expect("a folder");
    let into = || CopyInto::Folder(folder(to.path()));
    let tree = made("files=40,folders=3,bytes=1M");
    let again = |existing| {
        let options = CopyOptions { existing, ..OPTIONS };
        copy(options, tree.clone(), CopyFrom::Memory, into())
    };
    again(CopyExisting::Refuse).expect("the folder is empty");
    let whole = census(to.path());
    let error = again(CopyExisting::Refuse).map(|_| ()).expect_err("it is not empty any more").to_string();
    assert!(error.contains("--existing replace") && error.contains("--existing resume"), "{error}");

    fs::write(to.path().join("mine"), "stays").expect("written");
    let file = whole.iter().find(|(_, about)| about.starts_with("100")).expect("a file").0;
    fs::write(to.path().join(std::ffi::OsStr::from_bytes(file)), "changed").expect("written");
    let copied = again(CopyExisting::Replace).expect("copied");
    assert_eq!(copied.destination.sides[0].files, 40);
    assert_eq!(fs::read(to.path().join("mine")).expect("there"), b"stays");
    fs::remove_file(to.path().join("mine")).expect("removed");
    assert_eq!(census(to.path()), whole);

    fs::write(to.path().join(std::ffi::OsStr::from_bytes(file)), "changed").expect("written");
    let copied = again(CopyExisting::Resume).expect("copied");
    let got = &copied.destination.sides[0];
    assert_eq!((got.files, got.kept), (1, 39));
    assert_eq!(census(to.path()), whole);
}

#[test]
fn one_source_sends_to_itself_only_where_that_ends() {
    let from = tempdir().expect("a folder");
    let into = CopyInto::Folder(folder(&from.path().join("inside")));
    let error = alone(OPTIONS, CopyTree::Folder(folder(from.path())), CopyFrom::Files, into).map(|_| ());
    assert!(error.expect_err("endless").to_string().contains("copy itself"));
}
