//! What the counts of copies amount to.

use crate::copy_proof::settle;
use crate::measure::latency_of;
use crate::verdict::{self, CopyFacts};
use linerate_model::{
    Caveat, CaveatKind, CopyClient, CopyFrom, CopyHalfResult, CopyOutcome, CopyPart, CopyPlan, CopySide, CopyStage,
    CopyTrial, CopyVerify, CopyWay, Host, HostName, Record, SizeClass, SizeClassTimes, StageShare, StageTime,
    WorkShare,
};
use linerate_units::Nanos;
use std::collections::BTreeMap;

/// Faults that are told one by one.
const FAULTS_TOLD: usize = 100;

pub use crate::copy_proof::counterproof;

/// What was found by the copies of `record`, its verdict put to the tests that there are.
pub fn outcome(record: &Record) -> Option<CopyOutcome> {
    let mut outcome = found(record.plan.copy.as_ref()?, &record.hosts, &record.copy_trials)?;
    record.copy_tests.iter().for_each(|test| settle(&mut outcome, &record.hosts, test));
    Some(outcome)
}

/// What was found by `trials`, the copies of `plan` between `hosts`; the figures are those of the median run by bytes a second.
pub fn found(plan: &CopyPlan, hosts: &[Host], trials: &[CopyTrial]) -> Option<CopyOutcome> {
    let runs: Vec<CopyOutcome> = trials.iter().map(|trial| run(plan, hosts, trial)).collect();
    let mut order: Vec<&CopyOutcome> = runs.iter().collect();
    order.sort_by(|a, b| a.bytes_per_s.total_cmp(&b.bytes_per_s));
    let middle = *order.get(order.len().saturating_sub(1) / 2)?;
    Some(CopyOutcome {
        runs_bytes_per_s: runs.iter().map(|run| run.bytes_per_s).collect(),
        verified: runs.iter().all(|run| run.verified),
        faults: runs.iter().flat_map(|run| run.faults.iter().cloned()).take(FAULTS_TOLD).collect(),
        faults_total: runs.iter().map(|run| run.faults_total).sum(),
        ..middle.clone()
    })
}

/// What every host counted.
fn parts(trial: &CopyTrial) -> impl Iterator<Item = &CopyPart> {
    trial.sources.iter().chain(&trial.destinations).chain(&trial.servers)
}

/// Whether every part of every copy came to its end.
pub fn is_complete(trials: &[CopyTrial]) -> bool {
    trials.iter().flat_map(parts).flat_map(|part| &part.counted.sides).all(|side| side.complete)
}

/// Doubts about copies between these hosts.
pub fn doubts(plan: &CopyPlan, hosts: &[Host], trials: &[CopyTrial]) -> Vec<Caveat> {
    let machine = |name: &HostName| hosts.iter().find(|host| host.name == *name).map(|host| host.boot_id.as_str());
    let machines: Vec<&str> = plan.sources.iter().chain(&plan.destinations).filter_map(machine).collect();
    let shared = machines.iter().enumerate().any(|(at, one)| !one.is_empty() && machines[..at].contains(one));
    let mut all: Vec<Caveat> = Vec::new();
    if shared {
        let text = "source and destination are one machine, which shared its cores, storage and caches between them: copy \
                    between two machines to know what one of them can do";
        all.push(Caveat::new(CaveatKind::SharedMachine, text));
    }
    let skipped = trials.iter().map(|trial| run(plan, hosts, trial).links_skipped).max().unwrap_or_default();
    if skipped > 0 {
        let text = format!(
            "the tree's symbolic links were left out ({skipped} of them) and are in no figure: --links copy copies them, and names \
             each where the destination cannot hold it"
        );
        all.push(Caveat::new(CaveatKind::LeftOut, text));
    }
    for part in trials.iter().flat_map(parts) {
        for caveat in &part.counted.caveats {
            let told = Caveat::new(caveat.kind, format!("on {}: {}", part.host, caveat.text));
            if !all.contains(&told) {
                all.push(told);
            }
        }
    }
    all
}

fn run(plan: &CopyPlan, hosts: &[Host], trial: &CopyTrial) -> CopyOutcome {
    let mut outcome = CopyOutcome::default();
    let halves = || parts(trial).map(|part| &part.counted);
    for half in halves() {
        outcome.faults.extend(half.faults.iter().take(FAULTS_TOLD.saturating_sub(outcome.faults.len())).cloned());
        outcome.faults_total += half.faults_total;
    }
    outcome.links_skipped = halves().flat_map(|half| &half.sides).map(|side| side.links_skipped).sum();
    for side in trial.destinations.iter().flat_map(|part| &part.counted.sides) {
        outcome.files += side.files;
        outcome.folders += side.folders;
        outcome.links += side.links;
        outcome.bytes += side.bytes;
        outcome.files_verified += side.verified;
        outcome.files_kept += side.kept;
    }
    outcome.clients = clients(plan, trial);
    outcome.time_ns = outcome.clients.iter().map(|client| client.finished_ns).max().unwrap_or_default();
    outcome.bytes_per_s = per_second(outcome.bytes, outcome.time_ns);
    outcome.files_per_s = per_second(outcome.files, outcome.time_ns);
    outcome.verified = plan.options.verify != CopyVerify::None
        && outcome.files_verified == outcome.files
        && outcome.faults_total == 0
        && is_complete(std::slice::from_ref(trial));
    outcome.stages = shares(halves().flat_map(|half| &half.sides));
    let busiest = outcome.stages.iter().max_by(|a, b| a.1.busy.total_cmp(&b.1.busy));
    outcome.busiest_stage = busiest.map(|(stage, _)| *stage);
    outcome.sizes = sizes(trial.destinations.iter().flat_map(|part| &part.counted.sides));
    outcome.verdict = CopyFacts::of(plan, hosts, trial).map(|facts| verdict::of_copy(&facts));
    outcome
}

fn per_second(count: u64, nanos: u64) -> f64 {
    if nanos == 0 { 0.0 } else { count as f64 * 1e9 / nanos as f64 }
}

/// Each pair. The source's clock says when a destination was done: it heard of it.
fn clients(plan: &CopyPlan, trial: &CopyTrial) -> Vec<CopyClient> {
    let mut all = Vec::new();
    for (at, part) in trial.destinations.iter().enumerate() {
        for (source, side) in part.counted.sides.iter().enumerate() {
            let sent = trial.sources.get(source).and_then(|part| part.counted.sides.get(at));
            let time = sent.filter(|sent| sent.complete).map_or(side.time, |sent| sent.time).get();
            let (from, to) = ends(plan, &part.host, source);
            all.push(CopyClient {
                from,
                to,
                files: side.files,
                bytes: side.bytes,
                finished_ns: time,
                bytes_per_s: per_second(side.bytes, time),
                share: 0.0,
            });
        }
    }
    let sum: f64 = all.iter().map(|client| client.bytes_per_s).sum();
    if sum > 0.0 {
        all.iter_mut().for_each(|client| client.share = client.bytes_per_s / sum);
    }
    all
}

/// Who a part's side at `index` got it from, and who got it. Where a file server is an end, the host at the other end counts.
fn ends(plan: &CopyPlan, host: &HostName, index: usize) -> (HostName, HostName) {
    let named = |names: &[HostName], at: usize| names.get(at).unwrap_or(host).clone();
    match (plan.way, &plan.from) {
        (CopyWay::Linerate, _) => (named(&plan.sources, index), host.clone()),
        (_, CopyFrom::Server(_)) => (named(&plan.sources, 0), host.clone()),
        _ => (host.clone(), named(&plan.destinations, index)),
    }
}

/// The two ends that were done last, and so say when the whole was.
pub(crate) struct LastPair<'a> {
    /// The source; none where one host does it all.
    pub(crate) source: Option<(&'a HostName, &'a CopyHalfResult)>,
    /// The destination, or the host that does it all.
    pub(crate) destination: (&'a HostName, &'a CopyHalfResult),
    /// What they counted towards each other.
    pub(crate) sides: Vec<&'a CopySide>,
    /// When they were done.
    pub(crate) time: Nanos,
}

/// The pair of `trial` that was done last.
pub(crate) fn last_pair<'a>(plan: &CopyPlan, trial: &'a CopyTrial) -> Option<LastPair<'a>> {
    let clients = clients(plan, trial);
    let pairs = trial.destinations.iter().flat_map(|part| (0..part.counted.sides.len()).map(move |at| (part, at)));
    let ((destination, source), client) = pairs.zip(clients).max_by_key(|(_, client)| client.finished_ns)?;
    let at = trial.destinations.iter().position(|part| std::ptr::eq(part, destination))?;
    let from = trial.sources.get(source);
    let sides =
        from.and_then(|part| part.counted.sides.get(at)).into_iter().chain(destination.counted.sides.get(source));
    Some(LastPair {
        source: from.map(|part| (&part.host, &part.counted)),
        destination: (&destination.host, &destination.counted),
        sides: sides.collect(),
        time: Nanos::new(client.finished_ns),
    })
}

/// Each stage's time of all hosts as shares of the time of its threads.
pub(crate) fn shares<'a>(sides: impl Iterator<Item = &'a CopySide>) -> BTreeMap<CopyStage, StageShare> {
    let mut sums: BTreeMap<CopyStage, StageTime> = BTreeMap::new();
    for (stage, time) in sides.flat_map(|side| &side.stages) {
        sums.entry(*stage).or_default().add(*time);
    }
    let share = |time: StageTime| {
        let all = (time.busy + time.waiting_for_previous + time.waiting_for_next).get().max(1) as f64;
        let of_one = |part: Nanos| part.get() as f64 * f64::from(time.threads) / all;
        StageShare {
            busy: time.busy.get() as f64 / all,
            waiting_for_previous: time.waiting_for_previous.get() as f64 / all,
            waiting_for_next: time.waiting_for_next.get() as f64 / all,
            cpu: time.cpu.get() as f64 / all,
            queued: time.queued.get() as f64 / all,
            busiest: WorkShare {
                busy: of_one(time.busiest.busy),
                cpu: of_one(time.busiest.cpu),
                queued: of_one(time.busiest.queued),
            },
            threads: time.threads,
        }
    };
    sums.into_iter().map(|(stage, time)| (stage, share(time))).collect()
}

fn sizes<'a>(sides: impl Iterator<Item = &'a CopySide>) -> Vec<SizeClass> {
    let mut all: BTreeMap<u64, SizeClassTimes> = BTreeMap::new();
    for (from, times) in sides.flat_map(|side| &side.sizes) {
        let sum = all.entry(*from).or_default();
        sum.files += times.files;
        sum.bytes += times.bytes;
        sum.time.merge(&times.time);
    }
    let class = |(from_bytes, times): (u64, SizeClassTimes)| SizeClass {
        from_bytes,
        files: times.files,
        bytes: times.bytes,
        time_ns: latency_of(&times.time),
    };
    all.into_iter().map(class).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use linerate_model::{
        CopyCache, CopyExisting, CopyFault, CopyInto, CopyLinks, CopyOnError, CopyOptions, CopySync, CopyTree,
        IpVersion, Observation, WorkTime,
    };

    pub(crate) fn plan(destinations: &[&str]) -> CopyPlan {
        CopyPlan {
            tree: CopyTree::Folder(String::from("/t")),
            way: CopyWay::Linerate,
            sources: vec!["a".into()],
            destinations: destinations.iter().map(|name| (*name).into()).collect(),
            from: CopyFrom::Files,
            into: CopyInto::Scratch,
            options: CopyOptions {
                lanes: 2,
                verify: CopyVerify::Received,
                sync: CopySync::End,
                cache: CopyCache::AsIs,
                on_error: CopyOnError::Continue,
                existing: CopyExisting::Refuse,
                links: CopyLinks::Copy,
            },
            ip: IpVersion::V4,
        }
    }

    fn part(host: &str, sides: Vec<CopySide>) -> CopyPart {
        let counted = CopyHalfResult {
            started_unix_ns: 1,
            sides,
            faults: Vec::new(),
            faults_total: 0,
            observation: Observation::default(),
            caveats: Vec::new(),
        };
        CopyPart { host: host.into(), counted }
    }

    /// A side that took `seconds`, its one stage busy for half of it in two threads.
    pub(crate) fn side(seconds: u64, files: u64, stage: CopyStage) -> CopySide {
        let time = StageTime {
            threads: 2,
            busy: Nanos::from_secs(seconds),
            waiting_for_previous: Nanos::from_secs(seconds),
            ..StageTime::default()
        };
        CopySide {
            time: Nanos::from_secs(seconds),
            files,
            verified: files,
            bytes: files * 1_000,
            stages: BTreeMap::from([(stage, time)]),
            complete: true,
            ..CopySide::default()
        }
    }

    fn trial() -> CopyTrial {
        CopyTrial {
            sources: vec![part("a", vec![side(2, 300, CopyStage::Send), side(4, 300, CopyStage::Send)])],
            destinations: vec![
                part("b", vec![side(2, 300, CopyStage::Write)]),
                part("c", vec![side(4, 300, CopyStage::Write)]),
            ],
            servers: Vec::new(),
        }
    }

    #[test]
    fn the_total_runs_until_the_last_and_each_client_has_its_share() {
        let found = found(&plan(&["b", "c"]), &[], &[trial()]).expect("a run");
        assert_eq!((found.files, found.bytes, found.time_ns), (600, 600_000, 4_000_000_000));
        assert_eq!((found.bytes_per_s, found.files_per_s), (150_000.0, 150.0));
        let clients: Vec<_> = found.clients.iter().map(|client| (client.to.0.as_str(), client.finished_ns)).collect();
        assert_eq!(clients, [("b", 2_000_000_000), ("c", 4_000_000_000)]);
        assert!((found.clients[0].share - 2.0 / 3.0).abs() < 1e-9);
        assert!(found.verified);
        let send = found.stages[&CopyStage::Send];
        assert_eq!((send.busy, send.waiting_for_previous, send.waiting_for_next, send.threads), (0.5, 0.5, 0.0, 4));
    }

    #[test]
    fn the_verdict_is_of_the_pair_that_was_done_last() {
        let mut trial = trial();
        // Only the slower destination waited for its storage all the time.
        let busiest = WorkTime { busy: Nanos::from_secs(4), ..WorkTime::default() };
        let time = StageTime { threads: 2, busy: Nanos::from_secs(8), busiest, ..StageTime::default() };
        trial.destinations[1].counted.sides[0].stages = BTreeMap::from([(CopyStage::Write, time)]);
        let limit = |trial| found(&plan(&["b", "c"]), &[], &[trial]).and_then(|found| found.verdict).map(|v| v.limit);
        assert_eq!(limit(trial.clone()), Some(linerate_model::Limit::StorageWrite));
        trial.sources[0].counted.sides[0].time = Nanos::from_secs(9);
        assert_eq!(limit(trial), Some(linerate_model::Limit::CannotTell));
    }

    #[test]
    fn nothing_that_was_left_out_is_verified() {
        let plan = plan(&["b", "c"]);
        let mut unverified = trial();
        unverified.destinations[1].counted.sides[0].verified -= 1;
        let mut broken = trial();
        broken.sources[0].counted.sides[1].complete = false;
        let mut faulty = trial();
        let fault = CopyFault { path: "x".into(), stage: CopyStage::Read, reason: "gone".into() };
        faulty.sources[0].counted.faults = vec![fault.clone()];
        faulty.sources[0].counted.faults_total = 1;
        for trial in [&unverified, &broken, &faulty] {
            assert!(!found(&plan, &[], std::slice::from_ref(trial)).expect("a run").verified);
        }
        assert_eq!(found(&plan, &[], &[trial(), faulty]).expect("runs").faults, [fault]);
        assert!(!is_complete(&[trial(), broken]) && is_complete(&[trial()]));
    }

    #[test]
    fn links_that_were_left_out_are_counted_and_a_doubt_says_so() {
        let mut trial = trial();
        let plan = plan(&["b", "c"]);
        assert!(doubts(&plan, &[], &[trial.clone()]).iter().all(|doubt| doubt.kind != CaveatKind::LeftOut));
        trial.sources[0].counted.sides.iter_mut().for_each(|side| side.links_skipped = 7);
        assert_eq!(found(&plan, &[], &[trial.clone()]).expect("a run").links_skipped, 14, "at both destinations");
        let doubts = doubts(&plan, &[], &[trial]);
        assert!(doubts.iter().any(|doubt| doubt.kind == CaveatKind::LeftOut && doubt.text.contains("(14 of them)")));
    }

    #[test]
    fn the_median_run_stands_for_all() {
        let of = |seconds| {
            let mut trial = trial();
            trial.destinations.truncate(1);
            trial.sources[0].counted.sides.truncate(1);
            trial.sources[0].counted.sides[0].time = Nanos::from_secs(seconds);
            trial
        };
        let found = found(&plan(&["b"]), &[], &[of(1), of(4), of(2)]).expect("runs");
        assert_eq!((found.bytes_per_s, found.runs_bytes_per_s), (150_000.0, vec![300_000.0, 75_000.0, 150_000.0]));
    }
}
