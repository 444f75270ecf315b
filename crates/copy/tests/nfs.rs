//! Copies to and from an NFS server, linerate's own on loopback: the same tree arrives, and what goes wrong is named.

#[expect(dead_code, reason = "of the two ends only what makes one ready is wanted here")]
mod pair;

use linerate_copy::{Control, CopyError, Counts, Ready, prepare};
use linerate_model::{
    CopyExisting, CopyFrom, CopyHalf, CopyInto, CopyOptions, CopyOrigin, CopyRole, CopySync, CopyTree, CopyVerify,
    FileServer, TrialId, TrialKey,
};
use linerate_sys::clock;
use pair::{OPTIONS, assert_same, census, everywhere, folder, made};
use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use tempfile::tempdir;

const KEY: TrialKey = TrialKey([5; 16]);
const BY_NFS: CopyOptions = CopyOptions { verify: CopyVerify::ReadBack, sync: CopySync::End, ..OPTIONS };

fn ready(options: CopyOptions, role: CopyRole, control: &Arc<Control>) -> Result<Ready, CopyError> {
    let half = CopyHalf { id: TrialId(String::from("t")), key: KEY, options, role, password: None };
    prepare(&half, &everywhere(), control, &|_| ())
}

/// What an agent serves of `path`, and the server as a client sees it.
fn serve(path: &Path) -> (Ready, FileServer) {
    let sources = vec![CopyOrigin { listen: Ipv4Addr::LOCALHOST.into(), folder: None }];
    let options = CopyOptions { existing: CopyExisting::Replace, ..BY_NFS };
    let role = CopyRole::Server { into: CopyInto::Folder(folder(path)), sources };
    let server = ready(options, role, &Arc::new(Control::new(options.on_error))).expect("served");
    let at = FileServer::AgentNfs(server.listening()[0]);
    (server, at)
}

fn copy(
    options: CopyOptions,
    (tree, from): (CopyTree, CopyFrom),
    into: CopyInto,
    control: &Arc<Control>,
) -> Result<Counts, CopyError> {
    let role = CopyRole::Alone { tree, from, into: vec![into], folder: None };
    Ok(ready(options, role, control)?.run(clock::now()))
}

fn control() -> Arc<Control> {
    Arc::new(Control::new(BY_NFS.on_error))
}

/// Waits until some files of a tree have their names.
fn wait_for_files(root: &Path) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let done = |entry: &fs::DirEntry| !entry.path().is_dir() && !entry.path().to_string_lossy().ends_with(".part");
    while fs::read_dir(root).expect("listed").flatten().filter(done).count() < 10 {
        assert!(Instant::now() < deadline, "nothing arrives");
        thread::sleep(Duration::from_millis(1));
    }
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
    let (server, at) = serve(exported.path());
    let tree = || (CopyTree::Folder(folder(from.path())), CopyFrom::Files);
    let into = vec![CopyInto::Server(at)];
    let role = CopyRole::Alone { tree: tree().0, from: tree().1, into, folder: None };
    let client = ready(options, role, &control()).expect("ready");
    let serving = thread::spawn(move || server.run(clock::now()));
    let written = client.run(clock::now());
    assert_eq!(written.faults, []);
    let side = &written.sides[0];
    assert!(side.complete);
    assert_eq!((side.files, side.verified, side.folders), (6, 6, 41));
    // It ends by itself when its client is gone.
    assert!(serving.join().expect("no panic").sides.is_empty());
    fs::remove_file(exported.path().join("there before")).expect("it stayed");
    assert_same(from.path(), exported.path());

    // Nothing is written again that is there already.
    let (server, at) = serve(exported.path());
    let resuming = CopyOptions { existing: CopyExisting::Resume, ..BY_NFS };
    let again = copy(resuming, tree(), CopyInto::Server(at), &control()).expect("copied");
    assert_eq!((again.sides[0].files, again.sides[0].kept), (0, 6));
    drop(server);

    let (server, at) = serve(exported.path());
    let from_server = (CopyTree::Folder(String::from("the server's")), CopyFrom::Server(at));
    let read = copy(BY_NFS, from_server, CopyInto::Folder(folder(back.path())), &control()).expect("copied");
    assert_eq!(read.faults, []);
    assert_eq!((read.sides[0].files, read.sides[0].verified), (6, 6));
    drop(server);
    assert_same(exported.path(), back.path());
}

#[test]
fn what_is_there_is_refused_and_a_stranger_sees_nothing() {
    let exported = tempdir().expect("a folder");
    fs::write(exported.path().join("mine"), "stays").expect("written");
    let (_server, at) = serve(exported.path());
    let tree = || (made("files=3,folders=0,bytes=1k"), CopyFrom::Memory);
    let refused = copy(BY_NFS, tree(), CopyInto::Server(at.clone()), &control()).map(|_| ());
    assert!(matches!(refused, Err(CopyError::NotEmpty { .. })), "{refused:?}");
    let role =
        CopyRole::Alone { tree: tree().0, from: CopyFrom::Memory, into: vec![CopyInto::Server(at)], folder: None };
    let half =
        CopyHalf { id: TrialId(String::from("t")), key: TrialKey([6; 16]), options: BY_NFS, role, password: None };
    let stranger = prepare(&half, &everywhere(), &control(), &|_| ()).map(|_| ()).expect_err("no key").to_string();
    assert!(stranger.contains("credential"), "{stranger}");
    assert_eq!(census(exported.path()).len(), 1);
}

#[test]
fn a_stopped_copy_leaves_nothing_half_written_on_the_server() {
    let exported = tempdir().expect("a folder");
    let (server, at) = serve(exported.path());
    let stopping = control();
    let stopper = Arc::clone(&stopping);
    let path = exported.path().to_owned();
    let stopper = thread::spawn(move || {
        wait_for_files(&path);
        stopper.stop();
    });
    let tree = (made("files=6000,folders=40,bytes=60M"), CopyFrom::Memory);
    let options = CopyOptions { sync: CopySync::None, ..BY_NFS };
    let copied = copy(options, tree, CopyInto::Server(at), &stopping).expect("begun");
    stopper.join().expect("no panic");
    drop(server);
    assert!(!copied.sides[0].complete);
    let there = census(exported.path());
    let half: Vec<_> = there.keys().filter(|path| path.ends_with(b".part")).collect();
    assert!(there.len() > 10 && half.is_empty(), "{} of {}", half.len(), there.len());
}

#[test]
fn a_server_that_goes_away_is_named_once_and_ends_the_copy() {
    let exported = tempdir().expect("a folder");
    let (server, at) = serve(exported.path());
    let copying = control();
    let path = exported.path().to_owned();
    let end = thread::spawn(move || {
        wait_for_files(&path);
        drop(server);
    });
    let tree = (made("files=6000,folders=40,bytes=60M"), CopyFrom::Memory);
    let options = CopyOptions { sync: CopySync::None, ..BY_NFS };
    let copied = copy(options, tree, CopyInto::Server(at), &copying).expect("begun");
    end.join().expect("no panic");
    assert!(!copied.sides[0].complete);
    let [fault] = &copied.faults[..] else { panic!("{:?}", copied.faults) };
    assert!(fault.reason.contains("127.0.0.1"), "{}", fault.reason);
}
