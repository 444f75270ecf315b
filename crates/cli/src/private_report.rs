//! Reports and charts as files: what is new is for its owner alone, as the store is, for it tells of the same networks.

use linerate_sys::private;
pub(crate) use linerate_sys::private::make_folder;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

/// Writes a file anew. One that is there keeps its permissions.
///
/// # Errors
/// It cannot be written.
pub(crate) fn write(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    private::create(path)?.write_all(content.as_ref())
}

/// Looks whether [`write()`] could write a file, and leaves nothing behind. What is no file, as a pipe, is not touched.
///
/// # Errors
/// It could not.
pub(crate) fn check(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() || found.is_dir() => OpenOptions::new().append(true).open(path).map(drop),
        Ok(_) => Ok(()),
        Err(_) => match private::new_file(path) {
            Ok(_) => fs::remove_file(path),
            // A symbolic link to what is not there yet.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_testsuite::files::{mode, set_mode};

    #[test]
    fn what_cannot_be_written_is_known_before_and_nothing_is_left() {
        let top = tempfile::tempdir().expect("a folder");
        let path = |name: &str| top.path().join(name);
        check(&path("new.html")).expect("it can be made");
        assert!(!path("new.html").exists());
        check(top.path()).expect_err("a folder");
        check(&path("none/new.html")).expect_err("no folder");
        check(&path(&"long".repeat(100))).expect_err("too long a name");
    }

    #[test]
    fn a_new_report_is_for_its_owner_alone() {
        let top = tempfile::tempdir().expect("a folder");
        let folder = top.path().join("a/b");
        make_folder(&folder).expect("made");
        let file = folder.join("report.html");
        write(&file, "long").expect("written");
        assert_eq!((mode(&folder), mode(&file)), (0o700, 0o600));
        set_mode(&file, 0o644);
        write(&file, "new").expect("written");
        check(&file).expect("it can be written");
        assert_eq!((mode(&file), std::fs::read(&file).expect("read")), (0o644, b"new".to_vec()));
    }
}
