//! The folder with this host's credentials of a fleet, and the keys of a fleet that is owned here.

use crate::exit::Failure;
use clap::Args;
use etcetera::{BaseStrategy as _, base_strategy};
use linerate_agent::private_file;
use linerate_bus::{Bus, BusError, Credentials, FleetKeys};
use std::path::{Path, PathBuf};

/// Option for the folder.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct FleetFolder {
    /// Directory of the fleet's credentials
    ///
    /// The default is the one that LINERATE_FLEET names, else linerate/fleet in the user's data directory.
    #[arg(long = "dir", value_name = "DIR")]
    directory: Option<PathBuf>,
}

impl FleetFolder {
    /// Names the folder `directory`, or the default.
    pub(crate) fn of(directory: Option<PathBuf>) -> Self {
        Self { directory }
    }

    /// Returns the folder.
    ///
    /// # Errors
    /// There is no home directory.
    pub(crate) fn path(&self) -> Result<PathBuf, Failure> {
        let variable = || std::env::var_os("LINERATE_FLEET").filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(directory) = self.directory.clone().or_else(variable) {
            return Ok(directory);
        }
        let base = base_strategy::choose_base_strategy();
        let base = base.map_err(|error| Failure::usage(format!("{error}: name a directory with --dir")))?;
        Ok(base.data_dir().join("linerate/fleet"))
    }

    /// Reads the credentials of this host.
    ///
    /// # Errors
    /// There are none, or others can read them.
    pub(crate) fn credentials(&self) -> Result<Credentials, Failure> {
        let path = self.path()?.join(Credentials::FILE);
        let text = private_file::read(&path).map_err(Failure::usage)?;
        let text = text.ok_or_else(|| Failure::usage(BusError::NoCredentials { path: path.clone() }))?;
        Credentials::parse(&text, &path).map_err(Failure::usage)
    }

    /// Reads the keys of the fleet that is owned here. `None` if this host owns none.
    ///
    /// # Errors
    /// They cannot be read, or others can read them.
    pub(crate) fn keys(&self) -> Result<Option<FleetKeys>, Failure> {
        let path = self.path()?.join(FleetKeys::FILE);
        let Some(text) = private_file::read(&path).map_err(Failure::usage)? else { return Ok(None) };
        let keys = serde_json::from_str(&text);
        keys.map(Some).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
    }

    /// Reads the keys of the fleet that is owned here.
    ///
    /// # Errors
    /// This host owns no fleet, or the keys cannot be read.
    pub(crate) fn owned(&self) -> Result<FleetKeys, Failure> {
        let folder = self.path()?;
        self.keys()?.ok_or_else(|| {
            Failure::usage(format!(
                "{} holds no keys of a fleet: run this where `linerate fleet create` was run, or name its directory with --dir",
                folder.display()
            ))
        })
    }

    /// Writes the keys of a fleet.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(crate) fn keep_keys(&self, keys: &FleetKeys) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(keys).map_err(Failure::measure)?;
        write(&self.path()?.join(FleetKeys::FILE), &text)
    }

    /// Writes the credentials of this host.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(crate) fn keep_credentials(&self, credentials: &Credentials) -> Result<(), Failure> {
        write(&self.path()?.join(Credentials::FILE), &credentials.text())
    }

    /// Connects with the credentials of this host.
    ///
    /// # Errors
    /// There are none, or NATS does not answer.
    pub(crate) async fn connect(&self) -> Result<Bus, Failure> {
        Bus::connect(self.credentials()?).await.map_err(Failure::measure)
    }
}

/// Writes a file that only its owner reads.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    private_file::replace(path, text).map_err(Failure::measure)
}
