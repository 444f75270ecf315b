//! Searches for the highest load that a device carries within a loss goal.
//!
//! A search knows nothing of how a trial is run: it asks for a load and a duration, and is told two counts. It reads no
//! clock and draws no random number, so the same results always lead to the same next trial.
//!
//! A trial that the tester did not offer shows nothing at its load: neither that the device carries it, nor that it does
//! not. A search goes below such a load, and says that it did.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

/// The example of the README, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

mod bisect;
mod longest;
mod mlr;

pub use bisect::{Bisect, BisectGoal};
pub use longest::Longest;
pub use mlr::{BadGoal, Goal, GoalResult, Mlr};

use linerate_units::{FrameRate, Nanos, Ratio};

/// A trial to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// The intended load, summed over all ports.
    pub load: FrameRate,
    /// For how long to send.
    pub time: Nanos,
}

/// What a trial counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// The trial.
    pub probe: Probe,
    /// Frames that should have been sent. A frame that was not sent counts as lost (RFC 9971, trial loss ratio).
    pub intended: u64,
    /// Of them, those that the tester did not offer; zero where it kept within its tolerance.
    pub unsent: u64,
    /// Frames that came out of the device.
    pub forwarded: u64,
}

impl Counted {
    /// Whether the tester offered the load.
    pub fn is_offered(&self) -> bool {
        self.unsent == 0
    }

    /// Whether the load was offered, and no more lost than `allowed`.
    pub fn meets(&self, allowed: Ratio) -> bool {
        self.is_offered() && !self.exceeds(allowed)
    }

    /// Whether the device lost more than `allowed` of what the tester offered, be that all or less.
    pub fn loses(&self, allowed: Ratio) -> bool {
        let intended = self.intended.saturating_sub(self.unsent);
        Self { intended, unsent: 0, ..*self }.exceeds(allowed)
    }

    /// Frames that went wrong. More frames out than in are wrong as well: duplicates can hide losses.
    pub fn lost(&self) -> u64 {
        self.intended.abs_diff(self.forwarded).min(self.intended)
    }

    /// The trial loss ratio, as its two counts; 0 out of 0 when the trial was too short for a single frame.
    pub fn loss(&self) -> Ratio {
        Ratio::new(self.lost(), self.intended)
    }

    /// Whether more was lost than `allowed`. A trial without frames lost nothing.
    pub fn exceeds(&self, allowed: Ratio) -> bool {
        let allowed = if allowed.of == 0 { Ratio::new(0, 1) } else { allowed };
        self.loss() > allowed
    }

    /// The load at which a device that forwards at a constant rate loses just `allowed`: the forwarding rate (RFC 2285
    /// section 3.6.1) in units of the load, divided by the share that may not be lost.
    fn sustainable(&self, allowed: Ratio) -> u64 {
        let Some(forwarded) = (u128::from(self.probe.load.get()) * u128::from(self.intended - self.lost()))
            .checked_div(u128::from(self.intended))
        else {
            return self.probe.load.get();
        };
        let kept = u128::from(allowed.of.saturating_sub(allowed.part));
        let load = (forwarded * u128::from(allowed.of)).checked_div(kept).unwrap_or(forwarded);
        u64::try_from(load).unwrap_or(u64::MAX)
    }
}

/// Where the answer lies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The highest load known to meet the goal below every load known to miss it.
    pub lower: Option<FrameRate>,
    /// The lowest load known to miss the goal.
    pub upper: Option<FrameRate>,
    /// The lowest load above `lower` and below `upper` that the tester did not offer. Whether it meets the goal is not known.
    pub unoffered: Option<FrameRate>,
}

/// So many different loads one after the other that the tester does not offer end a search: it is held up for good.
const UNOFFERED_LOADS: u32 = 8;

/// Loads tried one after the other that the tester did not offer.
#[derive(Debug, Clone, Copy, Default)]
struct UnofferedLoads {
    count: u32,
    last: Option<FrameRate>,
}

impl UnofferedLoads {
    fn record(&mut self, counted: &Counted) {
        if counted.is_offered() {
            *self = Self::default();
        } else if self.last != Some(counted.probe.load) {
            *self = Self { count: self.count + 1, last: Some(counted.probe.load) };
        }
    }

    /// Whether further loads are not worth a trial.
    fn end_search(self) -> bool {
        self.count >= UNOFFERED_LOADS
    }
}

/// A search over load.
pub trait Search {
    /// The next trial; none when the search is done. Asking again without recording a result gives the same answer.
    fn next(&self) -> Option<Probe>;

    /// Takes the result of the trial last asked for. The result of any other trial is ignored.
    fn record(&mut self, counted: &Counted);

    /// The bounds as now known; final once `next` gives none.
    fn bounds(&self) -> Bounds;
}

/// `part` of `value`, rounded down.
fn share(value: u64, part: Ratio) -> u64 {
    let share = (u128::from(value) * u128::from(part.part)).checked_div(u128::from(part.of)).unwrap_or(0);
    u64::try_from(share).unwrap_or(u64::MAX)
}
