//! What a device under test, or a file server, said of its own load while a trial ran.

use crate::{CoreUse, DiskUse, InterfaceCounters, Series};
use linerate_units::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The load of a device over a window, as the device itself counted it: by SNMP, or by an agent on it.
///
/// What the device does not say is absent, never zero; `notes` say why.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceLoad {
    /// Whose figures these are and what they average over, as in `snmp UCD raw counters`,
    /// `snmp hrProcessorLoad (1-minute average)`, `agent`. Figures of different sources must not be compared.
    pub source: String,
    /// The time asked about, from the start of the watch to its end; `notes` say where the CPU figures cover another.
    pub window: Nanos,
    /// Busy share of all its CPUs together, 0 to 1.
    pub cpu: Option<f64>,
    /// Busy share of its busiest CPU, 0 to 1. A device may be limited by one CPU while the others idle.
    pub busiest_cpu: Option<f64>,
    /// Busy share of each CPU, 0 to 1, in the device's order; empty where it does not say.
    pub per_cpu: Vec<f64>,
    /// Share of all its CPUs spent in soft interrupts, 0 to 1: where Linux forwards frames. Part of `cpu`.
    pub softirq: Option<f64>,
    /// Interfaces that counted anything.
    pub interfaces: Vec<DeviceInterface>,
    /// Disks that had work; none where it does not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<DiskUse>,
    /// It is on the machine of a host that measures, whose own work is in these figures.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shares_machine: bool,
    /// The course of it, from the answers within the trial, by the device's own clock; none where it was not asked again and again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Series>,
    /// What the reader should know of these figures: missing, old, or covering another window.
    pub notes: Vec<String>,
}

/// What an interface of a device counted over the window.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceInterface {
    /// The device's name for it.
    pub name: String,
    /// Frames received and handed on: unicast, multicast and broadcast.
    pub in_frames: u64,
    /// Frames sent: unicast, multicast and broadcast.
    pub out_frames: u64,
    /// Bytes received. Devices differ in whether the frame check sequence counts.
    pub in_bytes: u64,
    /// Bytes sent.
    pub out_bytes: u64,
    /// Good frames received and dropped, as for want of room.
    pub in_discards: u64,
    /// Good frames dropped instead of being sent, as from a full queue.
    pub out_discards: u64,
    /// Frames received in error and dropped.
    pub in_errors: u64,
    /// Frames not sent because of errors.
    pub out_errors: u64,
}

impl DeviceInterface {
    /// True if no counter moved.
    pub fn is_silent(&self) -> bool {
        *self == Self { name: self.name.clone(), ..Self::default() }
    }
}

/// What a host has counted since it was started. What passed between two of them is a load.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostCounters {
    /// When it was read, by the host's own clock, which never steps.
    pub at: Nanos,
    /// Each core's time.
    pub cores: Vec<CoreUse>,
    /// Interfaces that counted anything.
    pub interfaces: Vec<InterfaceCounters>,
    /// Its disks.
    #[serde(default)]
    pub disks: Vec<DiskUse>,
}
