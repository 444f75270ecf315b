//! One trial with raw frames: by one request where all ports are of one host, in halves where they are of several.

use crate::Peers;
use crate::error::{RunError, at};
use futures_util::future::try_join_all;
use futures_util::stream::{Stream, StreamExt as _, select_all};
use linerate_agent::{AgentError, HalfStage};
use linerate_model::{
    Caveat, CaveatKind, FrameEngine, FrameHalf, FrameHalfResult, FrameStreamResult, FrameTrial, FrameTrialResult,
    FramesArrived, FramesSent, HostName,
};
use linerate_units::Nanos;
use std::collections::BTreeMap;

/// From the last host hearing of the start to the first frame: for their senders to be loaded.
const LEAD: Nanos = Nanos::from_millis(250);

/// Runs a trial. `home` has the ports that name no host.
pub(crate) async fn run(trial: &FrameTrial, home: &HostName, peers: &Peers) -> Result<FrameTrialResult, RunError> {
    let mut halves = halves(trial, home, rand::random());
    if let [(host, _)] = &halves[..] {
        return peers.find(host)?.client.frames(trial).await.map_err(at(host));
    }
    let sharing = trial.engine == FrameEngine::Auto && share_a_machine(&halves, peers);
    if sharing {
        halves.iter_mut().for_each(|(_, half)| half.trial.engine = FrameEngine::PacketSocket);
    }
    let mut result = join(trial, run_halves(&halves, peers).await?)?;
    if sharing {
        let text = "packet sockets stood in for XDP, as both sending hosts are one machine, where two XDP senders would take \
                    each other's core: they send and receive far fewer frames a second; send one way, or from two machines";
        result.caveats.push(Caveat::new(CaveatKind::Fallback, text));
    }
    Ok(result)
}

/// Whether two hosts that send are one machine, as the hosts of a lab are.
fn share_a_machine(halves: &[(HostName, FrameHalf)], peers: &Peers) -> bool {
    let sends = |half: &FrameHalf| half.trial.streams.iter().any(|stream| half.ports.contains(&stream.from));
    let senders = halves.iter().filter(|(_, half)| sends(half));
    let machines: Vec<&str> =
        senders.filter_map(|(host, _)| peers.find(host).ok()).map(|peer| peer.host.boot_id.as_str()).collect();
    machines.iter().enumerate().any(|(index, machine)| !machine.is_empty() && machines[..index].contains(machine))
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
        let of_host = |mut caveat: Caveat| {
            caveat.text = format!("on {host}: {}", caveat.text);
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

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{FrameForm, FrameHeaders, FramePayload, FrameStream, Histogram, Mac, Observation, StreamHalf};
    use linerate_units::{FrameRate, FrameSize};

    fn trial(ports: &[&str], ways: &[(u16, u16)]) -> FrameTrial {
        let stream = |&(from, to): &(u16, u16)| FrameStream {
            from,
            to,
            size: FrameSize::with_fcs(64).expect("a size"),
            rate: Some(FrameRate::per_second(1_000)),
            count: None,
            after: Nanos::default(),
            time: None,
            headers: FrameHeaders {
                source_mac: Mac::default(),
                destination_mac: Mac::default(),
                vlans: Vec::new(),
                source: "198.18.0.1".parse().expect("an address"),
                destination: "198.18.0.2".parse().expect("an address"),
                payload: FramePayload::Udp { source_port: 7, destination_port: 7 },
            },
            form: FrameForm::default(),
        };
        FrameTrial {
            name: "throughput 64".into(),
            ports: ports.iter().map(|name| (*name).into()).collect(),
            streams: ways.iter().map(stream).collect(),
            time: Nanos::from_secs(1),
            settle: Nanos::default(),
            engine: FrameEngine::Auto,
            hosts: Vec::new(),
        }
    }

    #[test]
    fn each_host_has_its_own_ports() {
        let cut = |ports: &[&str]| -> Vec<(String, Vec<u16>)> {
            let halves = halves(&trial(ports, &[(0, 1)]), &"home".into(), 7);
            assert!(halves.iter().all(|(_, half)| half.tag == 7));
            halves.into_iter().map(|(host, half)| (host.0, half.ports)).collect()
        };
        assert_eq!(cut(&["p0", "p1", "p2"]), [("home".to_owned(), vec![0, 1, 2])]);
        assert_eq!(cut(&["b:p0", "a:p0", "b:p1"]), [("b".to_owned(), vec![0, 2]), ("a".to_owned(), vec![1])]);
    }

    /// Two hosts, one stream each way: a sends 1,000 frames of which b gets 990, b sends 500 of which a gets all.
    fn counted() -> [FrameHalfResult; 2] {
        let sent = |sent, first| FramesSent { intended: 1_000, sent, first, ..FramesSent::default() };
        let arrived = |received, last_gap| FramesArrived { received, expected: 1_000, last_gap, ..Default::default() };
        let half = |streams, started| FrameHalfResult {
            engine: FrameEngine::Xdp,
            started_unix_ns: started,
            streams,
            observation: Observation::default(),
            caveats: Vec::new(),
        };
        let a = vec![
            StreamHalf { sent: Some(sent(1_000, 5_000)), arrived: None, flooded: 3 },
            StreamHalf { sent: None, arrived: Some(arrived(500, None)), flooded: 0 },
        ];
        let b = vec![
            StreamHalf { sent: None, arrived: Some(arrived(990, Some(6_000))), flooded: 4 },
            StreamHalf { sent: Some(sent(500, 9_000)), arrived: None, flooded: 0 },
        ];
        [half(a, 50), half(b, 40)]
    }

    fn joined([a, b]: [FrameHalfResult; 2]) -> Result<FrameTrialResult, RunError> {
        join(&trial(&["a:p0", "b:p0"], &[(0, 1), (1, 0)]), vec![("a".into(), a), ("b".into(), b)])
    }

    #[test]
    fn the_senders_and_the_receivers_counts_become_one() {
        let result = joined(counted()).expect("both halves are there");
        let [there, back] = &result.streams[..] else { panic!("{result:?}") };
        assert_eq!(
            (there.intended, there.sent, there.received, there.lost(), there.flooded),
            (1_000, 1_000, 990, 10, 7)
        );
        assert_eq!((back.intended, back.sent, back.received, back.lost(), back.flooded), (1_000, 500, 500, 500, 0));
        assert_eq!((there.last_gap, back.last_gap), (Some(Nanos::new(1_000)), None));
        assert_eq!(there.latency, Histogram::default());
        assert_eq!((result.engine, result.started_unix_ns, result.other_hosts.len()), (FrameEngine::Xdp, 40, 1));
        assert!(result.other_hosts.contains_key(&HostName::from("b")));
    }

    #[test]
    fn a_doubt_names_its_host_and_the_slower_means_is_the_wholes() {
        let [a, mut b] = counted();
        b.engine = FrameEngine::PacketSocket;
        b.caveats.push(Caveat::new(CaveatKind::Fallback, "packet sockets stood in for XDP"));
        let result = joined([a, b]).expect("both halves are there");
        assert_eq!(result.engine, FrameEngine::PacketSocket);
        assert_eq!(result.caveats[0].text, "on b: packet sockets stood in for XDP");
    }

    #[test]
    fn an_end_that_nobody_counted_is_no_zero() {
        let [a, mut b] = counted();
        b.streams[0].arrived = None;
        let error = joined([a, b]).expect_err("what b received is not known").to_string();
        assert!(error.contains("stream 0") && error.contains("same linerate"), "{error}");
    }
}
