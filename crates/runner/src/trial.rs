//! One trial through the agents: prepare, connect, start, follow, finish.

use crate::Peers;
use crate::error::{RunError, at};
use futures_util::future::{join_all, try_join_all};
use futures_util::stream::{StreamExt, select_all};
use linerate_agent::AgentError;
use linerate_method::place_losses;
use linerate_model::{
    Connect, EndResult, EndRole, EndSpec, HalfResult, HalfSpec, HostName, PathResult, Progress, TrialId, TrialKey,
    TrialResult, TrialSpec,
};
use linerate_units::Nanos;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::watch;

/// Time between the last agent hearing of the start and the start itself.
const START_MARGIN: Nanos = Nanos::from_millis(20);

/// Agents that do not answer within this when told to stop are left to their own bounds.
const ABORT_TIMEOUT: Duration = Duration::from_secs(2);

/// Runs one trial; on any failure, and when the user stops it, every agent is told to stop before this returns.
pub(crate) async fn run(
    spec: &TrialSpec,
    peers: &Peers,
    cancel: &mut watch::Receiver<bool>,
    mut on_progress: impl FnMut(&HostName, &Progress),
) -> Result<TrialResult, RunError> {
    let halves = halves(spec, peers)?;
    let result = tokio::select! {
        result = run_halves(spec, peers, &halves, &mut on_progress) => result,
        () = asked_to_stop(cancel) => Err(RunError::Interrupted),
    };
    if result.is_err() {
        abort(peers, &halves).await;
    }
    result
}

/// Ends when the user stops the run; never if nobody can any more.
async fn asked_to_stop(cancel: &mut watch::Receiver<bool>) {
    if cancel.wait_for(|asked| *asked).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Tells all agents at once to stop. What an agent answers changes nothing: one that is lost ends the trial by itself.
async fn abort(peers: &Peers, halves: &Halves) {
    let clients = halves.of.keys().filter_map(|name| peers.find(name).ok()).map(|peer| &peer.client);
    let told = join_all(clients.map(|client| client.abort(&halves.id)));
    let _ = tokio::time::timeout(ABORT_TIMEOUT, told).await;
}

async fn run_halves(
    spec: &TrialSpec,
    peers: &Peers,
    halves: &Halves,
    on_progress: &mut impl FnMut(&HostName, &Progress),
) -> Result<TrialResult, RunError> {
    let id = &halves.id;
    let prepared = try_join_all(halves.of.iter().map(async |(name, half)| {
        let prepared = peers.find(name)?.client.prepare(half).await.map_err(at(name))?;
        Ok::<_, RunError>(prepared.listening)
    }))
    .await?;
    let listening: BTreeMap<u16, _> = prepared.into_iter().flatten().collect();

    try_join_all(halves.of.iter().map(async |(name, half)| {
        let opened = half.ends.iter().filter(|end| end.role == EndRole::Opener).map(|end| end.path);
        let listeners = opened.filter_map(|path| Some((path, *listening.get(&path)?))).collect();
        peers.find(name)?.client.connect_trial(id, &Connect { listeners }).await.map_err(at(name))
    }))
    .await?;

    let furthest = peers.furthest(halves.of.keys());
    try_join_all(halves.of.keys().map(async |name| {
        let peer = peers.find(name)?;
        peer.client.start(id, START_MARGIN + peer.head_start(furthest)).await.map_err(at(name))
    }))
    .await?;

    follow(peers, halves, on_progress).await?;

    let finished = try_join_all(halves.of.keys().map(async |name| {
        let half = peers.find(name)?.client.finish(id).await.map_err(at(name))?;
        Ok::<_, RunError>((name.clone(), half))
    }))
    .await?;
    let mut result = join(spec, finished.into_iter().collect())?;
    place_losses(&mut result);
    Ok(result)
}

/// Passes on the agents' progress until all are done; an agent that falls silent is an error.
async fn follow(
    peers: &Peers,
    halves: &Halves,
    on_progress: &mut impl FnMut(&HostName, &Progress),
) -> Result<(), RunError> {
    let mut streams = Vec::new();
    for name in halves.of.keys() {
        let events = peers.find(name)?.client.events(&halves.id).await.map_err(at(name))?;
        streams.push(events.map(move |event| (name, event)));
    }
    let (mut all, mut open) = (select_all(streams), halves.of.len());
    while open > 0 {
        let Some((name, event)) = all.next().await else { break };
        let progress = event.map_err(at(name))?;
        on_progress(name, &progress);
        open -= usize::from(progress.done);
    }
    Ok(())
}

/// A trial cut into what each host is to do.
struct Halves {
    id: TrialId,
    of: BTreeMap<HostName, HalfSpec>,
}

fn halves(spec: &TrialSpec, peers: &Peers) -> Result<Halves, RunError> {
    let id = TrialId(format!("{:016x}", rand::random::<u64>()));
    let key = TrialKey(rand::random());
    let mut ends: BTreeMap<HostName, Vec<EndSpec>> = BTreeMap::new();
    for (index, path) in spec.paths.iter().enumerate() {
        let address = peers.data_address(&path.listener, &path.opener, spec.workload.ip())?;
        let path_index = index as u16;
        let mut add =
            |host: &HostName, role| ends.entry(host.clone()).or_default().push(EndSpec { path: path_index, role });
        add(&path.listener, EndRole::Listener { address });
        add(&path.opener, EndRole::Opener);
    }
    let half = |ends| HalfSpec { id: id.clone(), key, workload: spec.workload.clone(), timing: spec.timing, ends };
    let of = ends.into_iter().map(|(host, ends)| (host, half(ends))).collect();
    Ok(Halves { id, of })
}

/// Puts the halves together again, path by path.
fn join(spec: &TrialSpec, mut halves: BTreeMap<HostName, HalfResult>) -> Result<TrialResult, RunError> {
    let mut paths = Vec::new();
    for (index, path) in spec.paths.iter().enumerate() {
        // A host that is both ends of one path lists the listening end first, as `halves` does.
        let mut take = |host: &HostName| -> Result<EndResult, RunError> {
            let ends = halves.get_mut(host).map(|half| &mut half.ends);
            let found = ends.and_then(|ends| {
                let at = ends.iter().position(|end| end.path == index as u16)?;
                Some(ends.remove(at))
            });
            found.ok_or_else(|| RunError::Agent {
                host: host.clone(),
                source: AgentError::TrialFailed {
                    address: host.to_string(),
                    message: format!("the agent gave no result for path {index}"),
                },
            })
        };
        let listener = take(&path.listener)?;
        let opener = take(&path.opener)?;
        paths.push(PathResult { opener, listener, forward_loss: None, backward_loss: None });
    }
    let started_unix_ns = halves.values().map(|half| half.started_unix_ns).min().unwrap_or_default();
    let hosts = halves.into_iter().map(|(host, half)| (host, half.observation)).collect();
    Ok(TrialResult { spec: spec.clone(), started_unix_ns, paths, hosts, caveats: Vec::new() })
}
