//! The place of a record in a study.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which run of a study a record is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StudyRun {
    /// The study's name.
    pub study: String,
    /// The level of each factor, by the factor's column.
    pub levels: BTreeMap<String, String>,
    /// Which of the repeats, from 1.
    pub repeat: u32,
    /// Which of the study's tests; none where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
    /// The commands that set its factors. A study that names others now, or another test, asks for another run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
}
