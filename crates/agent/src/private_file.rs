//! Secrets kept between runs, readable by their owner alone.

use crate::StartError;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// The content of `path`; if there is no such file, it is created with what `make` gives. Of several processes that
/// create it at once, all get the content of the first.
pub(crate) fn read_or_create(
    path: &Path,
    make: impl FnOnce() -> Result<String, StartError>,
) -> Result<String, StartError> {
    match read(path) {
        Err(StartError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
        other => return other,
    }
    create(path, &make()?)?;
    read(path)
}

fn read(path: &Path) -> Result<String, StartError> {
    let failed = |call| move |source| StartError::File { call, path: path.to_owned(), source };
    let mode = fs::metadata(path).map_err(failed("stat"))?.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(StartError::Exposed { path: path.to_owned(), mode });
    }
    fs::read_to_string(path).map_err(failed("read"))
}

/// Writes beside the target and links it into place, so that nobody ever sees half a file and none is replaced.
fn create(path: &Path, content: &str) -> Result<(), StartError> {
    let failed = |call| move |source| StartError::File { call, path: path.to_owned(), source };
    if let Some(directory) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed("create the directory"))?;
    }
    let draft = path.with_extension(format!("draft-{:016x}", rand::random::<u64>()));
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)
        .and_then(|mut file| file.write_all(content.as_bytes()).and_then(|()| file.sync_all()))
        .and_then(|()| match fs::hard_link(&draft, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => other,
        });
    // A draft that was never created cannot be removed; its own error says why.
    let _ = fs::remove_file(&draft);
    written.map_err(failed("create"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_created_once_for_the_owner_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("deep/secret");
        assert_eq!(read_or_create(&path, || Ok("first".into())).expect("created"), "first");
        assert_eq!(read_or_create(&path, || Ok("second".into())).expect("read"), "first");
        assert_eq!(fs::metadata(&path).expect("stat").permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(directory.path().join("deep")).expect("list").count(), 1, "no draft is left behind");
    }

    #[test]
    fn is_refused_when_others_can_read_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("secret");
        fs::write(&path, "x").expect("write");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("chmod");
        let error = read_or_create(&path, || Ok("y".into())).expect_err("it is exposed").to_string();
        assert!(error.contains("mode 644") && error.contains("chmod 600"), "{error}");
    }
}
