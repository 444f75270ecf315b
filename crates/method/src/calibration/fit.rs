//! Whether a calibration fits a run: the same hosts, unchanged, with the same settings.

use super::settings::{differences, settings};
use linerate_model::{
    Bypass, Calibrated, CalibratedSubject, Host, HostName, Nic, Path, Plan, Record, Summary, Task, Transport, Trial,
};
use linerate_units::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// A run that looks for its tester limits.
#[derive(Debug, Clone, Copy)]
pub struct Uncalibrated<'a> {
    /// What it is asked.
    pub plan: &'a Plan,
    /// The hosts that take part, as they are now.
    pub hosts: &'a [Host],
    /// The interface of each host that the data go through, as far as addresses tell.
    pub interfaces: &'a BTreeMap<HostName, String>,
    /// When it begins, nanoseconds since 1970.
    pub now_unix_ns: u64,
}

/// What a calibration says of a run: one limit at least.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// The limit of each result that it has one for.
    pub limits: Vec<Calibrated>,
    /// The results that it has none for, and why.
    pub missing: Vec<(String, String)>,
}

/// Why a calibration does not fit a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// It is a record of something else.
    #[error("it is no calibration")]
    NotACalibration,
    /// Nothing that the run measures has a tester limit.
    #[error(
        "this run has nothing to compare with it: tester limits are of streams, and of transactions and RPC without a --rate, \
         between two hosts"
    )]
    NothingToCompare,
    /// It is of other hosts.
    #[error("it is of other hosts: {then}, not {now}")]
    OtherHosts {
        /// Those of the calibration.
        then: String,
        /// Those of the run.
        now: String,
    },
    /// A host is not as it was.
    #[error("{what} of {host} was {then}, and is {now}")]
    Changed {
        /// The host.
        host: HostName,
        /// What has changed.
        what: String,
        /// What it was.
        then: String,
        /// What it is.
        now: String,
    },
    /// It was measured with other settings.
    #[error("{0}")]
    OtherSettings(String),
}

/// A result that has a tester limit.
pub(super) struct Subject<'a> {
    /// Its name.
    pub(super) name: &'a str,
    paths: &'a [Path],
    settings: Task,
}

impl<'a> Uncalibrated<'a> {
    /// The results that have tester limits.
    pub(super) fn subjects(&self) -> Vec<Subject<'a>> {
        let mut names = BTreeSet::new();
        let subject = |cell: &'a Trial| {
            let settings = settings(cell.task())?;
            let between_hosts = |path: &Path| path.server.agent().is_some_and(|server| *server != path.client);
            cell.paths().iter().all(between_hosts).then_some(Subject {
                name: &cell.name,
                paths: cell.paths(),
                settings,
            })
        };
        self.plan.cells().iter().filter_map(subject).filter(|subject| names.insert(subject.name)).collect()
    }

    fn host(&self, name: &HostName) -> Option<&'a Host> {
        self.hosts.iter().find(|host| host.name == *name)
    }
}

/// Returns the tester limits that `calibration` has for `run`.
///
/// # Errors
/// It has none; the error says what does not fit.
pub fn fit(calibration: &Record, run: &Uncalibrated<'_>) -> Result<Fit, Misfit> {
    let how = calibration.plan.calibration.as_ref().ok_or(Misfit::NotACalibration)?;
    let subjects = run.subjects();
    if subjects.is_empty() {
        return Err(Misfit::NothingToCompare);
    }
    let hosts: BTreeSet<&HostName> = subjects.iter().flat_map(|subject| hosts_of(subject.paths)).collect();
    let known = |name: &HostName| calibration.hosts.iter().find(|host| host.name == *name);
    if hosts.iter().any(|name| known(name).is_none()) {
        let then = calibration.hosts.iter().map(|host| &host.name);
        return Err(Misfit::OtherHosts { then: listed(then), now: listed(hosts.into_iter()) });
    }
    let by_default = subjects.iter().any(|subject| {
        subject.settings.net().is_some_and(|net| net.transport == Transport::Tcp && net.socket.congestion.is_none())
    });
    for name in hosts {
        let (Some(then), Some(now)) = (known(name), run.host(name)) else { continue };
        let nic = |host: &'_ Host, interfaces: &BTreeMap<HostName, String>| -> Option<Nic> {
            host.nics.iter().find(|nic| interfaces.get(name) == Some(&nic.name)).cloned()
        };
        let nics = match how.bypass {
            Bypass::Cable => [nic(then, &how.interfaces), nic(now, run.interfaces)],
            Bypass::Loopback => [None, None],
        };
        if let Some((what, then, now)) = changed(then, now, by_default).or_else(|| changed_nic(&nics)) {
            return Err(Misfit::Changed { host: name.clone(), what, then, now });
        }
    }
    let age = Nanos::new(run.now_unix_ns.saturating_sub(calibration.started_unix_ns));
    let (mut limits, mut missing) = (Vec::new(), Vec::new());
    for subject in subjects {
        match reached(calibration, how.bypass, &subject) {
            Ok(reached) => limits.push(Calibrated {
                record: calibration.id.clone(),
                bypass: how.bypass,
                age,
                interleaved: false,
                subject: CalibratedSubject::Result(subject.name.to_owned()),
                reached,
            }),
            Err(why) => missing.push((subject.name.to_owned(), why)),
        }
    }
    match (limits.is_empty(), missing.first()) {
        (true, Some((name, why))) => Err(Misfit::OtherSettings(format!("it has no {name}: {why}"))),
        _ => Ok(Fit { limits, missing }),
    }
}

fn hosts_of(paths: &[Path]) -> impl Iterator<Item = &HostName> {
    paths.iter().flat_map(|path| [&path.client, path.server.name()])
}

/// `a and b`.
fn listed<'a>(hosts: impl Iterator<Item = &'a HostName>) -> String {
    hosts.map(|host| host.0.as_str()).collect::<Vec<_>>().join(" and ")
}

/// What has changed, from what to what.
pub(crate) type Change = (String, String, String);

/// What has changed of a host. `by_default` is whether its own congestion control counts.
pub(crate) fn changed(then: &Host, now: &Host, by_default: bool) -> Option<Change> {
    let congestion = |host: &Host| host.congestion_controls.first().filter(|_| by_default).cloned().unwrap_or_default();
    let all = [
        ("the kernel", then.system.clone(), now.system.clone()),
        ("the CPU", then.cpu_model.clone(), now.cpu_model.clone()),
        ("the number of cores", then.cores.to_string(), now.cores.to_string()),
        ("the congestion control", congestion(then), congestion(now)),
        ("the version of linerate", then.version.clone(), now.version.clone()),
    ];
    first_change(all)
}

/// What has changed of a host's interface: what it was, and what it is; none where its addresses do not tell.
fn changed_nic(nics: &[Option<Nic>; 2]) -> Option<Change> {
    let (then, now) = match nics {
        [None, None] => return None,
        [Some(then), Some(now)] => (then, now),
        [then, now] => {
            let name = |nic: &Option<Nic>| nic.as_ref().map_or_else(|| String::from("unknown"), |nic| nic.name.clone());
            return Some((String::from("the interface"), name(then), name(now)));
        }
    };
    let of = |what: &str| format!("{what} of {}", now.name);
    let known = |text: &str| String::from(if text.is_empty() { "unknown" } else { text });
    let bus = |nic: &Nic| nic.slot.map_or_else(|| known(""), |slot| slot.bus.to_string());
    let all = [
        (String::from("the interface"), then.name.clone(), now.name.clone()),
        (of("the driver"), then.driver.clone(), now.driver.clone()),
        (of("the driver's version"), known(&then.driver_version), known(&now.driver_version)),
        (of("the firmware"), known(&then.firmware), known(&now.firmware)),
        (of("the bus"), bus(then), bus(now)),
        (of("the MTU"), then.mtu.to_string(), now.mtu.to_string()),
        (of("the queueing discipline"), then.qdisc.clone(), now.qdisc.clone()),
    ];
    let changed = first_change(all.each_ref().map(|(what, then, now)| (what.as_str(), then.clone(), now.clone())));
    // A device may slow the link down; a link that was slower by cable hid what the tester can.
    let slower = then.speed.zip(now.speed).filter(|(then, now)| then < now);
    let slower = || slower.map(|(then, now)| (of("the speed"), then.to_string(), now.to_string()));
    let state = |on: Option<&bool>| String::from(if on == Some(&true) { "on" } else { "off" });
    let offload = || {
        let names: BTreeSet<&String> = then.offloads.keys().chain(now.offloads.keys()).collect();
        names.into_iter().find_map(|name| {
            let (then, now) = (state(then.offloads.get(name)), state(now.offloads.get(name)));
            (then != now).then(|| (of(name), then, now))
        })
    };
    changed.or_else(slower).or_else(offload)
}

fn first_change<const N: usize>(all: [(&str, String, String); N]) -> Option<Change> {
    all.into_iter().find(|(_, then, now)| then != now).map(|(what, then, now)| (what.to_owned(), then, now))
}

/// What `calibration` reached with the settings of `subject`: of several hosts against themselves the least.
fn reached(calibration: &Record, bypass: Bypass, subject: &Subject<'_>) -> Result<Summary, String> {
    match (bypass, subject.paths) {
        (Bypass::Cable, paths) => between(calibration, paths, &subject.settings),
        (Bypass::Loopback, [path]) => {
            let alone = |host: &HostName| {
                let itself = Path::between(host.clone(), host.clone());
                between(calibration, std::slice::from_ref(&itself), &subject.settings)
            };
            let (client, server) = (alone(&path.client)?, alone(path.server.name())?);
            Ok(if server.median < client.median { server } else { client })
        }
        (Bypass::Loopback, _) => Err(String::from("hosts were measured one by one, and here several send at once")),
    }
}

/// What `calibration` reached on these paths with these settings.
fn between(calibration: &Record, paths: &[Path], wanted: &Task) -> Result<Summary, String> {
    let cells = || calibration.plan.cells().iter().filter(|cell| cell.paths() == paths);
    let same = cells().find(|cell| settings(cell.task()).as_ref() == Some(wanted));
    if let Some(cell) = same {
        let result = calibration.result(&cell.name).filter(|result| result.main.median > 0.0);
        return result.map(|result| result.main.clone()).ok_or_else(|| format!("its {} reached nothing", cell.name));
    }
    let of_kind = cells().filter(|cell| cell.task().kind() == wanted.kind());
    let nearest = of_kind
        .filter_map(|cell| Some((cell, differences(&settings(cell.task())?, wanted))))
        .min_by_key(|(_, differences)| differences.len());
    Err(match nearest {
        Some((cell, differences)) => format!("its {} was measured with {}", cell.name, differences.join("; ")),
        None => {
            let ends = paths.iter().map(|path| format!("{} to {}", path.client, path.server.name()));
            format!("it has no {} from {}", wanted.kind(), ends.collect::<Vec<_>>().join(" and "))
        }
    })
}
