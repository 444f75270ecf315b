//! Calibrations, which measure what the tester reaches with the device bypassed, and the tester limits drawn from them.

use crate::{FrameFault, HostName, RecordId, Summary};
use linerate_units::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// How a calibration bypasses the device, and what its data went through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    /// What stands in the device's place.
    pub bypass: Bypass,
    /// The interface of each host that the data go through; a host is missing where its addresses do not tell, and all are with a
    /// loopback.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub interfaces: BTreeMap<HostName, String>,
}

impl Calibration {
    /// Each host against itself.
    pub fn loopback() -> Self {
        Self { bypass: Bypass::Loopback, interfaces: BTreeMap::new() }
    }

    /// From host to host, by a cable between these interfaces.
    pub fn cable(interfaces: BTreeMap<HostName, String>) -> Self {
        Self { bypass: Bypass::Cable, interfaces }
    }
}

/// What stands in the device's place while the tester limit is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Bypass {
    /// A cable, or what is no slower: the limit is that of hosts and interfaces.
    #[default]
    Cable,
    /// Nothing: each host exchanged the data with itself. Interfaces take no part, so that the limit is an upper estimate.
    Loopback,
}

impl fmt::Display for Bypass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Cable => "cable",
            Self::Loopback => "loopback",
        })
    }
}

/// A tester limit: what the hosts reached in one trial of a calibration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibrated {
    /// The calibration's record.
    pub record: RecordId,
    /// What stood in the device's place.
    #[serde(default)]
    pub bypass: Bypass,
    /// How long before the run the calibration began; zero where it was made for the run.
    #[serde(default)]
    pub age: Nanos,
    /// Its trials alternated with those of the run that it is compared with, under the same conditions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interleaved: bool,
    /// What it was measured with.
    pub subject: CalibratedSubject,
    /// What was reached, in the unit of the result's main figure (frames: frames per second).
    pub reached: Summary,
}

/// What a tester limit was measured with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CalibratedSubject {
    /// A result of this name.
    Result(String),
    /// Frames of so many bytes, FCS counted.
    FrameBytes(u32),
    /// Errored frames: the share of those sent that arrived.
    FrameFault(FrameFault),
}
