//! The name of a connection.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Names a connection between two roles of one load: one listens on it, the other connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct LinkId(pub u16);
