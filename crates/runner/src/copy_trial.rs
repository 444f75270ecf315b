//! One copy through the agents: destinations listen, sources connect, all start together, and each tells what it counted.

use crate::copy::CopyEvent;
use crate::error::at;
use crate::{Peers, RunError};
use futures_util::future::try_join_all;
use futures_util::stream::{BoxStream, StreamExt as _, select_all};
use linerate_agent::AgentError;
use linerate_model::{
    CopyFault, CopyFrom, CopyHalf, CopyHalfResult, CopyHalfStage, CopyInto, CopyOnError, CopyOrigin, CopyPart,
    CopyPlan, CopyProgress, CopyRole, CopyStage, CopyTrial, CopyWay, FileServer, HostName, Observation, Password,
    TrialId, TrialKey,
};
use linerate_units::Nanos;
use std::net::SocketAddr;
use std::ops::Range;

/// From the last host hearing of the start to the first byte.
const LEAD: Nanos = Nanos::from_millis(50);

/// A host's part that is followed.
struct Part<'a> {
    host: &'a HostName,
    id: TrialId,
    stages: BoxStream<'static, Result<CopyHalfStage, AgentError>>,
    /// What it said when it was ready.
    listening: Vec<SocketAddr>,
    files: u64,
    bytes: u64,
}

/// How a part ended.
type Ended = Result<(), AgentError>;

/// Copies once. The agents end their parts when this is dropped, or returns early.
pub(crate) async fn run(
    plan: &CopyPlan,
    password: Option<&Password>,
    peers: &Peers,
    on_event: &mut dyn FnMut(CopyEvent<'_>),
) -> Result<CopyTrial, RunError> {
    let key = TrialKey(rand::random());
    let name = format!("copy-{:016x}", rand::random::<u64>());
    let mut company = Company {
        peers,
        name,
        key,
        plan,
        password,
        sources: Vec::new(),
        destinations: Vec::new(),
        servers: Vec::new(),
    };
    match (plan.way, &plan.from, &plan.into) {
        (CopyWay::Linerate, ..) => company.between_agents(on_event).await?,
        (CopyWay::Path, ..) => company.within_each(&plan.sources, false, on_event).await?,
        (CopyWay::Nfs | CopyWay::Smb, CopyFrom::Server(_), _) => {
            company.within_each(&plan.destinations, false, on_event).await?
        }
        (CopyWay::Nfs | CopyWay::Smb, _, CopyInto::Server(_)) => {
            company.within_each(&plan.sources, plan.sources.len() > 1, on_event).await?;
        }
        (CopyWay::Nfs | CopyWay::Smb, ..) => company.by_serving_agents(on_event).await?,
    }
    let Company { sources, destinations, servers, .. } = company;
    // A source, or a host that writes to several servers, has counted its tree once.
    let times = if sources.is_empty() { servers.len().max(1) } else { destinations.len() } as u64;
    let count = |of: fn(&Part<'_>) -> u64| sources.iter().chain(&destinations).map(of).sum::<u64>() * times;
    on_event(CopyEvent::Starts { files: count(|part| part.files), bytes: count(|part| part.bytes) });
    start(sources.iter().chain(&destinations).chain(&servers), peers).await?;

    let (split, served) = (sources.len(), sources.len() + destinations.len());
    let parts: Vec<Part<'_>> = sources.into_iter().chain(destinations).chain(servers).collect();
    let names: Vec<(&HostName, TrialId)> = parts.iter().map(|part| (part.host, part.id.clone())).collect();
    let ended = follow(parts, split..served, on_event).await;
    check_lost(plan, split, &names[..served], &ended[..served])?;
    let counted = names.iter().zip(ended).map(async |((host, id), ended)| {
        let counted = match ended {
            Ok(()) => peers.find(host)?.client.finish_copy(id).await.map_err(at(host))?,
            Err(error) => lost(error),
        };
        Ok::<_, RunError>(CopyPart { host: (*host).clone(), counted })
    });
    let mut sources = try_join_all(counted).await?;
    let servers = sources.split_off(served);
    let destinations = sources.split_off(split);
    Ok(CopyTrial { sources, destinations, servers })
}

/// All parts of a copy, as they become ready.
struct Company<'a> {
    peers: &'a Peers,
    name: String,
    key: TrialKey,
    plan: &'a CopyPlan,
    password: Option<&'a Password>,
    sources: Vec<Part<'a>>,
    destinations: Vec<Part<'a>>,
    servers: Vec<Part<'a>>,
}

impl<'a> Company<'a> {
    async fn ready(
        &self,
        host: &'a HostName,
        role: CopyRole,
        on_event: &mut dyn FnMut(CopyEvent<'_>),
    ) -> Result<Part<'a>, RunError> {
        let index = self.sources.len() + self.destinations.len() + self.servers.len();
        let id = TrialId(format!("{}-{index}", self.name));
        let (options, password) = (self.plan.options, self.password.cloned());
        prepare(host, CopyHalf { id, key: self.key, options, role, password }, self.peers, on_event).await
    }

    /// The sources as `host` sees them: each has an address, and among several a folder.
    fn origins(&self, host: &HostName) -> Result<Vec<CopyOrigin>, RunError> {
        let origin = |source: &HostName| {
            let listen = self.peers.data_address(host, source, self.plan.ip)?;
            let folder = (self.plan.sources.len() > 1).then(|| folder_of(source));
            Ok(CopyOrigin { listen, folder })
        };
        self.plan.sources.iter().map(origin).collect()
    }

    /// Destinations listen, sources connect.
    async fn between_agents(&mut self, on_event: &mut dyn FnMut(CopyEvent<'_>)) -> Result<(), RunError> {
        for host in &self.plan.destinations {
            let role = CopyRole::Destination { into: self.plan.into.clone(), sources: self.origins(host)? };
            let part = self.ready(host, role, on_event).await?;
            self.destinations.push(part);
        }
        for (at, host) in self.plan.sources.iter().enumerate() {
            let targets = self.destinations.iter().filter_map(|part| part.listening.get(at).copied()).collect();
            let role = CopyRole::Source { tree: self.plan.tree.clone(), from: self.plan.from.clone(), targets };
            let part = self.ready(host, role, on_event).await?;
            self.sources.push(part);
        }
        Ok(())
    }

    /// Each of `hosts` copies what it can reach to what it can reach; with `apart` into a folder of its own name.
    async fn within_each(
        &mut self,
        hosts: &'a [HostName],
        apart: bool,
        on_event: &mut dyn FnMut(CopyEvent<'_>),
    ) -> Result<(), RunError> {
        for host in hosts {
            let (tree, from, into) = (self.plan.tree.clone(), self.plan.from.clone(), vec![self.plan.into.clone()]);
            let folder = apart.then(|| folder_of(host));
            let part = self.ready(host, CopyRole::Alone { tree, from, into, folder }, on_event).await?;
            self.destinations.push(part);
        }
        Ok(())
    }

    /// Destinations serve their folders, and the sources write to them.
    async fn by_serving_agents(&mut self, on_event: &mut dyn FnMut(CopyEvent<'_>)) -> Result<(), RunError> {
        for host in &self.plan.destinations {
            let role = CopyRole::Server { into: self.plan.into.clone(), sources: self.origins(host)? };
            let part = self.ready(host, role, on_event).await?;
            self.servers.push(part);
        }
        for (at, host) in self.plan.sources.iter().enumerate() {
            let servers = self.servers.iter().filter_map(|part| part.listening.get(at).copied());
            let into = servers.map(|address| CopyInto::Server(FileServer::AgentNfs(address))).collect();
            let (tree, from) = (self.plan.tree.clone(), self.plan.from.clone());
            let part = self.ready(host, CopyRole::Alone { tree, from, into, folder: None }, on_event).await?;
            self.destinations.push(part);
        }
        Ok(())
    }
}

/// A folder's name for a source among several.
fn folder_of(source: &HostName) -> String {
    source.0.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' }).collect()
}

/// Asks a host for its part, and waits until it is ready.
async fn prepare<'a>(
    host: &'a HostName,
    half: CopyHalf,
    peers: &Peers,
    on_event: &mut dyn FnMut(CopyEvent<'_>),
) -> Result<Part<'a>, RunError> {
    let mut stages = peers.find(host)?.client.copy(&half).await.map_err(at(host))?.boxed();
    while let Some(stage) = stages.next().await {
        match stage.map_err(at(host))? {
            CopyHalfStage::Preparing { doing } => on_event(CopyEvent::Preparing { host, doing: &doing }),
            CopyHalfStage::Ready { listening, files, bytes } => {
                return Ok(Part { host, id: half.id, stages, listening, files, bytes });
            }
            _ => {}
        }
    }
    let message = String::from("it ended before it was ready");
    Err(at(host)(AgentError::TrialFailed { address: host.to_string(), message }))
}

async fn start<'a>(parts: impl Iterator<Item = &'a Part<'a>> + Clone, peers: &Peers) -> Result<(), RunError> {
    let furthest = peers.furthest(parts.clone().map(|part| part.host));
    let told = parts.map(async |part| {
        let peer = peers.find(part.host)?;
        peer.client.start_copy(&part.id, LEAD + peer.head_start(furthest)).await.map_err(at(part.host))
    });
    try_join_all(told).await.map(drop)
}

/// Follows all parts to their ends; those of `destinations` tell how far the copy is.
async fn follow(
    parts: Vec<Part<'_>>,
    destinations: Range<usize>,
    on_event: &mut dyn FnMut(CopyEvent<'_>),
) -> Vec<Ended> {
    let mut progress = vec![CopyProgress::default(); parts.len()];
    let mut ended: Vec<Option<Ended>> = parts.iter().map(|_| None).collect();
    let stages = parts.into_iter().enumerate().map(|(index, part)| part.stages.map(move |stage| (index, stage)));
    let mut all = select_all(stages);
    while ended.iter().any(Option::is_none) {
        let Some((index, stage)) = all.next().await else { break };
        match stage {
            Ok(CopyHalfStage::Copying(told)) => {
                progress[index] = told;
                let done =
                    progress[destinations.clone()].iter().fold(CopyProgress::default(), |sum, part| CopyProgress {
                        elapsed: sum.elapsed.max(part.elapsed),
                        files: sum.files + part.files,
                        bytes: sum.bytes + part.bytes,
                    });
                on_event(CopyEvent::Progress(done));
            }
            Ok(CopyHalfStage::Done) => ended[index] = Some(Ok(())),
            Ok(_) => {}
            // One that is lost ends by itself; the others notice, and go on as far as they can.
            Err(error) => ended[index] = Some(Err(error)),
        }
    }
    let silent = || AgentError::Lost { address: String::new(), task: "copy", reason: String::from("it fell silent") };
    ended.into_iter().map(|ended| ended.unwrap_or_else(|| Err(silent()))).collect()
}

/// A lost host ends the run where the copy was to stop, or where nobody is left at one of its ends.
fn check_lost(plan: &CopyPlan, split: usize, names: &[(&HostName, TrialId)], ended: &[Ended]) -> Result<(), RunError> {
    let stops = plan.options.on_error == CopyOnError::Stop;
    let (sources, destinations) = ended.split_at(split);
    for (offset, end) in [(0, sources), (split, destinations)] {
        let nobody = end.iter().all(Result::is_err);
        let lost = end.iter().position(Result::is_err).filter(|_| nobody || stops);
        if let Some(index) = lost
            && let Err(error) = &end[index]
        {
            let host = names[offset + index].0;
            return Err(at(host)(AgentError::TrialFailed { address: host.to_string(), message: error.to_string() }));
        }
    }
    Ok(())
}

/// What stands for a host that was lost.
fn lost(error: AgentError) -> CopyHalfResult {
    let fault = CopyFault { path: String::new(), stage: CopyStage::Receive, reason: error.to_string() };
    CopyHalfResult {
        started_unix_ns: 0,
        sides: vec![Default::default()],
        faults: vec![fault],
        faults_total: 1,
        observation: Observation::default(),
        caveats: Vec::new(),
    }
}
