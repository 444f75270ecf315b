//! Secrets kept between runs, readable by their owner alone.

use crate::StartError;
use linerate_sys::byte_lock::open_regular;
use linerate_sys::private::{self, Exposure};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// The content of `path`; if there is no such file, it is created with what `make` gives. Of several processes that
/// create it at once, all get the content of the first.
pub(crate) fn read_or_create(
    path: &Path,
    make: impl FnOnce() -> Result<String, StartError>,
) -> Result<String, StartError> {
    if let Some(content) = read(path)? {
        return Ok(content);
    }
    create(path, &make()?)?;
    let vanished = || failed("read", path)(io::ErrorKind::NotFound.into());
    read(path)?.ok_or_else(vanished)
}

/// Returns the content of `path`; none if there is no such file.
///
/// # Errors
/// It cannot be read, or others can read it too.
pub fn read(path: &Path) -> Result<Option<String>, StartError> {
    match Exposure::of(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("stat", path)(error)),
        Ok(Some(exposure)) => return Err(StartError::Exposed { path: path.to_owned(), exposure }),
        Ok(None) => {}
    }
    fs::read_to_string(path).map(Some).map_err(failed("read", path))
}

/// Gives `path` this content: whoever reads it sees all of the old or all of the new one. A missing folder is made.
///
/// # Errors
/// It cannot be written.
pub fn replace(path: &Path, content: &str) -> Result<(), StartError> {
    create_directory(path)?;
    put(path, content, |draft| fs::rename(draft, path))
}

/// Returns the file `path` locked, until it is closed. It is made if it is missing.
///
/// # Errors
/// It cannot be made or locked.
pub fn lock(path: &Path) -> Result<File, StartError> {
    create_directory(path)?;
    // The directory may be another user's: a symbolic link there must not have root make a file elsewhere.
    let opened = open_regular(path, OpenOptions::new().create(true).truncate(false).write(true));
    let opened = opened.map_err(|error| error.source);
    let locked = opened.and_then(|file| {
        belongs_with(&file, path)?;
        file.lock()?;
        Ok(file)
    });
    locked.map_err(failed("lock", path))
}

/// Gives a file that root made to the owner of its directory. Root invites for a service of another user, who could not read the file.
fn belongs_with(file: &File, path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |directory| private::give_to_owner_of(directory, file))
}

/// Makes the directory of `path`, for its owner alone.
fn create_directory(path: &Path) -> Result<(), StartError> {
    let Some(directory) = path.parent() else { return Ok(()) };
    private::make_folder(directory).map_err(failed("create the directory", path))
}

/// Links it into place, so that no file is replaced.
fn create(path: &Path, content: &str) -> Result<(), StartError> {
    create_directory(path)?;
    put(path, content, |draft| match fs::hard_link(draft, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    })
}

/// Writes beside `path`, so that nobody ever sees half a file, and has `place` put the draft in its place.
fn put(path: &Path, content: &str, place: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), StartError> {
    let draft = path.with_extension(format!("draft-{:016x}", rand::random::<u64>()));
    let written = private::new_file(&draft)
        .and_then(|mut file| {
            belongs_with(&file, path)?;
            file.write_all(content.as_bytes())?;
            file.sync_all()
        })
        .and_then(|()| place(&draft));
    // A draft that was never created, or was moved, cannot be removed; its own error says why.
    let _ = fs::remove_file(&draft);
    written.map_err(failed("write", path))
}

fn failed(call: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StartError {
    let path = path.to_owned();
    move |source| StartError::File { call, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_testsuite::files::{change_owner, mode, owner, set_mode, symlink};

    #[test]
    fn is_created_once_for_the_owner_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("deep/secret");
        assert_eq!(read_or_create(&path, || Ok("first".into())).expect("created"), "first");
        assert_eq!(read_or_create(&path, || Ok("second".into())).expect("read"), "first");
        assert_eq!(mode(&path), 0o600);
        assert_eq!(fs::read_dir(directory.path().join("deep")).expect("list").count(), 1, "no draft is left behind");
    }

    #[test]
    fn is_refused_when_others_can_read_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("secret");
        fs::write(&path, "x").expect("write");
        set_mode(&path, 0o644);
        let error = read_or_create(&path, || Ok("y".into())).expect_err("it is exposed").to_string();
        assert!(error.contains("mode 644") && error.contains("chmod 600"), "{error}");
    }

    #[test]
    fn what_root_writes_belongs_to_the_owner_of_the_directory() {
        let directory = tempfile::tempdir().expect("create");
        let (path, locked) = (directory.path().join("secret"), directory.path().join("lock"));
        if change_owner(directory.path(), (4_242, 4_243)).is_err() {
            return linerate_testsuite::skip("what_root_writes_belongs_to_the_owner_of_the_directory", "it needs root");
        }
        replace(&path, "x").expect("written");
        lock(&locked).expect("locked");
        for made in [&path, &locked] {
            assert_eq!((owner(made), mode(made)), ((4_242, 4_243), 0o600), "{}", made.display());
        }
        fs::remove_file(&locked).expect("removed");
        symlink(directory.path().join("elsewhere"), &locked);
        lock(&locked).expect_err("it leads elsewhere");
        assert!(!directory.path().join("elsewhere").exists());
    }
}
