//! Raw frames between ports. Each host has a session with all of its ports; hosts that send together drain together.

use super::{Addresses, Assigned, Joined, Kind, Parts, all_of};
use crate::context::Context;
use crate::frames;
use linerate_model::{
    Caveat, CaveatKind, Counts, FrameCounts, FrameEngine, FramePartCounts, FrameStreamCounts, FramesArrived,
    FramesSent, FramesTask, HostName, Load, Measurement, PortArrivals, Quantity, Role, RoleCounts, RoleKind, Task,
    Trial, TrialResult, message,
};

pub(super) struct Frames;

fn task(load: &Load) -> Result<&FramesTask, String> {
    match &load.task {
        Task::Frames(task) => Ok(task),
        other => Err(format!("{} are no raw frames", other.kind())),
    }
}

/// Each host with its ports; the host of the first port comes first.
fn ports(task: &FramesTask) -> Vec<(HostName, Vec<u16>)> {
    let mut hosts: Vec<(HostName, Vec<u16>)> = Vec::new();
    for (number, port) in (0..).zip(&task.ports) {
        let host = task.host(port);
        match hosts.iter_mut().find(|(other, _)| other == host) {
            Some((_, own)) => own.push(number),
            None => hosts.push((host.clone(), vec![number])),
        }
    }
    hosts
}

/// Whether two hosts that send are one machine, as the hosts of a lab are.
fn share_a_machine(task: &FramesTask, hosts: &[(HostName, Vec<u16>)], at: &dyn Addresses) -> bool {
    let sends = |own: &[u16]| task.streams.iter().any(|stream| own.contains(&stream.from));
    let senders = hosts.iter().filter(|(_, own)| sends(own));
    let machines: Vec<&str> = senders.filter_map(|(host, _)| at.host(host)).map(|host| host.boot_id.as_str()).collect();
    machines.iter().enumerate().any(|(index, machine)| !machine.is_empty() && machines[..index].contains(machine))
}

impl Kind for Frames {
    fn assign(&self, load: &Load, at: &dyn Addresses) -> Result<Assigned, String> {
        let task = task(load)?;
        let hosts = ports(task);
        let sharing = task.engine == FrameEngine::Auto && share_a_machine(task, &hosts, at);
        let (mut load, mut caveats) = (load.clone(), Vec::new());
        if sharing {
            load.task = Task::Frames(FramesTask { engine: FrameEngine::PacketSocket, ..task.clone() });
            let text = message!(
                "caveat-packet-sockets-one-machine",
                "packet sockets were used instead of XDP, because both sending hosts are one machine, where two \
                 XDP senders would take each other's core: they send and receive far fewer frames a second; send \
                 one way, or from two machines"
            );
            caveats.push(Caveat::new(CaveatKind::Fallback, text));
        }
        let role = |own| Role { kind: RoleKind::Ports { own, tag: 0 }, listens: Vec::new(), connects: Vec::new() };
        let parts = hosts.into_iter().map(|(host, own)| (host, vec![role(own)])).collect();
        Ok(Assigned { load, parts, caveats })
    }

    fn join(&self, load: &Load, parts: Parts) -> Result<Joined, String> {
        let task = task(load)?;
        let parts = all_of(parts)?.into_iter().flat_map(|(_, counted)| counted.roles);
        let mut counted: Vec<FramePartCounts> = parts
            .filter_map(|role| match role {
                RoleCounts::Frames(counted) => Some(counted),
                _ => None,
            })
            .collect();
        let mut streams = Vec::with_capacity(task.streams.len());
        for index in 0..task.streams.len() {
            let (mut sent, mut arrived, mut flooded) = (None::<FramesSent>, None::<FramesArrived>, 0);
            let mut copies = Vec::new();
            let mut flooded_at = Vec::new();
            for part in counted.iter_mut().filter_map(|part| part.streams.get_mut(index)) {
                sent = sent.or(part.sent.take());
                arrived = arrived.or(part.arrived.take());
                flooded += part.flooded;
                copies.append(&mut part.copies);
                flooded_at.append(&mut part.flooded_at);
            }
            let stream = &task.streams[index];
            let lacking = |port: u16, end: &str| {
                let host = task.ports.get(usize::from(port)).map_or(&task.home, |port| task.host(port));
                format!(
                    "{host}: its agent did not count the frames that {end} of stream {index}: use the same linerate on all hosts"
                )
            };
            let sent = sent.ok_or_else(|| lacking(stream.from, "left"))?;
            let arrived = arrived.ok_or_else(|| lacking(stream.to, "arrived"))?;
            let place = |copy: &PortArrivals| stream.copies_to.iter().position(|port| *port == copy.port);
            copies.sort_by_key(place);
            if copies.len() < stream.copies_to.len() {
                let counted = |port: &u16| copies.iter().any(|copy| copy.port == *port);
                let missing = stream.copies_to.iter().find(|port| !counted(port));
                return Err(lacking(missing.copied().unwrap_or(stream.to), "arrived"));
            }
            flooded_at.sort_by_key(|flood| flood.port);
            streams.push(FrameStreamCounts { flooded_at, ..FrameStreamCounts::joined(sent, arrived, copies, flooded) });
        }
        // One that fell back to packet sockets is what the whole is measured by.
        let slower = counted.iter().any(|part| part.engine != FrameEngine::Xdp);
        let engine = if slower { FrameEngine::PacketSocket } else { FrameEngine::Xdp };
        Ok(Counts::Frames(FrameCounts { engine, streams }).into())
    }

    fn drains(&self) -> bool {
        true
    }

    fn figure(&self, load: &Load, counts: &Counts) -> f64 {
        match (&load.task, counts) {
            (Task::Frames(task), Counts::Frames(counts)) => frames::received_per_s(task, counts),
            _ => 0.0,
        }
    }

    fn spoilt(&self, result: &TrialResult) -> Option<Caveat> {
        frames::spoilt(&result.frames()?)
    }

    fn compared(&self, _task: &Task) -> Vec<Quantity> {
        vec![Quantity::FramesPerS]
    }

    fn measure(&self, cell: &Trial, runs: &[&TrialResult], with: &Context<'_>) -> Measurement {
        frames::measure(cell, runs, with)
    }

    /// Plain frames are asked for once: what was spoilt is told, and not sent again.
    fn may_repeat(&self, _load: &Load) -> bool {
        false
    }
}
