//! What hosts of known limits count: a path that carries a set rate, a server of a set speed, a device that drops what is beyond
//! its rate, storage of a set rate.

use linerate_model::{
    Assignment, CopyCounts, CopySide, CoreUse, EndCounts, FrameEngine, FramePartCounts, FrameStreamPart, FramesArrived,
    FramesSent, FramesTask, Histogram, HostCounts, HostName, NfsOperation, Observation, OperationCounts, Received,
    Role, RoleCounts, RoleKind, Sent, Task, Transactions, Window,
};
use linerate_units::Nanos;

/// What the path carries, payload bytes per second.
pub(super) const PATH: u64 = 12_000_000;
/// Operations per second that a server answers.
const SERVER: u64 = 5_000;
/// Frames per second that the device forwards.
pub(super) const DEVICE: u64 = 100_000;
/// Bytes of a copy.
const COPIED: u64 = 1_000_000;

/// What a host counts in a session.
pub(super) fn counts(_: &HostName, assignment: &Assignment) -> HostCounts {
    let roles = assignment.roles.iter().map(|role| counted(role, assignment)).collect();
    HostCounts { roles, observation: observation(0), started_unix_ns: 1_000, caveats: Vec::new(), remains: Vec::new() }
}

/// What a host sees of which the hypervisor took `stolen` percent.
pub(super) fn observation(stolen: u64) -> Observation {
    let core =
        CoreUse { steal: Nanos::from_millis(stolen), idle: Nanos::from_millis(100 - stolen), ..CoreUse::default() };
    Observation { window: Nanos::from_millis(100), cores: vec![core], ..Observation::default() }
}

fn counted(role: &Role, assignment: &Assignment) -> RoleCounts {
    let window = assignment.timing.window().unwrap_or_default();
    match (&role.kind, &assignment.task) {
        (RoleKind::Client { path }, Task::Stream(_)) => {
            let sent = Sent { window: window.measure, payload_bytes: moved(window), messages: 1, ..Sent::default() };
            RoleCounts::Flows(Box::new(EndCounts { path: *path, sent: Some(sent), ..EndCounts::default() }))
        }
        (RoleKind::Server { path }, Task::Stream(_)) => {
            let bytes = moved(window);
            let received = Received { window: window.measure, payload_bytes: bytes, ..Received::default() };
            RoleCounts::Flows(Box::new(EndCounts { path: *path, received: Some(received), ..EndCounts::default() }))
        }
        (RoleKind::Client { path }, task) => RoleCounts::Flows(Box::new(asked(*path, task, window))),
        (RoleKind::Server { path }, _) => {
            RoleCounts::Flows(Box::new(EndCounts { path: *path, ..EndCounts::default() }))
        }
        (RoleKind::Ports { own, .. }, Task::Frames(task)) => RoleCounts::Frames(frames(own, task)),
        (_, _) => RoleCounts::Copy(copied(role)),
    }
}

fn moved(window: Window) -> u64 {
    (PATH as f64 * window.measure.as_secs_f64()) as u64
}

fn asked(path: u16, task: &Task, window: Window) -> EndCounts {
    let seconds = window.measure.as_secs_f64();
    let due = task.requests_per_s().map_or(SERVER, |rate| rate.get());
    let completed = (due.min(SERVER) as f64 * seconds) as u64;
    let not_sent = (due.saturating_sub(SERVER) as f64 * seconds) as u64;
    let mut latency = Histogram::default();
    latency.record_many(if not_sent > 0 { 80_000_000 } else { 1_000_000 }, completed);
    let asked = Transactions {
        window: window.measure,
        completed,
        not_sent,
        latency: latency.clone(),
        ..Transactions::default()
    };
    let mut end = EndCounts { path, transactions: Some(asked), ..EndCounts::default() };
    let bytes = completed * 1_000;
    if let Task::Nfs(_) = task {
        let counts = OperationCounts { completed, bytes, latency, ..OperationCounts::default() };
        end.operations.insert(NfsOperation::Read, counts);
    }
    if !matches!(task, Task::Transact(_)) {
        end.sent = Some(Sent { window: window.measure, payload_bytes: bytes, ..Sent::default() });
        end.received = Some(Received { window: window.measure, payload_bytes: bytes, ..Received::default() });
    }
    end
}

fn frames(own: &[u16], task: &FramesTask) -> FramePartCounts {
    let part = |stream: &linerate_model::FrameStream| {
        let seconds = task.time.as_secs_f64();
        let rate = stream.rate.map_or(1_000_000, |rate| rate.get());
        let intended = stream.count.unwrap_or((rate as f64 * seconds) as u64);
        let received = intended.min((DEVICE as f64 * seconds) as u64);
        let bytes = |frames| stream.bytes(frames);
        let mut latency = Histogram::default();
        latency.record_many(10_000, received);
        FrameStreamPart {
            sent: own.contains(&stream.from).then(|| FramesSent {
                intended,
                sent: intended,
                bytes: bytes(intended),
                first: 1,
                time: task.time,
                held_up: Nanos::default(),
            }),
            arrived: own.contains(&stream.to).then(|| FramesArrived {
                received,
                bytes: bytes(received),
                expected: intended,
                time: task.time,
                latency,
                ..FramesArrived::default()
            }),
            flooded: 0,
        }
    };
    FramePartCounts { engine: FrameEngine::Xdp, streams: task.streams.iter().map(part).collect() }
}

fn copied(role: &Role) -> CopyCounts {
    let side = CopySide {
        time: Nanos::from_millis(100),
        files: 10,
        folders: 1,
        bytes: COPIED,
        verified: 10,
        complete: true,
        ..CopySide::default()
    };
    let links = (role.listens.len() + role.connects.len()).max(1);
    CopyCounts { sides: vec![side; links], faults: Vec::new(), faults_total: 0 }
}
