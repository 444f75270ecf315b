//! The demonstration: two hosts, first joined by a cable, then through a switch; and raw frames through a device whose
//! limits are known.
//!
//! The first pass is the calibration: what the tester reaches with the device bypassed. The second measures through the device. Each
//! run of it is a record of its own; they carry one group, and one report shows them all.

mod calls;

use super::device;
use super::lab::{tester_limits, up};
use super::ladder::{FramesOptions, USUAL_MTU, frames};
use super::nfs;
use crate::arguments::{Arguments as CommandLine, Command, Repetition, Results};
use crate::exit::Failure;
use crate::hosts::{HostBook, ReachedAgents, host_arguments};
use crate::measure::{Beside, RunRequest, judge, reach, show};
use crate::output::say;
use clap::Parser as _;
use linerate_lab::{Bench, DeviceKind};
use linerate_method::{calibrated, ladder};
use linerate_model::{
    Calibrated, Direction, Goal, IpVersion, Path, Plan, Planned, Record, SocketOptions, StreamTask, Task, TransactTask,
    Transport, Trial,
};
use linerate_runner::{Ended, RunError};
use linerate_units::{BitRate, ByteCount, Nanos};
use std::path::PathBuf;
use tokio::sync::watch;

/// The link speed of the demonstration, unless another is asked for: fast enough to be real, slow enough that large
/// datagrams fill it and small ones show the tester's own limit.
const LINK: BitRate = BitRate::per_second(1_000_000_000);
/// Datagram sizes: small ones are limited by the tester's packet rate, the largest that fits a packet by the link.
const UDP_SIZES: [u64; 4] = [64, 512, 1024, 1472];
/// Long enough for a steady rate, short enough for the whole to take little more than a minute.
const WINDOW: Nanos = Nanos::from_millis(600);
const WARMUP: Nanos = Nanos::from_millis(150);
const REPEATS: u32 = 3;
/// The device for raw frames: what is found of it can be held against this. At 1518 bytes a link of 1 Gbit/s carries fewer.
/// The queue is short, so that short trials do not take it for throughput.
const KNOWN_DEVICE: &str = "reference,max-frames=100000,queue=32";
/// Its test: throughput and latency, in trials as short as a steady device allows.
const FRAME_TEST: &str = "linerate device latency --ports tester:p0,tester:p1 --sizes 64,1518 --time 500ms \
                          --search-time 100ms --settle 50ms";

pub(crate) async fn run(bench: Bench, results: &Results, cancel: watch::Receiver<bool>) -> Result<(), Failure> {
    if results.resume.is_some() {
        return Err(Failure::usage(
            "--resume goes on with one run, and the demonstration makes several: start it anew",
        ));
    }
    let mut results = results.clone();
    results.out.get_or_insert_with(|| PathBuf::from("report.html"));
    let bench = if bench.has_rates() { bench } else { bench.with_link(LINK) };
    let bench = bench.with_hosts(2);
    let path = Path::between(bench.hosts[0].clone(), bench.hosts[1].clone());
    let plans = [sweep(&path, USUAL_MTU), ladder(&path, USUAL_MTU, Planned::Missing(String::new()))];
    let plans = plans.into_iter().collect::<Result<Vec<Plan>, String>>().map_err(Failure::usage)?;
    let mut asked = RunRequest::of(&results, |expectation| {
        plans.iter().flat_map(|plan| plan.cells()).any(|cell| expectation.applies_to(cell))
    })?;
    asked.origin.group = Some(group());
    let mut runs = Runs::default();
    let all = measure(&bench, &path, &asked, &results, &mut runs, &cancel).await;
    let shown = show(&runs.records, &results, || runs.failed()).and_then(|()| runs.judge(&results));
    all.and(shown)
}

/// The runs of the demonstration so far.
#[derive(Default)]
struct Runs {
    records: Vec<Record>,
    /// Why the last one ended early.
    failure: Option<RunError>,
}

impl Runs {
    /// Takes a run. Returns whether the next may follow.
    fn take(&mut self, ended: Ended) -> bool {
        self.records.push(ended.record);
        self.failure = ended.failure;
        self.failure.is_none()
    }

    fn failed(&self) -> Result<(), Failure> {
        self.failure.as_ref().map_or(Ok(()), |failure| Err(Failure::measure(failure)))
    }

    fn judge(&self, results: &Results) -> Result<(), Failure> {
        // Each is judged, also after one that missed.
        self.records.iter().map(|record| judge(&results.expect, record)).fold(Ok(()), Result::and)
    }
}

/// A name for the records of one demonstration.
fn group() -> String {
    format!("{}-{:04x}", jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S"), std::process::id())
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
    let picture = |middle: &str| format!("host {} ---- {middle} ---- host {}", bench.hosts[0], bench.hosts[1]);
    let rate = bench.link.rate.map_or_else(|| "links of several rates".to_owned(), |rate| format!("links of {rate}"));
    if bench.device.kind == DeviceKind::None {
        say(&format!("Over a cable: {}, {rate}", picture("cable")));
        return through(bench, path, asked, Vec::new(), runs, cancel).await;
    }
    say(&format!("1. Calibration, the device bypassed:  {}, {rate}", picture("cable")));
    let known = calibration(bench, path, asked, cancel).await?;
    let frames = match linerate_frames::xdp_possible() {
        Ok(()) => Some(FrameTest::calibrated(results, cancel).await?),
        Err(why) => {
            say(&format!("linerate: raw frames through a device of known limits are left out: {why}"));
            None
        }
    };
    say(&format!("2. Through the device:                {}, {rate}", picture(&bench.device.kind.to_string())));
    through(bench, path, asked, known, runs, cancel).await?;
    if let (Some(frames), None) = (frames, &runs.failure) {
        say(&format!(
            "3. Raw frames:                        port p0 ---- {KNOWN_DEVICE} ---- port p1, links of {LINK}"
        ));
        runs.take(frames.run(asked, cancel).await?);
    }
    Ok(())
}

/// A test with raw frames, and the tester limit for it.
struct FrameTest {
    bench: Bench,
    test: device::Arguments,
    calibrated: Vec<Calibrated>,
}

impl FrameTest {
    /// Measures the tester limit.
    async fn calibrated(results: &Results, cancel: &watch::Receiver<bool>) -> Result<Self, Failure> {
        let words = FRAME_TEST.split_whitespace().map(str::to_owned);
        let store = results.store.store.iter().flat_map(|file| ["--store".into(), file.clone().into_os_string()]);
        let line = CommandLine::try_parse_from(words.map(Into::into).chain(store)).map_err(Failure::usage)?;
        let Command::Device(test) = line.command else { unreachable!("FRAME_TEST is a device test") };
        let device = KNOWN_DEVICE.parse().map_err(Failure::usage)?;
        let bench =
            Bench::named("tester").map_err(Failure::measure)?.with_tester(2).with_device(device).with_link(LINK);
        let calibrated = tester_limits(&test, bench.clone(), &[], cancel).await?;
        Ok(Self { bench, test, calibrated })
    }

    async fn run(self, asked: &RunRequest, cancel: &watch::Receiver<bool>) -> Result<Ended, Failure> {
        let lab = up(&self.bench, false, Vec::new()).await?;
        let book = HostBook::of_lab(lab.hosts());
        let ended = Box::pin(device::run_beside(&self.test, &book, asked, self.calibrated, cancel.clone())).await;
        lab.down().await;
        ended
    }
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
        let plan = all_cells(path, mtu).map_err(Failure::usage)?;
        asked.calibrate(plan, agents, cancel.clone()).await.map(|record| calibrated(&record))
    })
    .await
}

/// Measures through the bench as it is, up to the first run that fails.
async fn through(
    bench: &Bench,
    path: &Path,
    asked: &RunRequest,
    known: Vec<Calibrated>,
    runs: &mut Runs,
    cancel: &watch::Receiver<bool>,
) -> Result<(), Failure> {
    let has_device = !known.is_empty();
    in_lab(bench, cancel, async |agents| {
        let mtu = agents.control.path_mtu(path, IpVersion::V4).unwrap_or(USUAL_MTU);
        let hosts = [path.client.0.as_str(), &path.server.name().0];
        let raw = FramesOptions { ip: IpVersion::V4, time: WINDOW, force: false };
        let raw = frames(hosts, path, raw, agents).await;
        let mut plans = vec![sweep(path, mtu), ladder(path, mtu, raw)];
        // The upper layers once, through the device.
        if has_device {
            plans.extend([calls::sweep(path, WINDOW, WARMUP), calls::curve(path, WINDOW, WARMUP)]);
        }
        for plan in plans {
            let mut plan = plan.map_err(Failure::usage)?;
            plan.calibrated.clone_from(&known);
            if plan.curve().is_some() {
                plan.calibrated = nfs::tester_limits(&plan, asked, agents, cancel).await;
            }
            if !runs.take(asked.run(plan, agents, Beside::default(), cancel.clone()).await?) {
                break;
            }
        }
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
    let book = HostBook::of_lab(lab.hosts());
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

/// Streams and transactions. One that a layer of the ladder wants too is measured as there.
fn sweep(path: &Path, mtu: u32) -> Result<Plan, String> {
    let repetition = Repetition::brief(WINDOW, WARMUP, REPEATS);
    let timing = repetition.timing()?;
    let stream = |name: String, transport, size, direction| {
        let plain = StreamTask::plain(transport, ByteCount::new(size));
        Trial::new(name, Task::Stream(StreamTask { paths: vec![path.clone()], direction, ..plain }), timing)
    };
    let mut cells: Vec<Trial> = UDP_SIZES
        .into_iter()
        .map(|size| stream(format!("udp {size}"), Transport::Udp, size, Direction::Send))
        .collect();
    cells.push(stream("tcp".to_owned(), Transport::Tcp, 1 << 20, Direction::Send));
    cells.push(stream("tcp receive".to_owned(), Transport::Tcp, 1 << 20, Direction::Receive));
    for (name, transport) in [("tcp transactions", Transport::Tcp), ("udp transactions", Transport::Udp)] {
        let task = TransactTask { paths: vec![path.clone()], ..TransactTask::plain(transport) };
        cells.push(Trial::new(name, Task::Transact(task), timing));
    }
    let ladder = ladder(path, mtu, Planned::Missing(String::new()))?;
    for cell in &mut cells {
        if let Some(layer) = ladder.cells().iter().find(|layer| layer.name == cell.name) {
            cell.clone_from(layer);
        }
    }
    repetition.sweep(cells)
}

fn ladder(path: &Path, mtu: u32, frames: Planned) -> Result<Plan, String> {
    let repetition = Repetition::brief(WINDOW, WARMUP, REPEATS);
    Ok(ladder::plan(&ladder::LadderRequest {
        path: path.clone(),
        ip: IpVersion::V4,
        mtu,
        flows: 1,
        socket: SocketOptions::default(),
        timing: repetition.timing()?,
        repeats: repetition.repeats()?,
        frames,
    }))
}

/// The trials of the sweep and of the ladder, each once: what is called the same is the same.
fn all_cells(path: &Path, mtu: u32) -> Result<Plan, String> {
    let mut plan = sweep(path, mtu)?;
    let more = ladder(path, mtu, Planned::Missing(String::new()))?;
    if let Goal::Sweep(sweep) = &mut plan.goal {
        let is_new = |cell: &&Trial| sweep.cells.iter().all(|known| known.name != cell.name);
        let new: Vec<Trial> = more.cells().iter().filter(is_new).cloned().collect();
        sweep.cells.extend(new);
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calibration_has_each_trial_of_both_plans_once() {
        let path = Path::between("a", "b");
        let both = all_cells(&path, USUAL_MTU).expect("a plan");
        let names: Vec<&str> = both.cells().iter().map(|cell| cell.name.as_str()).collect();
        let ladder = ladder(&path, USUAL_MTU, Planned::Missing(String::new())).expect("a ladder");
        for cell in sweep(&path, USUAL_MTU).expect("a sweep").cells().iter().chain(ladder.cells()) {
            assert_eq!(names.iter().filter(|name| **name == cell.name).count(), 1, "{}", cell.name);
            assert!(both.cells().contains(cell), "{}: of one name, but not the same", cell.name);
        }
    }
}
