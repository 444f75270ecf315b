//! The demonstration: every layer of a path between two hosts, and raw frames through a device whose limits are known.
//!
//! First the same hosts are measured with a cable in the device's place: that is what the tester reaches. Then the path through
//! the device, then raw frames. Both are records of their own; they carry one group, and one report shows them. Each result is
//! printed in a line when it is known; the report has the rest.

use super::command_line::Command;
use super::device;
use super::help;
use super::lab::{tester_limits, up};
use super::ladder::{FramesOptions, USUAL_MTU, frames};
use crate::exit::Failure;
use crate::expectations::{self, has_counted};
use crate::hosts::{HostBook, ReachedAgents, host_arguments};
use crate::measure::{Beside, RunRequest, reach, show, write_out};
use crate::options::{Repetition, Results};
use crate::output::{language, print, say, style};
use linerate_lab::{Bench, DeviceKind};
use linerate_method::{calibrated, ladder};
use linerate_model::{
    Calibrated, Calibration, Goal, IpVersion, Path, Plan, Planned, Record, SocketOptions, StreamTask, Task, TaskKind,
    Transport, Trial,
};
use linerate_report::{overview, said};
use linerate_runner::{Ended, RunError};
use linerate_units::{BitRate, ByteCount, FrameRate, Nanos};
use std::collections::BTreeMap;
use std::path::PathBuf;
use tokio::sync::watch;

/// The link speed of the demonstration, unless another is asked for: fast enough to be real, slow enough that large
/// datagrams fill it and small ones show the tester's own limit.
const LINK: BitRate = BitRate::per_second(1_000_000_000);
/// Datagrams so small that the tester's packet rate limits them. The ladder has those that fill a packet.
const SMALL: ByteCount = ByteCount::new(64);
/// Long enough for a steady rate, short enough for the whole to end within a minute.
const WINDOW: Nanos = Nanos::from_millis(500);
const WARMUP: Nanos = Nanos::from_millis(100);
/// Runs of each trial through the device: the fewest that have a spread.
const REPEATS: u32 = 3;
/// Runs of each trial of the calibration: two show whether they overlap with what is compared.
const CALIBRATION_REPEATS: u32 = 2;
/// What the device for raw frames forwards: what is found of it can be held against this. At 1518 bytes a link of 1 Gbit/s
/// carries fewer.
const KNOWN: FrameRate = FrameRate::per_second(100_000);
/// The test with raw frames: throughput and latency, in trials as short as a steady device allows.
const FRAME_TEST: &str = "linerate device latency --ports tester:p0,tester:p1 --sizes 64,1518 --time 500ms \
                          --search-time 100ms --settle 50ms --resolution 1%";

pub(crate) async fn run(bench: Bench, results: &Results, cancel: watch::Receiver<bool>) -> Result<(), Failure> {
    if results.resume.is_some() {
        return Err(Failure::usage(
            "--resume goes on with one run, and the demonstration makes several: start it anew",
        ));
    }
    let mut results = results.clone();
    results.out.get_or_insert_with(|| PathBuf::from("report.html"));
    let bench = if bench.has_rates() { bench } else { bench.with_link(LINK) };
    let bench = between_two(bench)?;
    let path = Path::between(bench.hosts[0].clone(), bench.hosts[1].clone());
    let plan = plan(&path, USUAL_MTU, Planned::Missing(String::new())).map_err(Failure::usage)?;
    let mut asked = RunRequest::of_plan(&results, &plan)?;
    asked.origin.group = Some(group());
    asked.in_lines = results.are_text();
    let mut runs = Runs::default();
    let all = measure(&bench, &path, &asked, &results, &mut runs, &cancel).await;
    let has_ended = all.is_ok() && runs.failure.is_none();
    let judged = expectations::tell(&runs.records, &results, has_ended);
    let shown = match results.are_text() {
        true => runs.conclude(&results),
        false => show(&runs.records, &results, asked.store.is_some(), || runs.failed()),
    };
    all.and(shown).and(judged)
}

/// The bench with its first two hosts alone.
///
/// # Errors
/// Something is planted at another host: it would change nothing.
fn between_two(bench: Bench) -> Result<Bench, Failure> {
    let two = bench.clone().with_hosts(2);
    let left_out = [
        ("a fault", two.faults.len() < bench.faults.len()),
        ("cross traffic", two.cross_traffic.len() < bench.cross_traffic.len()),
        ("a slow server", two.slow_servers.len() < bench.slow_servers.len()),
        ("a slow disk", two.slow_disks.len() < bench.slow_disks.len()),
    ];
    match left_out.into_iter().find(|(_, is_left_out)| *is_left_out) {
        Some((what, _)) => Err(Failure::usage(format!(
            "the demonstration has the hosts {} and {} alone, and {what} is asked for at another one: name a command behind `--`, \
             as in `linerate lab ... -- stream a b`",
            two.hosts[0], two.hosts[1]
        ))),
        None => Ok(two),
    }
}

/// The runs of the demonstration so far.
#[derive(Default)]
struct Runs {
    records: Vec<Record>,
    /// Why the last one ended early.
    failure: Option<RunError>,
}

impl Runs {
    fn take(&mut self, ended: Ended) {
        self.records.push(ended.record);
        self.failure = ended.failure;
    }

    fn failed(&self) -> Result<(), Failure> {
        self.failure.as_ref().map_or(Ok(()), |failure| Err(Failure::of_run(failure)))
    }

    /// Says below the lines of results what limited them, writes the report, and says how to go on.
    fn conclude(&self, results: &Results) -> Result<(), Failure> {
        if !self.records.iter().any(has_counted) {
            return self.failed();
        }
        print("");
        print(&match results.verbose {
            true => linerate_report::text(&self.records, &style()),
            false => overview::limits(&self.records, &style()),
        });
        let written = write_out(&self.records, results);
        self.failed().and(written)?;
        let file = results.out.as_deref().map(|file| file.display().to_string()).unwrap_or_default();
        let first = self.records.first().map_or("", |record| &record.id.0);
        let lang = language();
        let next = [
            (file, said!(lang, "demo-next-report", "every figure, with charts and caveats")),
            (format!("linerate explain {first}"), said!(lang, "demo-next-explain", "the evidence for each limit")),
            ("linerate report".to_owned(), said!(lang, "demo-next-text", "the report as text, or --out FILE")),
            ("linerate results".to_owned(), said!(lang, "demo-next-results", "all runs that are kept")),
            (
                "linerate lab -- stream a b --udp".to_owned(),
                said!(lang, "demo-next-stream", "one measurement in the lab"),
            ),
        ];
        print("");
        print(&overview::list(&said!(lang, "demo-next", "Where to go on"), &next, &style()));
        Ok(())
    }
}

/// A name for the records of one demonstration.
fn group() -> String {
    format!("{}-{:04x}", jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S"), std::process::id())
}

/// Puts a heading above the lines of results; without them it is told beside.
fn head(heading: &str, asked: &RunRequest) {
    if asked.in_lines {
        print(&overview::head(heading, &style()));
    } else {
        say(heading);
    }
}

/// Puts space between what belongs to different headings.
fn apart(asked: &RunRequest) {
    if asked.in_lines {
        print("");
    }
}

/// Measures over a cable, and where the bench has a device through that, and raw frames through one of known limits.
async fn measure(
    bench: &Bench,
    path: &Path,
    asked: &RunRequest,
    results: &Results,
    runs: &mut Runs,
    cancel: &watch::Receiver<bool>,
) -> Result<(), Failure> {
    let lang = language();
    let rate = bench.link.rate.map_or_else(
        || said!(lang, "demo-links-differ", "links of several rates"),
        |rate| said!(lang, "demo-links", "links of {rate}", rate = rate),
    );
    let picture = |middle: &str| format!("{} ---- {middle} ---- {}, {rate}", bench.hosts[0], bench.hosts[1]);
    let cable = picture(&said!(lang, "demo-cable", "cable"));
    if bench.device.kind == DeviceKind::None {
        head(&said!(lang, "demo-path", "The path: {path}", path = cable), asked);
        return through(bench, path, asked, Vec::new(), runs, cancel).await;
    }
    head(&said!(lang, "demo-tester-limit", "Tester limit: {path}", path = cable), asked);
    let known = calibration(bench, path, asked, cancel).await?;
    apart(asked);
    head(&said!(lang, "demo-path", "The path: {path}", path = picture(&bench.device.kind.to_string())), asked);
    through(bench, path, asked, known, runs, cancel).await?;
    if runs.failure.is_some() {
        return Ok(());
    }
    if let Err(why) = linerate_frames::xdp_possible() {
        say(&format!("linerate: raw frames through a device of known limits are left out: {why}"));
        return Ok(());
    }
    apart(asked);
    head(
        &said!(
            lang,
            "demo-frames",
            "Raw frames: p0 ---- device of {known} ---- p1, links of {link}",
            known = KNOWN.to_string(),
            link = LINK
        ),
        asked,
    );
    runs.take(raw_frames(asked, results, cancel).await?);
    Ok(())
}

/// Tests a device of known limits with raw frames, the tester limit first.
async fn raw_frames(asked: &RunRequest, results: &Results, cancel: &watch::Receiver<bool>) -> Result<Ended, Failure> {
    let line = help::parse_from(FRAME_TEST.split_whitespace()).map_err(Failure::usage)?;
    let Command::Device(mut test) = line.command else { unreachable!("FRAME_TEST is a device test") };
    test.results_mut().store = results.store.clone();
    // The queue is short, so that short trials do not take it for throughput.
    let device = format!("reference,max-frames={},queue=32", KNOWN.get()).parse().map_err(Failure::usage)?;
    let bench = Bench::named("tester").map_err(Failure::measure)?.with_tester(2).with_device(device).with_link(LINK);
    let calibrated = tester_limits(&test, bench.clone(), &[], cancel).await?;
    let lab = up(&bench, false, Vec::new()).await?;
    let book = HostBook::of_lab(&lab);
    let ended = Box::pin(device::run_beside(&test, &book, asked, calibrated, cancel.clone())).await;
    lab.down().await;
    ended
}

/// Measures with a cable in the device's place what the tester itself reaches.
async fn calibration(
    bench: &Bench,
    path: &Path,
    asked: &RunRequest,
    cancel: &watch::Receiver<bool>,
) -> Result<Vec<Calibrated>, Failure> {
    let cable = bench.clone().with_device(DeviceKind::None).without_faults();
    in_lab(&cable, cancel, async |agents| {
        let mtu = agents.control.path_mtu(path, IpVersion::V4).unwrap_or(USUAL_MTU);
        let plan = bypassed(path, mtu).map_err(Failure::usage)?;
        asked.calibrate(plan, agents, cancel.clone()).await.map(|record| calibrated(&record))
    })
    .await
}

/// Measures through the bench as it is.
async fn through(
    bench: &Bench,
    path: &Path,
    asked: &RunRequest,
    known: Vec<Calibrated>,
    runs: &mut Runs,
    cancel: &watch::Receiver<bool>,
) -> Result<(), Failure> {
    in_lab(bench, cancel, async |agents| {
        let mtu = agents.control.path_mtu(path, IpVersion::V4).unwrap_or(USUAL_MTU);
        let hosts = [path.client.0.as_str(), &path.server.name().0];
        let raw = FramesOptions { ip: IpVersion::V4, time: WINDOW, force: false };
        let raw = frames(hosts, path, raw, agents).await;
        let plan = Plan { calibrated: known, ..plan(path, mtu, raw).map_err(Failure::usage)? };
        runs.take(asked.run(plan, agents, Beside::default(), cancel.clone()).await?);
        Ok(())
    })
    .await
}

/// Builds a bench, does something with its agents and takes it down, whatever came of it.
async fn in_lab<T>(
    bench: &Bench,
    cancel: &watch::Receiver<bool>,
    work: impl AsyncFnOnce(&ReachedAgents) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let lab = up(bench, false, Vec::new()).await?;
    let book = HostBook::of_lab(&lab);
    let names: Vec<String> = bench.hosts.iter().map(|host| host.0.clone()).collect();
    let done = async {
        let hosts = host_arguments(&names).map_err(Failure::usage)?;
        let agents = reach(&book, &hosts, cancel.clone()).await?;
        let done = work(&agents).await;
        agents.close().await;
        done
    }
    .await;
    lab.down().await;
    done
}

/// A ladder, and small datagrams beside its large ones.
fn plan(path: &Path, mtu: u32, frames: Planned) -> Result<Plan, String> {
    let repetition = Repetition::brief(WINDOW, WARMUP, REPEATS);
    let timing = repetition.timing()?;
    let mut plan = ladder::plan(&ladder::LadderRequest {
        path: path.clone(),
        ip: IpVersion::V4,
        mtu,
        flows: 1,
        socket: SocketOptions::default(),
        calls_over: Transport::Tcp,
        timing,
        repeats: repetition.repeats()?,
        frames,
        hops: false,
    });
    if let Goal::Ladder(ladder) = &mut plan.goal {
        let small = StreamTask { paths: vec![path.clone()], ..StreamTask::plain(Transport::Udp, SMALL) };
        // The first cell stands for the run in lists: it stays the largest datagrams.
        ladder.cells.insert(1, Trial::new(format!("udp {}", SMALL.get()), Task::Stream(small), timing));
    }
    Ok(plan)
}

/// The trials of [`plan`] that are compared with what the tester reaches. The limit of NFS is another: what the client reaches with
/// a server on its own host.
fn bypassed(path: &Path, mtu: u32) -> Result<Plan, String> {
    let plan = plan(path, mtu, Planned::Missing(String::new()))?;
    let cells = plan.cells().iter().filter(|cell| cell.task().kind() != TaskKind::Nfs).cloned().collect();
    let plan = Repetition::brief(WINDOW, WARMUP, CALIBRATION_REPEATS).sweep(cells)?;
    Ok(Plan { calibration: Some(Calibration::cable(BTreeMap::new())), ..plan })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calibration_has_the_trials_of_the_path_and_no_other() {
        let path = Path::between("a", "b");
        let whole = plan(&path, USUAL_MTU, Planned::Missing(String::new())).expect("a plan");
        let calibration = bypassed(&path, USUAL_MTU).expect("a calibration");
        assert!(calibration.cells().iter().all(|cell| whole.cells().contains(cell)));
        for name in ["udp 64", "udp 1472", "udp transactions", "tcp", "tcp transactions", "rpc tcp write 8192"] {
            assert_eq!(calibration.cells().iter().filter(|cell| cell.name == name).count(), 1, "{name}");
        }
    }

    #[test]
    fn the_largest_datagrams_stand_for_the_run() {
        let plan = plan(&Path::between("a", "b"), USUAL_MTU, Planned::Missing(String::new())).expect("a plan");
        assert_eq!(plan.cells()[0].name, "udp 1472");
    }
}
