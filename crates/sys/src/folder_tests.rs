//! Tests of folders and their files, which are the same on all systems.

use crate::entry::What;
use crate::folder::{Folder, TIME_STEP};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A folder that is removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("linerate-folder-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).expect("made");
        Self(path)
    }

    fn open(&self) -> Folder {
        Folder::open(&self.0).expect("opened")
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

/// Returns the sorted names of a folder.
fn names(folder: &Folder) -> Vec<String> {
    let listing = folder.to_list().and_then(|folder| folder.list()).expect("listed");
    let mut names: Vec<String> =
        listing.map(|found| String::from_utf8(found.expect("an entry").0).expect("UTF-8")).collect();
    names.sort();
    names
}

/// Writes a file, and gives it its name.
fn write(folder: &Folder, name: &str, content: &[u8]) -> io::Result<()> {
    let file = folder.create_file(b".temporary", 0o644)?;
    file.write_all_at(content, 0)?;
    let named = folder.rename(&file, b".temporary", name.as_bytes());
    drop(file);
    if named.is_err() {
        folder.remove_file(b".temporary")?;
    }
    named
}

#[test]
fn files_are_made_named_read_and_removed() {
    let scratch = Scratch::new("files");
    let folder = scratch.open();
    let mut file = folder.create_file(b"temporary", 0o644).expect("made");
    assert_eq!(kind(folder.create_file(b"temporary", 0o644)), Some(ErrorKind::AlreadyExists));
    file.write_all_at(b"begin", 0).expect("written");
    file.allow_holes();
    file.write_all_at(b"end", 1 << 20).expect("written");
    file.set_length(2 << 20).expect("grown");
    let modified = 987_654_321_123_456_700;
    file.settle(0o644, modified).expect("set");
    file.sync().expect("durable");
    file.sync_data().expect("durable");
    file.forget();
    folder.rename(&file, b"temporary", b"file").expect("named");
    drop(file);
    assert_eq!(names(&folder), ["file"]);

    let (file, about) = folder.open_file(b"file").expect("opened");
    assert_eq!((about.what, about.modified, about.mode), (What::File { size: 2 << 20 }, modified, 0o644));
    assert_eq!(file.about().expect("known"), about);
    assert_eq!(folder.about(b"file").expect("known").what, about.what);
    let mut piece = [1; 5];
    assert_eq!(file.read_at(&mut piece, 0).expect("read"), 5);
    assert_eq!(&piece, b"begin");
    assert_eq!(file.read_at(&mut piece, 1 << 20).expect("read"), 5);
    assert_eq!(&piece, b"end\0\0");
    assert_eq!(file.read_at(&mut piece, 2 << 20).expect("the end"), 0);
    // Data is found whether or not the file system has holes.
    let (begin, end) = file.extent(0, 2 << 20).expect("known");
    assert!(begin == 0 && end >= 5, "{begin}..{end}");
    let (begin, end) = file.extent(1 << 20, 2 << 20).expect("known");
    assert!(begin == 1 << 20 && end >= begin + 3, "{begin}..{end}");
    drop(file);

    folder.remove_file(b"file").expect("removed");
    assert_eq!(kind(folder.remove_file(b"file")), Some(ErrorKind::NotFound));
    assert_eq!(kind(folder.open_file(b"file")), Some(ErrorKind::NotFound));
    assert_eq!(kind(folder.about(b"file")), Some(ErrorKind::NotFound));
}

#[test]
fn file_replaces_the_one_of_its_name_also_a_read_only_one() {
    let scratch = Scratch::new("replace");
    let folder = scratch.open();
    let file = folder.create_file(b"temporary", 0o644).expect("made");
    file.settle(0o444, 0).expect("set");
    folder.rename(&file, b"temporary", b"name").expect("named");
    drop(file);
    assert_eq!(folder.about(b"name").expect("known").mode, 0o444);
    write(&folder, "name", b"new").expect("replaced");
    assert_eq!(fs::read(scratch.0.join("name")).expect("read"), b"new");
    assert_eq!(names(&folder), ["name"]);
    folder.make_folder(b"folder", 0o755).expect("made");
    write(&folder, "folder", b"new").expect_err("a folder has the name");
    assert_eq!(names(&folder), ["folder", "name"]);
}

#[test]
fn folders_are_made_entered_settled_and_removed() {
    let scratch = Scratch::new("folders");
    let folder = scratch.open();
    assert_eq!(kind(folder.enter(b"a")), Some(ErrorKind::NotFound));
    folder.make_folder(b"a", 0o755).expect("made");
    assert_eq!(kind(folder.make_folder(b"a", 0o755)), Some(ErrorKind::AlreadyExists));
    let below = folder.enter(b"a").expect("entered");
    below.make_folder(b"b", 0o755).expect("made");
    write(&below, "file", b"x").expect("written");
    let modified = 1_234_567_890_000_000_000 + TIME_STEP;
    folder.open_folder(b"a").expect("opened").settle(0o755, modified).expect("set");
    let about = folder.about(b"a").expect("known");
    assert_eq!((about.what, about.mode, about.modified), (What::Folder, 0o755, modified));
    assert_eq!(kind(folder.remove_file(b"a")), Some(ErrorKind::IsADirectory));
    assert_eq!(kind(folder.remove_folder(b"a")), Some(ErrorKind::DirectoryNotEmpty));
    assert_eq!(kind(below.enter(b"file")), Some(ErrorKind::NotADirectory));
    let emptied = folder.open_to_empty(b"a").expect("opened");
    let mut found = emptied.first_names(10).expect("listed");
    found.sort();
    assert_eq!(found, [&b"b"[..], b"file"]);
    assert_eq!(emptied.first_names(1).expect("listed").len(), 1);
    emptied.remove_folder(b"b").expect("removed");
    emptied.remove_file(b"file").expect("removed");
    drop((emptied, below));
    folder.remove_folder(b"a").expect("removed");
    assert!(names(&folder).is_empty());
    assert!(folder.free_bytes().expect("known") > 0);
    folder.sync().expect("durable");
}

#[test]
fn many_entries_are_listed_once_each() {
    let scratch = Scratch::new("many");
    let folder = scratch.open();
    let mut made: Vec<String> = (0..1_000).map(|number| format!("a file with a long name, number {number}")).collect();
    for name in &made {
        fs::write(scratch.0.join(name), name).expect("written");
    }
    made.sort();
    assert_eq!(names(&folder), made);
}

#[test]
fn links_are_not_followed() {
    let scratch = Scratch::new("names");
    fs::create_dir_all(scratch.0.join("inside/a")).expect("made");
    fs::write(scratch.0.join("secret"), "x").expect("written");
    let folder = Folder::open(&scratch.0.join("inside")).expect("opened");
    // Not every system makes links.
    if folder.make_link(b"temporary", b"link", Path::new("..").as_os_str().as_encoded_bytes(), 0).is_ok() {
        assert_eq!(kind(folder.enter(b"link")), Some(ErrorKind::NotADirectory));
        folder.open_file(b"link").map(drop).expect_err("not followed");
        folder.open_folder(b"link").map(drop).expect_err("not followed");
        assert_eq!(folder.about(b"link").expect("known").what, What::Link);
        assert_eq!(folder.read_link(b"link").expect("read"), b"..");
        folder.remove_file(b"link").expect("removed");
    }
    assert!(scratch.0.join("secret").exists());
}

#[test]
fn path_without_links_is_opened() {
    let scratch = Scratch::new("path");
    fs::create_dir_all(scratch.0.join("a/b")).expect("made");
    let real = scratch.0.join("a/b").canonicalize().expect("there");
    let opened = Folder::open_without_links(&real).expect("opened");
    opened.make_folder(b"c", 0o755).expect("made");
    assert!(scratch.0.join("a/b/c").is_dir());
    assert_eq!(kind(Folder::open_without_links(&real.join("none"))), Some(ErrorKind::NotFound));
    fs::write(scratch.0.join("file"), "x").expect("written");
    assert_eq!(kind(Folder::open(&scratch.0.join("file"))), Some(ErrorKind::NotADirectory));
}

#[test]
fn held_folder_is_abandoned_once_it_is_dropped() {
    let scratch = Scratch::new("held");
    let home = scratch.open();
    let held = home.make_held(b"held").expect("made");
    assert_eq!(kind(home.make_held(b"held")), Some(ErrorKind::AlreadyExists));
    assert!(home.hold_abandoned(b"held", Duration::ZERO).expect("there").is_none(), "it is held");
    let folder = held.folder().expect("opened");
    folder.make_folder(b"below", 0o755).expect("made");
    folder.settle(0o700, 0).expect("set");
    drop((folder, held));
    let old = Duration::from_secs(u64::MAX / 2);
    assert!(home.hold_abandoned(b"held", old).expect("there").is_none(), "it is young");
    let held = home.hold_abandoned(b"held", Duration::from_secs(60)).expect("there").expect("abandoned");
    let folder = held.folder().expect("opened");
    folder.remove_folder(b"below").expect("removed");
    drop(folder);
    held.remove(&home, b"held").expect("removed");
    assert!(names(&home).is_empty());
}
