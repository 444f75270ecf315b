//! Copies of folder trees. Sources and destinations have a link for each pair of them; where a file server is an end, one host
//! has both ends of the copy.

use super::{Addresses, Assigned, Joined, Kind, Parts};
use crate::context::Context;
use crate::copy;
use linerate_model::{
    CopyCounts, CopyFault, CopyFrom, CopyInto, CopyOnError, CopyPart, CopyParts, CopySide, CopyStage, CopyTask,
    CopyWay, Counts, Host, HostName, Listen, Load, Measurement, Quantity, Role, RoleCounts, RoleKind, Task, Trial,
    TrialResult,
};

pub(super) struct Copies;

fn task(load: &Load) -> Result<&CopyTask, String> {
    match &load.task {
        Task::Copy(task) => Ok(task),
        other => Err(format!("{} is no copy", other.kind())),
    }
}

/// Which end of a copy a role is, as its counts are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Source,
    Destination,
    Server,
}

/// A host's role before it has links.
struct Member<'a> {
    host: &'a HostName,
    end: End,
    kind: RoleKind,
    /// Its index among the hosts at its end.
    index: usize,
}

/// Who does what, those that listen first.
fn members(task: &CopyTask) -> Vec<Member<'_>> {
    let role =
        |end, kind: fn(&HostName) -> RoleKind| move |(index, host)| Member { host, end, kind: kind(host), index };
    let here = |_: &HostName| RoleKind::Copier { folder: None, destination: 0 };
    let apart = |host: &HostName| RoleKind::Copier { folder: Some(folder_of(host)), destination: 0 };
    let (sources, destinations) = (task.sources.iter().enumerate(), task.destinations.iter().enumerate());
    match (task.way, &task.from, &task.into) {
        (CopyWay::Linerate, ..) => {
            let receive = destinations.map(role(End::Destination, |_| RoleKind::Destination));
            receive.chain(sources.map(role(End::Source, |_| RoleKind::Source))).collect()
        }
        (CopyWay::Path, ..) => sources.map(role(End::Destination, here)).collect(),
        (CopyWay::Nfs | CopyWay::Smb, CopyFrom::Server(_), _) => {
            let reader = |(index, host)| Member {
                host,
                end: End::Destination,
                kind: RoleKind::Copier { folder: None, destination: index as u16 },
                index,
            };
            destinations.map(reader).collect()
        }
        (CopyWay::Nfs | CopyWay::Smb, _, CopyInto::Server(_)) if task.sources.len() > 1 => {
            sources.map(role(End::Destination, apart)).collect()
        }
        (CopyWay::Nfs | CopyWay::Smb, _, CopyInto::Server(_)) => sources.map(role(End::Destination, here)).collect(),
        // Destinations serve their folders, and the sources write to them.
        (CopyWay::Nfs | CopyWay::Smb, ..) => {
            let serve = destinations.map(role(End::Server, |_| RoleKind::FileServer));
            serve.chain(sources.map(role(End::Destination, here))).collect()
        }
    }
}

/// A folder's name for a source among several.
fn folder_of(source: &HostName) -> String {
    source.0.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' }).collect()
}

/// Whether the destination opens the connections: its source may be unable to reach it.
fn destination_connects(task: &CopyTask, at: &dyn Addresses) -> bool {
    match (task.way, &task.sources[..], &task.destinations[..]) {
        (CopyWay::Linerate, [source], [destination]) => at.is_hidden(destination, source),
        _ => false,
    }
}

impl Kind for Copies {
    fn assign(&self, load: &Load, at: &dyn Addresses) -> Result<Assigned, String> {
        let task = task(load)?;
        let members = members(task);
        let reversed = destination_connects(task, at);
        let linked = task.way == CopyWay::Linerate || members.iter().any(|member| member.end == End::Server);
        let mut parts: Vec<(HostName, Vec<Role>)> = Vec::new();
        for Member { host, kind, index, .. } in members {
            let mut role = Role { kind, listens: Vec::new(), connects: Vec::new() };
            match role.kind {
                RoleKind::Destination if reversed => role.connects.push(task.link(0, index)),
                RoleKind::Source if reversed => {
                    let address = at.data_address(host, &task.destinations[0], task.ip)?;
                    role.listens.push(Listen { link: task.link(index, 0), address, folder: None });
                }
                RoleKind::Destination | RoleKind::FileServer => {
                    for (source, from) in task.sources.iter().enumerate() {
                        role.listens.push(Listen {
                            link: task.link(source, index),
                            address: at.data_address(host, from, task.ip)?,
                            folder: (task.sources.len() > 1).then(|| folder_of(from)),
                        });
                    }
                }
                _ if linked => {
                    role.connects.extend((0..task.destinations.len()).map(|to| task.link(index, to)));
                }
                _ => {}
            }
            match parts.iter_mut().find(|(known, _)| known == host) {
                Some((_, roles)) => roles.push(role),
                None => parts.push((host.clone(), vec![role])),
            }
        }
        Ok(Assigned { load: load.clone(), parts, caveats: Vec::new() })
    }

    fn join(&self, load: &Load, parts: Parts) -> Result<Joined, String> {
        let task = task(load)?;
        let lost: Vec<HostName> =
            parts.iter().filter(|(_, counted)| counted.is_err()).map(|(host, _)| host.clone()).collect();
        if !lost.is_empty() && !self.survives(load, &lost) {
            let why = parts.iter().find_map(|(host, counted)| Some(format!("{host}: {}", counted.as_ref().err()?)));
            return Err(why.unwrap_or_default());
        }
        let mut parts: Vec<_> = parts.into_iter().map(|(host, part)| (host, part.map(|part| part.roles))).collect();
        let mut whole = CopyParts { sources: Vec::new(), destinations: Vec::new(), servers: Vec::new() };
        for Member { host, end, .. } in members(task) {
            let counted = match parts.iter_mut().find(|(known, _)| known == host).map(|(_, part)| part) {
                // Roles come in the order in which `assign` gave them.
                Some(Ok(roles)) if !roles.is_empty() => match roles.remove(0) {
                    RoleCounts::Copy(counted) => counted,
                    _ => {
                        return Err(format!("{host}: its agent counted no copy: use the same linerate everywhere"));
                    }
                },
                Some(Err(why)) => lost_part(why),
                Some(Ok(_)) | None => {
                    return Err(format!("{host}: its agent gave no counts: use the same linerate everywhere"));
                }
            };
            let part = CopyPart { host: host.clone(), counted };
            match end {
                End::Source => whole.sources.push(part),
                End::Destination => whole.destinations.push(part),
                End::Server => whole.servers.push(part),
            }
        }
        Ok(Counts::Copy(whole).into())
    }

    /// A lost host ends the copy where that was to stop, or where nobody is left at one of its ends.
    fn survives(&self, load: &Load, lost: &[HostName]) -> bool {
        let Ok(task) = task(load) else { return false };
        let members = members(task);
        let left = |end| {
            let mut there = members.iter().filter(|member| member.end == end).peekable();
            there.peek().is_none() || there.any(|member| !lost.contains(member.host))
        };
        task.options.on_error != CopyOnError::Stop && left(End::Source) && left(End::Destination)
    }

    fn figure(&self, load: &Load, counts: &Counts) -> f64 {
        match (&load.task, counts) {
            (Task::Copy(task), Counts::Copy(parts)) => copy::bits_per_s(task, parts),
            _ => 0.0,
        }
    }

    /// What a copy leaves in a folder must not be copied over.
    fn may_repeat(&self, load: &Load) -> bool {
        matches!(&load.task, Task::Copy(CopyTask { into: CopyInto::Scratch | CopyInto::Discard, .. }))
    }

    fn compared(&self, _task: &Task) -> Vec<Quantity> {
        vec![Quantity::PayloadBps, Quantity::FilesPerS]
    }

    fn measure(&self, cell: &Trial, runs: &[&TrialResult], with: &Context<'_>) -> Measurement {
        copy::measure(cell, runs, with)
    }

    fn counterproofs(&self, result: &Measurement, cell: &Trial, _runs: &[&TrialResult], _hosts: &[Host]) -> Vec<Trial> {
        copy::counterproof(cell, result).into_iter().collect()
    }
}

/// What stands for a host that was lost.
fn lost_part(why: &str) -> CopyCounts {
    let fault = CopyFault { path: String::new(), stage: CopyStage::Receive, reason: why.to_owned() };
    CopyCounts { sides: vec![CopySide::default()], faults: vec![fault], faults_total: 1 }
}
