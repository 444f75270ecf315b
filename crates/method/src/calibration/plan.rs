//! The trials of a calibration: those of a later run, with the device bypassed.

use super::settings::settings;
use crate::ladder::{self, LadderRequest};
use linerate_model::{
    Bypass, Calibration, HostName, Path, Plan, Repeats, StreamTask, Task, TaskKind, Transport, Trial,
};
use linerate_units::ByteCount;

/// Payload of the datagrams whose streams are usually measured beside the largest ones, bytes.
const SIZES: [u64; 3] = [64, 512, 1024];

/// Why there can be no calibration of a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CannotCalibrate {
    /// It measures nothing that has a tester limit.
    #[error("{0} has no tester limit of this kind; calibrate stream, transact, rpc or ladder")]
    NoLimit(String),
    /// It offers a load of its own.
    #[error("{0}: a calibration looks for the highest rate, and holds for every load: leave out --rate")]
    SetRate(String),
    /// Its verdicts are to be tested.
    #[error("--prove tests what limits a result; a calibration has nothing to prove: leave it out")]
    Proves,
    /// Both ends are one host.
    #[error("{0} is both ends: name two hosts with a cable between them, or give --loopback")]
    OneHost(HostName),
    /// The server is not one of linerate's hosts.
    #[error("{0} runs no agent: a calibration needs an agent at both ends")]
    Foreign(HostName),
}

/// Returns what a calibration measures if nothing else is asked: the layers of a ladder but NFS, and UDP streams of several sizes.
pub fn usual(request: &LadderRequest) -> Plan {
    let ladder = ladder::plan(request);
    let mut cells: Vec<Trial> = Vec::new();
    for cell in ladder.cells() {
        let Task::Stream(StreamTask { net, message_bytes, .. }) = cell.task() else {
            cells.push(cell.clone());
            continue;
        };
        if net.transport == Transport::Tcp {
            cells.push(cell.clone());
            continue;
        }
        let smaller = SIZES.map(ByteCount::new).into_iter().filter(|bytes| bytes < message_bytes);
        for bytes in smaller.chain([*message_bytes]) {
            let paths = cell.paths().to_vec();
            let stream = StreamTask { paths, net: net.clone(), ..StreamTask::plain(Transport::Udp, bytes) };
            cells.push(Trial::new(format!("udp {}", bytes.get()), Task::Stream(stream), request.timing));
        }
        // The ladder sends each datagram by itself.
        cells.push(Trial { name: format!("{}, no offload", cell.name), ..cell.clone() });
    }
    cells.retain(|cell| cell.task().kind() != TaskKind::Nfs);
    Plan::sweep(cells, request.repeats)
}

/// Returns the calibration for later runs of `run`. Of a ladder it has all cells but those of NFS, which has a limit of its own. By
/// loopback each host has trials of its own.
///
/// # Errors
/// There can be none.
pub fn plan(run: &Plan, calibration: Calibration) -> Result<Plan, CannotCalibrate> {
    if run.prove {
        return Err(CannotCalibrate::Proves);
    }
    let mut cells: Vec<Trial> = Vec::new();
    for cell in run.cells().iter().filter(|cell| run.ladder().is_none() || cell.task().kind() != TaskKind::Nfs) {
        check(cell)?;
        match calibration.bypass {
            Bypass::Cable => cells.push(across(cell)?),
            Bypass::Loopback => cells.extend(alone(cell)),
        }
    }
    if cells.is_empty() {
        return Err(CannotCalibrate::NoLimit(String::from("this command")));
    }
    let repeats = run.repeats().unwrap_or(Repeats::Times(1));
    Ok(Plan { calibration: Some(calibration), ..Plan::sweep(cells, repeats) })
}

/// Refuses a trial that has no tester limit.
fn check(cell: &Trial) -> Result<(), CannotCalibrate> {
    let offers = matches!(cell.task(), Task::Stream(stream) if stream.offered.is_some());
    if offers || cell.task().requests_per_s().is_some() {
        return Err(CannotCalibrate::SetRate(cell.name.clone()));
    }
    if settings(cell.task()).is_none() {
        return Err(CannotCalibrate::NoLimit(cell.task().kind().to_string()));
    }
    match cell.paths().iter().find(|path| path.server.agent().is_none()) {
        Some(path) => Err(CannotCalibrate::Foreign(path.server.name().clone())),
        None => Ok(()),
    }
}

/// The trial from host to host. What is timed beside its load is left out.
fn across(cell: &Trial) -> Result<Trial, CannotCalibrate> {
    match cell.paths().iter().find(|path| path.client == *path.server.name()) {
        Some(path) => Err(CannotCalibrate::OneHost(path.client.clone())),
        None => Ok(Trial::new(cell.name.clone(), cell.task().clone(), cell.load().timing)),
    }
}

/// The trial of each host against itself.
fn alone(cell: &Trial) -> Vec<Trial> {
    let of = |host: &HostName| {
        let mut task = cell.task().clone();
        if let Some(paths) = task.paths_mut() {
            *paths = vec![Path::between(host.clone(), host.clone())];
        }
        if let Some(net) = task.net_mut() {
            // Data that stay on the host go through no interface.
            (net.socket.bind_address, net.socket.bind_device) = (None, None);
        }
        Trial::new(format!("{}, {host} alone", cell.name), task, cell.load().timing)
    };
    cell.hosts().into_iter().map(of).collect()
}
