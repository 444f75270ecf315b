//! What the counts of copies amount to.

mod facts;
mod proof;

pub(crate) use proof::counterproof;

use crate::context::Context;
use crate::latency::latency_of;
use crate::statistics::summary;
use crate::verdict::{self, CopyFacts};
use linerate_model::{
    Caveat, CaveatKind, Confidence, CopyClient, CopyFigures, CopyFrom, CopyPart, CopyParts, CopySide, CopyStage,
    CopyTask, CopyVerify, CopyWay, Detail, Host, HostName, Limit, Measurement, Quantity, SizeClass, SizeClassTimes,
    StageShare, StageTime, Task, Trial, TrialResult, Verdict, WorkShare, message,
};
use linerate_units::Nanos;
use std::collections::BTreeMap;

/// The name of a copy that is asked for by itself, and of a ladder's.
pub const CELL: &str = "copy";

/// Faults that are told one by one.
const FAULTS_TOLD: usize = 100;

/// What the copies of `cell` amount to; the figures are those of the median run by bytes a second.
pub(crate) fn measure(cell: &Trial, runs: &[&TrialResult], with: &Context<'_>) -> Measurement {
    let copies: Vec<Copied<'_>> = runs.iter().filter_map(|run| Copied::of(run)).collect();
    let found: Vec<CopyFigures> = copies.iter().map(figures).collect();
    let mut order: Vec<usize> = (0..found.len()).collect();
    order.sort_by(|a, b| found[*a].bytes_per_s.total_cmp(&found[*b].bytes_per_s));
    let middle = order.get(order.len().saturating_sub(1) / 2).copied();
    let verdict = middle.and_then(|at| CopyFacts::of(&copies[at], with.hosts)).map(|facts| verdict::of_copy(&facts));
    let figures = CopyFigures {
        runs_bytes_per_s: found.iter().map(|run| run.bytes_per_s).collect(),
        verified: found.iter().all(|run| run.verified),
        faults: found.iter().flat_map(|run| run.faults.iter().cloned()).take(FAULTS_TOLD).collect(),
        faults_total: found.iter().map(|run| run.faults_total).sum(),
        ..middle.map(|at| found[at].clone()).unwrap_or_default()
    };
    let main = summary(figures.runs_bytes_per_s.iter().map(|bytes| bytes * 8.0).collect());
    Measurement {
        name: cell.name.clone(),
        quantity: Quantity::PayloadBps,
        main: main.expect("a cell is measured only when it has runs"),
        tester_limit: None,
        verdict: verdict.unwrap_or_else(|| Verdict::new(Limit::CannotTell, Confidence::Low, Vec::new())),
        caveats: doubts(&copies, with.hosts),
        detail: Detail::Copy(Box::new(figures)),
    }
}

/// A copy that was made.
pub(crate) struct Copied<'a> {
    pub(crate) result: &'a TrialResult,
    pub(crate) task: &'a CopyTask,
    pub(crate) parts: &'a CopyParts,
}

impl<'a> Copied<'a> {
    /// The copy of a result; none if it is of something else.
    pub(crate) fn of(result: &'a TrialResult) -> Option<Self> {
        match (result.trial.task(), result.copy()) {
            (Task::Copy(task), Some(parts)) => Some(Self { result, task, parts }),
            _ => None,
        }
    }

    /// Files a second, all destinations together.
    pub(crate) fn files_per_s(&self) -> f64 {
        figures(self).files_per_s
    }
}

/// Bits a second, all destinations together.
pub(crate) fn bits_per_s(task: &CopyTask, parts: &CopyParts) -> f64 {
    let bytes = parts.destinations.iter().flat_map(|part| &part.counted.sides).map(|side| side.bytes).sum();
    let time = clients(task, parts).iter().map(|client| client.finished_ns).max().unwrap_or_default();
    per_second(bytes, time) * 8.0
}

/// What every host counted.
fn all_parts(trial: &CopyParts) -> impl Iterator<Item = &CopyPart> {
    trial.sources.iter().chain(&trial.destinations).chain(&trial.servers)
}

/// Returns whether every part of every copy came to its end.
pub fn is_complete<'a>(copies: impl IntoIterator<Item = &'a CopyParts>) -> bool {
    copies.into_iter().flat_map(all_parts).flat_map(|part| &part.counted.sides).all(|side| side.complete)
}

/// Doubts about copies between these hosts.
fn doubts(copies: &[Copied<'_>], hosts: &[Host]) -> Vec<Caveat> {
    let machine = |name: &HostName| hosts.iter().find(|host| host.name == *name).map(|host| host.boot_id.as_str());
    let ends = copies.first().map(|copied| copied.task.sources.iter().chain(&copied.task.destinations));
    let machines: Vec<&str> = ends.into_iter().flatten().filter_map(machine).collect();
    let shared = machines.iter().enumerate().any(|(at, one)| !one.is_empty() && machines[..at].contains(one));
    let mut all: Vec<Caveat> = Vec::new();
    if shared {
        let text = message!(
            "caveat-shared-machine-copy",
            "source and destination are one machine, which shared its cores, storage and caches between them: \
             copy between two machines to know what one of them can do"
        );
        all.push(Caveat::new(CaveatKind::SharedMachine, text));
    }
    let skipped = copies.iter().map(|copied| links_skipped(copied.parts)).max().unwrap_or_default();
    if skipped > 0 {
        let text = message!(
            "caveat-links-left-out",
            "the tree's symbolic links were left out ({skipped} of them) and are in no figure: --links copy \
             copies them, and names each where the destination cannot hold it",
            skipped = skipped
        );
        all.push(Caveat::new(CaveatKind::LeftOut, text));
    }
    for caveat in copies.iter().flat_map(|copied| &copied.result.caveats) {
        if !all.contains(caveat) {
            all.push(caveat.clone());
        }
    }
    all
}

fn links_skipped(parts: &CopyParts) -> u64 {
    all_parts(parts).flat_map(|part| &part.counted.sides).map(|side| side.links_skipped).sum()
}

fn figures(&Copied { task, parts, .. }: &Copied<'_>) -> CopyFigures {
    let mut found = CopyFigures::default();
    let counted = || all_parts(parts).map(|part| &part.counted);
    for part in counted() {
        found.faults.extend(part.faults.iter().take(FAULTS_TOLD.saturating_sub(found.faults.len())).cloned());
        found.faults_total += part.faults_total;
    }
    found.links_skipped = links_skipped(parts);
    for side in parts.destinations.iter().flat_map(|part| &part.counted.sides) {
        found.files += side.files;
        found.folders += side.folders;
        found.links += side.links;
        found.bytes += side.bytes;
        found.files_verified += side.verified;
        found.files_kept += side.kept;
    }
    found.clients = clients(task, parts);
    found.time_ns = found.clients.iter().map(|client| client.finished_ns).max().unwrap_or_default();
    found.bytes_per_s = per_second(found.bytes, found.time_ns);
    found.files_per_s = per_second(found.files, found.time_ns);
    found.verified = task.options.verify != CopyVerify::None
        && found.files_verified == found.files
        && found.faults_total == 0
        && is_complete([parts]);
    found.stages = shares(counted().flat_map(|part| &part.sides));
    let busiest = found.stages.iter().max_by(|a, b| a.1.busy.total_cmp(&b.1.busy));
    found.busiest_stage = busiest.map(|(stage, _)| *stage);
    found.sizes = sizes(parts.destinations.iter().flat_map(|part| &part.counted.sides));
    found
}

fn per_second(count: u64, nanos: u64) -> f64 {
    if nanos == 0 { 0.0 } else { count as f64 * 1e9 / nanos as f64 }
}

/// Returns each pair of source and destination of a copy, in the order of the destinations and their sides. The source's clock says when
/// a destination was done: it heard of it.
pub fn clients(plan: &CopyTask, trial: &CopyParts) -> Vec<CopyClient> {
    let mut all = Vec::new();
    for (at, part) in trial.destinations.iter().enumerate() {
        for (source, side) in part.counted.sides.iter().enumerate() {
            let sent = trial.sources.get(source).and_then(|part| part.counted.sides.get(at));
            let time = sent.filter(|sent| sent.complete).map_or(side.time, |sent| sent.time).get();
            let (from, to) = ends(plan, &part.host, source);
            all.push(CopyClient {
                tree: plan.each.get(tree_index(plan, at, source)).cloned(),
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

/// The index of the destination whose tree a side of a part is of: a part is a destination, or a host that writes to several.
fn tree_index(plan: &CopyTask, part: usize, side: usize) -> usize {
    match (plan.way, &plan.from) {
        (CopyWay::Linerate, _) | (_, CopyFrom::Server(_)) => part,
        _ => side,
    }
}

/// Who a part's side at `index` got it from, and who got it. Where a file server is an end, the host at the other end counts.
fn ends(plan: &CopyTask, host: &HostName, index: usize) -> (HostName, HostName) {
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
    pub(crate) source: Option<&'a HostName>,
    /// The destination, or the host that does it all.
    pub(crate) destination: &'a HostName,
    /// What they counted towards each other.
    pub(crate) sides: Vec<&'a CopySide>,
    /// When they were done.
    pub(crate) time: Nanos,
}

/// The pair of `trial` that was done last.
pub(crate) fn last_pair<'a>(plan: &CopyTask, trial: &'a CopyParts) -> Option<LastPair<'a>> {
    let clients = clients(plan, trial);
    let pairs = trial.destinations.iter().flat_map(|part| (0..part.counted.sides.len()).map(move |at| (part, at)));
    let ((destination, source), client) = pairs.zip(clients).max_by_key(|(_, client)| client.finished_ns)?;
    let at = trial.destinations.iter().position(|part| std::ptr::eq(part, destination))?;
    let from = trial.sources.get(source);
    let sides =
        from.and_then(|part| part.counted.sides.get(at)).into_iter().chain(destination.counted.sides.get(source));
    Some(LastPair {
        source: from.map(|part| &part.host),
        destination: &destination.host,
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
        CopyCache, CopyCounts, CopyExisting, CopyFault, CopyInto, CopyLinks, CopyOnError, CopyOptions, CopySync,
        CopyTree, Counts, IpVersion, Repeats, Standing, Timing, WorkTime,
    };

    pub(crate) fn plan(destinations: &[&str]) -> CopyTask {
        CopyTask {
            tree: CopyTree::Folder(String::from("/t")),
            way: CopyWay::Linerate,
            each: Vec::new(),
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

    pub(crate) fn cell(task: CopyTask) -> Trial {
        Trial::new("copy", Task::Copy(task), Timing::UntilDone)
    }

    /// A copy of `cell` that counted these parts.
    pub(crate) fn made(cell: &Trial, parts: CopyParts) -> TrialResult {
        TrialResult {
            trial: cell.clone(),
            attempt: 0,
            standing: Standing::Counted,
            started_unix_ns: 1,
            span: None,
            counts: vec![Counts::Copy(parts)],
            hosts: BTreeMap::new(),
            series: Vec::new(),
            clocks: BTreeMap::new(),
            outages: Vec::new(),
            device_load: None,
            caveats: Vec::new(),
        }
    }

    pub(crate) fn part(host: &str, sides: Vec<CopySide>) -> CopyPart {
        CopyPart { host: host.into(), counted: CopyCounts { sides, faults: Vec::new(), faults_total: 0 } }
    }

    fn measured(destinations: &[&str], copies: &[CopyParts]) -> Measurement {
        let cell = cell(plan(destinations));
        let runs: Vec<TrialResult> = copies.iter().map(|parts| made(&cell, parts.clone())).collect();
        let with = Context { hosts: &[], repeats: Repeats::Times(1), calibrated: &[], idle: &[] };
        measure(&cell, &runs.iter().collect::<Vec<_>>(), &with)
    }

    fn found(destinations: &[&str], copies: &[CopyParts]) -> CopyFigures {
        measured(destinations, copies).copy().cloned().expect("a copy")
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

    fn trial() -> CopyParts {
        CopyParts {
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
        let found = found(&["b", "c"], &[trial()]);
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
    fn each_client_has_the_tree_of_its_destination() {
        let trees = |task: CopyTask, trial: &CopyParts| -> Vec<Option<String>> {
            clients(&task, trial).iter().map(|client| client.tree.as_ref().map(CopyTree::to_string)).collect()
        };
        let each = vec![CopyTree::Folder(String::from("/t/b")), "like:mail,seed=2".parse().expect("a tree")];
        let own = |task: CopyTask| CopyTask { tree: each[0].clone(), each: each.clone(), ..task };
        let both = [Some(String::from("/t/b")), Some(String::from("like:mail,seed=2"))];
        assert_eq!(trees(plan(&["b", "c"]), &trial()), [None, None]);
        assert_eq!(trees(own(plan(&["b", "c"])), &trial()), both);
        // One host writes to both, as it does where they serve their folders by NFS.
        let sides = vec![side(2, 300, CopyStage::Write), side(4, 300, CopyStage::Write)];
        let written = CopyParts { sources: Vec::new(), destinations: vec![part("a", sides)], servers: Vec::new() };
        assert_eq!(trees(own(CopyTask { way: CopyWay::Nfs, ..plan(&["b", "c"]) }), &written), both);
    }

    #[test]
    fn the_verdict_is_of_the_pair_that_was_done_last() {
        let mut trial = trial();
        // Only the slower destination waited for its storage all the time.
        let busiest = WorkTime { busy: Nanos::from_secs(4), ..WorkTime::default() };
        let time = StageTime { threads: 2, busy: Nanos::from_secs(8), busiest, ..StageTime::default() };
        trial.destinations[1].counted.sides[0].stages = BTreeMap::from([(CopyStage::Write, time)]);
        let limit = |trial| measured(&["b", "c"], &[trial]).verdict.limit;
        assert_eq!(limit(trial.clone()), Limit::StorageWrite);
        trial.sources[0].counted.sides[0].time = Nanos::from_secs(9);
        assert_eq!(limit(trial), Limit::CannotTell);
    }

    #[test]
    fn nothing_that_was_left_out_is_verified() {
        let mut unverified = trial();
        unverified.destinations[1].counted.sides[0].verified -= 1;
        let mut broken = trial();
        broken.sources[0].counted.sides[1].complete = false;
        let mut faulty = trial();
        let fault = CopyFault { path: "x".into(), stage: CopyStage::Read, reason: "gone".into() };
        faulty.sources[0].counted.faults = vec![fault.clone()];
        faulty.sources[0].counted.faults_total = 1;
        for trial in [&unverified, &broken, &faulty] {
            assert!(!found(&["b", "c"], std::slice::from_ref(trial)).verified);
        }
        assert_eq!(found(&["b", "c"], &[trial(), faulty]).faults, [fault]);
        assert!(!is_complete(&[trial(), broken]) && is_complete(&[trial()]));
    }

    #[test]
    fn links_that_were_left_out_are_counted_and_a_doubt_says_so() {
        let mut trial = trial();
        let doubts = |trial: &CopyParts| measured(&["b", "c"], std::slice::from_ref(trial)).caveats;
        assert!(doubts(&trial).iter().all(|doubt| doubt.kind != CaveatKind::LeftOut));
        trial.sources[0].counted.sides.iter_mut().for_each(|side| side.links_skipped = 7);
        assert_eq!(found(&["b", "c"], &[trial.clone()]).links_skipped, 14, "at both destinations");
        assert!(
            doubts(&trial).iter().any(|doubt| doubt.kind == CaveatKind::LeftOut && doubt.text.contains("(14 of them)"))
        );
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
        let found = found(&["b"], &[of(1), of(4), of(2)]);
        assert_eq!((found.bytes_per_s, found.runs_bytes_per_s), (150_000.0, vec![300_000.0, 75_000.0, 150_000.0]));
    }
}
