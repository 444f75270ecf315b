//! Systems other than Linux, by what `linerate_sys` offers on all of them.
//!
//! Queueing disciplines, input queues, stall times, quotas and disks are not known here; [`crate::capabilities`] says so.

pub(crate) mod capability;
pub(crate) mod counters;
pub(crate) mod host;
pub(crate) mod memory;
pub(crate) mod protocols;
pub(crate) mod sources;
pub(crate) mod thread_clock;
pub(crate) mod watch;
