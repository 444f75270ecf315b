//! How often a trial that the tester spoilt is run again.
//!
//! Four times at the most. Where that does not help, whatever holds up the tester is there to stay: each further trial of a
//! search is then run again half as often, at least once, until one comes out sound.

use linerate_model::{Caveat, CaveatKind};

/// Repeats of one spoilt trial, at the most.
const MOST: u32 = 4;

/// What a trial that was spoilt is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// It is not run again: what it does must not be done twice, or it was asked for once.
    Never,
    /// It is a step of a search, which later trials confirm: run again while that helps.
    Search,
    /// Its figure decides: run again as often as allowed.
    Decides,
}

/// Decides which spoilt trials are run again. It knows nothing but the attempts that it is told of, so the same attempts in
/// the same order give the same decisions: a run that is resumed tells it the attempts of its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// Repeats of a step of a search, at the most, for now.
    most: u32,
    /// Trials that were run again so far.
    repeated: usize,
}

impl Default for Retry {
    fn default() -> Self {
        Self { most: MOST, repeated: 0 }
    }
}

impl Retry {
    /// Takes an attempt at a trial and returns whether to run the trial once more. `attempt` counts from zero; `spoilt` says
    /// that the tester spoilt it. An attempt that is not repeated is the trial's result, with its doubt if it has one.
    pub fn repeats(&mut self, again: Again, attempt: u32, spoilt: bool) -> bool {
        let most = match again {
            Again::Never => 0,
            Again::Search => self.most,
            Again::Decides => MOST,
        };
        let repeats = spoilt && attempt < most;
        self.repeated += usize::from(repeats && attempt == 0);
        match (spoilt, again) {
            (false, _) => self.most = MOST,
            // Nothing was tried, so nothing is known of what repeating helps.
            (true, Again::Never) => {}
            (true, _) if !repeats => self.most = (self.most / 2).max(1),
            (true, _) => {}
        }
        repeats
    }

    /// Says how many of `trials` were run again; none where none was.
    pub fn caveat(&self, trials: usize) -> Option<Caveat> {
        (self.repeated > 0).then(|| {
            let text = format!(
                "{} of {trials} trials were run again because something held up the tester; a quieter machine is done sooner",
                self.repeated
            );
            Caveat::new(CaveatKind::Repeated, text)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Attempts at one trial of which the first `spoilt` are spoilt.
    fn attempts(retry: &mut Retry, again: Again, spoilt: u32) -> u32 {
        (0..).find(|attempt| !retry.repeats(again, *attempt, *attempt < spoilt)).map_or(0, |last| last + 1)
    }

    #[test]
    fn a_sound_trial_is_run_once() {
        let mut retry = Retry::default();
        assert_eq!(attempts(&mut retry, Again::Decides, 0), 1);
        assert_eq!(retry.caveat(1), None);
    }

    #[test]
    fn a_search_repeats_half_as_often_where_it_does_not_help() {
        let mut retry = Retry::default();
        let made: Vec<u32> = (0..4).map(|_| attempts(&mut retry, Again::Search, u32::MAX)).collect();
        assert_eq!(made, [5, 3, 2, 2]);
        // One that comes out sound restores the limit.
        assert_eq!(attempts(&mut retry, Again::Search, 1), 2);
        assert_eq!(attempts(&mut retry, Again::Search, u32::MAX), 5);
        let told = retry.caveat(9).expect("all were repeated").text;
        assert!(told.starts_with("6 of 9 trials"), "{told}");
    }

    #[test]
    fn a_trial_that_decides_is_always_repeated_four_times() {
        let mut retry = Retry::default();
        let made: Vec<u32> = (0..3).map(|_| attempts(&mut retry, Again::Decides, u32::MAX)).collect();
        assert_eq!(made, [5, 5, 5]);
        assert_eq!(attempts(&mut retry, Again::Search, u32::MAX), 2, "and a search has learnt from it");
    }

    #[test]
    fn what_must_not_be_done_twice_is_not_and_teaches_nothing() {
        let mut retry = Retry::default();
        assert_eq!(attempts(&mut retry, Again::Never, u32::MAX), 1);
        assert_eq!(retry, Retry::default());
    }

    proptest! {
        /// However trials come out, each ends after five attempts at the most and after two at the least if all are spoilt.
        #[test]
        fn attempts_are_bounded(trials in prop::collection::vec((0u32..8, any::<bool>()), 0..20)) {
            let mut retry = Retry::default();
            for (spoilt, decides) in trials {
                let again = if decides { Again::Decides } else { Again::Search };
                let made = attempts(&mut retry, again, spoilt);
                prop_assert!(made <= MOST + 1 && made >= (spoilt + 1).min(2), "{made} of {spoilt}");
            }
        }
    }
}
