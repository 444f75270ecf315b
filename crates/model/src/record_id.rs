//! The name of a record.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Name of a record: the time it began and a random tail, as in `20261121T093000-4f2a`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct RecordId(pub String);

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
