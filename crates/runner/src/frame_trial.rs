//! One trial with raw frames: by one request where all ports are of one host, in halves where they are of several.

use crate::Peers;
use crate::error::{RunError, at};
use futures_util::future::try_join_all;
use futures_util::stream::{Stream, StreamExt as _, select_all};
use linerate_agent::{AgentError, HalfStage};
use linerate_model::{
    FrameEngine, FrameHalf, FrameHalfResult, FrameStreamResult, FrameTrial, FrameTrialResult, FramesArrived,
    FramesSent, HostName,
};
use linerate_units::Nanos;
use std::collections::BTreeMap;

/// From the last host hearing of the start to the first frame: for their senders to be loaded.
const LEAD: Nanos = Nanos::from_millis(250);

/// Runs a trial. `home` has the ports that name no host.
pub(crate) async fn run(trial: &FrameTrial, home: &HostName, peers: &Peers) -> Result<FrameTrialResult, RunError> {
    let halves = halves(trial, home, rand::random());
    match halves.first() {
        Some((host, _)) if halves.len() == 1 => peers.find(host)?.client.frames(trial).await.map_err(at(host)),
        _ => join(trial, run_halves(&halves, peers).await?),
    }
}

/// What each host is to do; the host of the first port comes first.
fn halves(trial: &FrameTrial, home: &HostName, tag: u16) -> Vec<(HostName, FrameHalf)> {
    let mut halves: Vec<(HostName, FrameHalf)> = Vec::new();
    for (number, port) in (0..).zip(&trial.ports) {
        let host = port.host.as_ref().unwrap_or(home);
        match halves.iter_mut().find(|(other, _)| other == host) {
            Some((_, half)) => half.ports.push(number),
            None => halves.push((host.clone(), FrameHalf { trial: trial.clone(), ports: vec![number], tag })),
        }
    }
    halves
}

/// Conducts the hosts. They end their halves when this is dropped, or returns early because one of them failed.
async fn run_halves(
    halves: &[(HostName, FrameHalf)],
    peers: &Peers,
) -> Result<Vec<(HostName, FrameHalfResult)>, RunError> {
    let mut stages = try_join_all(halves.iter().map(async |(host, half)| {
        let stages = peers.find(host)?.client.frame_half(half).await.map_err(at(host))?;
        Ok::<_, RunError>(stages.map(move |stage| (host, stage)))
    }))
    .await?;
    all_reach(&HalfStage::Counting, &mut stages).await?;

    let furthest = peers.furthest(halves.iter().map(|(host, _)| host));
    try_join_all(halves.iter().map(async |(host, half)| {
        let peer = peers.find(host)?;
        peer.client.start_half(half.tag, LEAD + peer.head_start(furthest)).await.map_err(at(host))
    }))
    .await?;
    all_reach(&HalfStage::Sent, &mut stages).await?;

    try_join_all(halves.iter().map(async |(host, half)| {
        let counted = peers.find(host)?.client.finish_half(half.tag, &half.trial).await.map_err(at(host))?;
        Ok((host.clone(), counted))
    }))
    .await
}

/// Waits until every half has come to `wanted`; one that fails, or is lost, ends the trial at once.
async fn all_reach<'a, S>(wanted: &HalfStage, stages: &mut [S]) -> Result<(), RunError>
where
    S: Stream<Item = (&'a HostName, Result<HalfStage, AgentError>)> + Unpin,
{
    let mut missing = stages.len();
    let mut all = select_all(stages.iter_mut());
    while missing > 0 {
        let Some((host, stage)) = all.next().await else { break };
        let stage = stage.map_err(at(host))?;
        missing -= usize::from(stage == *wanted);
    }
    Ok(())
}

/// Puts the halves together again, stream by stream.
fn join(trial: &FrameTrial, mut halves: Vec<(HostName, FrameHalfResult)>) -> Result<FrameTrialResult, RunError> {
    let mut streams = Vec::with_capacity(trial.streams.len());
    for index in 0..trial.streams.len() {
        let (mut sent, mut arrived, mut flooded) = (None::<FramesSent>, None::<FramesArrived>, 0);
        for half in halves.iter_mut().filter_map(|(_, half)| half.streams.get_mut(index)) {
            sent = sent.or(half.sent.take());
            arrived = arrived.or(half.arrived.take());
            flooded += half.flooded;
        }
        let (Some(sent), Some(arrived)) = (sent, arrived) else {
            let host = halves.first().map_or_else(|| HostName::from("?"), |(host, _)| host.clone());
            let message = format!("no host counted both ends of stream {index}: use the same linerate on all hosts");
            return Err(RunError::Agent {
                source: AgentError::TrialFailed { address: host.to_string(), message },
                host,
            });
        };
        streams.push(FrameStreamResult::joined(sent, arrived, flooded));
    }
    let started = halves.iter().map(|(_, half)| half.started_unix_ns).min();
    // One that fell back to packet sockets is what the whole is measured by.
    let slower = halves.iter().any(|(_, half)| half.engine != FrameEngine::Xdp);
    let mut caveats = Vec::new();
    for (host, half) in &mut halves {
        let of_host = |mut caveat: linerate_model::Caveat| {
            caveat.text = format!("{host}: {}", caveat.text);
            caveat
        };
        caveats.extend(std::mem::take(&mut half.caveats).into_iter().map(of_host));
    }
    let mut seen = halves.into_iter().map(|(host, half)| (host, half.observation));
    Ok(FrameTrialResult {
        trial: trial.clone(),
        engine: if slower { FrameEngine::PacketSocket } else { FrameEngine::Xdp },
        started_unix_ns: started.unwrap_or_default(),
        streams,
        observation: seen.next().map(|(_, observation)| observation).unwrap_or_default(),
        other_hosts: seen.collect::<BTreeMap<_, _>>(),
        device_load: None,
        caveats,
    })
}
