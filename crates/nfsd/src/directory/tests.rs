//! Tests of the promise of a directory of the host: nothing leads out of it.

use super::*;
use nix::sys::stat::SFlag;
use std::fs;
use std::os::unix::fs::symlink;

fn at(directory: Handle, name: &str) -> DirOpArgs<'_> {
    DirOpArgs { directory, name: Name::new(name.as_bytes()).expect("a name") }
}

/// Makes a directory next to a secret file, and a store of it.
fn beside_a_secret() -> (tempfile::TempDir, DirectoryStore) {
    let around = tempfile::tempdir().expect("a directory");
    fs::create_dir(around.path().join("served")).expect("is made");
    fs::create_dir(around.path().join("other")).expect("is made");
    fs::write(around.path().join("other/secret"), "secret").expect("is written");
    let store = DirectoryStore::open(&around.path().join("served"), 1 << 20).expect("opens");
    (around, store)
}

#[test]
fn no_link_leads_out() {
    let (around, store) = beside_a_secret();
    let served = around.path().join("served");
    symlink(around.path().join("other"), served.join("absolute")).expect("is made");
    symlink("../other/secret", served.join("relative")).expect("is made");
    symlink(".", served.join("inside")).expect("is made");
    for name in ["absolute", "relative", "inside"] {
        let (link, attributes) = store.lookup(at(store.root(), name)).expect("the link itself");
        assert_eq!(attributes.type_, ftype3::NF3LNK);
        assert!(store.read(link, 0, 10, &mut Vec::new()).is_err(), "{name}");
        assert!(store.write(link, 0, b"x", stable_how::UNSTABLE).is_err(), "{name}");
        assert!(store.lookup(at(link, "secret")).is_err(), "{name}");
        let file = New::Unchecked { attributes: &sattr3::default() };
        assert_eq!(store.make(at(store.root(), name), file).expect_err("a link"), nfsstat3::NFS3ERR_EXIST);
        assert!(store.make(at(link, "new"), file).is_err(), "{name}");
    }
    assert_eq!(fs::read(around.path().join("other/secret")).expect("is there"), b"secret");
    assert_eq!(fs::read_dir(around.path().join("other")).expect("is there").count(), 1);
}

#[test]
fn what_was_replaced_by_a_link_behind_its_back_is_stale() {
    let (around, store) = beside_a_secret();
    let served = around.path().join("served");
    let new = New::Directory { attributes: &sattr3::default() };
    let directory = store.make(at(store.root(), "d"), new).expect("is made").handle;
    let file = store.make(at(directory, "secret"), New::Guarded { attributes: &sattr3::default() }).expect("is made");
    fs::remove_dir_all(served.join("d")).expect("is removed");
    symlink("../other", served.join("d")).expect("is made");
    assert_eq!(store.read(file.handle, 0, 10, &mut Vec::new()).expect_err("a link"), nfsstat3::NFS3ERR_STALE);
    assert_eq!(store.lookup(at(directory, "secret")).expect_err("a link"), nfsstat3::NFS3ERR_STALE);
    // Another file of the same name is not the same file either.
    let file = store.make(at(store.root(), "f"), New::Guarded { attributes: &sattr3::default() }).expect("is made");
    fs::write(served.join("g"), "new").expect("is written");
    fs::rename(served.join("g"), served.join("f")).expect("moves over it");
    assert_eq!(store.attributes(file.handle).expect_err("another"), nfsstat3::NFS3ERR_STALE);
}

#[test]
fn pipes_and_devices_are_seen_and_not_opened() {
    let (around, store) = beside_a_secret();
    let pipe = around.path().join("served/pipe");
    nix::sys::stat::mknod(&pipe, SFlag::S_IFIFO, Mode::S_IRUSR | Mode::S_IWUSR, 0).expect("is made");
    let (pipe, attributes) = store.lookup(at(store.root(), "pipe")).expect("is seen");
    assert_eq!(attributes.type_, ftype3::NF3FIFO);
    assert_eq!(store.read(pipe, 0, 10, &mut Vec::new()).expect_err("a pipe"), nfsstat3::NFS3ERR_INVAL);
    assert_eq!(store.write(pipe, 0, b"x", stable_how::UNSTABLE).expect_err("a pipe"), nfsstat3::NFS3ERR_INVAL);
    let mode = sattr3 { mode: Nfs3Option::Some(0), ..sattr3::default() };
    assert!(store.set_attributes(pipe, &mode, None).is_err());
}

#[test]
fn nothing_gets_rights_that_the_agents_user_did_not_mean() {
    let (_around, store) = beside_a_secret();
    let wanted = sattr3 { mode: Nfs3Option::Some(0o6755), ..sattr3::default() };
    let result = store.make(at(store.root(), "f"), New::Guarded { attributes: &wanted }).expect("is made");
    assert_eq!(result.attributes.mode & 0o7000, 0);
    store.set_attributes(result.handle, &wanted, None).expect("is set");
    assert_eq!(store.attributes(result.handle).expect("is there").mode, 0o755);
    let other = result.attributes.uid.wrapping_add(1);
    let given_away = sattr3 { uid: Nfs3Option::Some(other), ..sattr3::default() };
    assert_eq!(store.set_attributes(result.handle, &given_away, None).expect_err("kept"), nfsstat3::NFS3ERR_PERM);
}

#[test]
fn no_directory_no_service() {
    let around = tempfile::tempdir().expect("a directory");
    fs::write(around.path().join("file"), "").expect("is written");
    for wrong in ["file", "missing"] {
        assert!(DirectoryStore::open(&around.path().join(wrong), 1 << 20).is_err(), "{wrong}");
    }
}
