//! Signs of life of an agent.

use crate::AgentName;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A sign of life that an agent publishes every few seconds. Unknown fields are ignored, so that versions may differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    /// Name of the agent.
    pub name: AgentName,
    /// Random name of the process. Two of them at a time are a cloned agent.
    pub instance: String,
    /// Version of linerate.
    pub version: String,
    /// Version of the agent's API.
    pub protocol: u32,
    /// Labels of the agent.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Sessions in progress.
    #[serde(default)]
    pub sessions: u32,
    /// Whether the agent is ending.
    #[serde(default)]
    pub leaving: bool,
}
