//! The name a host has in a plan.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The name a host has in a plan: a lab host's, `local`, or host:port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct HostName(pub String);

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl From<&str> for HostName {
    fn from(name: &str) -> Self {
        Self(name.to_owned())
    }
}

impl From<String> for HostName {
    fn from(name: String) -> Self {
        Self(name)
    }
}
