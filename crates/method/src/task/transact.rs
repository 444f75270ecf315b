//! Requests and responses, timed one by one.

use super::{Addresses, Assigned, Context, Joined, Kind, Parts, flows};
use crate::proof::tests_of;
use linerate_model::{Counts, Host, Load, Measurement, Trial, TrialResult};

pub(super) struct Transactions;

impl Kind for Transactions {
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

    fn counterproofs(&self, result: &Measurement, cell: &Trial, runs: &[&TrialResult], hosts: &[Host]) -> Vec<Trial> {
        tests_of(cell, result, runs, hosts)
    }
}
