//! Curves of simulated servers, whose capacity is known.

use super::*;
use crate::transfer::tests::paths_of;
use linerate_model::{
    Counts, CurveFound, CurveMiss, CurvePlan, EndCounts, Goal, Histogram, Measurement, Net, NfsClass, NfsFigures,
    NfsMix, NfsOperation, NfsTask, OperationCounts, Path, PathCounts, RecordId, Repeats, Standing, Timing,
    Transactions, Transport, Window,
};
use linerate_units::{Nanos, Ratio};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use std::collections::BTreeMap;

const PROBE: &str = "nfs closed loop";
const SECOND: f64 = 1e9;
/// Trials that no curve should need.
const TOO_MANY: usize = 60;

/// How a simulated server's service times are distributed.
#[derive(Clone, Copy)]
enum Service {
    /// Exponentially: the M of Kendall's notation.
    Markov,
    /// All alike: its D.
    Deterministic,
}

/// A queue in front of so many servers.
#[derive(Clone)]
struct Server {
    servers: usize,
    service: Service,
    /// Mean service time, nanoseconds.
    mean_ns: f64,
    /// After so many trials nothing is answered any more.
    dies_after: usize,
    /// Every so many trials it stands still for a second.
    stumbles_every: usize,
    /// Share of the operations answered with an error.
    errors: f64,
    random: SmallRng,
    trials: usize,
}

impl Server {
    fn new(servers: usize, service: Service, mean: Nanos) -> Self {
        Self {
            servers,
            service,
            mean_ns: mean.get() as f64,
            dies_after: usize::MAX,
            stumbles_every: usize::MAX,
            errors: 0.0,
            random: SmallRng::seed_from_u64(7),
            trials: 0,
        }
    }

    /// Operations per second that it can do at the most.
    fn capacity(&self) -> f64 {
        self.servers as f64 * SECOND / self.mean_ns
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -(1.0 - self.random.random::<f64>()).ln() * mean
    }

    fn service_time(&mut self) -> f64 {
        match self.service {
            Service::Markov => self.exponential(self.mean_ns),
            Service::Deterministic => self.mean_ns,
        }
    }

    /// A trial of `cell` with this server: an open loop at its rate, or a closed one.
    fn run(&mut self, cell: &Trial) -> TrialResult {
        self.trials += 1;
        let Task::Nfs(nfs) = cell.task() else { panic!("not NFS") };
        let Window { warmup, measure } = cell.window().expect("a window");
        let (warmup, window) = (warmup.longest().get() as f64, measure.get() as f64);
        let end = warmup + window;
        let stall =
            if self.trials.is_multiple_of(self.stumbles_every) { (warmup, warmup + SECOND) } else { (0.0, 0.0) };
        let mut free = vec![0.0f64; self.servers];
        let mut count = Transactions { window: Nanos::new(window as u64), ..Transactions::default() };
        let mut kinds: BTreeMap<NfsOperation, OperationCounts> = BTreeMap::new();
        let mut asking: Vec<f64> = vec![0.0; usize::from(nfs.net.flows * nfs.outstanding)];
        let mut due = 0.0;
        loop {
            let asker = (0..asking.len()).min_by(|l, r| asking[*l].total_cmp(&asking[*r])).expect("someone asks");
            due = match nfs.rate {
                Some(rate) => due + self.exponential(SECOND / rate.get() as f64),
                None => asking[asker],
            };
            if due >= end {
                break;
            }
            let inside = due >= warmup;
            if self.trials > self.dies_after {
                count.failed += u64::from(inside);
                asking[asker] = due + SECOND;
                continue;
            }
            let first = (0..free.len()).min_by(|l, r| free[*l].total_cmp(&free[*r])).expect("there is a server");
            let mut begin = free[first].max(due);
            if (stall.0..stall.1).contains(&begin) {
                begin = stall.1;
            }
            let done = begin + self.service_time();
            free[first] = done;
            asking[asker] = done;
            let operation = if self.random.random_bool(0.3) { NfsOperation::Read } else { NfsOperation::Getattr };
            let kind = kinds.entry(operation).or_default();
            let timed = if nfs.rate.is_some() { inside } else { (warmup..end).contains(&done) };
            if timed && self.random.random::<f64>() < self.errors {
                *kind.errors.entry("NFS3ERR_IO".into()).or_default() += 1;
                count.failed += 1;
                continue;
            }
            if (warmup..end).contains(&done) {
                count.completed += 1;
                kind.completed += 1;
            }
            if timed {
                count.latency.record((done - due) as u64);
                kind.latency.record((done - due) as u64);
            }
        }
        let client = EndCounts { transactions: Some(count), operations: kinds, ..EndCounts::default() };
        let ends = PathCounts { client, server: EndCounts::default(), forward_loss: None, backward_loss: None };
        TrialResult {
            trial: cell.clone(),
            attempt: 0,
            standing: Standing::Counted,
            started_unix_ns: 0,
            span: None,
            counts: vec![Counts::Flows(vec![ends])],
            hosts: BTreeMap::new(),
            series: Vec::new(),
            clocks: BTreeMap::new(),
            outages: Vec::new(),
            device_load: None,
            caveats: Vec::new(),
        }
    }
}

fn curve(cap: Nanos) -> CurvePlan {
    let mix = NfsMix::named("getattr").expect("it is built in");
    let nfs = NfsTask {
        paths: vec![Path::between("a", "b")],
        net: Net { flows: 2, ..Net::plain(Transport::Tcp) },
        outstanding: 16,
        ..NfsTask::plain(Transport::Tcp, mix)
    };
    let timing = Timing::of(Nanos::from_millis(500), Nanos::from_secs(1));
    CurvePlan {
        cell: Trial::new(PROBE, Task::Nfs(nfs), timing),
        repeats: Repeats::Times(1),
        time: Nanos::from_secs(5),
        response_cap: cap,
        steps: 10,
        shortfall: Ratio::new(2, 100),
        width: Ratio::new(2, 100),
    }
}

fn plan(cap: Nanos) -> Plan {
    Plan::of(Goal::Curve(curve(cap)))
}

fn record(plan: Plan) -> Record {
    Record::new(RecordId("c".into()), plan)
}

/// The figures of the result that stands for the server.
fn figures(record: &Record) -> &NfsFigures {
    let name = record.curve().and_then(|(_, found)| found.result.as_deref()).expect("a result");
    record.result(name).and_then(Measurement::nfs).expect("figures")
}

/// Draws the curve of `server`, and works out the outcome from the record alone.
fn draw(plan: Plan, server: &mut Server) -> (CurveFound, Vec<TrialResult>) {
    let record = drawn(plan, server);
    let Outcome::Curve(found) = record.outcome else { panic!("no curve") };
    (found, record.trials)
}

/// The record of the same.
fn drawn(plan: Plan, server: &mut Server) -> Record {
    let (mut method, mut trials) = (crate::of(&plan, &[]), Vec::new());
    while let Step::Run { trial: cell, .. } = method.next() {
        let Progress { done, at_most, .. } = method.progress();
        assert!(at_most.is_some_and(|total| done < total && total < TOO_MANY), "{done} of {at_most:?} trials");
        let result = server.run(&cell);
        assert_eq!(method.record(&result), After::GoOn);
        trials.push(result);
    }
    let Progress { done, at_most, .. } = method.progress();
    assert_eq!((done, at_most), (trials.len(), Some(trials.len())));
    // A record of these trials goes on where they ended: nowhere.
    let mut again = crate::of(&plan, &[]);
    assert!(trials.iter().all(|trial| again.record(trial) == After::GoOn));
    assert_eq!(again.next(), Step::Done);
    let mut record = Record { trials, ..record(plan) };
    crate::replay(&mut record);
    assert_eq!(method.summary(), again.summary());
    record
}

fn achieved(outcome: &CurveFound) -> f64 {
    outcome.peak.as_ref().map_or(0.0, |peak| peak.achieved_ops)
}

/// One server with exponential service times answers in 1 / (mu - lambda) on average: within 50 ms up to 20 operations a
/// second short of its capacity.
#[test]
fn the_peak_of_one_queue_is_where_theory_has_it() {
    let mut server = Server::new(1, Service::Markov, Nanos::from_millis(2));
    let (outcome, _) = draw(plan(Nanos::from_millis(50)), &mut server);
    let theory = server.capacity() - 20.0;
    assert!((achieved(&outcome) / theory - 1.0).abs() < 0.05, "{} of {theory}", achieved(&outcome));
    let peak = outcome.peak.as_ref().expect("a peak");
    assert!(peak.mean_ms <= 50.0 && peak.missed_at_ops.is_some(), "{peak:?}");
    // Below it the mean is as theory has it, too: at half of the capacity 4 ms.
    let half = outcome.curve.iter().find(|p| (p.intended_ops / server.capacity() - 0.5).abs() < 0.05).expect("half");
    let expected = 1e3 / (server.capacity() - half.offered_ops);
    assert!((half.mean_ms / expected - 1.0).abs() < 0.25, "{} ms, not {expected} ms", half.mean_ms);
    assert!(half.missed.is_none() && (half.achieved_ops / half.offered_ops - 1.0).abs() < 0.01, "{half:?}");
}

#[test]
fn the_peak_of_several_servers_is_their_capacity() {
    for (servers, mean) in [(4, Nanos::from_millis(8)), (1, Nanos::from_millis(20))] {
        let mut server = Server::new(servers, Service::Deterministic, mean);
        let (outcome, _) = draw(plan(Nanos::from_millis(100)), &mut server);
        let share = achieved(&outcome) / server.capacity();
        assert!((0.93..1.05).contains(&share), "{servers} servers of {mean}: {share}");
    }
}

/// A lower cap is reached at a lower load, and the curve has loads on both sides of it.
#[test]
fn the_cap_decides() {
    let mut server = Server::new(1, Service::Markov, Nanos::from_millis(1));
    let (outcome, _) = draw(plan(Nanos::from_millis(3)), &mut server);
    // 1 / (1000 - lambda) = 3 ms.
    assert!((achieved(&outcome) / 666.7 - 1.0).abs() < 0.12, "{}", achieved(&outcome));
    assert_eq!(outcome.peak.as_ref().and_then(|peak| peak.missed), Some(CurveMiss::ResponseTime));
    let loads: Vec<f64> = outcome.curve.iter().map(|point| point.intended_ops).collect();
    assert!(loads.is_sorted() && loads.len() >= 8, "{loads:?}");
    assert!(outcome.curve.iter().any(|point| point.missed.is_some()));
}

#[test]
fn a_cap_below_the_service_time_has_no_peak() {
    let mut server = Server::new(1, Service::Deterministic, Nanos::from_millis(2));
    let (outcome, trials) = draw(plan(Nanos::from_millis(1)), &mut server);
    assert!(outcome.peak.is_none() && trials.len() < TOO_MANY, "{:?}", outcome.peak);
    assert_eq!(outcome.result.as_deref(), Some(PROBE));
    let record = Record { outcome: Outcome::Curve(outcome), ..record(plan(Nanos::from_millis(1))) };
    assert!(lacks_peak(&record) && !stands(&record, PROBE) && stands(&record, "tcp"));
}

/// A host that stands still in some trials takes nothing from the peak.
#[test]
fn a_stumble_is_not_believed() {
    let mut server = Server::new(2, Service::Deterministic, Nanos::from_millis(1));
    server.stumbles_every = 4;
    let (outcome, _) = draw(plan(Nanos::from_millis(50)), &mut server);
    let share = achieved(&outcome) / server.capacity();
    assert!((0.93..1.05).contains(&share), "{share}");
    assert!(outcome.curve.iter().any(|point| point.runs == 2 && point.missed.is_none()));
}

#[test]
fn a_server_that_dies_ends_the_curve_and_what_was_found_stays() {
    let mut server = Server::new(1, Service::Deterministic, Nanos::from_millis(1));
    server.dies_after = 5;
    let (outcome, trials) = draw(plan(Nanos::from_millis(50)), &mut server);
    assert_eq!(trials.len(), 7, "the first silent load is offered twice");
    let peak = outcome.peak.expect("four loads were held");
    assert_eq!(peak.missed, Some(CurveMiss::Silence));
    assert!((380.0..420.0).contains(&peak.offered_ops), "{peak:?}");
    assert_eq!(outcome.result, Some(peak.result));
}

/// One that is dead from the start has no scale, and so no curve.
#[test]
fn a_dead_server_has_no_curve() {
    let mut server = Server::new(1, Service::Deterministic, Nanos::from_millis(1));
    server.dies_after = 0;
    let (outcome, trials) = draw(plan(Nanos::from_millis(50)), &mut server);
    assert_eq!((trials.len(), outcome.curve.len()), (1, 0));
}

#[test]
fn errors_are_not_service() {
    let mut server = Server::new(4, Service::Deterministic, Nanos::from_millis(1));
    server.errors = 0.2;
    let (outcome, _) = draw(plan(Nanos::from_millis(50)), &mut server);
    assert!(outcome.peak.is_none());
    assert!(outcome.curve.iter().all(|point| point.undone > 0 && point.missed.is_some()));
}

/// Operations and classes are those of the peak, and their counts add up.
#[test]
fn the_outcome_is_the_peaks() {
    let mut server = Server::new(4, Service::Markov, Nanos::from_millis(1));
    let record = drawn(plan(Nanos::from_millis(50)), &mut server);
    let (outcome, figures) = (record.curve().expect("a curve").1, figures(&record));
    let peak = outcome.peak.as_ref().expect("a peak");
    let point = outcome.curve.iter().find(|point| point.result == peak.result).expect("it is on the curve");
    let read = &figures.classes[&NfsClass::Read];
    assert_eq!(read.count, figures.operations[&NfsOperation::Read].count);
    assert!((read.share - 0.3).abs() < 0.02, "{}", read.share);
    assert!((point.classes[&NfsClass::Read].achieved_ops / peak.achieved_ops - 0.3).abs() < 0.02);
    let sum: f64 = figures.classes.values().map(|class| class.ops_per_s).sum();
    assert!((sum / peak.achieved_ops - 1.0).abs() < 0.01, "{sum}");
}

/// A load that is asked for by itself is no part of a curve, but has operations.
#[test]
fn a_single_load_has_operations_and_no_curve() {
    let mut cell = curve(Nanos::from_millis(50)).cell;
    if let Task::Nfs(nfs) = cell.task_mut() {
        nfs.rate = Some(OpRate::per_second(500));
    }
    let trial = Server::new(1, Service::Deterministic, Nanos::from_millis(1)).run(&cell);
    let plan = Plan::sweep(vec![cell], Repeats::Times(1));
    let mut record = Record { trials: vec![trial], ..record(plan) };
    crate::replay(&mut record);
    assert_eq!(record.outcome, Outcome::Sweep);
    let figures = record.results[0].nfs().expect("NFS was measured");
    assert_eq!(figures.operations.len(), 2);
    let mean = figures.operations[&NfsOperation::Getattr].mean_ms;
    assert!((1.0..2.0).contains(&mean), "{mean}");
}

/// The tester's limit is measured on the asking hosts alone, and every NFS result of theirs is held against it.
#[test]
fn the_tester_itself_is_held_against_every_result() {
    let plan = plan(Nanos::from_millis(50));
    let calibration = calibration(&plan).expect("there is an NFS cell");
    assert_eq!(calibration.cells()[0].paths(), [Path::between("a", "a")]);
    let mut fast = Server::new(8, Service::Deterministic, Nanos::from_millis(1));
    let mut limit = Record { trials: vec![fast.run(&calibration.cells()[0])], ..record(calibration) };
    crate::replay(&mut limit);
    let plan = Plan { calibrated: crate::calibrated(&limit), ..plan };
    let measured = |trial: TrialResult| {
        let record = Record { trials: vec![trial], ..record(plan.clone()) };
        crate::measurements(&record).remove(0)
    };
    let cell = &plan.cells()[0];
    let slow = Server::new(1, Service::Deterministic, Nanos::from_millis(1)).run(cell);
    let share = measured(slow).tester_limit.expect("it was calibrated").share;
    assert!((share - 0.125).abs() < 0.01, "{share}");
    assert_eq!(measured(fast.run(cell)).verdict.limit, linerate_model::Limit::Tester);
}

/// Histograms of several paths are one.
#[test]
fn several_clients_share_a_load() {
    let mut plan = curve(Nanos::from_millis(50));
    plan.cell.task_mut().paths_mut().expect("paths").push(Path::between("c", "b"));
    let mut method = crate::of(&Plan::of(Goal::Curve(plan.clone())), &[]);
    let mut server = Server::new(1, Service::Deterministic, Nanos::from_millis(1));
    let mut both = |cell: &Trial| {
        let (mut one, other) = (server.run(cell), server.run(cell));
        paths_of(&mut one).extend(other.paths().to_vec());
        one
    };
    let probe = both(&plan.cell);
    method.record(&probe);
    let Step::Run { trial: first, .. } = method.next() else { panic!("a load follows") };
    // Each of the two reached 1,000: a tenth of what both reach.
    assert_eq!((first.name.as_str(), first.task().requests_per_s()), ("nfs 200 ops/s", Some(OpRate::per_second(100))));
    let histogram: u64 = both(&first)
        .paths()
        .iter()
        .map(|path| {
            let counts: &Histogram = &path.client.transactions.as_ref().expect("counted").latency;
            counts.count()
        })
        .sum();
    assert!((900..1_100).contains(&histogram), "{histogram}");
}
