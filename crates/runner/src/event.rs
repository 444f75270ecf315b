//! Events of a run.

use crate::RunError;
use linerate_method::Progress;
use linerate_model::{Caveat, HostName, Record, SessionProgress, Trial, TrialResult};

/// What happens while a run goes on.
#[derive(Debug)]
pub enum Event<'a> {
    /// The run begins, or goes on.
    Started {
        /// What is known of it: its name, its hosts, and the attempts made before it goes on.
        record: &'a Record,
    },
    /// An attempt at a trial begins.
    Begins {
        /// The trial.
        trial: &'a Trial,
        /// Which attempt; the first is 0.
        attempt: u32,
        /// How far the run is.
        progress: Progress,
    },
    /// A host makes what it needs.
    Preparing {
        /// The host.
        host: &'a HostName,
        /// What it does.
        doing: &'a str,
    },
    /// All hosts are ready and start.
    Starts {
        /// Files there are to copy, at all destinations together.
        files: u64,
        /// Bytes there are to copy.
        bytes: u64,
    },
    /// A host's progress in the measured load.
    Progress {
        /// The host.
        host: &'a HostName,
        /// How far it is.
        progress: &'a SessionProgress,
    },
    /// An attempt was spoilt by the tester, and the trial is run again.
    Repeating {
        /// What spoilt it.
        reason: &'a Caveat,
    },
    /// An attempt ended and is kept.
    Ended {
        /// What it counted.
        result: &'a TrialResult,
    },
    /// The run has ended, and is kept as far as it could be.
    Concluded {
        /// All of it.
        record: &'a Record,
        /// Why it ended early, or could not be kept; none otherwise.
        failure: Option<&'a RunError>,
    },
}
