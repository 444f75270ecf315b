//! Congestion control: TCP of the host uses another one than the machine's (`tcp_congestion_control`; tcp(7)).

use super::{HostInterface, Kind};
use crate::linux::bench::Bench;
use linerate_model::HostName;
use linerate_sys::Error;
use linerate_sys::namespace::{network_setting, set_network_setting};
use serde::Deserialize;
use std::io;

/// The longest name the kernel takes, bytes (TCP_CA_NAME_MAX, less its final zero).
const LONGEST: usize = 15;

/// The congestion control of TCP sockets in the host's network that ask for none.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Congestion {
    /// The host.
    pub at: HostName,
    /// Its name in the kernel: `cubic`, `reno`, `bbr`.
    pub control: String,
}

impl Kind for Congestion {
    fn name(&self) -> &'static str {
        "congestion"
    }

    fn host(&self) -> Option<&HostName> {
        Some(&self.at)
    }

    fn check(&self, _bench: &Bench) -> Result<(), String> {
        let is_name = self.control.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if self.control.is_empty() || self.control.len() > LONGEST || !is_name {
            return Err(format!("control: `{}` is no congestion control, as `cubic` is", self.control));
        }
        Ok(())
    }

    fn plant(&self, interface: &HostInterface<'_>) -> Result<(), Error> {
        interface.namespace.enter(|| {
            // A host's network may use those alone that the machine allows everybody.
            let allowed = network_setting("ipv4/tcp_allowed_congestion_control")?;
            if !allowed.split_ascii_whitespace().any(|name| name == self.control) {
                let what = format!(
                    "{} (the machine allows {}; see net.ipv4.tcp_allowed_congestion_control)",
                    self.control,
                    allowed.trim()
                );
                return Err(Error::new("use congestion control", &what, io::ErrorKind::NotFound));
            }
            if !set_network_setting("ipv4/tcp_congestion_control", &self.control)? {
                return Err(Error::new("write", "ipv4/tcp_congestion_control", io::ErrorKind::NotFound));
            }
            Ok(())
        })?
    }
}
