//! Context of the measurement of a cell.

use linerate_model::{Calibrated, Host, Repeats, TrialResult};

/// Everything besides its runs that the figures of a cell depend on.
pub(crate) struct Context<'a> {
    pub(crate) hosts: &'a [Host],
    pub(crate) repeats: Repeats,
    pub(crate) calibrated: &'a [Calibrated],
    /// Runs of the probe on an idle path, in the order of the runs that they belong to.
    pub(crate) idle: &'a [&'a TrialResult],
}
