//! What limited a result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The limit named, how surely, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// What limited the result.
    pub limit: Limit,
    /// How surely.
    pub confidence: Confidence,
    /// Why, in sentences with numbers.
    pub evidence: Vec<String>,
}

/// What can limit a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// A link of known speed is full.
    Wire,
    /// A device on the path was bypassed and the result rose.
    Device,
    /// The result equals what the tester reaches without the device.
    Tester,
    /// Nothing rules: what was missing is in the evidence.
    CannotTell,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Wire => "wire",
            Self::Device => "device",
            Self::Tester => "tester",
            Self::CannotTell => "cannot tell",
        })
    }
}

/// How surely a limit is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// One weak sign.
    Low,
    /// Good signs, alternatives not ruled out.
    Medium,
    /// Strong signs, alternatives ruled out.
    High,
}
