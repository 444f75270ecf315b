//! Decisions: which trial next, when it is done, and what the counts amount to.
//!
//! Nothing here sends traffic, waits or reads a clock. A method is asked for its next step and told each result, so the
//! same code runs in a unit test against a simulated device, in the lab and over real agents.
#![forbid(unsafe_code)]

mod account;
mod compare;
pub mod copy;
mod copy_proof;
pub mod curve;
pub mod device;
mod expect;
pub mod ladder;
mod loaded_latency;
mod measure;
mod metric;
mod proof;
mod repeat;
mod retry;
pub mod search;
pub mod statistics;
pub mod study;
mod sweep;
mod transfer;
mod unfinished;
mod validity;
mod verdict;

pub use account::place_losses;
pub use compare::compare;
pub use expect::{BadExpectation, Expectation, Judgement};
pub use loaded_latency::{Probing, probed};
pub use measure::measurements;
pub use metric::{Metric, NoOneValue};
pub use proof::counterproofs;
pub use retry::{Again, Retry};
pub use sweep::Sweep;
pub use transfer::{Transfer, figure, transfers};
pub use unfinished::sum_up;
pub use validity::spoilt;

use curve::Curve;
use linerate_model::{Plan, TrialResult, TrialSpec};

/// What a method wants next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Run this trial and tell its result.
    Run(Box<TrialSpec>),
    /// Nothing more.
    Done,
}

/// The method that a plan asks for.
pub fn method(plan: &Plan) -> Box<dyn Method + Send> {
    match Curve::of(plan) {
        Some(curve) => Box::new(curve),
        None => Box::new(Sweep::new(plan.clone())),
    }
}

/// A way of measuring: it decides from the results so far.
pub trait Method {
    /// The next step. Asking again without recording a result gives the same answer.
    fn next(&self) -> Step;

    /// Takes the result of the trial last asked for.
    fn record(&mut self, result: &TrialResult);

    /// Trials done, and how many there will be at the most.
    fn progress(&self) -> (usize, usize);
}
