//! Whether a reference device kept its limits.
//!
//! The device is late where the core that serves a port has other work. Then frames wait in the port's ring, which
//! holds 256, and nothing is lost: the queue is one of time, not of frames. Beyond that the kernel drops frames that no
//! limit drops.

use super::Unplanned;
use crate::LabError;
use crate::linux::path::both;
use linerate_model::{Message, message};
use linerate_sys::Error;
use linerate_sys::namespace::NetNamespace;
use linerate_sys::netlink::Route;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex};

/// Step that reads the program's counters, for errors.
const COUNT_DROPPED: &str = "count what the reference device dropped";

/// Frames that a reference device lost, though no limit of it loses them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReferenceCounts {
    /// Frames that found no room at one of its ports: the device was delayed.
    pub ahead: u64,
    /// Frames that found no room at the tester's port: the tester was delayed.
    pub behind: u64,
    /// Frames that its queue dropped because the device was descheduled between reading the clock and looking at the
    /// queue.
    pub held_up: u64,
    /// Frames that found a full queue although the device asks senders to pause.
    pub paused_late: u64,
}

impl ReferenceCounts {
    /// Returns the losses since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            ahead: self.ahead - earlier.ahead,
            behind: self.behind - earlier.behind,
            held_up: self.held_up - earlier.held_up,
            paused_late: self.paused_late - earlier.paused_late,
        }
    }

    /// Returns a warning if the device did not keep its limits.
    pub fn warning(&self) -> Option<Message> {
        let ReferenceCounts { ahead, behind, held_up, paused_late } = *self;
        let problems = [
            (ahead, message!("bench-no-room-ahead", "{ahead} frames found no room at its ports", ahead)),
            (
                behind,
                message!("bench-no-room-behind", "{behind} frames found no room at the ports of the tester", behind),
            ),
            (held_up, message!("bench-held-up", "{held_up} frames were dropped because it was held up", held_up)),
            (
                paused_late,
                message!(
                    "bench-paused-late",
                    "{paused_late} frames were dropped although it asks senders to pause: a PAUSE frame came too late, or \
                     the sender did not obey it",
                    paused_late
                ),
            ),
        ];
        let problems = both(problems.into_iter().filter(|(frames, _)| *frames > 0).map(|(_, problem)| problem))?;
        Some(message!(
            "bench-reference",
            "the reference device did not keep its limits: {problems}; do not rely on this result, give the \
             machine less to do",
            problems
        ))
    }
}

/// Counters of a reference device's losses.
pub(crate) struct Counters {
    unplanned: Unplanned,
    /// Interfaces at the device in the namespace of each host.
    hosts: Vec<Interfaces>,
    /// Its ports at which the tester is.
    device: Interfaces,
}

/// Interfaces of one namespace, for reading their counters.
struct Interfaces {
    route: Mutex<Route>,
    names: BTreeSet<String>,
}

impl Interfaces {
    fn of(namespace: &NetNamespace, names: BTreeSet<String>) -> Result<Self, Error> {
        let route = namespace.enter(Route::open)??;
        Ok(Self { route: Mutex::new(route), names })
    }

    /// Frames that they had for their other ends, and that these did not take (veth_xmit and veth_get_stats64 of
    /// drivers/net/veth.c).
    fn not_taken(&self) -> Result<u64, LabError> {
        let mut route = self.route.lock().map_err(|_| LabError::Down)?;
        let links = route.links().map_err(LabError::at("count what the reference device lost"))?;
        Ok(links.iter().filter(|link| self.names.contains(&link.name)).map(|link| link.counters.tx_dropped).sum())
    }
}

impl Counters {
    /// Reads the counters of a device in the namespace `device`. `hosts` lists the hosts' ends of its links, `tested`
    /// its own ends of the links to the tester.
    pub(crate) fn new(
        unplanned: Unplanned,
        device: &NetNamespace,
        tested: BTreeSet<String>,
        hosts: Vec<(&NetNamespace, BTreeSet<String>)>,
    ) -> Result<Self, Error> {
        let hosts = hosts.into_iter().map(|(namespace, names)| Interfaces::of(namespace, names));
        Ok(Self { unplanned, hosts: hosts.collect::<Result<_, _>>()?, device: Interfaces::of(device, tested)? })
    }

    fn read(&self) -> Result<ReferenceCounts, LabError> {
        let mut ahead = 0;
        for host in &self.hosts {
            ahead += host.not_taken()?;
        }
        let held_up = self.unplanned.held_up().map_err(LabError::at(COUNT_DROPPED))?;
        let paused_late = self.unplanned.paused_late().map_err(LabError::at(COUNT_DROPPED))?;
        Ok(ReferenceCounts { ahead, behind: self.device.not_taken()?, held_up, paused_late })
    }
}

/// A running reference device that can be asked whether it kept its limits.
pub struct ReferenceWatch {
    counters: Arc<Counters>,
    /// Counts at the last check.
    asked: Mutex<ReferenceCounts>,
}

impl ReferenceWatch {
    /// Watches the device of `counters`.
    pub(crate) fn new(counters: &Arc<Counters>) -> Self {
        Self { counters: Arc::clone(counters), asked: Mutex::default() }
    }

    /// Returns a warning if the device has not kept its limits since the last call.
    ///
    /// # Errors
    ///
    /// Fails if the kernel does not return its counters.
    pub fn missed(&self) -> Result<Option<Message>, LabError> {
        let now = self.counters.read()?;
        let mut last_counts = self.asked.lock().map_err(|_| LabError::Down)?;
        let warning = now.since(*last_counts).warning();
        *last_counts = now;
        Ok(warning)
    }
}

impl fmt::Debug for ReferenceWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReferenceWatch").field("asked", &self.asked).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_kept_its_limits_says_nothing() {
        assert_eq!(ReferenceCounts::default().warning(), None);
        let counts = ReferenceCounts { ahead: 3, behind: 2, held_up: 1, paused_late: 4 };
        assert_eq!(counts.since(counts).warning(), None, "what was lost before is told once");
    }

    #[test]
    fn a_device_that_did_not_keep_its_limits_says_how() {
        let said = |ahead, behind, held_up| {
            ReferenceCounts { ahead, behind, held_up, ..ReferenceCounts::default() }.warning().expect("a warning")
        };
        assert!(said(12, 0, 0).contains("limits: 12 frames found no room at its ports; do not rely on"));
        assert!(said(0, 7, 0).contains("7 frames found no room at the ports of the tester;"));
        assert!(said(12, 0, 3).contains("its ports, and 3 frames were dropped because it was held up;"));
        let late = ReferenceCounts { paused_late: 5, ..ReferenceCounts::default() }.warning().expect("a warning");
        assert!(late.contains("5 frames were dropped although it asks senders to pause"));
    }
}
