//! Pairs of an unchanged and a changed trial, and what they decide.
//!
//! Trials alternate, unchanged first. What drifts meanwhile changes both trials of a pair alike, so figures are compared within
//! each pair: by a paired t test of their logarithms, against a tolerance that the test states. Losses are rare, so those of all
//! pairs are counted together.
//!
//! There are two looks: after three pairs and, where these do not decide, after six. At each look the interval has 94 %
//! confidence. So each of the two one-sided tests (Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987) errs
//! at both looks together in 5 % of cases at the most, as one look at an interval of 90 % would.

use crate::context::Context;
use crate::counterproof::RISEN;
use crate::statistics::{Contrast, Scale};
use crate::task::kind_of;
use crate::terms;
use linerate_model::{
    Counterproof, Expects, Host, Interval, Limit, Measurement, PairPart, Repeats, Summary, Text, Trial, TrialResult,
    Verdict,
};

/// Pairs that there are in any case.
pub(crate) const PAIRS: u32 = 3;
/// Pairs where the first do not decide.
pub(crate) const MOST_PAIRS: u32 = 6;
/// Confidence of the interval at each look, percent.
const CONFIDENCE: f64 = 94.0;
/// Standard deviation of a figure that the timing of its window alone explains, as a share. Pairs that agree better by chance do
/// not make the interval narrower.
const RESOLUTION: f64 = 0.001;

/// A result within this of the other is the same.
const SAME: f64 = 0.05;
/// Loss below this share of what it was has gone.
const GONE: f64 = 0.2;
/// Loss within these shares of what it was has stayed; what rises at a lower load has another cause.
const STAYED: std::ops::RangeInclusive<f64> = 0.5..=2.0;
/// So many losses must be due if the share stays: of ten, chance leaves two or fewer in one of 300 cases (Poisson).
const DUE: f64 = 10.0;
/// Fewer may be a stumble.
const COUNTED: f64 = 5.0;

/// The pairs of one test so far.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pairs {
    pub(crate) test: Counterproof,
    /// The unchanged trials of all pairs, as one result; its runs are in the order of the pairs.
    pub(crate) unchanged: Measurement,
    /// The changed ones.
    pub(crate) changed: Measurement,
}

/// What pairs decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The outcome is the one expected.
    Held,
    /// It is the contrary.
    Failed,
    /// It is neither, and more pairs would not change that.
    Neither,
    /// Nothing yet: more pairs may decide.
    Open,
}

impl Decision {
    /// Whether the expected outcome came out; none if neither that nor the contrary.
    pub(crate) fn held(self) -> Option<bool> {
        match self {
            Self::Held => Some(true),
            Self::Failed => Some(false),
            Self::Neither | Self::Open => None,
        }
    }
}

impl Pairs {
    /// The pairs that the test of the `changed` trial has in `trials`: the first unchanged one that counts with the first changed
    /// one, and so on. None without a whole pair.
    pub(crate) fn of(changed: &Trial, trials: &[TrialResult], hosts: &[Host]) -> Option<Self> {
        let test = changed.proves.as_ref()?;
        let is = |result: &&TrialResult, part| {
            result.is_counted() && result.trial.proves.as_ref().is_some_and(|of| of.part == part && of.is_of(test))
        };
        let runs = |part| trials.iter().filter(|result| is(result, part)).collect::<Vec<_>>();
        let (unchanged, changed) = (runs(PairPart::Unchanged), runs(PairPart::Changed));
        let pairs = unchanged.len().min(changed.len());
        let with = Context { hosts, repeats: Repeats::Times(PAIRS), calibrated: &[], idle: &[] };
        let measured = |runs: &[&TrialResult]| {
            let runs = &runs[..pairs];
            let cell = &runs.first()?.trial;
            Some(kind_of(cell.task()).measure(cell, runs, &with))
        };
        Some(Self { test: test.clone(), unchanged: measured(&unchanged)?, changed: measured(&changed)? })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u32 {
        self.unchanged.main.runs.min(self.changed.main.runs)
    }

    /// Whether there is to be another pair.
    pub(crate) fn need_more(&self) -> bool {
        match self.count() {
            ..PAIRS => true,
            PAIRS => self.decision() == Decision::Open,
            // The second look is at all of them.
            pairs => pairs < MOST_PAIRS,
        }
    }

    /// Whether the test is of loss, and not of the result.
    pub(super) fn is_of_loss(&self) -> bool {
        matches!(self.test.expects, Expects::LossStays | Expects::LossGoes)
    }

    /// The interval of the ratio of the changed result to the unchanged one; none with fewer than two pairs.
    pub(super) fn ratio(&self) -> Option<Interval> {
        // Of a trial in which nothing came through there is no logarithm.
        let logarithm = |figure: &f64| figure.max(1.0).ln();
        let [unchanged, changed] = self.figures().map(|figures| figures.values.iter().map(logarithm));
        let pairs: Vec<(f64, f64)> = unchanged.zip(changed).collect();
        let interval = Contrast::paired(Scale::Difference, &pairs, (RESOLUTION, RESOLUTION))?.interval(CONFIDENCE)?;
        Some(Interval { low: interval.low.exp(), high: interval.high.exp(), ..interval })
    }

    /// What is compared: of the unchanged and of the changed trials.
    pub(super) fn figures(&self) -> [&Summary; 2] {
        fn on_wire(of: &Measurement) -> Option<&Summary> {
            of.received()?.wire_bps.as_ref()
        }
        let both = [&self.unchanged, &self.changed];
        match both.map(on_wire) {
            [Some(unchanged), Some(changed)] if self.test.expects == Expects::SameOnWire => [unchanged, changed],
            _ => both.map(|of| &of.main),
        }
    }

    /// What was lost in the unchanged and in the changed trials.
    pub(super) fn lost(&self) -> (Lost, Lost) {
        (Lost::of(&self.unchanged), Lost::of(&self.changed))
    }

    /// What the pairs decide: nothing before there are [`PAIRS`].
    pub(crate) fn decision(&self) -> Decision {
        if self.count() < PAIRS {
            return Decision::Open;
        }
        if self.is_of_loss() {
            return of_loss(self.test.expects, &self.lost());
        }
        let Some(Interval { low, high, .. }) = self.ratio() else { return Decision::Open };
        let stays = low >= 1.0 - SAME && high <= 1.0 + SAME;
        // What has another limit right above it cannot rise, and what meets another cannot stay.
        let full = is_full(&self.changed.verdict);
        match self.test.expects {
            Expects::Rise if low >= RISEN => Decision::Held,
            Expects::Rise if high < RISEN && full => Decision::Neither,
            Expects::Rise if high < RISEN => Decision::Failed,
            Expects::Fall if high <= 1.0 / RISEN => Decision::Held,
            Expects::Fall if low > 1.0 / RISEN => Decision::Failed,
            Expects::Same | Expects::SameOnWire if stays => Decision::Held,
            Expects::Same if low > 1.0 + SAME => Decision::Failed,
            Expects::SameOnWire if high < 1.0 - SAME && !full => Decision::Failed,
            Expects::Same | Expects::SameOnWire if high < 1.0 - SAME || low > 1.0 + SAME => Decision::Neither,
            Expects::Names(limit) if self.changed.verdict.limit == limit => Decision::Held,
            Expects::Names(_) => Decision::Neither,
            _ => Decision::Open,
        }
    }
}

/// What losses decide: whether the share of those with the change has stayed or gone.
fn of_loss(expects: Expects, (before, after): &(Lost, Lost)) -> Decision {
    let (due, came) = (before.share * after.of, after.share * after.of);
    let stays = match after.share / before.share.max(f64::MIN_POSITIVE) {
        ratio if STAYED.contains(&ratio) && came >= COUNTED => true,
        ..=GONE if due >= DUE => false,
        _ => return Decision::Open,
    };
    if stays == (expects == Expects::LossStays) { Decision::Held } else { Decision::Failed }
}

/// A limit that nothing but more of the same can lift.
fn is_full(verdict: &Verdict) -> bool {
    matches!(verdict.limit, Limit::Wire | Limit::SenderCpu | Limit::ReceiverCpu | Limit::SoftirqCpu)
}

/// What was lost on the path: datagrams, or segments that were retransmitted.
pub(super) struct Lost {
    /// Share of what was sent.
    pub(super) share: f64,
    /// How many were sent.
    pub(super) of: f64,
    pub(super) what: &'static Text,
}

impl Lost {
    fn of(result: &Measurement) -> Self {
        let (lost, of, what) = match (result.loss(), result.tcp()) {
            // What never left its host was not lost on the path.
            (Some(loss), _) => {
                let sent = loss.of - loss.places.not_sent - loss.places.sender_queue;
                (loss.places.unaccounted, sent, terms::DATAGRAMS)
            }
            (None, Some(tcp)) => (tcp.retransmits, tcp.segments, terms::SEGMENTS),
            (None, None) => (0, 0, terms::DATAGRAMS),
        };
        Self { share: lost as f64 / of.max(1) as f64, of: of as f64, what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::measured;
    use crate::statistics::{level_of_each, summary};
    use crate::transfer::tests::{spec, trial};
    use linerate_model::{Confidence, Detail};

    /// Pairs of an unchanged and a changed rate; the changed runs met `limit`.
    fn pairs(expects: Expects, rates: &[(f64, f64)], limit: Limit) -> Pairs {
        let result = |part, rate: fn(&(f64, f64)) -> f64| {
            let (of, change) = ("a".to_owned(), linerate_model::Message::untranslated("b"));
            let (otherwise, contrary, only_excludes) = (None, None, false);
            let proves = Counterproof { of, change, part, expects, otherwise, contrary, only_excludes };
            let cell = Trial { proves: Some(proves), ..spec() };
            let run = TrialResult { trial: cell.clone(), ..trial(1_000, 0) };
            let result = measured(&[&cell], Repeats::Times(1), &[], &[], &[run]).remove(0);
            let main = summary(rates.iter().map(rate).collect()).expect("some runs");
            let verdict = Verdict::new(limit, Confidence::Medium, Vec::new());
            (Measurement { main, verdict, ..result }, cell.proves.expect("it was given"))
        };
        let ((unchanged, _), (changed, test)) =
            (result(PairPart::Unchanged, |pair| pair.0), result(PairPart::Changed, |pair| pair.1));
        Pairs { test, unchanged, changed }
    }

    fn decided(expects: Expects, rates: &[(f64, f64)]) -> Decision {
        pairs(expects, rates, Limit::CannotTell).decision()
    }

    #[test]
    fn two_looks_err_as_rarely_as_one() {
        let each = 100.0 * (1.0 - level_of_each(0.1, 2));
        assert!((each - CONFIDENCE).abs() < 0.1, "{each}");
    }

    #[test]
    fn a_rise_holds_above_a_tenth_and_fails_below() {
        let times = |ratio: f64| [100e6, 102e6, 99e6].map(|rate| (rate, ratio * rate * (1.0 + rate / 1e11)));
        assert_eq!(decided(Expects::Rise, &times(1.5)), Decision::Held);
        assert_eq!(decided(Expects::Rise, &times(1.05)), Decision::Failed);
        assert_eq!(decided(Expects::Rise, &times(1.1)), Decision::Open);
        // What met another limit could not rise.
        assert_eq!(pairs(Expects::Rise, &times(1.05), Limit::Wire).decision(), Decision::Neither);
        assert_eq!(pairs(Expects::Rise, &times(1.5), Limit::Wire).decision(), Decision::Held);
    }

    #[test]
    fn a_result_stays_within_a_twentieth() {
        let times = |ratio: f64| [100e6, 101e6, 99e6].map(|rate| (rate, ratio * rate * (1.0 + rate / 1e11)));
        assert_eq!(decided(Expects::Same, &times(1.0)), Decision::Held);
        assert_eq!(decided(Expects::Same, &times(1.2)), Decision::Failed);
        assert_eq!(decided(Expects::Same, &times(0.8)), Decision::Neither);
        assert_eq!(decided(Expects::Same, &times(1.05)), Decision::Open);
        // Pairs that differ by more than the tolerance decide nothing, though their mean has stayed.
        assert_eq!(decided(Expects::Same, &[(100.0, 90.0), (100.0, 110.0), (100.0, 101.0)]), Decision::Open);
    }

    /// Rates fall by 50 % during the test. The changed trial of each pair is as fast as the unchanged one, or a fifth faster.
    #[test]
    fn a_drift_of_both_trials_of_a_pair_decides_nothing() {
        let drifting = |ratio: f64| [100e6, 75e6, 50e6].map(|rate| (rate, ratio * rate * (1.0 + rate / 1e11)));
        assert_eq!(decided(Expects::Same, &drifting(1.0)), Decision::Held);
        assert_eq!(decided(Expects::Rise, &drifting(1.0)), Decision::Failed);
        assert_eq!(decided(Expects::Rise, &drifting(1.2)), Decision::Held);
    }

    #[test]
    fn fewer_than_three_pairs_decide_nothing_and_undecided_ones_are_measured_up_to_six_times() {
        let need_more = |pairs: &[(f64, f64)]| self::pairs(Expects::Same, pairs, Limit::CannotTell).need_more();
        let (sure, unsure) = ([(100.0, 100.0); 6], [(100.0, 90.0), (100.0, 110.0)].repeat(3));
        assert_eq!(decided(Expects::Same, &sure[..2]), Decision::Open);
        assert_eq!([1, 2, 3].map(|count| need_more(&sure[..count])), [true, true, false]);
        assert_eq!([3, 4, 5, 6].map(|count| need_more(&unsure[..count])), [true, true, true, false]);
        assert_eq!(decided(Expects::Same, &unsure), Decision::Open);
    }

    /// Equal pairs have no spread. Their interval is as wide as the resolution allows: t(0.97; 2) = 3.896 and
    /// 3.896 x 0.001 x sqrt(2 / 3) = 0.00318.
    #[test]
    fn equal_pairs_are_as_sure_as_their_resolution() {
        let ratio = pairs(Expects::Same, &[(100.0, 100.0); 3], Limit::CannotTell).ratio().expect("three pairs");
        assert!((ratio.high - 1.003_18).abs() < 1e-4 && (ratio.low - 0.996_82).abs() < 1e-4, "{ratio:?}");
    }

    #[test]
    fn a_result_falls_by_a_tenth_at_least() {
        let times = |ratio: f64| [100e6, 101e6, 99e6].map(|rate| (rate, ratio * rate * (1.0 + rate / 1e11)));
        assert_eq!(
            [0.5, 1.0, 2.0].map(|ratio| decided(Expects::Fall, &times(ratio))),
            [Decision::Held, Decision::Failed, Decision::Failed]
        );
        assert_eq!(decided(Expects::Fall, &times(1.0 / 1.1)), Decision::Open);
    }

    #[test]
    fn swapped_roles_name_the_same_host_or_decide_nothing() {
        let of = |named| pairs(Expects::Names(Limit::SenderCpu), &[(1e6, 2e6); 3], named).decision();
        assert_eq!([Limit::SenderCpu, Limit::ReceiverCpu].map(of), [Decision::Held, Decision::Neither]);
    }

    /// Payload falls with the size of packets; what the path carries does not, unless it is packets that it limits.
    #[test]
    fn packets_of_another_size_are_compared_with_their_headers() {
        let decided = |on_wire: f64, named| {
            let mut pairs = pairs(Expects::SameOnWire, &[(100e6, 90e6); 3], named);
            for (result, bps) in [(&mut pairs.unchanged, 110e6), (&mut pairs.changed, on_wire)] {
                let Detail::Stream(figures) = &mut result.detail else { panic!("a stream") };
                figures.received.wire_bps = summary(vec![bps; 3]);
            }
            pairs.decision()
        };
        assert_eq!(decided(111e6, Limit::CannotTell), Decision::Held);
        assert_eq!(decided(60e6, Limit::CannotTell), Decision::Failed);
        assert_eq!(decided(60e6, Limit::SenderCpu), Decision::Neither);
    }

    #[test]
    fn from_nothing_any_result_is_a_rise() {
        assert_eq!(decided(Expects::Rise, &[(0.0, 1e6), (0.0, 2e6), (10.0, 1e6)]), Decision::Held);
        assert_eq!(decided(Expects::Same, &[(0.0, 0.0); 3]), Decision::Held);
    }
}
