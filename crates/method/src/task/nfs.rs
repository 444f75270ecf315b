//! Operations on an NFS version 3 server (RFC 1813). No single change tests a verdict on them.

use super::{Addresses, Assigned, Context, Joined, Kind, Parts, flows};
use linerate_model::{Counts, Load, Measurement, Trial, TrialResult};

pub(super) struct Operations;

impl Kind for Operations {
    fn assign(&self, load: &Load, at: &dyn Addresses) -> Result<Assigned, String> {
        flows::assign(load, at)
    }

    fn join(&self, load: &Load, parts: Parts) -> Result<Joined, String> {
        flows::join(load, parts)
    }

    fn figure(&self, load: &Load, counts: &Counts) -> f64 {
        flows::per_s(load, counts)
    }

    fn measure(&self, cell: &Trial, runs: &[&TrialResult], with: &Context<'_>) -> Measurement {
        flows::measure(cell, runs, with)
    }
}
