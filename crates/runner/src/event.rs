//! Events of a run.

use crate::RunError;
use linerate_method::Progress;
use linerate_model::{Caveat, HostName, Preparation, Record, SessionProgress, Trial, TrialResult};

/// Event of a run in progress.
#[derive(Debug)]
pub enum Event<'a> {
    /// The run begins, or goes on.
    Started {
        /// Record so far: name, hosts, and the attempts made before a resumed run.
        record: &'a Record,
    },
    /// An attempt at a trial begins.
    Begins {
        trial: &'a Trial,
        /// Number of the attempt, from 0.
        attempt: u32,
        progress: Progress,
    },
    /// A host prepares files or connections.
    Preparing { host: &'a HostName, doing: Option<Preparation> },
    /// All hosts are ready and start.
    Starts {
        /// Number of files to copy, at all destinations together.
        files: u64,
        /// Bytes to copy.
        bytes: u64,
    },
    /// A host's progress in the measured load.
    Progress { host: &'a HostName, progress: &'a SessionProgress },
    /// An attempt was spoilt by the tester, and the trial is run again.
    Repeating { reason: &'a Caveat },
    /// An attempt ended and is kept.
    Ended { result: &'a TrialResult },
    /// The run has ended, and is kept as far as it could be.
    Concluded {
        record: &'a Record,
        /// Reason for an early end, or for not keeping the record.
        failure: Option<&'a RunError>,
    },
}
