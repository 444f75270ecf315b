//! Each cell of a plan, repeated. Rounds are interleaved (every cell once, then every cell again), so that a machine that
//! grows slower during the run does not favour the cells that came first.

use crate::beside::idle_trial;
use crate::contract::{After, Again, Method, Progress, Step};
use crate::counterproof::changed_name;
use crate::proof::{MOST_PAIRS, Pairs, counterproofs};
use crate::repeat::{Need, at_most, need};
use crate::results::{measured, measurements};
use crate::retry::tell_repeats;
use crate::task::{figure, kind_of};
use linerate_model::{
    Calibrated, Caveat, CaveatKind, Host, Measurement, Outcome, Plan, Record, Repeats, RunSummary, Trial, TrialResult,
    message,
};
use std::collections::BTreeSet;

/// Runs cells in rounds, and then what tests the verdicts on them, if that is asked for.
#[derive(Debug, Clone)]
pub struct Sweep {
    repeats: Repeats,
    prove: bool,
    calibrated: Vec<Calibrated>,
    hosts: Vec<Host>,
    cells: Vec<Cell>,
    /// What tests the verdicts, once they are known.
    proofs: Option<Vec<Proof>>,
    /// The attempts that count.
    taken: Vec<TrialResult>,
    /// A cell that failed is left out, and the others are run.
    goes_on: bool,
}

/// A trial to be repeated.
#[derive(Debug, Clone)]
struct Cell {
    trial: Trial,
    /// The probe alone, which is run before each repeat; none if nothing is timed beside the load.
    idle: Option<Trial>,
    /// How often that has been run.
    idle_runs: usize,
    /// An earlier cell has the same probe alone, and counts its runs.
    shares_idle: bool,
    /// The figure of each run.
    figures: Vec<f64>,
    /// It failed, and is not tried again.
    given_up: bool,
}

impl Cell {
    fn new(trial: Trial) -> Self {
        let idle = idle_trial(&trial);
        Self { trial, idle, idle_runs: 0, shares_idle: false, figures: Vec::new(), given_up: false }
    }

    fn wants(&self, repeats: &Repeats) -> bool {
        !self.given_up && need(repeats, &self.figures) == Need::More
    }

    /// The trial that is next.
    fn next(&self) -> Step {
        let idle = self.idle.as_ref().filter(|_| self.idle_runs <= self.figures.len());
        let trial = idle.unwrap_or(&self.trial);
        let again = if kind_of(trial.task()).may_repeat(trial.load()) { Again::Search } else { Again::Never };
        Step::run(trial.clone(), again)
    }

    /// Whether a result is of this cell, or of its probe alone.
    fn is(&self, result: &TrialResult) -> bool {
        let idle = self.idle.as_ref().is_some_and(|idle| idle.name == result.trial.name);
        idle || result.trial.name == self.trial.name
    }

    /// Takes an attempt that counts; whether it was one of this cell.
    fn take(&mut self, result: &TrialResult) -> bool {
        if result.trial.name == self.trial.name {
            self.figures.push(figure(result));
            return true;
        }
        let is_idle = self.idle.as_ref().is_some_and(|idle| idle.name == result.trial.name);
        self.idle_runs += usize::from(is_idle);
        is_idle
    }

    /// Runs so far, those of the probe alone too.
    fn runs(&self) -> usize {
        self.figures.len() + if self.shares_idle { 0 } else { self.idle_runs }
    }

    /// Trials done, and those left at the most.
    fn progress(&self, repeats: &Repeats) -> (usize, usize) {
        let done = self.runs();
        let each = 1 + usize::from(self.idle.is_some() && !self.shares_idle);
        let all = if self.wants(repeats) { at_most(repeats) as usize * each } else { done };
        (done, all.saturating_sub(done))
    }
}

/// A test of a verdict: two trials in turn, the unchanged one first.
#[derive(Debug, Clone)]
struct Proof {
    unchanged: Cell,
    changed: Cell,
    /// There are as many pairs as it takes, or one of the trials cannot be made.
    is_done: bool,
}

impl Proof {
    fn new([unchanged, changed]: [Trial; 2]) -> Self {
        Self { unchanged: Cell::new(unchanged), changed: Cell::new(changed), is_done: false }
    }

    /// The cell whose turn it is.
    fn next(&self) -> &Cell {
        if self.unchanged.figures.len() > self.changed.figures.len() { &self.changed } else { &self.unchanged }
    }

    /// Trials done, and those left at the most.
    fn progress(&self) -> (usize, usize) {
        let done = self.unchanged.runs() + self.changed.runs();
        (done, if self.is_done { 0 } else { (2 * MOST_PAIRS as usize).saturating_sub(done) })
    }
}

impl Sweep {
    /// A sweep over the cells of `plan`, nothing run yet. A name that comes twice is one cell.
    pub fn new(plan: &Plan, hosts: &[Host]) -> Self {
        let mut names = BTreeSet::new();
        let cells = plan.cells().iter().filter(|cell| names.insert(cell.name.clone()));
        let mut cells: Vec<Cell> = cells.cloned().map(Cell::new).collect();
        let mut idle_names = BTreeSet::new();
        for cell in &mut cells {
            cell.shares_idle = cell.idle.as_ref().is_some_and(|idle| !idle_names.insert(idle.name.clone()));
        }
        Self {
            repeats: plan.repeats().unwrap_or(Repeats::Times(1)),
            prove: plan.prove,
            calibrated: plan.calibrated.clone(),
            hosts: hosts.to_vec(),
            cells,
            proofs: None,
            taken: Vec::new(),
            goes_on: false,
        }
    }

    /// The same, which goes on without a cell that failed.
    pub(crate) fn going_on(self) -> Self {
        Self { goes_on: true, ..self }
    }

    /// One more cell, unless it is known.
    pub(crate) fn add(&mut self, cell: &Trial) {
        if self.cells.iter().all(|known| known.trial.name != cell.name) {
            self.cells.push(Cell::new(cell.clone()));
        }
    }

    /// What was measured so far.
    pub(crate) fn results(&self) -> Vec<Measurement> {
        let changed = self.proofs.iter().flatten().map(|proof| &proof.changed).filter(|cell| !cell.given_up);
        let cells: Vec<&Trial> = self.cells.iter().chain(changed).map(|cell| &cell.trial).collect();
        measured(&cells, self.repeats, &self.calibrated, &self.hosts, &self.taken)
    }

    /// Chooses what tests the verdicts, once all that was asked for is measured.
    fn choose_proofs(&mut self) {
        if self.prove && self.proofs.is_none() && self.due().is_none() {
            let cells: Vec<&Trial> = self.cells.iter().map(|cell| &cell.trial).collect();
            let tests = counterproofs(&cells, &self.results(), &self.taken, &self.hosts);
            self.proofs = Some(tests.into_iter().map(Proof::new).collect());
        }
    }

    /// The cell that is due: the one with the fewest runs among those that need more, the first of them in the plan's order. What
    /// tests a verdict comes after all cells, each test as a whole.
    fn due(&self) -> Option<&Cell> {
        let wants = |cell: &&Cell| cell.wants(&self.repeats);
        let cell = self.cells.iter().filter(wants).min_by_key(|cell| cell.figures.len());
        cell.or_else(|| self.proofs.iter().flatten().find(|proof| !proof.is_done).map(Proof::next))
    }

    /// Takes an attempt at a trial of a test; whether it was one.
    fn take_of_proof(&mut self, result: &TrialResult) -> bool {
        let mut proofs = self.proofs.iter_mut().flatten();
        let is_of = |proof: &&mut Proof| proof.unchanged.is(result) || proof.changed.is(result);
        let Some(proof) = proofs.find(is_of) else { return false };
        if result.failure().is_some() {
            // A test that cannot be made (datagrams may be barred where TCP is not) is left out: what was asked for is measured.
            proof.changed.given_up = true;
            proof.is_done = true;
        } else if result.is_counted() && (proof.unchanged.take(result) || proof.changed.take(result)) {
            self.taken.push(result.clone());
            let pairs = Pairs::of(&proof.changed.trial, &self.taken, &self.hosts);
            // Whether there are enough is known when a pair is whole.
            let is_whole = proof.unchanged.figures.len() == proof.changed.figures.len();
            proof.is_done = is_whole && pairs.is_some_and(|pairs| !pairs.need_more());
        }
        true
    }
}

impl Method for Sweep {
    fn next(&self) -> Step {
        self.due().map_or(Step::Done, Cell::next)
    }

    fn record(&mut self, result: &TrialResult) -> After {
        if self.take_of_proof(result) {
            return After::GoOn;
        }
        if result.failure().is_some() {
            let failed = self.cells.iter_mut().find(|cell| cell.is(result)).filter(|_| self.goes_on);
            let Some(failed) = failed else { return After::End };
            failed.given_up = true;
        } else if result.is_counted() {
            // Several cells may share one trial of their probes alone.
            let mut is_taken = false;
            for cell in &mut self.cells {
                is_taken |= cell.take(result);
            }
            if is_taken {
                self.taken.push(result.clone());
            }
        }
        self.choose_proofs();
        After::GoOn
    }

    fn progress(&self) -> Progress {
        let cells = self.cells.iter().map(|cell| cell.progress(&self.repeats));
        let all = cells.chain(self.proofs.iter().flatten().map(Proof::progress));
        let (done, left) = all.fold((0, 0), |sum, cell| (sum.0 + cell.0, sum.1 + cell.1));
        Progress { done, at_most: Some(done + left), known: None }
    }

    fn summary(&self) -> RunSummary {
        RunSummary::of(&self.results())
    }

    fn conclude(&self, record: &mut Record) {
        record.results = measurements(record);
        record.outcome = Outcome::Sweep;
        tell_untested(record);
        tell_repeats(record);
    }
}

/// Says in `record` which tests of verdicts could not be made.
pub(crate) fn tell_untested(record: &mut Record) {
    let untested: Vec<Caveat> = record
        .trials
        .iter()
        .filter_map(|result| {
            let test = result.trial.proves.as_ref()?;
            let name = changed_name(&test.of, &test.change);
            let text = message!(
                "caveat-not-put-to-test",
                "this test of a verdict was not run: {name}: {why}",
                name,
                why = result.failure()?
            );
            Some(Caveat::new(CaveatKind::NotMeasured, text))
        })
        .collect();
    tell(record, untested);
}

/// Adds caveats to `record` that it does not have yet.
pub(crate) fn tell(record: &mut Record, caveats: impl IntoIterator<Item = Caveat>) {
    for caveat in caveats {
        if !record.caveats.contains(&caveat) {
            record.caveats.push(caveat);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::tests::placed;
    use crate::beside::with_load;
    use crate::loaded_latency::tests::{MS, asked, run};
    use crate::transfer::tests::{spec, stream_of, trial};
    use linerate_model::{
        Message, Offered, PairPart, RecordId, Repeats, Standing, StreamTask, Task, TransactTask, Transport,
    };
    use linerate_units::{BitRate, ByteCount};

    fn plan(repeats: Repeats) -> Plan {
        let cells = ["udp 64", "udp 1472"].map(|name| {
            let mut cell = spec();
            cell.name = name.into();
            cell
        });
        Plan::sweep(cells.to_vec(), repeats)
    }

    /// Runs a sweep against a simulated path that gives each trial the next rate of a list.
    fn swept(plan: Plan, mut rates: impl FnMut(&str) -> u64) -> Vec<String> {
        let (mut sweep, mut names) = (Sweep::new(&plan, &[]), Vec::new());
        while let Step::Run { trial: spec, again } = sweep.next() {
            assert!(names.len() < 100, "a sweep must end");
            assert_eq!(again, Again::Search);
            names.push(spec.name.clone());
            let result = TrialResult { trial: *spec, ..trial(rates(names.last().expect("one")), 0) };
            assert_eq!(sweep.record(&result), After::GoOn);
        }
        let progress = sweep.progress();
        assert_eq!((progress.done, progress.at_most), (names.len(), Some(names.len())));
        names
    }

    #[test]
    fn rounds_are_interleaved() {
        let names = swept(plan(Repeats::Times(2)), |_| 1000);
        assert_eq!(names, ["udp 64", "udp 1472", "udp 64", "udp 1472"]);
    }

    #[test]
    fn a_name_that_comes_twice_is_one_cell() {
        let mut cells = plan(Repeats::Times(2)).cells().to_vec();
        cells.push(cells[0].clone());
        assert_eq!(swept(Plan::sweep(cells, Repeats::Times(2)), |_| 1000).len(), 4);
    }

    #[test]
    fn only_the_unsteady_cell_is_run_on() {
        let until = Repeats::Until { confidence_percent: 95.0, within: 0.02, at_least: 3, at_most: 9 };
        let mut turn = 0;
        let names = swept(plan(until), |name| {
            turn += 1;
            if name == "udp 64" && turn < 3 { 900_000 } else { 1_000_000 }
        });
        let count = |cell: &str| names.iter().filter(|name| *name == cell).count();
        assert_eq!((count("udp 1472"), count("udp 64")), (5, 9), "{names:?}");
    }

    /// The next trial of a sweep.
    fn next(sweep: &Sweep) -> Option<Trial> {
        match sweep.next() {
            Step::Run { trial, .. } => Some(*trial),
            Step::Done => None,
        }
    }

    #[test]
    fn the_probe_runs_alone_before_each_repeat_and_both_are_paired_in_order() {
        let stream = StreamTask::plain(Transport::Udp, ByteCount::new(1_000));
        let cell = with_load(spec(), Task::Transact(TransactTask::beside(&stream, Transport::Udp)));
        let plan = Plan::sweep(vec![cell.clone()], Repeats::Times(2));
        let mut sweep = Sweep::new(&plan, &[]);
        let mut trials = Vec::new();
        // Beside the load requests take 10 ms more than alone: 20 ms in the first repeat, 40 ms in the second.
        for alone_ms in [10, 30] {
            let (idle, loaded) = run(asked(&[alone_ms * MS; 100], 0), asked(&[(alone_ms + 10) * MS; 100], 0));
            // What is spoilt is run again by itself.
            let reason = Caveat::new(CaveatKind::CpuStolen, Message::untranslated("stolen"));
            let spoilt = TrialResult { standing: Standing::Spoilt { reason }, ..loaded.clone() };
            for result in [idle, spoilt, loaded] {
                assert_eq!(next(&sweep).as_ref(), Some(&result.trial));
                assert_eq!(sweep.record(&result), After::GoOn);
                trials.push(result);
            }
        }
        assert_eq!(next(&sweep), None);
        let progress = sweep.progress();
        assert_eq!((progress.done, progress.at_most), (4, Some(4)));
        let mut record = Record { trials, ..Record::new(RecordId("r".into()), plan) };
        crate::replay(&mut record);
        assert_eq!(record.results.len(), 1, "the probe alone is no result");
        let found = record.results[0].loaded_latency().expect("it was probed");
        let added = &found.added_ns.p50_runs;
        assert!(added.runs == 2 && added.values.iter().all(|value| (value / 10e6 - 1.0).abs() < 0.01), "{added:?}");
        assert!(record.caveats.iter().any(|caveat| caveat.text.starts_with("2 of 4 trials")), "{:?}", record.caveats);
    }

    /// A UDP stream that loses one in a hundred is said to have a bad path, which half the load tests.
    fn lossy() -> (Plan, TrialResult) {
        let mut cell = spec();
        stream_of(&mut cell).offered = Some(Offered::PayloadBps(BitRate::per_second(80_000_000)));
        let measured = placed(TrialResult { trial: cell.clone(), ..trial(9_900, 100) });
        (Plan { prove: true, ..Plan::sweep(vec![cell], Repeats::Times(1)) }, measured)
    }

    #[test]
    fn a_verdict_is_tested_once_all_is_measured_and_only_if_that_is_asked_for() {
        let (plan, measured) = lossy();
        let mut unproven = Sweep::new(&Plan { prove: false, ..plan.clone() }, &[]);
        unproven.record(&measured);
        assert_eq!(next(&unproven), None);
        let (record, progress) = proven(plan, &measured, &[50]);
        let result = &record.results[0];
        assert_eq!((record.results.len(), result.main.runs), (2, 1), "pairs do not change what was measured first");
        let [proof] = &result.verdict.proofs[..] else { panic!("one test: {:?}", result.verdict) };
        assert_eq!((proof.pairs, proof.held, proof.ratio), (3, Some(true), None));
        let names: Vec<&str> = record.trials.iter().skip(1).map(|run| run.trial.name.as_str()).collect();
        let [unchanged, changed] = ["udp 1000 again, for half the load", "udp 1000 with half the load"];
        assert_eq!(names, [unchanged, changed].repeat(3));
        assert_eq!((progress.done, progress.at_most), (7, Some(7)));
    }

    #[test]
    fn a_test_that_does_not_decide_is_measured_in_more_pairs() {
        let (plan, measured) = lossy();
        // Loss that neither goes nor stays is open after three pairs; what six come to stands.
        let (record, progress) = proven(plan, &measured, &[15]);
        let proof = &record.results[0].verdict.proofs[0];
        assert_eq!((proof.pairs, proof.held, record.trials.len()), (6, None, 13));
        assert_eq!((progress.done, progress.at_most), (13, Some(13)));
    }

    #[test]
    fn a_spoilt_trial_is_of_no_pair_and_half_a_pair_decides_nothing() {
        let (plan, measured) = lossy();
        let mut sweep = Sweep::new(&plan, &[]);
        let mut record = Record::new(RecordId("r".into()), plan.clone());
        let mut take = |sweep: &mut Sweep, result: TrialResult| {
            assert_eq!(sweep.record(&result), After::GoOn);
            record.trials.push(result);
            crate::replay(&mut record);
            assert_eq!(sweep.results(), record.results);
            record.results.first().map(|result| result.verdict.proofs.clone()).unwrap_or_default()
        };
        assert_eq!(take(&mut sweep, measured), []);
        assert_eq!(sweep.progress().at_most, Some(13));
        let unchanged = as_found(&next(&sweep).expect("a test"), 50);
        let reason = Caveat::new(CaveatKind::CpuStolen, Message::untranslated("stolen"));
        assert_eq!(take(&mut sweep, TrialResult { standing: Standing::Spoilt { reason }, ..unchanged.clone() }), []);
        assert_eq!(next(&sweep).as_ref(), Some(&unchanged.trial));
        assert_eq!(take(&mut sweep, unchanged.clone()), []);
        let changed = as_found(&next(&sweep).expect("the other half"), 50);
        assert_ne!(changed.trial.name, unchanged.trial.name);
        let proofs = take(&mut sweep, changed);
        assert_eq!((proofs[0].pairs, proofs[0].held), (1, None));
        assert_eq!(take(&mut sweep, unchanged)[0].pairs, 1);
    }

    /// A trial of a test, of which the unchanged one loses 100 of 10,000 datagrams, and the changed one so many of 5,000.
    fn as_found(trial: &Trial, lost: u64) -> TrialResult {
        let of = match trial.proves.as_ref().map(|test| test.part) {
            Some(PairPart::Changed) => crate::transfer::tests::trial(5_000 - lost, lost),
            _ => crate::transfer::tests::trial(9_900, 100),
        };
        placed(TrialResult { trial: trial.clone(), ..of })
    }

    /// The record of a run whose changed trials lose so many in turn. In replay it comes to the same as in the run.
    fn proven(plan: Plan, measured: &TrialResult, lost: &[u64]) -> (Record, Progress) {
        let mut sweep = Sweep::new(&plan, &[]);
        sweep.record(measured);
        let mut trials = vec![measured.clone()];
        for lost in lost.iter().cycle() {
            for _ in 0..2 {
                let Some(trial) = next(&sweep) else { break };
                let result = as_found(&trial, *lost);
                sweep.record(&result);
                trials.push(result);
            }
            assert!(trials.len() < 100, "tests must end");
            if next(&sweep).is_none() {
                break;
            }
        }
        let mut record = Record { trials, ..Record::new(RecordId("r".into()), plan) };
        crate::replay(&mut record);
        assert_eq!(sweep.results(), record.results);
        (record, sweep.progress())
    }

    #[test]
    fn a_test_that_cannot_be_made_is_left_out_and_a_cell_that_cannot_ends_the_run() {
        let (plan, measured) = lossy();
        let mut sweep = Sweep::new(&plan, &[]);
        sweep.record(&measured);
        let unchanged = as_found(&next(&sweep).expect("a test"), 0);
        sweep.record(&unchanged);
        let test = TrialResult::failed(next(&sweep).expect("its other half"), 0, "b: datagrams are barred");
        assert_eq!(sweep.record(&test), After::GoOn);
        assert_eq!((next(&sweep), sweep.progress().at_most), (None, Some(2)));
        let name = test.trial.name.clone();
        let trials = vec![measured.clone(), unchanged, test];
        let mut record = Record { trials, ..Record::new(RecordId("r".into()), plan) };
        crate::replay(&mut record);
        assert!(record.result(&name).is_none() && record.results == sweep.results() && record.results.len() == 1);
        let told = format!("this test of a verdict was not run: {name}: b: datagrams are barred");
        assert_eq!(
            record.caveats.iter().map(|caveat| &caveat.text).collect::<Vec<_>>(),
            [&Message::untranslated(told)]
        );
        let failed = TrialResult::failed(measured.trial.clone(), 0, "b: refused");
        assert_eq!(Sweep::new(&record.plan, &[]).record(&failed), After::End);
    }
}
