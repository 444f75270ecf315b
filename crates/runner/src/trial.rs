//! One trial through the agents: prepare, connect, start, follow, finish.

use crate::Peers;
use crate::error::{RunError, at};
use futures_util::future::{join_all, try_join_all};
use futures_util::stream::{StreamExt, select_all};
use linerate_agent::AgentError;
use linerate_method::{Probing, place_losses, probed};
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

/// Runs one trial. One that is probed takes two: the probes alone, and then the load with the probes beside it.
pub(crate) async fn run(
    spec: &TrialSpec,
    peers: &Peers,
    cancel: &mut watch::Receiver<bool>,
    on_progress: OnProgress<'_>,
) -> Result<TrialResult, RunError> {
    let Some(probing) = Probing::of(spec) else {
        let [result] = together([spec], peers, cancel, on_progress).await?;
        return Ok(result);
    };
    let [idle] = together([&probing.idle], peers, cancel, &mut |_, _| ()).await?;
    let [mut result, loaded] = together([spec, &probing.loaded], peers, cancel, on_progress).await?;
    result.probe = Some(probed(&idle, &loaded));
    Ok(result)
}

/// Told what an agent says of its progress.
type OnProgress<'a> = &'a mut dyn FnMut(&HostName, &Progress);

/// Runs trials that start at the same time, and tells the progress of the first; on any failure, and when the user stops
/// it, every agent is told to stop before this returns.
async fn together<const N: usize>(
    specs: [&TrialSpec; N],
    peers: &Peers,
    cancel: &mut watch::Receiver<bool>,
    on_progress: OnProgress<'_>,
) -> Result<[TrialResult; N], RunError> {
    let trials = specs.map(|spec| Halves::of(spec, peers)).into_iter().collect::<Result<Vec<_>, _>>()?;
    let results = tokio::select! {
        results = run_all(&trials, peers, on_progress) => results,
        () = asked_to_stop(cancel) => Err(RunError::Interrupted),
    };
    if results.is_err() {
        join_all(trials.iter().map(|halves| abort(peers, halves))).await;
    }
    Ok(results?.try_into().expect("each trial has its result"))
}

/// Ends when the user stops the run; never if nobody can any more.
async fn asked_to_stop(cancel: &mut watch::Receiver<bool>) {
    if cancel.wait_for(|asked| *asked).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Tells all agents to stop, the opening ends first: they may have to remove from the listening ends what they made there. What
/// an agent answers changes nothing: one that is lost ends the trial by itself.
async fn abort(peers: &Peers, halves: &Halves<'_>) {
    let patience = ABORT_TIMEOUT + Duration::from(halves.spec.workload.set_up());
    let opens = |half: &HalfSpec| half.ends.iter().any(|end| end.role == EndRole::Opener);
    for opening in [true, false] {
        let names = halves.of.iter().filter(|(_, half)| opens(half) == opening).map(|(name, _)| name);
        let clients = names.filter_map(|name| peers.find(name).ok()).map(|peer| &peer.client);
        let told = join_all(clients.map(|client| client.abort(&halves.id)));
        let _ = tokio::time::timeout(patience, told).await;
    }
}

async fn run_all(
    trials: &[Halves<'_>],
    peers: &Peers,
    on_progress: OnProgress<'_>,
) -> Result<Vec<TrialResult>, RunError> {
    try_join_all(trials.iter().map(|halves| connect(peers, halves))).await?;
    start(peers, trials).await?;
    let Some((first, others)) = trials.split_first() else { return Ok(Vec::new()) };
    let others = others.iter().map(async |halves| finish(peers, halves, &mut |_, _| ()).await);
    let (first, others) = tokio::try_join!(finish(peers, first, on_progress), try_join_all(others))?;
    Ok(std::iter::once(first).chain(others).collect())
}

/// Prepares a trial on all agents and connects its openers to its listeners.
async fn connect(peers: &Peers, halves: &Halves<'_>) -> Result<(), RunError> {
    let prepared = try_join_all(halves.of.iter().map(async |(name, half)| {
        let prepared = peers.find(name)?.client.prepare(half).await.map_err(at(name))?;
        Ok::<_, RunError>(prepared.listening)
    }))
    .await?;
    let listening: BTreeMap<u16, _> = prepared.into_iter().flatten().collect();

    try_join_all(halves.of.iter().map(async |(name, half)| {
        let opened = half.ends.iter().filter(|end| end.role == EndRole::Opener).map(|end| end.path);
        let listeners = opened.filter_map(|path| Some((path, *listening.get(&path)?))).collect();
        peers.find(name)?.client.connect_trial(&halves.id, &Connect { listeners }).await.map_err(at(name))
    }))
    .await?;
    Ok(())
}

/// Starts all trials on all their agents at the same time: agents that are further away are told a shorter delay.
async fn start(peers: &Peers, trials: &[Halves<'_>]) -> Result<(), RunError> {
    let all = || trials.iter().flat_map(|halves| halves.of.keys().map(move |name| (&halves.id, name)));
    let furthest = peers.furthest(all().map(|(_, name)| name));
    try_join_all(all().map(async |(id, name)| {
        let peer = peers.find(name)?;
        peer.client.start(id, START_MARGIN + peer.head_start(furthest)).await.map_err(at(name))
    }))
    .await?;
    Ok(())
}

/// Follows a started trial to its end and puts its result together.
async fn finish(peers: &Peers, halves: &Halves<'_>, on_progress: OnProgress<'_>) -> Result<TrialResult, RunError> {
    follow(peers, halves, on_progress).await?;
    let finished = try_join_all(halves.of.keys().map(async |name| {
        let half = peers.find(name)?.client.finish(&halves.id).await.map_err(at(name))?;
        Ok::<_, RunError>((name.clone(), half))
    }))
    .await?;
    let mut result = join(halves.spec, finished.into_iter().collect())?;
    place_losses(&mut result);
    Ok(result)
}

/// Passes on the agents' progress until all are done; an agent that falls silent is an error.
async fn follow(peers: &Peers, halves: &Halves<'_>, on_progress: OnProgress<'_>) -> Result<(), RunError> {
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
struct Halves<'a> {
    id: TrialId,
    spec: &'a TrialSpec,
    of: BTreeMap<HostName, HalfSpec>,
}

impl<'a> Halves<'a> {
    fn of(spec: &'a TrialSpec, peers: &Peers) -> Result<Self, RunError> {
        let id = TrialId(format!("{:016x}", rand::random::<u64>()));
        let key = TrialKey(rand::random());
        let mut ends: BTreeMap<HostName, Vec<EndSpec>> = BTreeMap::new();
        for (index, path) in spec.paths.iter().enumerate() {
            let path_index = index as u16;
            let mut add =
                |host: &HostName, role| ends.entry(host.clone()).or_default().push(EndSpec { path: path_index, role });
            // A server that runs no agent is there already, and the workload says where.
            if !spec.workload.has_foreign_server() {
                let address = peers.data_address(&path.listener, &path.opener, spec.workload.ip())?;
                add(&path.listener, EndRole::Listener { address });
            }
            add(&path.opener, EndRole::Opener);
        }
        let half = |ends| HalfSpec { id: id.clone(), key, workload: spec.workload.clone(), timing: spec.timing, ends };
        let of = ends.into_iter().map(|(host, ends)| (host, half(ends))).collect();
        Ok(Self { id, spec, of })
    }
}

/// Puts the halves together again, path by path.
fn join(spec: &TrialSpec, mut halves: BTreeMap<HostName, HalfResult>) -> Result<TrialResult, RunError> {
    let mut paths = Vec::new();
    for (index, path) in spec.paths.iter().enumerate() {
        // A host that is both ends of one path lists the listening end first, as `Halves::of` does.
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
        let foreign = spec.workload.has_foreign_server();
        let unknown = EndResult { path: index as u16, ..EndResult::default() };
        let listener = if foreign { unknown } else { take(&path.listener)? };
        let opener = take(&path.opener)?;
        paths.push(PathResult { opener, listener, forward_loss: None, backward_loss: None });
    }
    let started_unix_ns = halves.values().map(|half| half.started_unix_ns).min().unwrap_or_default();
    let hosts = halves.into_iter().map(|(host, half)| (host, half.observation)).collect();
    Ok(TrialResult { spec: spec.clone(), started_unix_ns, paths, hosts, probe: None, caveats: Vec::new() })
}
