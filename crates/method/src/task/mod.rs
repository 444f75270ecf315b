//! What a method and a runner need to know of each task, in one table. Tasks that count paths between a client and a
//! server share a file.

mod copy;
mod flows;
mod frames;
mod hops;
pub(crate) mod nfs;
mod plausible;
pub(crate) mod rpc;
pub(crate) mod stream;
#[cfg(test)]
mod tests;
mod transact;

use crate::context::Context;
use crate::outage::{self, outages};
use crate::validity::stolen;
use linerate_model::{
    Caveat, CaveatKind, Counts, Host, HostCounts, HostName, IpVersion, Load, Measurement, Observation, Quantity, Role,
    RoleKind, SessionSeries, Standing, Task, TaskKind, Trial, TrialResult, message,
};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// What is known of the hosts when a load is cut into sessions.
pub trait Addresses {
    /// Returns the address of `listener` that `connector` reaches it by.
    ///
    /// # Errors
    /// There is no such address; the text says why.
    fn data_address(&self, listener: &HostName, connector: &HostName, ip: IpVersion) -> Result<IpAddr, String>;

    /// Whether `connector` may be unable to reach `host`, which reaches `connector`.
    fn is_hidden(&self, _host: &HostName, _connector: &HostName) -> bool {
        false
    }

    /// Returns the largest TCP segment that is known to pass between two hosts, where larger ones are known to be lost.
    fn segment_limit(&self, _host: &HostName, _other: &HostName) -> Option<u16> {
        None
    }

    /// Returns what is known of a host; none if it takes no part in the run.
    fn host(&self, name: &HostName) -> Option<&Host>;
}

/// A load cut into what each host is to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Assigned {
    /// The load as it is run. It differs from what was asked for where something slower must stand in.
    pub load: Load,
    /// Each host with an agent, and its roles.
    pub parts: Vec<(HostName, Vec<Role>)>,
    /// Doubts that come of what stands in.
    pub caveats: Vec<Caveat>,
}

impl Assigned {
    /// Marks the frames of this attempt. Attempts that follow each other need different tags, and no chance is drawn here.
    pub fn mark(&mut self, mark: u16) {
        for role in self.parts.iter_mut().flat_map(|(_, roles)| roles) {
            if let RoleKind::Ports { tag, .. } = &mut role.kind {
                *tag = mark;
            }
        }
    }
}

/// What became of one load of a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Joining {
    /// The doubts of [`Assigned`].
    pub caveats: Vec<Caveat>,
    /// What each host of [`Assigned::parts`] counted, or why it was lost.
    pub parts: Vec<(HostName, Result<HostCounts, String>)>,
}

/// Counts of all hosts together, and doubts about them.
pub(crate) struct Joined {
    pub(crate) counts: Counts,
    pub(crate) caveats: Vec<Caveat>,
}

impl From<Counts> for Joined {
    fn from(counts: Counts) -> Self {
        Self { counts, caveats: Vec::new() }
    }
}

/// One kind of task.
pub(crate) trait Kind: Sync {
    /// Cuts a load into what each host is to do.
    ///
    /// # Errors
    /// The hosts cannot do it together; the text says why.
    fn assign(&self, load: &Load, at: &dyn Addresses) -> Result<Assigned, String>;

    /// Puts together what the hosts counted.
    ///
    /// # Errors
    /// A host was lost that the task does not go on without; the text says which and why.
    fn join(&self, load: &Load, parts: Parts) -> Result<Joined, String>;

    /// Returns whether receivers wait for stragglers once all have sent.
    fn drains(&self) -> bool {
        false
    }

    /// Returns whether the task goes on without the hosts that were `lost`.
    fn survives(&self, _load: &Load, _lost: &[HostName]) -> bool {
        false
    }

    /// Returns the one figure that repeats are judged by.
    fn figure(&self, load: &Load, counts: &Counts) -> f64;

    /// Returns why a trial should be run again, if it should.
    fn spoilt(&self, result: &TrialResult) -> Option<Caveat> {
        stolen(result)
    }

    /// Returns whether a trial of the task may be run again where it was spoilt.
    fn may_repeat(&self, _load: &Load) -> bool {
        true
    }

    /// Returns the figures by which two records of the task are compared.
    fn compared(&self, task: &Task) -> Vec<Quantity>;

    /// Returns what the runs of a cell amount to. There is one run at least.
    fn measure(&self, cell: &Trial, runs: &[&TrialResult], with: &Context<'_>) -> Measurement;

    /// Returns the trials that would test the verdict on `result`; the one that tells most comes first.
    fn counterproofs(
        &self,
        _result: &Measurement,
        _cell: &Trial,
        _runs: &[&TrialResult],
        _hosts: &[Host],
    ) -> Vec<Trial> {
        Vec::new()
    }
}

/// What each host counted, or why it was lost.
pub(crate) type Parts = Vec<(HostName, Result<HostCounts, String>)>;

/// Returns what is known of a kind of task. Each kind has its entry here.
pub(crate) fn kind(of: TaskKind) -> &'static dyn Kind {
    match of {
        TaskKind::Stream | TaskKind::Transact | TaskKind::Rpc | TaskKind::Nfs => &flows::Flows,
        TaskKind::Frames => &frames::Frames,
        TaskKind::Copy => &copy::Copies,
        TaskKind::Hops => &hops::Hops,
    }
}

pub(crate) fn kind_of(task: &Task) -> &'static dyn Kind {
    kind(task.kind())
}

/// Cuts a load into what each host is to do.
///
/// # Errors
/// The hosts cannot do it together; the text says why.
pub fn assign(load: &Load, at: &dyn Addresses) -> Result<Assigned, String> {
    kind_of(&load.task).assign(load, at)
}

/// Returns whether sessions of the task tell that they have sent, and wait to be told that all have.
pub fn drains(task: &Task) -> bool {
    kind_of(task).drains()
}

/// Returns whether a load goes on without the hosts that were `lost`.
pub fn survives(load: &Load, lost: &[HostName]) -> bool {
    lost.is_empty() || kind_of(&load.task).survives(load, lost)
}

/// Returns why a trial should be run again because the tester spoilt it; none if it should not. A failed one has no figures
/// to spoil.
pub fn spoilt(result: &TrialResult) -> Option<Caveat> {
    if result.failure().is_some() { None } else { kind_of(result.trial.task()).spoilt(result) }
}

/// Returns the one figure of a trial that repeats are judged by: payload bit/s at the receivers, transactions per second,
/// frames received per second. Zero of a failed one.
pub fn figure(result: &TrialResult) -> f64 {
    let load = result.trial.load();
    result.counts.first().map_or(0.0, |counts| kind_of(&load.task).figure(load, counts))
}

/// Puts together what the hosts counted in an attempt at `trial`, load by load in its order.
///
/// # Errors
/// A host was lost that the trial does not go on without, or its counts cannot be; the text says which and why.
pub fn join(trial: &Trial, attempt: u32, loads: Vec<Joining>) -> Result<TrialResult, String> {
    let mut result = TrialResult {
        trial: trial.clone(),
        attempt,
        standing: Standing::Counted,
        started_unix_ns: 0,
        span: None,
        counts: Vec::new(),
        hosts: BTreeMap::new(),
        series: Vec::new(),
        clocks: BTreeMap::new(),
        outages: Vec::new(),
        device_load: None,
        caveats: Vec::new(),
    };
    for (index, (load, Joining { caveats, parts })) in trial.loads.iter().zip(loads).enumerate() {
        let several = parts.len() > 1;
        for (host, counted) in &parts {
            let Ok(counted) = counted else { continue };
            if let Some(why) = plausible::impossible(counted) {
                return Err(format!("{host}: {why}"));
            }
            let own = |caveat: &Caveat| match several {
                true => Caveat::new(
                    caveat.kind,
                    message!("caveat-on-host", "on {host}: {caveat}", host, caveat = caveat.text.clone()),
                ),
                false => caveat.clone(),
            };
            result.caveats.extend(counted.caveats.iter().map(own));
            let left =
                |what: &String| Caveat::new(CaveatKind::LeftBehind, message!("caveat-left-behind", "{what}", what));
            result.caveats.extend(counted.remains.iter().map(left));
            // A host that takes part in several loads is told of once, by the one that is measured.
            let series = counted.series.clone();
            let series = if result.hosts.contains_key(host) { series.without_host() } else { series };
            if !series.is_empty() {
                let load = u16::try_from(index).unwrap_or(u16::MAX);
                result.series.push(SessionSeries { load, host: host.clone(), series });
            }
            result.hosts.entry(host.clone()).or_insert_with(|| counted.observation.clone());
            // The measured load comes first, and says when the trial began.
            if result.counts.is_empty() {
                result.started_unix_ns = match result.started_unix_ns {
                    0 => counted.started_unix_ns,
                    started => started.min(counted.started_unix_ns),
                };
            }
        }
        let joined = kind_of(&load.task).join(load, parts)?;
        result.caveats.extend(joined.caveats);
        result.caveats.extend(caveats);
        result.counts.push(joined.counts);
    }
    result.outages = outages(&result);
    result.caveats.extend(outage::caveats(&result.outages));
    Ok(result)
}

/// All parts, where none may be missing.
///
/// # Errors
/// One is.
pub(crate) fn all_of(parts: Parts) -> Result<Vec<(HostName, HostCounts)>, String> {
    let whole = |(host, counted): (HostName, Result<HostCounts, String>)| match counted {
        Ok(counted) => Ok((host, counted)),
        Err(why) => Err(format!("{host}: {why}")),
    };
    parts.into_iter().map(whole).collect()
}

/// What each host saw.
pub(crate) fn observed(parts: &[(HostName, HostCounts)]) -> BTreeMap<&HostName, &Observation> {
    parts.iter().map(|(host, counted)| (host, &counted.observation)).collect()
}
