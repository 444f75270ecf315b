//! Decisions: which trial next, when it is done, and what the counts amount to.
//!
//! Nothing here sends traffic, waits or reads a clock. A method is asked for its next step and told each result, so the
//! same code runs in a unit test against a simulated device, in the lab and over real agents.
#![forbid(unsafe_code)]

mod account;
pub mod device;
mod expect;
pub mod ladder;
mod loaded_latency;
mod measure;
mod proof;
mod repeat;
pub mod search;
mod statistics;
mod sweep;
mod transfer;
mod validity;
mod verdict;

pub use account::place_losses;
pub use expect::{BadExpectation, Expectation, Judgement};
pub use loaded_latency::{Probing, probed};
pub use measure::measurements;
pub use proof::counterproof;
pub use statistics::{confidence_interval, summary};
pub use sweep::Sweep;
pub use transfer::{Transfer, figure, transfers};
pub use validity::spoilt;

use linerate_model::{TrialResult, TrialSpec};

/// What a method wants next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Run this trial and tell its result.
    Run(Box<TrialSpec>),
    /// Nothing more.
    Done,
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
