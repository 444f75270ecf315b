//! Tests of names, which Windows has its own rules for.

use super::{Folder, file_time, unix_ns};
use crate::folder::FolderFile;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("linerate-names-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).expect("made");
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn kind<T>(result: io::Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

fn temporary(folder: &Folder) -> FolderFile {
    folder.create_file(b"temporary", 0o644).expect("made")
}

#[test]
fn names_that_differ_in_case_do_not_take_each_others_place() {
    let scratch = Scratch::new("case");
    let folder = Folder::open(&scratch.0).expect("opened");
    fs::write(scratch.0.join("Readme"), "first").expect("written");
    let file = temporary(&folder);
    let error = folder.rename(&file, b"temporary", b"README").expect_err("the name is taken");
    assert_eq!(error.kind(), ErrorKind::InvalidFilename, "{error}");
    assert!(error.to_string().contains("next to `Readme`"), "{error}");
    assert_eq!(fs::read(scratch.0.join("Readme")).expect("read"), b"first");
    folder.rename(&file, b"temporary", b"Readme").expect("replaced");
    assert_eq!(kind(folder.about(b"readme")), Some(ErrorKind::NotFound));
    folder.about(b"Readme").expect("known");

    folder.make_folder(b"Data", 0o755).expect("made");
    assert_eq!(kind(folder.enter(b"data")), Some(ErrorKind::NotFound));
    assert_eq!(kind(folder.make_folder(b"data", 0o755)), Some(ErrorKind::InvalidFilename));
    assert_eq!(kind(folder.make_folder(b"Data", 0o755)), Some(ErrorKind::AlreadyExists));
    folder.enter(b"Data").expect("entered");
}

#[test]
fn names_that_windows_cannot_hold_are_refused() {
    let scratch = Scratch::new("rule");
    let folder = Folder::open(&scratch.0).expect("opened");
    for bad in ["nul", "COM1.txt", "end.", "end ", "a:b", "what?", "a\\b", ".."] {
        let bad = bad.as_bytes();
        assert_eq!(kind(folder.check_name(bad)), Some(ErrorKind::InvalidFilename));
        assert_eq!(kind(folder.create_file(bad, 0o644)), Some(ErrorKind::InvalidFilename));
        assert_eq!(kind(folder.make_folder(bad, 0o755)), Some(ErrorKind::InvalidFilename));
        assert_eq!(kind(folder.make_held(bad)), Some(ErrorKind::InvalidFilename));
    }
    for bad in [&b".."[..], b".", b"..\\x", b"../x", b"x:y", b"\xff"] {
        assert_eq!(kind(folder.enter(bad)), Some(ErrorKind::InvalidFilename));
        assert_eq!(kind(folder.open_file(bad)), Some(ErrorKind::InvalidFilename));
        assert_eq!(kind(folder.remove_file(bad)), Some(ErrorKind::InvalidFilename));
        assert_eq!(kind(folder.remove_folder(bad)), Some(ErrorKind::InvalidFilename));
    }
    assert_eq!(fs::read_dir(&scratch.0).expect("listed").count(), 0);
}

#[test]
fn paths_longer_than_the_systems_limit_are_made_and_removed() {
    let scratch = Scratch::new("long");
    let mut way = vec![Folder::open(&scratch.0).expect("opened")];
    let name = b"a folder of some length, of which there are many";
    for _ in 0..20 {
        let above = way.last().expect("one");
        above.make_folder(name, 0o755).expect("made");
        let below = above.enter(name).expect("entered");
        way.push(below);
    }
    let deepest = way.pop().expect("one");
    let file = temporary(&deepest);
    file.write_all_at(b"deep", 0).expect("written");
    deepest.rename(&file, b"temporary", b"file").expect("named");
    drop(file);
    deepest.remove_file(b"file").expect("removed");
    drop(deepest);
    while let Some(above) = way.pop() {
        above.remove_folder(name).expect("removed");
    }
}

#[test]
fn held_folder_stays_where_it_is() {
    let scratch = Scratch::new("held");
    let home = Folder::open(&scratch.0).expect("opened");
    let held = home.make_held(b"held").expect("made");
    fs::rename(scratch.0.join("held"), scratch.0.join("moved")).expect_err("it is held");
    fs::remove_dir(scratch.0.join("held")).expect_err("it is held");
    held.remove(&home, b"held").expect("removed");
    assert!(!scratch.0.join("held").exists());
}

#[test]
fn times_are_kept_in_steps() {
    assert_eq!(unix_ns(file_time(1_234_567_890_123_456_789)), 1_234_567_890_123_456_700);
    assert_eq!(unix_ns(file_time(-1_050)), -1_100);
    // Before any time that nanoseconds since 1970 have.
    assert_eq!(unix_ns(0), i64::MIN);
    assert!(file_time(i64::MIN) > 0);
}
