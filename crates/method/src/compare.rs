//! Two records held against each other: which figures changed by more than chance and by more than matters.
//!
//! The runs of each figure are two samples of unequal variance: Welch's t test says how probable their difference is if
//! nothing changed. Of many figures some differ by chance alone: Holm's procedure corrects the probabilities, so that the
//! confidence holds for all figures together.

use crate::measure;
use crate::statistics::{holm, summary, welch_test};
use crate::task::{figure, kind};
use crate::transfer::{Transfer, transfers};
use linerate_model::{
    Change, ComparedFigure, Comparison, Histogram, Interval, Outcome, Quantity, Record, Summary, Trial, TrialResult,
};
use std::collections::{BTreeMap, BTreeSet};

/// Loss is compared as it stands: a change of this share of all datagrams matters, whatever was lost before.
const LOSS_THAT_MATTERS: f64 = 0.001;

/// Compares what `after` found with what `before` found. Differences below `tolerance`, a share of the figure before, do not
/// matter; what is said holds with `confidence_percent`.
pub fn compare(before: &Record, after: &Record, tolerance: f64, confidence_percent: f64) -> Comparison {
    let mut figures = Vec::new();
    let mut remarks = hosts_differ(before, after);
    let known: BTreeMap<&str, &Trial> = cells(after).map(|cell| (cell.name.as_str(), cell)).collect();
    let (trials_before, trials_after) = (by_name(before), by_name(after));
    for cell in cells(before) {
        let Some(other) = known.get(cell.name.as_str()) else {
            remarks.push(format!("`{}` was measured before only", cell.name));
            continue;
        };
        if let Some(what) = measured_differently(cell, other) {
            remarks.push(format!("`{}` is not the same measurement: {what} differ", cell.name));
            continue;
        }
        for quantity in kind(cell.task().kind()).compared(cell.task()) {
            let runs = |trials: &Trials<'_>| runs(trials.get(cell.name.as_str())?, quantity);
            if let (Some(before), Some(after)) = (runs(&trials_before), runs(&trials_after)) {
                figures.push(weigh(&cell.name, quantity, before, after, confidence_percent));
            }
        }
    }
    let searched = |record: &Record| matches!(record.outcome, Outcome::Curve(_) | Outcome::Device(_));
    if searched(before) || searched(after) {
        remarks.push("what a search found is one result without repeats, and is not compared".to_owned());
    }
    let old: BTreeSet<&str> = cells(before).map(|cell| cell.name.as_str()).collect();
    let new = cells(after).filter(|cell| !old.contains(cell.name.as_str()));
    remarks.extend(new.map(|cell| format!("`{}` was measured after only", cell.name)));
    correct(&mut figures);
    for figure in &mut figures {
        figure.change = judge(figure, tolerance, confidence_percent);
    }
    let (before, after) = (before.id.clone(), after.id.clone());
    Comparison { before, after, tolerance, confidence_percent, figures, remarks }
}

/// What was asked for; what put a verdict to the test was not.
fn cells(record: &Record) -> impl Iterator<Item = &Trial> {
    measure::cells(record).into_iter().filter(|cell| cell.proves.is_none())
}

fn hosts_differ(before: &Record, after: &Record) -> Vec<String> {
    let mut remarks = Vec::new();
    for host in &before.hosts {
        let Some(other) = after.hosts.iter().find(|other| other.name == host.name) else { continue };
        let facts = [
            ("the kernel", &host.system, &other.system),
            ("the processor", &host.cpu_model, &other.cpu_model),
            ("linerate's version", &host.version, &other.version),
        ];
        remarks.extend(
            facts
                .iter()
                .filter(|(_, old, new)| old != new)
                .map(|(what, old, new)| format!("on host {} {what} changed from {old} to {new}", host.name)),
        );
    }
    remarks
}

/// What makes two cells of one name different measurements.
fn measured_differently(cell: &Trial, other: &Trial) -> Option<&'static str> {
    if cell.paths().len() != other.paths().len() {
        return Some("the numbers of paths");
    }
    let task = |cell: &Trial| {
        // The same between other hosts is the same measurement.
        let mut task = cell.task().clone();
        task.paths_mut().into_iter().for_each(Vec::clear);
        task
    };
    (task(cell) != task(other)).then_some("what was asked for and its options")
}

/// A record's trials by the name of what they measured.
type Trials<'a> = BTreeMap<&'a str, Vec<&'a TrialResult>>;

fn by_name(record: &Record) -> Trials<'_> {
    let mut trials = Trials::new();
    for result in record.counted() {
        trials.entry(result.trial.name.as_str()).or_default().push(result);
    }
    trials
}

/// The runs of one figure; none where it was not counted in all of them.
fn runs(trials: &[&TrialResult], quantity: Quantity) -> Option<Summary> {
    summary(trials.iter().map(|trial| value(trial, quantity)).collect::<Option<Vec<f64>>>()?)
}

fn value(trial: &TrialResult, quantity: Quantity) -> Option<f64> {
    match quantity {
        Quantity::PayloadBps | Quantity::PerSecond | Quantity::FramesPerS => Some(figure(trial)),
        Quantity::LatencyP50Ns => latency(trial).map(|all| all.quantile(0.5) as f64),
        Quantity::LatencyP99Ns => latency(trial).map(|all| all.quantile(0.99) as f64),
        Quantity::LossRatio => {
            let all = transfers(trial);
            let losses: Vec<_> = all.iter().filter_map(|transfer: &Transfer<'_>| transfer.loss).collect();
            let of: u64 = losses.iter().map(|loss| loss.of).sum();
            (of > 0).then(|| losses.iter().map(|loss| loss.lost).sum::<u64>() as f64 / of as f64)
        }
    }
}

fn latency(trial: &TrialResult) -> Option<Histogram> {
    let mut all = Histogram::default();
    for asked in transfers(trial).iter().filter_map(|transfer| transfer.sender.transactions.as_ref()) {
        all.merge(&asked.latency);
    }
    (all.count() > 0).then_some(all)
}

fn weigh(name: &str, quantity: Quantity, before: Summary, after: Summary, confidence_percent: f64) -> ComparedFigure {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (old, new) = (mean(&before.values), mean(&after.values));
    // A loss is a share already; other figures are compared as shares of what they were.
    let unit = if quantity == Quantity::LossRatio { 1.0 } else { old };
    let share = |difference: f64| if unit == 0.0 { None } else { Some(difference / unit) };
    let test = welch_test(&before.values, &after.values, confidence_percent);
    let interval = test.as_ref().and_then(|test| {
        let (low, high) = (share(test.difference.low)?, share(test.difference.high)?);
        Some(Interval { low, high, ..test.difference })
    });
    ComparedFigure {
        name: name.to_owned(),
        quantity,
        before,
        after,
        difference: share(new - old),
        interval,
        p: test.map(|test| test.p),
        change: Change::Unclear,
    }
}

/// Corrects the p-values for their number.
fn correct(figures: &mut [ComparedFigure]) {
    let tested: Vec<&mut f64> = figures.iter_mut().filter_map(|figure| figure.p.as_mut()).collect();
    let corrected = holm(&tested.iter().map(|p| **p).collect::<Vec<_>>());
    tested.into_iter().zip(corrected).for_each(|(p, corrected)| *p = corrected);
}

fn judge(figure: &ComparedFigure, tolerance: f64, confidence_percent: f64) -> Change {
    let matters = if figure.quantity == Quantity::LossRatio { LOSS_THAT_MATTERS } else { tolerance };
    let (Some(difference), Some(interval), Some(p)) = (figure.difference, figure.interval, figure.p) else {
        return Change::Unclear;
    };
    if p < 1.0 - confidence_percent / 100.0 && difference.abs() > matters {
        return if (difference > 0.0) == figure.quantity.more_is_better() { Change::Better } else { Change::Worse };
    }
    if interval.low >= -matters && interval.high <= matters { Change::Same } else { Change::Unclear }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::tests::{spec, stream_of, trial};
    use linerate_model::{Plan, RecordId, Repeats};

    fn record(trials: Vec<TrialResult>) -> Record {
        Record { trials, ..Record::new(RecordId(String::new()), Plan::sweep(vec![spec()], Repeats::Times(3))) }
    }

    fn runs_of(arrived: &[u64]) -> Record {
        let trials: Vec<TrialResult> = arrived.iter().map(|arrived| trial(*arrived, 0)).collect();
        record(trials)
    }

    fn payload(before: &[u64], after: &[u64]) -> ComparedFigure {
        let found = compare(&runs_of(before), &runs_of(after), 0.02, 95.0);
        found.figures.into_iter().find(|figure| figure.quantity == Quantity::PayloadBps).expect("a stream has a rate")
    }

    #[test]
    fn a_fall_beyond_chance_and_tolerance_is_worse() {
        let figure = payload(&[1000, 1010, 990], &[900, 920, 880]);
        assert_eq!(figure.change, Change::Worse, "{figure:?}");
        assert!(figure.difference.is_some_and(|share| (share + 0.1).abs() < 1e-9));
        let p = figure.p.expect("three runs each");
        assert!((p - 0.0048).abs() < 0.0001, "{p}");
        assert_eq!(payload(&[900, 920, 880], &[1000, 1010, 990]).change, Change::Better);
    }

    #[test]
    fn a_difference_within_the_spread_is_unclear() {
        assert_eq!(payload(&[1000, 1100, 900], &[950, 1060, 860]).change, Change::Unclear);
        assert_eq!(payload(&[1000], &[900]).change, Change::Unclear);
        assert_eq!(payload(&[1000], &[900]).p, None);
    }

    #[test]
    fn what_is_surely_within_the_tolerance_is_the_same() {
        assert_eq!(payload(&[1000, 1001, 999], &[1002, 1003, 1001]).change, Change::Same);
        assert_eq!(payload(&[1000, 1000, 1000], &[1000, 1000, 1000]).change, Change::Same);
    }

    #[test]
    fn a_small_difference_that_is_sure_does_not_matter() {
        let figure = payload(&[100_000, 100_010, 99_990], &[99_000, 99_010, 98_990]);
        assert!(figure.p.is_some_and(|p| p < 0.01), "{figure:?}");
        assert_eq!(figure.change, Change::Same);
    }

    #[test]
    fn loss_counts_as_it_stands() {
        let lossy = |lost| crate::account::tests::placed(trial(1_000, lost));
        let before = record((0..3).map(|_| lossy(0)).collect());
        let after = record([10, 12, 11].into_iter().map(lossy).collect());
        let found = compare(&before, &after, 0.02, 95.0);
        let loss = found.figures.iter().find(|figure| figure.quantity == Quantity::LossRatio).expect("a UDP stream");
        assert_eq!(loss.change, Change::Worse, "{loss:?}");
        assert!(found.is_worse());
    }

    #[test]
    fn p_values_are_corrected_for_their_number() {
        let mut figures: Vec<ComparedFigure> = [0.01, 0.04, 0.03]
            .into_iter()
            .map(|p| ComparedFigure { p: Some(p), ..payload(&[1000, 1001, 999], &[1002, 1003, 1001]) })
            .collect();
        correct(&mut figures);
        let corrected: Vec<f64> = figures.iter().filter_map(|figure| figure.p).collect();
        for (p, expected) in corrected.iter().zip([0.03, 0.06, 0.06]) {
            assert!((p - expected).abs() < 1e-12, "{corrected:?}");
        }
    }

    /// Changes what was asked for and done.
    fn change(record: &mut Record, change: impl Fn(&mut Trial)) {
        let mut cell = record.plan.cells()[0].clone();
        change(&mut cell);
        record.trials.iter_mut().for_each(|result| result.trial = cell.clone());
        record.plan = Plan::sweep(vec![cell], Repeats::Times(3));
    }

    #[test]
    fn other_measurements_are_not_compared() {
        let before = runs_of(&[1000, 1001, 999]);
        let mut after = runs_of(&[1000, 1001, 999]);
        change(&mut after, |cell| cell.name = "udp 1001".to_owned());
        let found = compare(&before, &after, 0.02, 95.0);
        assert!(found.figures.is_empty());
        assert_eq!(found.remarks.len(), 2, "{:?}", found.remarks);
        let mut after = runs_of(&[1000, 1001, 999]);
        change(&mut after, |cell| stream_of(cell).net.flows = 4);
        assert!(compare(&before, &after, 0.02, 95.0).remarks[0].contains("not the same measurement"));
    }
}
