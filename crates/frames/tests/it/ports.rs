//! Two ports at a virtual cable, and trials between them.

use linerate_engine::testing::{Session, sessions};
use linerate_engine::{Counted, EngineFailure};
use linerate_frames::{Frames, port};
use linerate_model::{
    Assignment, Caveat, FrameEngine, FrameForm, FrameHeaders, FramePartCounts, FramePayload, FrameReceiver,
    FrameStream, FrameStreamCounts, FramesTask, Mac, Role, RoleCounts, RoleKind, SessionId, SessionKey, Task, Timing,
};
use linerate_sys::namespace::NetNamespace;
use linerate_sys::netlink::Route;
use linerate_units::{FrameRate, FrameSize, Nanos};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

pub(crate) const ENGINES: [FrameEngine; 2] = [FrameEngine::Xdp, FrameEngine::PacketSocket];
pub(crate) const UDP: FramePayload = FramePayload::Udp { source_port: 49_152, destination_port: 7 };
pub(crate) const OWN: [&str; 2] = ["198.18.0.1", "2001:2::1"];
pub(crate) const FAR: [&str; 2] = ["198.18.0.2", "2001:2::2"];

/// Cores from which all tests of this program send.
static CORES: RwLock<()> = RwLock::new(());

/// Runs `work` in a namespace with two ports, `left` and `right`, joined by a virtual cable.
pub(crate) fn with_ports(work: impl FnOnce(&NetNamespace) + Send) {
    let _shared = CORES.read().unwrap_or_else(PoisonError::into_inner);
    in_namespace(work);
}

/// Runs `work` as [`with_ports`] does while no other test of this program sends.
pub(crate) fn with_ports_alone(work: impl FnOnce(&NetNamespace) + Send) {
    let _alone = CORES.write().unwrap_or_else(PoisonError::into_inner);
    in_namespace(work);
}

/// Runs `work` in an empty namespace while no other test of this program sends.
pub(crate) fn alone(work: impl FnOnce(&NetNamespace) + Send) {
    let _alone = CORES.write().unwrap_or_else(PoisonError::into_inner);
    let namespace = NetNamespace::new().unwrap();
    namespace.enter(|| work(&namespace)).unwrap();
}

fn in_namespace(work: impl FnOnce(&NetNamespace) + Send) {
    let namespace = NetNamespace::new().unwrap();
    namespace
        .enter(|| {
            let mut route = Route::open().unwrap();
            route.add_veth("left", "right", &namespace, 1500).unwrap();
            for port in ["left", "right"] {
                let link = route.index_of(port).unwrap();
                route.set_up(link).unwrap();
            }
            work(&namespace);
        })
        .unwrap();
}

pub(crate) fn stream(from: u16, family: usize, size: u32, rate: Option<u64>, payload: FramePayload) -> FrameStream {
    let [source, destination] = [OWN, FAR].map(|ends| ends[family].parse::<IpAddr>().unwrap());
    let ends = if from == 0 { ["left", "right"] } else { ["right", "left"] };
    let [source_mac, destination_mac] = ends.map(|name| port(name).unwrap().mac);
    let mut stream = between(source_mac, destination_mac, size, payload);
    (stream.from, stream.to) = (from, 1 - from);
    stream.rate = rate.map(FrameRate::per_second);
    (stream.headers.source, stream.headers.destination) = (source, destination);
    stream
}

/// Returns a stream without a rate limit between the first two ports.
pub(crate) fn between(source_mac: Mac, destination_mac: Mac, size: u32, payload: FramePayload) -> FrameStream {
    FrameStream {
        from: 0,
        to: 1,
        copies_to: Vec::new(),
        size: FrameSize::with_fcs(size).unwrap(),
        rate: None,
        count: None,
        after: Nanos::new(0),
        time: None,
        headers: FrameHeaders {
            source_mac,
            destination_mac,
            vlans: Vec::new(),
            priority: 0,
            dscp: 0,
            source: OWN[0].parse().unwrap(),
            destination: FAR[0].parse().unwrap(),
            payload,
        },
        form: FrameForm::default(),
    }
}

/// Returns a stream of `frames` frames from the first port to the second. A stalled sender may take long.
pub(crate) fn counted(size: u32, rate: u64, payload: FramePayload, frames: u64) -> FrameStream {
    FrameStream { count: Some(frames), ..stream(0, 0, size, Some(rate), payload) }
}

/// Longest time of a trial with few frames on a busy machine, in milliseconds. It ends when all frames are sent.
pub(crate) const AMPLE: u64 = 60_000;
/// Rate, in frames per second, at which the queue of a virtual port (256 frames) does not overflow if its reader is
/// stalled for a tenth of a second.
pub(crate) const GENTLE: u64 = 2_000;
/// Longest wait for a stage.
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) fn trial(engine: FrameEngine, milliseconds: u64, streams: Vec<FrameStream>) -> FramesTask {
    FramesTask {
        home: "left".into(),
        ports: vec!["left".into(), "right".into()],
        streams,
        time: Nanos::from_millis(milliseconds),
        settle: Nanos::from_millis(300),
        engine,
        receiver: FrameReceiver::Port,
        line: None,
        hosts: Vec::new(),
    }
}

/// Counts of a trial with all ports at one host.
#[derive(Debug)]
pub(crate) struct Counts {
    pub(crate) engine: FrameEngine,
    pub(crate) streams: Vec<FrameStreamCounts>,
    pub(crate) caveats: Vec<Caveat>,
}

/// Returns the assignment of a host with the ports `own`.
pub(crate) fn assignment(task: &FramesTask, own: Vec<u16>, tag: u16) -> Assignment {
    Assignment {
        id: SessionId(String::from("test")),
        key: SessionKey([0; 16]),
        task: Task::Frames(task.clone()),
        timing: Timing::UntilDone,
        roles: vec![Role { kind: RoleKind::Ports { own, tag }, listens: Vec::new(), connects: Vec::new() }],
        password: None,
        sampling: linerate_model::Sampling::default(),
    }
}

/// Makes the session of a host with all ports.
pub(crate) fn session(task: &FramesTask) -> Session {
    let own = (0..task.ports.len() as u16).collect();
    sessions([assignment(task, own, tag())]).remove(0)
}

/// Returns a tag that distinguishes the frames of a trial from stragglers of others.
pub(crate) fn tag() -> u16 {
    static TRIALS: AtomicU16 = AtomicU16::new(1);
    TRIALS.fetch_add(1, Ordering::Relaxed)
}

/// Returns the counts of one host.
pub(crate) fn part(counted: Counted) -> FramePartCounts {
    match <[RoleCounts; 1]>::try_from(counted.roles) {
        Ok([RoleCounts::Frames(part)]) => part,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn counts(task: &FramesTask) -> Counts {
    counts_of(session(task).run(&Frames).unwrap())
}

/// Returns the counts of a host with all ports.
pub(crate) fn counts_of(mut counted: Counted) -> Counts {
    let caveats = std::mem::take(&mut counted.caveats);
    let FramePartCounts { engine, streams } = part(counted);
    let streams = streams.into_iter().map(|part| FrameStreamCounts {
        flooded_at: part.flooded_at,
        ..FrameStreamCounts::joined(
            part.sent.expect("sent here"),
            part.arrived.unwrap_or_default(),
            part.copies,
            part.flooded,
        )
    });
    Counts { engine, streams: streams.collect(), caveats }
}

/// Runs a trial that fails. Returns the error.
pub(crate) fn failure(task: &FramesTask) -> EngineFailure {
    session(task).run(&Frames).expect_err("it is refused")
}
