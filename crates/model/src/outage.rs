//! Times in which the path carried nothing.

use crate::HostName;
use linerate_units::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A time within a measured window in which nothing came through, although it was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outage {
    /// Host that saw it. Times count from the opening of its window.
    pub host: HostName,
    /// Beginning, microseconds.
    pub from_us: i64,
    /// Length. TCP sends again only some time after the path has recovered, which is part of it.
    pub length: Nanos,
    /// Hosts that others sent to meanwhile and that received nothing. Empty if the direction is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub towards: Vec<HostName>,
}

impl Outage {
    /// End, microseconds.
    pub fn to_us(&self) -> i64 {
        self.from_us.saturating_add_unsigned(self.length.get() / 1_000)
    }
}
