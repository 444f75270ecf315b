//! What streams, transactions, RPC and NFS have in common: paths between a client and a server.

use super::{Addresses, Assigned, Joined, Kind, Parts, all_of, nfs, observed, rpc, stream, transact};
use crate::account::place_losses;
use crate::context::Context;
use crate::hops;
use crate::measure::{PathFacts, measurement};
use crate::transfer::{Transfer, transactions_per_s, transfers_of};
use linerate_model::{
    Caveat, CaveatKind, Counts, Detail, EndCounts, Host, HostCounts, HostName, LinkId, Listen, Load, Measurement, Net,
    Path, PathCounts, Quantity, Role, RoleCounts, RoleKind, Task, Transport, Trial, TrialResult, message,
};
use std::net::IpAddr;

pub(super) struct Flows;

impl Kind for Flows {
    fn assign(&self, load: &Load, at: &dyn Addresses) -> Result<Assigned, String> {
        assign(load, at)
    }

    fn join(&self, load: &Load, parts: Parts) -> Result<Joined, String> {
        join(load, parts)
    }

    fn figure(&self, load: &Load, counts: &Counts) -> f64 {
        match load.task {
            Task::Stream(_) => sum(load, counts, |transfer| transfer.payload_bps()),
            _ => sum(load, counts, transactions_per_s),
        }
    }

    fn compared(&self, task: &Task) -> Vec<Quantity> {
        if let Task::Stream(_) = task {
            return vec![Quantity::PayloadBps, Quantity::LossRatio, Quantity::LoadedP99Ns];
        }
        // At a rate asked for as well: requests that are not answered are in no latency.
        let mut all = vec![Quantity::PerSecond, Quantity::LatencyP50Ns, Quantity::LatencyP99Ns];
        if let Task::Nfs(_) = task {
            all.extend([Quantity::ReadMeanNs, Quantity::WriteMeanNs, Quantity::OtherMeanNs]);
        }
        all
    }

    fn measure(&self, cell: &Trial, runs: &[&TrialResult], with: &Context<'_>) -> Measurement {
        measure(cell, runs, with)
    }

    fn counterproofs(&self, result: &Measurement, cell: &Trial, runs: &[&TrialResult], hosts: &[Host]) -> Vec<Trial> {
        let limit = result.verdict.leading();
        let tests = match cell.task() {
            Task::Stream(stream) => stream::proof::tests(stream, result, runs, hosts),
            Task::Transact(transact) => transact::proof::test(transact, limit).into_iter().collect(),
            Task::Rpc(rpc) => rpc::proof::test(rpc, limit, result.limit()).into_iter().collect(),
            _ => Vec::new(),
        };
        tests.into_iter().map(|test| test.of(cell)).collect()
    }
}

/// A link for each path: its server listens, its client connects. A server that runs no agent is there already, and the
/// task says where. What such a server tells of its end, the client hands on beside its own counts.
///
/// # Errors
/// A client cannot reach its server.
pub(super) fn assign(load: &Load, at: &dyn Addresses) -> Result<Assigned, String> {
    let ip = load.task.net().map(|net: &Net| net.ip).unwrap_or_default();
    let (load, caveats) = limit_segments(load, at);
    let mut parts: Vec<(HostName, Vec<Role>)> = Vec::new();
    let mut add = |host: &HostName, role: Role| match parts.iter_mut().find(|(known, _)| known == host) {
        Some((_, roles)) => roles.push(role),
        None => parts.push((host.clone(), vec![role])),
    };
    for (path, Path { client, server }) in (0..).zip(load.task.paths()) {
        let link = LinkId(path);
        let agent = server.agent();
        if let Some(server) = agent {
            let address: IpAddr = at.data_address(server, client, ip)?;
            let listens = vec![Listen { link, address, folder: None }];
            add(server, Role { kind: RoleKind::Server { path }, listens, connects: Vec::new() });
        }
        let connects = agent.map(|_| link).into_iter().collect();
        add(client, Role { kind: RoleKind::Client { path }, listens: Vec::new(), connects });
    }
    Ok(Assigned { load, parts, caveats })
}

/// Returns `load` with TCP segments that its paths carry, where larger ones are known to be lost on them.
fn limit_segments(load: &Load, at: &dyn Addresses) -> (Load, Vec<Caveat>) {
    let mut load = load.clone();
    let ends = load.task.paths().iter().filter_map(|path| Some((&path.client, path.server.agent()?)));
    let limit = ends.filter_map(|(client, server)| at.segment_limit(client, server)).min();
    let Some(limit) = limit else { return (load, Vec::new()) };
    let is_tcp = load.task.net().is_some_and(|net| net.transport == Transport::Tcp);
    if is_tcp && let Some(net) = load.task.net_mut() {
        net.socket.mss.get_or_insert(limit);
    }
    let text = message!(
        "caveat-large-packets-lost",
        "the path loses large packets without a word: the connection to the agent stalled until its segments were limited to {limit} bytes, \
         as those of TCP trials are now; find the hop with `tracepath`, or lower the MTU there; UDP passes with `--size {limit}`",
        limit
    );
    (load, vec![Caveat::new(CaveatKind::Fallback, text)])
}

/// Puts the ends of each path together.
///
/// # Errors
/// An end is missing.
fn join(load: &Load, parts: Parts) -> Result<Joined, String> {
    let mut parts = all_of(parts)?;
    let mut paths = Vec::new();
    for (index, path) in (0u16..).zip(load.task.paths()) {
        // A host that is both ends of one path has the server's role first, as `assign` gives it.
        let mut take = |host| end_of(&mut parts, host, index, flows(|end| end.path == index && end.told.is_none()));
        let server = path.server.agent().map(&mut take).transpose()?;
        let client = take(&path.client)?;
        let server = server.unwrap_or_else(|| {
            let by_client = flows(|end| end.path == index && end.told.is_some());
            let server = end_of(&mut parts, &path.client, index, by_client);
            server.unwrap_or_else(|_| EndCounts { path: index, ..EndCounts::default() })
        });
        paths.push(PathCounts { client, server, forward_loss: None, backward_loss: None });
    }
    let unsure = match &load.task {
        Task::Stream(stream) => place_losses(stream, &mut paths, &observed(&parts)),
        _ => None,
    };
    Ok(Joined { counts: Counts::Flows(paths), caveats: unsure.into_iter().collect() })
}

/// Returns a selection of the ends of flows that meet `condition`, for [`end_of`].
fn flows(condition: impl Fn(&EndCounts) -> bool) -> impl Fn(RoleCounts) -> Result<EndCounts, RoleCounts> {
    move |role| match role {
        RoleCounts::Flows(end) if condition(&end) => Ok(*end),
        other => Err(other),
    }
}

/// Takes the first counts of `host` that `select` accepts out of `parts`. `select` returns the others.
///
/// # Errors
/// There are none; the text names the host.
pub(super) fn end_of<T>(
    parts: &mut [(HostName, HostCounts)],
    host: &HostName,
    path: u16,
    select: impl Fn(RoleCounts) -> Result<T, RoleCounts>,
) -> Result<T, String> {
    let roles = parts.iter_mut().find(|(known, _)| known == host).map(|(_, counts)| &mut counts.roles);
    let mut end = None;
    if let Some(roles) = roles {
        let mut others = Vec::with_capacity(roles.len());
        for role in roles.drain(..) {
            match end {
                None => match select(role) {
                    Ok(selected) => end = Some(selected),
                    Err(other) => others.push(other),
                },
                Some(_) => others.push(role),
            }
        }
        *roles = others;
    }
    end.ok_or_else(|| format!("{host}: the agent gave no counts for path {path}; use the same linerate everywhere"))
}

/// The sum over the transfers.
fn sum(load: &Load, counts: &Counts, of: impl Fn(&Transfer<'_>) -> f64) -> f64 {
    match counts {
        Counts::Flows(paths) => transfers_of(&load.task, paths).iter().map(of).sum(),
        Counts::Frames(_) | Counts::Copy(_) | Counts::Hops(_) => 0.0,
    }
}

fn measure(cell: &Trial, runs: &[&TrialResult], with: &Context<'_>) -> Measurement {
    let path = PathFacts::of(with.hosts, runs);
    let mut detail = match cell.task() {
        Task::Stream(task) => Detail::Stream(Box::new(stream::figures(task, cell, &path, runs, with))),
        Task::Transact(task) => Detail::Transact(Box::new(transact::figures(task, &path, runs))),
        Task::Rpc(task) => Detail::Rpc(Box::new(rpc::figures(task, &path, runs))),
        Task::Nfs(task) => Detail::Nfs(Box::new(nfs::figures(task, &path, runs))),
        Task::Frames(_) | Task::Copy(_) | Task::Hops(_) => unreachable!("they are of another kind"),
    };
    if let Some(flow) = detail.flow_mut() {
        flow.ways = hops::ways(cell, runs, with.idle);
    }
    measurement(cell, detail, &path, runs, with)
}
