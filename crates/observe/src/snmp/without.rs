//! Stands in for the reader of devices in a build without SNMP: no device can be read.

use super::error::SnmpError;
use super::target::Target;
use linerate_model::DeviceLoad;

/// Description that a device gives of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Device {
    /// `sysName`.
    pub name: String,
}

/// Follows a device. There is none in this build.
pub enum Watcher {}

impl Watcher {
    /// Fails.
    ///
    /// # Errors
    /// [`SnmpError::NotBuilt`].
    pub async fn open(_target: &Target) -> Result<Self, SnmpError> {
        Err(SnmpError::NotBuilt)
    }

    /// Returns the device's description of itself.
    pub fn device(&self) -> &Device {
        match *self {}
    }

    /// Begins the window.
    pub async fn start(&mut self) {
        match *self {}
    }

    /// Ends the window.
    pub async fn stop(&mut self) -> DeviceLoad {
        match *self {}
    }

    /// Ends the window without waiting.
    pub async fn stop_at_once(&mut self) -> DeviceLoad {
        match *self {}
    }
}
