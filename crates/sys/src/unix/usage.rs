//! Use of resources, getrusage(2).

use crate::process_time::ProcessTime;
use linerate_units::Nanos;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;

/// Returns the CPU time so far of this process. `None` if the system does not report it.
pub fn process_time() -> Option<ProcessTime> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    let [user, system] =
        [usage.user_time(), usage.system_time()].map(|time| Nanos::new(time.num_microseconds().unsigned_abs() * 1_000));
    Some(ProcessTime { user, system })
}
