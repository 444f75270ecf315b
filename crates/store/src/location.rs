//! Where results are kept.

use crate::StoreError;
use crate::postgres::{BadStoreUrl, PostgresUrl};
use etcetera::BaseStrategy as _;
use linerate_sys::private;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fmt, str::FromStr};

/// Place of a store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum StoreLocation {
    /// The user's own store, at [`default_path`].
    #[default]
    Default,
    /// A SQLite file.
    File(PathBuf),
    /// A PostgreSQL database.
    Postgres(PostgresUrl),
}

impl StoreLocation {
    /// Returns the location of a SQLite file.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self::File(path.into())
    }

    /// Reads a location as typed: a URL that starts with `postgres://` or `postgresql://`, or else the path of a file.
    ///
    /// # Errors
    /// The URL is not valid.
    pub fn parse(text: OsString) -> Result<Self, BadStoreUrl> {
        match text.to_str() {
            Some(url) if PostgresUrl::is_meant(url) => url.parse().map(Self::Postgres),
            _ => Ok(Self::File(text.into())),
        }
    }
}

impl FromStr for StoreLocation {
    type Err = BadStoreUrl;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text.into())
    }
}

/// Shows the file, or the URL without its password.
impl fmt::Display for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.pad("the default store"),
            Self::File(path) => path.display().fmt(f),
            Self::Postgres(url) => url.fmt(f),
        }
    }
}

/// Returns the store used if none is named: `linerate/results.db` in the user's data directory, which is `$XDG_DATA_HOME` (by
/// default `~/.local/share`), or `%APPDATA%` on Windows.
///
/// # Errors
/// There is no home directory.
pub fn default_path() -> Result<PathBuf, StoreError> {
    let base = etcetera::choose_base_strategy().map_err(|_| StoreError::NoHome)?;
    Ok(base.data_dir().join("linerate").join("results.db"))
}

/// Makes the folder of the store at `path`, for its owner only. A folder that is there stays as it is.
pub(crate) fn make_folder(path: &Path) -> Result<(), StoreError> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(()) };
    private::make_folder(folder).map_err(|source| StoreError::Folder { path: folder.to_owned(), source })
}

/// Makes the file of the store at `path`, readable by its owner only, because records name networks and hosts. SQLite gives the
/// files next to it the same permissions; on Windows these have the permissions of the folder.
///
/// An existing file is not opened: closing it again would release every lock that SQLite holds on it in this process (fcntl(2),
/// Advisory record locking).
pub(crate) fn make_file(path: &Path) {
    // SQLite opens the file next and reports the error.
    let _ = private::new_file(path);
}

/// Returns a file next to the store at `path`: its name followed by `ending`, as in `results.db-live`.
pub(crate) fn neighbour_file(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
