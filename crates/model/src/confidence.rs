//! Confidence in a verdict.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Confidence with which a limit is named.
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

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        })
    }
}
