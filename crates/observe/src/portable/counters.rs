//! Counters of a host since it was started.

use crate::sources::Sources;
use crate::{ObserveError, interface_counters};
use linerate_model::HostCounters;
use linerate_sys::clock;
use linerate_sys::netlink::Route;
use linerate_units::Nanos;

/// Reads the machine's cores and interfaces.
pub fn counters() -> Result<HostCounters, ObserveError> {
    let at = Nanos::new(clock::now());
    Ok(HostCounters {
        at,
        cores: Sources::open().cores().unwrap_or_default().since_start().to_vec(),
        interfaces: interface_counters::since(&Route::open()?.links()?, &[]),
        disks: Vec::new(),
    })
}
