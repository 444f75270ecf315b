//! Credentials of one member of a fleet.

use crate::{AgentName, BusError, FleetName};
use nkeys::KeyPair;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// Role of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Runs trials on its host.
    Agent,
    /// Asks to join.
    Invited,
    /// Reads the state of the fleet.
    Viewer,
    /// Runs trials through agents.
    Operator,
    /// Schedules and runs trials, and admits members.
    Controller,
}

impl Role {
    /// Returns the name in credentials and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Invited => "invited",
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Controller => "controller",
        }
    }
}

/// Credentials of one member of a fleet, as in its file. They hold a secret.
#[derive(Clone, Serialize, Deserialize)]
pub struct Credentials {
    /// The fleet.
    pub fleet: FleetName,
    /// Name of the member.
    pub name: AgentName,
    /// Its role.
    pub role: Role,
    /// Addresses of the NATS servers.
    pub servers: Vec<String>,
    /// Certificate authority of the servers, in PEM. `None` for the system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<String>,
    /// Labels of an agent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Token, signed by the fleet's account.
    pub token: String,
    /// Seed of the member's key pair.
    pub seed: String,
}

/// Shows no secret.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials({} {} of {})", self.role.name(), self.name, self.fleet)
    }
}

impl Credentials {
    /// Name of the file in a member's folder.
    pub const FILE: &'static str = "credentials.json";

    /// Reads credentials from the text of `path`.
    ///
    /// # Errors
    /// The text holds no credentials, or its key is damaged.
    pub fn parse(text: &str, path: &Path) -> Result<Self, BusError> {
        let bad = |reason: String| BusError::BadCredentials { path: path.to_owned(), reason };
        let credentials: Self = serde_json::from_str(text).map_err(|error| bad(error.to_string()))?;
        credentials.key().map_err(|error| bad(error.to_string()))?;
        crate::jwt::decoded(&credentials.token).map_err(|error| bad(error.to_string()))?;
        Ok(credentials)
    }

    /// Returns the credentials as text for a file that only its owner reads.
    pub fn text(&self) -> String {
        serde_json::to_string_pretty(self).expect("credentials have text keys only") + "\n"
    }

    /// Returns the member's key pair.
    ///
    /// # Errors
    /// The seed is damaged.
    pub fn key(&self) -> Result<KeyPair, BusError> {
        KeyPair::from_seed(&self.seed).map_err(|error| BusError::Key(format!("the seed is damaged: {error}")))
    }

    /// Returns the end of their life, in seconds since 1970. `None` if they do not end.
    pub fn expires_unix_s(&self) -> Option<u64> {
        crate::jwt::decoded(&self.token).ok()?["exp"].as_u64()
    }
}
