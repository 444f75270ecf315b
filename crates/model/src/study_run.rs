//! The place of a record in a study.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The run of a study that a record keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StudyRun {
    /// Name of the study.
    pub study: String,
    /// Level of each factor, by the factor's column.
    pub levels: BTreeMap<String, String>,
    /// Number of the repeat, from 1.
    pub repeat: u32,
    /// Name of the test; `None` if the study has only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
    /// Commands that set the factors. A study with other commands or another test needs a new run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
}
