//! The engine of raw frames: the demand of a session on its host, and its run.

use super::{trial, xdp};
use crate::FrameError;
use crate::linux::plan::{self, Plan};
use linerate_engine::{Conductor, Counted, Demand, Engine, EngineError, EngineFailure, FailedBy, Needs, WorkError};
use linerate_model::{
    Assignment, Endpoints, FramePartCounts, FrameReceiver, FrameStream, FramesTask, Power, Role, RoleCounts, RoleKind,
    Task,
};
use linerate_units::{BitRate, Nanos};
use std::collections::BTreeSet;
use std::thread;

/// The engine of raw frames between ports. A trial works the same with all ports on one host and with ports on several.
#[derive(Debug, Clone, Copy, Default)]
pub struct Frames;

impl Engine for Frames {
    fn name(&self) -> &'static str {
        "frames"
    }

    fn takes(&self, task: &Task) -> bool {
        matches!(task, Task::Frames(_))
    }

    fn demand(&self, assignment: &Assignment) -> Result<Demand, EngineError> {
        let ports = Ports::of(assignment)?;
        let task = ports.task;
        let sending = task.time + Nanos::new(plan::late_time(task.time.get()) + xdp::LOADING + xdp::GRACE);
        Ok(Demand {
            sends: ports.rate(|stream, own| usize::from(own.contains(&stream.from)))?,
            receives: ports.rate(|stream, own| stream.receivers().filter(|port| own.contains(port)).count())?,
            time: Some(task.time + task.settle),
            flows: 0,
            needs: ports.needs(),
            exclusive: Some("raw frames"),
            // A host that only receives waits from the start until the others have sent. If the other end of a link
            // drops the frames of XDP, packet sockets send all of them again.
            set_up: sending + sending,
        })
    }

    fn run(&self, assignment: &Assignment, host: &dyn Conductor) -> Result<Counted, EngineFailure> {
        let Ports { task, own, tag } = Ports::of(assignment).map_err(FailedBy::from)?;
        let counts = Plan::new(task, own, tag)
            .and_then(|plan| {
                host.listening(Endpoints::new())?;
                trial::run(&plan, task, host)
            })
            .map_err(FailedBy::from)?;
        let role = FramePartCounts { engine: counts.engine, streams: counts.streams };
        Ok(Counted {
            roles: vec![RoleCounts::Frames(role)],
            started_unix_ns: counts.started_unix_ns,
            caveats: counts.caveats,
            remains: Vec::new(),
        })
    }
}

impl WorkError for FrameError {
    fn is_stop(&self) -> bool {
        matches!(self, Self::Stopped(_))
    }
}

/// This host's part in a task.
struct Ports<'a> {
    task: &'a FramesTask,
    /// Indices of this host's ports.
    own: &'a [u16],
    /// Tag of the trial's frames.
    tag: u16,
}

impl<'a> Ports<'a> {
    fn of(assignment: &'a Assignment) -> Result<Self, EngineError> {
        let (Task::Frames(task), [Role { kind: RoleKind::Ports { own, tag }, .. }]) =
            (&assignment.task, &assignment.roles[..])
        else {
            return Err(EngineError::new("raw frames need one role, which names this host's ports"));
        };
        if own.is_empty() {
            return Err(EngineError::new("raw frames need a port on this host, and the assignment names none"));
        }
        Ok(Self { task, own, tag: *tag })
    }

    /// Returns the needs, with a thread for each port and for each sending core.
    fn needs(&self) -> Needs {
        /// Rings and tables of a port.
        const PORT: u64 = 4 << 20;
        /// A batch of the longest frames, its forms, and the record of arrivals.
        const STREAM: u64 = 1 << 20;
        let numbers = self.own.iter().collect::<BTreeSet<_>>();
        let ports = numbers.len() as u64;
        let cores = thread::available_parallelism().map_or(1, usize::from) as u64;
        let streams = self.task.streams.len() as u64;
        let sockets = match self.task.receiver {
            FrameReceiver::Port => 0,
            FrameReceiver::Socket => {
                self.task.streams.iter().filter(|stream| self.own.contains(&stream.to)).count() as u64
            }
        };
        let threads = 2 * ports + cores + 2 + sockets;
        Needs {
            interfaces: numbers.into_iter().filter_map(|port| self.interface(*port)).collect(),
            memory: ports * PORT + streams.saturating_mul(STREAM) + threads * Needs::THREAD,
            threads,
            // For packet sockets, or the programs and maps of each lane.
            descriptors: 16 * (ports + cores) + sockets,
            ..Needs::of(Power::Frames)
        }
    }

    /// Returns the interface of a port. Returns `None` if the task has no such port, which the plan reports.
    fn interface(&self, port: u16) -> Option<String> {
        self.task.ports.get(usize::from(port)).map(|port| port.interface.clone())
    }

    /// Returns the bits of frames per second, with FCS, of all streams. `ends` returns the number of ports of this host
    /// at which a stream's frames count.
    ///
    /// Returns `None` if a stream has no rate.
    fn rate(&self, ends: impl Fn(&FrameStream, &[u16]) -> usize) -> Result<Option<BitRate>, EngineError> {
        let mut bits = Some(0_u64);
        for stream in &self.task.streams {
            let ports = ends(stream, self.own) as u64;
            if ports == 0 {
                continue;
            }
            let rate = stream.rate.map(|rate| rate.get());
            if rate == Some(0) {
                return Err(EngineError::new("a stream of raw frames has rate 0: leave the stream out"));
            }
            bits = bits
                .zip(rate)
                .map(|(bits, rate)| bits.saturating_add(bits_per_second(stream, rate).saturating_mul(ports)));
        }
        Ok(bits.map(BitRate::per_second))
    }
}

/// Returns the bits of the frames of `stream` at `rate` frames per second, with FCS.
fn bits_per_second(stream: &FrameStream, rate: u64) -> u64 {
    // This number of frames keeps the shares of a mix, and their bytes within 64 bits.
    let some = rate.clamp(1, 1_000_000_000);
    let bits = u128::from(stream.bytes(some)) * 8 * u128::from(rate) / u128::from(some);
    u64::try_from(bits).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{
        FrameEngine, FrameForm, FrameHeaders, FrameMix, FramePayload, Mac, SessionId, SessionKey, Timing,
    };
    use linerate_units::{FrameRate, FrameSize};

    fn stream(from: u16, to: u16, size: u32, rate: Option<u64>) -> FrameStream {
        FrameStream {
            from,
            to,
            copies_to: Vec::new(),
            size: FrameSize::with_fcs(size).expect("a size"),
            rate: rate.map(FrameRate::per_second),
            count: None,
            after: Nanos::default(),
            time: None,
            headers: FrameHeaders {
                source_mac: Mac::default(),
                destination_mac: Mac::default(),
                vlans: Vec::new(),
                priority: 0,
                dscp: 0,
                source: "198.18.0.1".parse().expect("an address"),
                destination: "198.18.0.2".parse().expect("an address"),
                payload: FramePayload::Udp { source_port: 7, destination_port: 7 },
            },
            form: FrameForm::default(),
        }
    }

    fn assignment(streams: Vec<FrameStream>, own: &[u16]) -> Assignment {
        let task = FramesTask {
            home: "a".into(),
            ports: vec!["p0".into(), "b:p0".into()],
            streams,
            time: Nanos::from_secs(10),
            settle: Nanos::from_secs(2),
            engine: FrameEngine::Auto,
            receiver: FrameReceiver::Port,
            line: None,
            hosts: Vec::new(),
        };
        Assignment {
            id: SessionId(String::from("t")),
            key: SessionKey([0; 16]),
            task: Task::Frames(task),
            timing: Timing::UntilDone,
            roles: vec![Role {
                kind: RoleKind::Ports { own: own.to_vec(), tag: 1 },
                listens: Vec::new(),
                connects: Vec::new(),
            }],
            password: None,
            sampling: linerate_model::Sampling::default(),
        }
    }

    #[test]
    fn demand_counts_traffic_at_this_hosts_ports() {
        let both = vec![stream(0, 1, 125, Some(1_000)), stream(1, 0, 250, Some(100))];
        let here = demand(both.clone(), &[0]);
        assert_eq!(
            (here.sends, here.receives),
            (Some(BitRate::per_second(1_000_000)), Some(BitRate::per_second(200_000)))
        );
        assert_eq!((here.time, here.exclusive), (Some(Nanos::from_secs(12)), Some("raw frames")));
        assert!(here.needs.powers.has(Power::Frames));
        assert_eq!(here.needs.interfaces, BTreeSet::from(["p0".to_owned()]));
        assert!(here.set_up > Nanos::from_secs(20), "packet sockets may have to send all again");
        let whole = demand(both, &[0, 1]);
        assert_eq!(
            (whole.sends, whole.receives),
            (Some(BitRate::per_second(1_200_000)), Some(BitRate::per_second(1_200_000)))
        );

        let mut broadcast = stream(0, 0, 125, Some(1_000));
        broadcast.copies_to = vec![1];
        assert_eq!(demand(vec![broadcast], &[0, 1]).receives, Some(BitRate::per_second(2_000_000)), "at both ports");

        let unbounded = vec![stream(0, 1, 125, Some(1_000)), stream(0, 1, 125, None)];
        let here = demand(unbounded, &[0]);
        assert_eq!((here.sends, here.receives), (None, Some(BitRate::per_second(0))));

        let mut mixed = stream(0, 1, 1_518, Some(12));
        mixed.form.mix = Some(FrameMix::imix());
        assert_eq!(demand(vec![mixed], &[0]).sends, Some(BitRate::per_second(8 * FrameMix::imix().bytes(12))));

        let absurd = vec![stream(0, 1, 1_518, Some(u64::MAX)), stream(0, 1, 64, Some(1))];
        assert_eq!(demand(absurd, &[0]).sends, Some(BitRate::per_second(u64::MAX)), "it does not wrap");
    }

    fn demand(streams: Vec<FrameStream>, own: &[u16]) -> Demand {
        Frames.demand(&assignment(streams, own)).expect("valid")
    }

    #[test]
    fn invalid_assignments_are_refused() {
        let mut source = assignment(vec![stream(0, 1, 64, Some(1))], &[0]);
        source.roles[0].kind = RoleKind::Source;
        for (assignment, needle) in [
            (assignment(vec![stream(0, 1, 64, Some(0))], &[0]), "rate 0"),
            (assignment(vec![stream(0, 1, 64, Some(1))], &[]), "names none"),
            (source, "one role"),
        ] {
            let error = Frames.demand(&assignment).expect_err(needle).message;
            assert!(error.contains(needle), "{error}");
        }
    }
}
