//! The contract between a method and whoever runs its trials.

use linerate_model::{Message, Record, RunSummary, Trial, TrialResult};

/// Decides which trial to run next, and what all of them amount to. It knows the plan and the results it was told, nothing
/// else: told the same results in the same order, it gives the same answers.
pub trait Method: Send {
    /// Returns the next step. Asking again without recording a result gives the same answer.
    fn next(&self) -> Step;

    /// Takes an attempt at a trial. Every attempt is told; figures are drawn from those that count.
    fn record(&mut self, result: &TrialResult) -> After;

    /// Returns how far the run is.
    fn progress(&self) -> Progress;

    /// Returns what the run amounts to so far, for lists.
    fn summary(&self) -> RunSummary;

    /// Fills in the results, the outcome and the caveats that follow from the trials. Doing it again changes nothing.
    fn conclude(&self, record: &mut Record);
}

/// What a method wants next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Run this trial and record its result.
    Run {
        /// The trial.
        trial: Box<Trial>,
        /// Whether it is run again where the tester spoilt it.
        again: Again,
    },
    /// Nothing more.
    Done,
}

impl Step {
    /// Returns a step that runs `trial`.
    pub(crate) fn run(trial: Trial, again: Again) -> Self {
        Self::Run { trial: Box::new(trial), again }
    }
}

/// Whether a trial that the tester spoilt is run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// It is not run again: what it does must not be done twice, or it was asked for once.
    Never,
    /// It is a step that later trials confirm: run again while that helps.
    Search,
    /// Its figure decides: run again as often as allowed.
    Decides,
}

/// How a run goes on after a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// With the next step.
    GoOn,
    /// Not at all: a trial failed that nothing can stand in for.
    End,
}

/// How far a run is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// Trials done whose figures count.
    pub done: usize,
    /// Trials there will be at the most; none where that is not known.
    pub at_most: Option<usize>,
    /// What is known so far, in words; none where there is nothing to say.
    pub known: Option<Message>,
}
