//! Where results are kept.

use crate::StoreError;
use etcetera::BaseStrategy as _;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// The store used if none is named: `$XDG_DATA_HOME/linerate/results.db`, by default under `~/.local/share`.
///
/// # Errors
/// There is no home directory.
pub fn default_path() -> Result<PathBuf, StoreError> {
    let base = etcetera::base_strategy::Xdg::new().map_err(|_| StoreError::NoHome)?;
    Ok(base.data_dir().join("linerate").join("results.db"))
}

/// Makes the folder of the store at `path`, for its owner only. A folder that is there stays as it is.
pub(crate) fn make_folder(path: &Path) -> Result<(), StoreError> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(()) };
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|source| StoreError::Folder { path: folder.to_owned(), source })
}

/// A file beside the store at `path`: its name with `ending` behind, as in `results.db-live`.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
