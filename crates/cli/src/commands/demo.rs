//! The demonstration: two hosts, first joined by a cable, then through a switch.
//!
//! The first pass is the calibration: what the tester reaches with the device bypassed. The second is the measurement,
//! with the ceiling beside each result.

use super::lab::up;
use super::ladder::{FramesAsked, USUAL_MTU, frames};
use crate::arguments::{Repetition, Results};
use crate::exit::Failure;
use crate::hosts::{HostBook, parties};
use crate::measure::{check, conclude, reach, run as run_plan};
use crate::output::say;
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
const WINDOW: Nanos = Nanos::from_millis(800);
const WARMUP: Nanos = Nanos::from_millis(200);
const REPEATS: u32 = 3;

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
    say(&format!("2. Through the device:                {}, {rate}", picture(&bench.device.kind.to_string())));
    let measured = pass(&bench, &path, &results, &store, Some(&calibration.record), &cancel).await?;
    conclude(measured, &results)
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
    let lab = up(bench, false).await?;
    let book = HostBook::of_lab(lab.hosts());
    let hosts: Vec<String> = bench.hosts.iter().map(|host| host.0.clone()).collect();
    let outcome = match reach(&book, &parties(&hosts).map_err(Failure::usage)?, cancel.clone()).await {
        Ok(company) => {
            let mtu = company.peers.path_mtu(path, IpVersion::V4).unwrap_or(USUAL_MTU);
            let hosts = [path.opener.0.as_str(), &path.listener.0];
            let asked = FramesAsked { ip: IpVersion::V4, time: WINDOW, force: false, results };
            let frames = frames(hosts, path, asked, &company).await;
            let plan = plan(path, mtu, frames).map_err(Failure::usage)?;
            Ok(run_plan(plan, &company.peers, store, calibration, cancel.clone()).await)
        }
        Err(failure) => Err(failure),
    };
    lab.down().await;
    outcome
}

fn plan(path: &Path, mtu: u32, frames: Result<FrameTrial, String>) -> Result<Plan, String> {
    let repetition = Repetition::brief(WINDOW, WARMUP, REPEATS);
    let timing = repetition.timing()?;
    let cell = |name: String, workload: Workload| TrialSpec { name, paths: vec![path.clone()], workload, timing };
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
    Ok(onto(Plan { cells, repeats: repetition.repeats()?, device: None, ladder: None }, &ladder))
}

fn stream(transport: Transport, size: u64, direction: Direction) -> Workload {
    Workload::Stream(StreamSpec { direction, ..StreamSpec::plain(transport, ByteCount::new(size)) })
}
