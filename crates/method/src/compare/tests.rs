use super::*;
use crate::transfer::tests::{spec, stream_of, trial};
use linerate_model::{Change, ComparedFigure, Plan, RecordId, Repeats, TrialResult};

fn record(trials: Vec<TrialResult>) -> Record {
    Record { trials, ..Record::new(RecordId(String::new()), Plan::sweep(vec![spec()], Repeats::Times(3))) }
}

fn runs_of(arrived: &[u64]) -> Record {
    record(arrived.iter().map(|arrived| trial(*arrived, 0)).collect())
}

fn payload_of(found: Comparison) -> ComparedFigure {
    found.figures.into_iter().find(|figure| figure.quantity == Quantity::PayloadBps).expect("a stream has a rate")
}

fn demands(tolerance: f64) -> Demands {
    Demands::once(tolerance, 95.0)
}

fn payload(before: &[u64], after: &[u64]) -> ComparedFigure {
    payload_of(compare(&[runs_of(before)], &[runs_of(after)], &demands(0.02)))
}

#[test]
fn a_fall_beyond_chance_and_tolerance_is_worse() {
    let figure = payload(&[1000, 1010, 990], &[900, 920, 880]);
    assert_eq!(figure.change, Change::Worse, "{figure:?}");
    assert!(figure.difference.is_some_and(|share| (share + 0.1).abs() < 1e-9));
    assert!(figure.interval.is_some_and(|interval| interval.high < -0.02 && interval.percent == 90.0), "{figure:?}");
    assert_eq!(payload(&[900, 920, 880], &[1000, 1010, 990]).change, Change::Better);
}

#[test]
fn a_difference_within_the_spread_is_undecided_and_says_what_would_decide() {
    let figure = payload(&[1000, 1100, 900], &[950, 1060, 860]);
    assert_eq!(figure.change, Change::Undecided);
    // 10 % of spread, 2.3 % beyond the tolerance: 2 (1.645 + 0.842)^2 (10 / 2.3)^2 is about 230.
    assert!(figure.needed.is_some_and(|needed| (150..400).contains(&needed)), "{figure:?}");
    let single = payload(&[1000], &[900]);
    assert_eq!((single.change, single.p, single.interval, single.needed), (Change::Undecided, None, None, None));
}

#[test]
fn what_is_surely_within_the_tolerance_is_equivalent() {
    assert_eq!(payload(&[1000, 1001, 999], &[1002, 1003, 1001]).change, Change::Equivalent);
    assert_eq!(payload(&[1000, 1000, 1000], &[1000, 1000, 1000]).change, Change::Equivalent);
}

#[test]
fn no_significant_difference_is_not_equivalence() {
    let figure = payload(&[1000, 1030, 970], &[1000, 1028, 972]);
    assert!(figure.p_beyond.is_some_and(|p| p > 0.5));
    assert_eq!(figure.change, Change::Undecided);
}

#[test]
fn a_small_difference_that_is_sure_does_not_matter() {
    let figure = payload(&[100_000, 100_010, 99_990], &[99_000, 99_010, 98_990]);
    assert_eq!(figure.change, Change::Equivalent);
    // Without a tolerance it would.
    let strict = compare(&[runs_of(&[100_000, 100_010, 99_990])], &[runs_of(&[99_000, 99_010, 98_990])], &demands(0.0));
    assert_eq!(payload_of(strict).change, Change::Worse);
}

/// Counts of 1,000 messages are no finer than one message: that all agree does not make a message of difference certain.
#[test]
fn equal_runs_are_not_certain() {
    let differ = |after: u64| {
        let found = compare(&[runs_of(&[1000; 3])], &[runs_of(&[after; 3])], &demands(0.0));
        payload_of(found)
    };
    let one = differ(999);
    assert!(one.p.is_some_and(|p| p > 0.02), "{one:?}");
    assert_eq!(differ(900).change, Change::Worse);
    assert!(differ(900).p.is_some_and(|p| p > 0.0), "{:?}", differ(900));
    assert_eq!(differ(1000).change, Change::Undecided);
}

fn lossy(messages: u64, lost: u64) -> TrialResult {
    crate::account::tests::placed(trial(messages - lost, lost))
}

fn loss(before: Record, after: Record) -> ComparedFigure {
    let found = compare(&[before], &[after], &demands(0.02));
    found.figures.into_iter().find(|figure| figure.quantity == Quantity::LossRatio).expect("a UDP stream")
}

#[test]
fn loss_counts_as_it_stands() {
    let none = || record((0..3).map(|_| lossy(10_000, 0)).collect());
    let after = record([100, 120, 110].into_iter().map(|lost| lossy(10_000, lost)).collect());
    assert_eq!(loss(none(), after).change, Change::Worse);
    assert_eq!(loss(none(), none()).change, Change::Equivalent);
}

/// Nothing lost of 300 datagrams does not show that less than 0.1 % is lost (the rule of three: up to 1 % may be).
#[test]
fn no_loss_of_few_datagrams_is_undecided() {
    let none = || record((0..3).map(|_| lossy(100, 0)).collect());
    let figure = loss(none(), none());
    assert_eq!((figure.change, figure.difference), (Change::Undecided, Some(0.0)), "{figure:?}");
    assert!(figure.p_beyond.is_some_and(|p| p > 0.5));
}

#[test]
fn several_records_show_how_much_sessions_differ() {
    let sessions = |mean_values: [u64; 4]| mean_values.map(|mean| runs_of(&[mean - 1, mean, mean + 1]));
    let (before, after) = (sessions([1000, 1060, 940, 1030]), sessions([950, 1040, 900, 1000]));
    // One session against another looks like a change, and a warning says why it may be none.
    let single = compare(&before[..1], &after[..1], &demands(0.02));
    assert_eq!(single.figures[0].change, Change::Worse);
    assert!(single.warnings.iter().any(|warning| warning.starts_with("one session each")), "{:?}", single.warnings);
    let all = compare(&before, &after, &demands(0.02));
    assert_eq!((all.samples, all.figures[0].change), (Samples::Sessions, Change::Undecided));
    assert_eq!((all.before.len(), all.figures[0].before.runs), (4, 4));
    assert!(all.warnings.is_empty(), "{:?}", all.warnings);
    // Against four sessions one is judged too.
    let one = compare(&before, &[runs_of(&[700, 701, 702])], &demands(0.02));
    assert_eq!(one.figures[0].change, Change::Worse);
}

#[test]
fn runs_in_turn_are_compared_pair_by_pair() {
    let (before, after) = (runs_of(&[1000, 700, 1300, 900]), runs_of(&[1100, 770, 1431, 991]));
    let pairs = compare_pairs(&before, &after, &demands(0.02));
    assert_eq!((pairs.samples, pairs.figures[0].change), (Samples::Pairs, Change::Better));
    assert_eq!(compare(&[before], &[after], &demands(0.02)).figures[0].change, Change::Undecided);
}

#[test]
fn several_looks_ask_for_a_lower_level_at_each() {
    let (before, after) = (runs_of(&[1000, 1010, 990]), runs_of(&[1010, 1025, 995]));
    let found = compare_pairs(&before, &after, &Demands { looks: 3, ..demands(0.0) });
    assert!((found.level - 0.0221).abs() < 0.0002, "{}", found.level);
    assert!(found.figures[0].interval.is_some_and(|interval| (interval.percent - 95.6).abs() < 0.1));
}

/// Two figures, of which one differs: with its p-value doubled it is no longer significant.
#[test]
fn p_values_are_adjusted_for_their_number() {
    let two = |payload: [u64; 3]| record(payload.into_iter().map(|arrived| lossy(arrived, 0)).collect());
    let found = compare(&[two([1000, 1002, 998])], &[two([990, 995, 985])], &demands(0.0));
    let rate = &found.figures[0];
    assert_eq!(found.figures.len(), 2, "{found:?}");
    let (alone, both) = (rate.p_beyond.expect("three runs"), rate.p.expect("three runs"));
    assert!((both - (2.0 * alone).min(1.0)).abs() < 1e-12, "{rate:?}");
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
    let before = [runs_of(&[1000, 1001, 999])];
    let mut after = runs_of(&[1000, 1001, 999]);
    change(&mut after, |cell| cell.name = "udp 1001".to_owned());
    let found = compare(&before, &[after], &demands(0.02));
    assert!(found.figures.is_empty());
    assert_eq!(found.remarks.len(), 2, "{:?}", found.remarks);
    let mut after = runs_of(&[1000, 1001, 999]);
    change(&mut after, |cell| stream_of(cell).net.flows = 4);
    assert!(compare(&before, &[after.clone()], &demands(0.02)).remarks[0].contains("not the same measurement"));
    // In turn, what differs is what was asked for.
    assert_eq!(compare_pairs(&before[0], &after, &demands(0.02)).figures.len(), 1);
}

#[test]
fn another_congestion_control_is_a_warning() {
    let with = |name: &str| {
        let mut record = runs_of(&[1000, 1001, 999]);
        change(&mut record, |cell| stream_of(cell).net.socket.congestion = Some(name.to_owned()));
        record
    };
    let found = compare(&[with("cubic")], &[with("bbr")], &demands(0.02));
    assert_eq!(found.figures.len(), 1);
    assert_eq!(found.warnings[0], "congestion control: cubic before, bbr after");
}

#[test]
fn requests_beside_a_load_are_compared() {
    // Requests beside a load, of which the slowest take twice as long in the second record.
    let loaded = |slowest: u64| {
        let runs = [0, 1, 2].map(|run| {
            let probes = crate::loaded_latency::tests::asked(&[1_000_000, 1_000_000, slowest + run * 1_000], 0);
            crate::loaded_latency::tests::run(probes.clone(), probes).1
        });
        let cell = runs[0].trial.clone();
        let plan = Plan::sweep(vec![cell], Repeats::Times(3));
        Record { trials: runs.to_vec(), ..Record::new(RecordId(String::new()), plan) }
    };
    let found = compare(&[loaded(10_000_000)], &[loaded(20_000_000)], &demands(0.02));
    let figure = found.figures.iter().find(|figure| figure.quantity == Quantity::LoadedP99Ns).expect("it was probed");
    assert_eq!(figure.change, Change::Worse, "{figure:?}");
}
