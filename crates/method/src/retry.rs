//! How often a trial that the tester spoilt is run again.
//!
//! Four times at the most. Where that does not help, whatever holds up the tester is there to stay: each further trial of a
//! search is then run again half as often, at least once, until one comes out sound.

use crate::contract::Again;
use crate::task::spoilt;
use linerate_model::{Caveat, CaveatKind, Record, Standing, TrialResult, message};

/// Repeats of one spoilt trial, at the most.
const MOST: u32 = 4;

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

    /// Decides whether an attempt counts, `doubt` being why the tester spoilt it. One that is to be repeated is spoilt, one that
    /// is not counts with the doubt. A failed one stays so.
    pub fn judge(&mut self, again: Again, attempt: u32, doubt: Option<Caveat>, result: &mut TrialResult) {
        if result.failure().is_some() {
            return;
        }
        let repeats = self.repeats(again, attempt, doubt.is_some());
        let Some(doubt) = doubt else { return };
        if repeats {
            result.standing = Standing::Spoilt { reason: doubt };
        } else if !result.caveats.contains(&doubt) {
            result.caveats.push(doubt);
        }
    }

    /// Takes an attempt that was judged before: a run that is resumed goes on as if it had never stopped.
    pub fn replay(&mut self, result: &TrialResult) {
        match &result.standing {
            Standing::Spoilt { .. } => self.repeated += usize::from(result.attempt == 0),
            Standing::Counted if spoilt(result).is_none() => self.most = MOST,
            // What counts in spite of its doubt was repeated as often as allowed, or must not be repeated at all.
            Standing::Counted if result.attempt > 0 => self.most = (self.most / 2).max(1),
            Standing::Counted | Standing::Failed { .. } => {}
        }
    }

    /// Says how many of `trials` were run again; none where none was.
    pub fn caveat(&self, trials: usize) -> Option<Caveat> {
        (self.repeated > 0).then(|| {
            let text = message!(
                "caveat-repeated",
                "{repeated} of {trials} trials were run again because something held up the tester; measure on a \
                 quieter machine to be done sooner",
                repeated = self.repeated,
                trials
            );
            Caveat::new(CaveatKind::Repeated, text)
        })
    }
}

/// Adds the caveat of repeated trials to `record`.
pub(crate) fn tell_repeats(record: &mut Record) {
    let mut retry = Retry::default();
    for result in &record.trials {
        retry.replay(result);
    }
    let Some(caveat) = retry.caveat(record.counted().count()) else { return };
    // The caveat of a resumed run is counted anew.
    record.caveats.retain(|caveat| caveat.kind != CaveatKind::Repeated);
    record.caveats.push(caveat);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::tests::{spec, trial};
    use linerate_model::CoreUse;
    use linerate_units::Nanos;
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

    fn doubt() -> Caveat {
        Caveat::new(CaveatKind::CpuStolen, linerate_model::Message::untranslated("the hypervisor took time"))
    }

    #[test]
    fn an_attempt_is_spoilt_until_no_more_are_allowed_and_counts_with_its_doubt_then() {
        let mut retry = Retry::default();
        for attempt in 0..=MOST {
            let mut result = TrialResult { attempt, ..trial(1_000, 0) };
            retry.judge(Again::Decides, attempt, Some(doubt()), &mut result);
            match attempt < MOST {
                true => assert_eq!(result.standing, Standing::Spoilt { reason: doubt() }),
                false => assert_eq!((result.is_counted(), &result.caveats[..]), (true, &[doubt()][..])),
            }
        }
        let (mut sound, mut failed) = (trial(1_000, 0), TrialResult::failed(spec(), 0, "refused"));
        retry.judge(Again::Decides, 0, None, &mut sound);
        retry.judge(Again::Decides, 0, Some(doubt()), &mut failed);
        assert!(sound.is_counted() && sound.caveats.is_empty() && failed.failure() == Some("refused"));
    }

    /// A result that says so if the hypervisor took half of a host's time.
    fn seen(stolen: bool) -> TrialResult {
        let mut result = trial(1_000, 0);
        let half = Nanos::from_millis(if stolen { 500 } else { 0 });
        let core = CoreUse { steal: half, idle: Nanos::from_millis(500), ..CoreUse::default() };
        result.hosts.values_mut().for_each(|host| host.cores = vec![core]);
        result
    }

    proptest! {
        /// A run that is resumed after any number of attempts decides as one that went on.
        #[test]
        fn what_is_replayed_is_as_if_it_had_gone_on(stolen in prop::collection::vec(any::<bool>(), 0..60)) {
            let (mut retry, mut attempt) = (Retry::default(), 0);
            let mut kept: Vec<TrialResult> = Vec::new();
            for stolen in stolen {
                let mut result = TrialResult { attempt, ..seen(stolen) };
                let doubt = spoilt(&result);
                prop_assert_eq!(doubt.is_some(), stolen);
                retry.judge(Again::Search, attempt, doubt, &mut result);
                attempt = if result.is_counted() { 0 } else { attempt + 1 };
                kept.push(result);
                let mut resumed = Retry::default();
                kept.iter().for_each(|result| resumed.replay(result));
                prop_assert_eq!(&resumed, &retry);
            }
        }
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
