//! Copies to and from an NFS server, linerate's own on loopback: the same tree arrives, and what goes wrong is named.

use crate::pair::{KEY, OPTIONS, assert_same, assignment, census, copier, engine, folder, made, one, role, task};
use linerate_engine::FailedBy;
use linerate_engine::ListenOptions;
use linerate_engine::testing::{self, Session, run};
use linerate_model::{
    CopyCounts, CopyExisting, CopyFrom, CopyInto, CopyOptions, CopySync, CopyTree, CopyVerify, FileServer, RoleKind,
    SessionKey,
};
use linerate_nfsd::NfsShare;
use linerate_sys::folder::Folder;
use linerate_testsuite::wait_until;
use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};
use tempfile::tempdir;

const BY_NFS: CopyOptions = CopyOptions { verify: CopyVerify::ReadBack, sync: CopySync::End, ..OPTIONS };

/// Serves `path` to those that show `key`, and says how clients reach it.
fn serve(path: &Path, key: SessionKey) -> (NfsShare, FileServer) {
    let directory = Folder::open(path).expect("opened");
    let share =
        NfsShare::start(&directory, key, Ipv4Addr::LOCALHOST.into(), &ListenOptions::default(), 64).expect("served");
    let at = FileServer::AgentNfs(share.address());
    (share, at)
}

/// Copies from one host to a folder that another one serves. Returns what the first counted.
fn copy_to_serving_host(options: CopyOptions, from: &Path, exported: &Path) -> CopyCounts {
    let task = task(options, CopyTree::Folder(folder(from)), CopyFrom::Files, CopyInto::Folder(folder(exported)));
    let server = role(RoleKind::FileServer, &[(0, None)], &[]);
    let copier = role(RoleKind::Copier { folder: None, destination: 0 }, &[], &[0]);
    let [server, copier]: [_; 2] =
        run(&engine(), [server, copier].map(|role| assignment(&task, vec![role]))).try_into().expect("two sessions");
    // It ends by itself when its client is gone.
    assert!(one(server.expect("served")).sides.is_empty());
    one(copier.expect("copied"))
}

fn copy(session: &Session) -> CopyCounts {
    one(session.run(&engine()).expect("copied"))
}

/// Waits until some files of a tree have their names.
fn wait_for_files(root: &Path) {
    let done = |entry: &fs::DirEntry| !entry.path().is_dir() && !entry.path().to_string_lossy().ends_with(".part");
    wait_until("files arrive", || {
        (fs::read_dir(root).expect("listed").flatten().filter(done).count() >= 10).then_some(())
    });
}

fn oddities(root: &Path) {
    let deep = root.join(vec!["a folder in a folder"; 40].join("/"));
    fs::create_dir_all(&deep).expect("made");
    fs::write(deep.join("at the bottom"), "deep").expect("written");
    fs::write(root.join("empty"), "").expect("written");
    fs::write(root.join("n".repeat(255)), "long name").expect("written");
    fs::write(root.join(std::ffi::OsStr::from_bytes(b"no \xff\xfe UTF-8\n")), "odd").expect("written");
    // Several WRITEs and READs under way, and the last of them short.
    let content: Vec<u8> = (0..5_000_001_u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::write(root.join("several pieces"), content).expect("written");
    File::create(root.join("ends in a hole")).expect("made").set_len(3 << 20).expect("grown");
    let past = SystemTime::UNIX_EPOCH + Duration::new(987_654_321, 123_456_789);
    File::open(root.join("several pieces")).expect("opened").set_modified(past).expect("set");
    fs::create_dir(root.join("closed")).expect("made");
    File::open(root.join("closed")).expect("opened").set_modified(past).expect("set");
}

#[test]
fn a_tree_goes_to_a_server_and_comes_back() {
    let [from, exported, back] = [(); 3].map(|()| tempdir().expect("a folder"));
    oddities(from.path());
    // The server's times of links are its own.
    std::os::unix::fs::symlink("empty", exported.path().join("there before")).expect("a link");
    let options = CopyOptions { existing: CopyExisting::Replace, ..BY_NFS };
    let written = copy_to_serving_host(options, from.path(), exported.path());
    assert_eq!(written.faults, []);
    let side = &written.sides[0];
    assert!(side.complete);
    assert_eq!((side.files, side.verified, side.folders), (6, 6, 41));
    fs::remove_file(exported.path().join("there before")).expect("it stayed");
    assert_same(from.path(), exported.path());

    // Nothing is written again that is there already.
    let resuming = CopyOptions { existing: CopyExisting::Resume, ..BY_NFS };
    let again = copy_to_serving_host(resuming, from.path(), exported.path());
    assert_eq!((again.sides[0].files, again.sides[0].kept), (0, 6));

    let (_server, at) = serve(exported.path(), KEY);
    let tree = CopyTree::Folder(String::from("the server's"));
    let read = copy(&copier(BY_NFS, tree, CopyFrom::Server(at), CopyInto::Folder(folder(back.path()))));
    assert_eq!(read.faults, []);
    assert_eq!((read.sides[0].files, read.sides[0].verified), (6, 6));
    assert_same(exported.path(), back.path());
}

#[test]
fn what_is_there_is_refused_and_a_stranger_sees_nothing() {
    let exported = tempdir().expect("a folder");
    fs::write(exported.path().join("mine"), "stays").expect("written");
    let error = |key, existing| {
        let (_server, at) = serve(exported.path(), key);
        let options = CopyOptions { existing, ..BY_NFS };
        let session = copier(options, made("files=3,folders=0,bytes=1k"), CopyFrom::Memory, CopyInto::Server(at));
        session.run(&engine()).expect_err("refused").to_string()
    };
    let full = error(KEY, CopyExisting::Refuse);
    assert!(full.contains("is not empty"), "{full}");
    let stranger = error(SessionKey([6; 16]), CopyExisting::Replace);
    assert!(stranger.contains("credential"), "{stranger}");
    assert_eq!(census(exported.path()).len(), 1);
}

#[test]
fn a_stopped_copy_leaves_nothing_half_written_on_the_server() {
    let exported = tempdir().expect("a folder");
    let (server, at) = serve(exported.path(), KEY);
    let options = CopyOptions { sync: CopySync::None, ..BY_NFS };
    let tree = made("files=24000,folders=40,bytes=60M");
    let session = copier(options, tree, CopyFrom::Memory, CopyInto::Server(at));
    let ended = testing::scope(|scope| {
        let running = scope.spawn(|| session.run(&engine()));
        wait_for_files(exported.path());
        session.stop("enough");
        running.join().expect("no panic")
    });
    drop(server);
    assert!(matches!(ended.expect_err("it was stopped").error, FailedBy::Stop(_)));
    let there = census(exported.path());
    let unfinished: Vec<_> = there.keys().filter(|path| path.ends_with(b".part")).collect();
    assert!((10..24_000).contains(&there.len()) && unfinished.is_empty(), "{} of {}", unfinished.len(), there.len());
}

#[test]
fn a_server_that_goes_away_is_named_once_and_ends_the_copy() {
    let exported = tempdir().expect("a folder");
    let (server, at) = serve(exported.path(), KEY);
    let options = CopyOptions { sync: CopySync::None, ..BY_NFS };
    let tree = made("files=24000,folders=40,bytes=60M");
    let session = copier(options, tree, CopyFrom::Memory, CopyInto::Server(at));
    let copied = testing::scope(|scope| {
        let running = scope.spawn(|| copy(&session));
        wait_for_files(exported.path());
        drop(server);
        running.join().expect("no panic")
    });
    assert!(!copied.sides[0].complete);
    let [fault] = &copied.faults[..] else { panic!("{:?}", copied.faults) };
    assert!(fault.reason.contains("127.0.0.1"), "{}", fault.reason);
}
