//! Bulk data over TCP or UDP.

use super::{Addresses, Assigned, Context, Joined, Kind, Parts, flows};
use crate::proof::tests_of;
use linerate_model::{Counts, Host, Load, Measurement, Trial, TrialResult};

pub(super) struct Streams;

impl Kind for Streams {
    fn assign(&self, load: &Load, at: &dyn Addresses) -> Result<Assigned, String> {
        flows::assign(load, at)
    }

    fn join(&self, load: &Load, parts: Parts) -> Result<Joined, String> {
        flows::join(load, parts)
    }

    fn figure(&self, load: &Load, counts: &Counts) -> f64 {
        flows::sum(load, counts, |transfer| transfer.payload_bps())
    }

    fn measure(&self, cell: &Trial, runs: &[&TrialResult], with: &Context<'_>) -> Measurement {
        flows::measure(cell, runs, with)
    }

    fn counterproofs(&self, result: &Measurement, cell: &Trial, runs: &[&TrialResult], hosts: &[Host]) -> Vec<Trial> {
        tests_of(cell, result, runs, hosts)
    }
}
