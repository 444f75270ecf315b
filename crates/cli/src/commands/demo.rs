//! The demonstration: two hosts, first joined by a cable, then through a switch; and raw frames through a device whose
//! limits are known.
//!
//! The first pass is the calibration: what the tester reaches with the device bypassed. The second is the measurement,
//! with the ceiling beside each result. One record holds it all.

mod calls;

use super::device;
use super::lab::{ceiling, up};
use super::ladder::{FramesAsked, USUAL_MTU, frames};
use super::nfs;
use crate::arguments::{Arguments as CommandLine, Command, Repetition, Results};
use crate::exit::Failure;
use crate::hosts::{HostBook, parties};
use crate::measure::{asked, check, conclude, reach, run as run_plan};
use crate::output::say;
use clap::Parser as _;
use linerate_lab::{Bench, DeviceKind};
use linerate_method::ladder::{Asked, onto};
use linerate_model::{
    Direction, FrameTrial, IpVersion, Path, Plan, Record, SocketOptions, StreamSpec, TransactSpec, Transport,
    TrialSpec, Workload,
};
use linerate_runner::Outcome;
use linerate_store::Store;
use linerate_units::{BitRate, ByteCount, Nanos};
use std::path::PathBuf;
use tokio::sync::watch;

/// The link speed of the demonstration, unless another is asked for: fast enough to be real, slow enough that large
/// datagrams fill it and small ones show the tester's own limit.
const LINK: BitRate = BitRate::per_second(1_000_000_000);
/// The datagram sizes of job C of the mission: a switch tested with two PCs.
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
    let mut results = results.clone();
    results.out.get_or_insert_with(|| PathBuf::from("report.html"));
    let bench = if bench.has_rates() { bench } else { bench.with_link(LINK) };
    let bench = bench.with_hosts(2);
    let path = Path { opener: bench.hosts[0].clone(), listener: bench.hosts[1].clone() };
    check(&results, &plan(&path, USUAL_MTU, Err(String::new())).map_err(Failure::usage)?)?;
    let store = Store::open(results.store.store.as_deref()).map_err(Failure::measure)?;

    let picture = |middle: &str| format!("host {} ---- {middle} ---- host {}", bench.hosts[0], bench.hosts[1]);
    let rate = bench.link.rate.map_or_else(|| "links of several rates".to_owned(), |rate| format!("links of {rate}"));
    if bench.device.kind == DeviceKind::None {
        say(&format!("Over a cable: {}, {rate}", picture("cable")));
        let measured = pass(&bench, &path, &results, &store, None, &cancel).await?;
        return conclude(measured, &results);
    }
    say(&format!("1. Calibration, the device bypassed:  {}, {rate}", picture("cable")));
    let cable = bench.clone().with_device(DeviceKind::None).without_faults();
    let calibration = pass(&cable, &path, &results, &store, None, &cancel).await?;
    if calibration.failure.is_some() {
        return conclude(calibration, &results);
    }
    let frames = match linerate_frames::xdp_possible() {
        Ok(()) => Some(FrameTest::calibrated(&results, &cancel).await?),
        Err(why) => {
            say(&format!("linerate: raw frames through a device of known limits are left out: {why}"));
            None
        }
    };
    say(&format!("2. Through the device:                {}, {rate}", picture(&bench.device.kind.to_string())));
    let mut measured = pass(&bench, &path, &results, &store, Some(&calibration.record), &cancel).await?;
    if let (Some(frames), None) = (frames, &measured.failure) {
        say(&format!(
            "3. Raw frames:                        port p0 ---- {KNOWN_DEVICE} ---- port p1, links of {LINK}"
        ));
        join(&mut measured, frames.run(&cancel).await?);
        store.finish(&measured.record, measured.failure.is_none()).map_err(Failure::measure)?;
    }
    conclude(measured, &results)
}

/// A test with raw frames, and the tester's ceiling for it.
struct FrameTest {
    bench: Bench,
    test: device::Arguments,
    ceiling: Record,
}

impl FrameTest {
    /// Measures the ceiling.
    async fn calibrated(results: &Results, cancel: &watch::Receiver<bool>) -> Result<Self, Failure> {
        let words = FRAME_TEST.split_whitespace().map(str::to_owned);
        let store = results.store.store.iter().flat_map(|file| ["--store".into(), file.clone().into_os_string()]);
        let line = CommandLine::try_parse_from(words.map(Into::into).chain(store)).map_err(Failure::usage)?;
        let Command::Device(test) = line.command else { unreachable!("FRAME_TEST is a device test") };
        let device = KNOWN_DEVICE.parse().map_err(Failure::usage)?;
        let bench =
            Bench::named("tester").map_err(Failure::measure)?.with_tester(2).with_device(device).with_link(LINK);
        let ceiling = ceiling(&test, bench.clone(), &[], cancel).await?;
        Ok(Self { bench, test, ceiling })
    }

    async fn run(self, cancel: &watch::Receiver<bool>) -> Result<Outcome, Failure> {
        let lab = up(&self.bench, false, Vec::new()).await?;
        let book = HostBook::of_lab(lab.hosts());
        let outcome = Box::pin(device::test(&self.test, &book, self.ceiling, cancel.clone())).await;
        lab.down().await;
        outcome
    }
}

/// Puts a test with raw frames into the record of the streams.
fn join(measured: &mut Outcome, tested: Outcome) {
    let record = &mut measured.record;
    record.plan.device = tested.record.plan.device;
    record.outcome.get_or_insert_default().device = tested.record.outcome.map(|found| found.device).unwrap_or_default();
    record.frame_trials.extend(tested.record.frame_trials);
    record.hosts.extend(tested.record.hosts);
    record.caveats.extend(tested.record.caveats);
    measured.failure = tested.failure;
}

/// Builds a bench, runs the demonstration's plan in it and takes it down.
async fn pass(
    bench: &Bench,
    path: &Path,
    results: &Results,
    store: &Store,
    calibration: Option<&Record>,
    cancel: &watch::Receiver<bool>,
) -> Result<Outcome, Failure> {
    let lab = up(bench, false, Vec::new()).await?;
    let book = HostBook::of_lab(lab.hosts());
    let hosts: Vec<String> = bench.hosts.iter().map(|host| host.0.clone()).collect();
    let outcome = match reach(&book, &parties(&hosts).map_err(Failure::usage)?, cancel.clone()).await {
        Ok(company) => {
            let mtu = company.peers.path_mtu(path, IpVersion::V4).unwrap_or(USUAL_MTU);
            let hosts = [path.opener.0.as_str(), &path.listener.0];
            let asked = asked(results);
            let wanted = FramesAsked { ip: IpVersion::V4, time: WINDOW, force: false, results };
            let frames = frames(hosts, path, wanted, &company).await;
            let plan = plan(path, mtu, frames).map_err(Failure::usage)?;
            let mut measured =
                run_plan(plan, asked.clone(), &company.peers, Some(store), calibration, false, cancel.clone()).await;
            // The upper layers once, through the device. They are kept with the rest.
            if calibration.is_some() && measured.failure.is_none() {
                let plan = calls::plan(path, WINDOW, WARMUP).map_err(Failure::usage)?;
                let ceiling = nfs::ceiling(&plan, results, &company, None, cancel).await;
                let called = run_plan(plan, asked, &company.peers, None, ceiling.as_ref(), false, cancel.clone()).await;
                calls::join(&mut measured, called, store).map_err(Failure::measure)?;
                store.finish(&measured.record, measured.failure.is_none()).map_err(Failure::measure)?;
            }
            Ok(measured)
        }
        Err(failure) => Err(failure),
    };
    lab.down().await;
    outcome
}

fn plan(path: &Path, mtu: u32, frames: Result<FrameTrial, String>) -> Result<Plan, String> {
    let repetition = Repetition::brief(WINDOW, WARMUP, REPEATS);
    let timing = repetition.timing()?;
    let cell = |name: String, workload: Workload| TrialSpec {
        name,
        paths: vec![path.clone()],
        workload,
        timing,
        proves: None,
        probe: None,
    };
    let mut cells: Vec<TrialSpec> = UDP_SIZES
        .into_iter()
        .map(|size| cell(format!("udp {size}"), stream(Transport::Udp, size, Direction::Send)))
        .collect();
    cells.push(cell("tcp".to_owned(), stream(Transport::Tcp, 1 << 20, Direction::Send)));
    cells.push(cell("tcp receive".to_owned(), stream(Transport::Tcp, 1 << 20, Direction::Receive)));
    for transport in [Transport::Tcp, Transport::Udp] {
        let name = if transport == Transport::Tcp { "tcp transactions" } else { "udp transactions" };
        cells.push(cell(name.to_owned(), Workload::Transact(TransactSpec::plain(transport))));
    }
    let ladder = Asked {
        path: path.clone(),
        ip: IpVersion::V4,
        mtu,
        flows: 1,
        socket: SocketOptions::default(),
        timing,
        frames,
    };
    Ok(onto(Plan::of(cells, repetition.repeats()?), &ladder))
}

fn stream(transport: Transport, size: u64, direction: Direction) -> Workload {
    Workload::Stream(StreamSpec { direction, ..StreamSpec::plain(transport, ByteCount::new(size)) })
}
