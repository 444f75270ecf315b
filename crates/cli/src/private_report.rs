//! Reports and charts as files: what is new is for its owner alone, as the store is, for it tells of the same networks.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Writes a file anew. One that is there keeps its permissions.
///
/// # Errors
/// It cannot be written.
pub(crate) fn write(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(content.as_ref())
}

/// Makes a folder, and those above it that are missing.
///
/// # Errors
/// It cannot be made.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, metadata, set_permissions};
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_new_report_is_for_its_owner_alone() {
        let top = tempfile::tempdir().expect("a folder");
        let folder = top.path().join("a/b");
        make_folder(&folder).expect("made");
        let file = folder.join("report.html");
        write(&file, "long").expect("written");
        let mode = |path: &Path| metadata(path).expect("it is there").permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&file)), (0o700, 0o600));
        set_permissions(&file, Permissions::from_mode(0o644)).expect("chmod");
        write(&file, "new").expect("written");
        assert_eq!((mode(&file), std::fs::read(&file).expect("read")), (0o644, b"new".to_vec()));
    }
}
