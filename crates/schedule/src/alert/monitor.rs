//! Which alerts are raised and resolved.

use super::cause::{Candidate, Cause, Direction, common_causes};
use super::message::{Alert, AlertKind, Subject};
use super::series::Series;
use crate::file::{FleetFile, Side};
use crate::plan::{FleetHost, MissReason, Missed};
use linerate_model::{HostName, Limit, MeasureUnit};
use linerate_units::{BitRate, Nanos};
use std::collections::{BTreeMap, HashMap};

/// Results beyond a limit that raise an alert, and results within it that resolve it.
const CONSECUTIVE: u8 = 2;
/// Longest wait for the results of other pairs, by which a common cause is found, in seconds.
const MAX_SETTLE_S: u64 = 900;
/// Shortest window over which missed slots are counted, in seconds.
const MIN_WINDOW_S: u64 = 600;
/// Fewest slots of a window that are judged.
const FEWEST_SLOTS: u64 = 5;

/// Settling times for which the members of a former common cause are not named one by one.
const RECOVERY: u64 = 5;
/// Settling times after which an affected pair is named alone although pairs that share a link or host with it had no results.
const MAX_WAIT: u64 = 5;

/// A result of a pair.
#[derive(Debug, Clone, PartialEq)]
pub struct PairResult {
    /// Name of the mesh.
    pub mesh: String,
    /// First host.
    pub from: HostName,
    /// Second host.
    pub to: HostName,
    /// Unix time, in seconds.
    pub at_unix_s: u64,
    /// Figure.
    pub value: f64,
    /// Its unit.
    pub unit: MeasureUnit,
    /// What limited it.
    pub limit: Option<Limit>,
    /// Whether an exclusive trial loaded a host or link of the pair at the same time.
    pub concurrent: bool,
}

/// Follows the results of a fleet, and raises and resolves alerts.
#[derive(Debug)]
pub struct Monitor {
    file: FleetFile,
    hosts: HashMap<HostName, HostState>,
    names: Vec<HostName>,
    meshes: Vec<MeshState>,
    active: BTreeMap<String, Alert>,
    /// Common causes that are active, by rule and mesh.
    known: HashMap<(Rule, usize), Known>,
}

/// Active common causes of a rule and mesh.
#[derive(Debug, Default)]
struct Known {
    causes: Vec<Cause>,
    /// Unix time at which a pair was last a member of one.
    explained: HashMap<(u32, u32), u64>,
}

#[derive(Debug)]
struct HostState {
    number: u32,
    labels: BTreeMap<String, String>,
    links: Vec<usize>,
    absent_since: Option<u64>,
}

#[derive(Debug, Default)]
struct MeshState {
    pairs: HashMap<(u32, u32), PairState>,
    window: Option<Window>,
    not_kept_since: Option<(u64, u64, u64)>,
}

#[derive(Debug)]
struct Window {
    begin: u64,
    kept: u64,
    missed: u64,
}

#[derive(Debug)]
struct PairState {
    series: Series,
    limit: Option<Limit>,
    /// One for each threshold of the mesh.
    beyond: Vec<Beyond>,
    /// Unix times of the newest results, the oldest first.
    newest: [u64; CONSECUTIVE as usize],
}

#[derive(Debug, Clone, Copy, Default)]
struct Beyond {
    /// Consecutive results that contradict the state.
    against: u8,
    since: Option<u64>,
}

/// A rule that pairs break. Thresholds are indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Rule {
    Level,
    Threshold(usize),
}

impl Monitor {
    /// Creates a monitor for a fleet file.
    pub fn new(file: FleetFile) -> Self {
        let meshes = file.meshes.iter().map(|_| MeshState::default()).collect();
        Self { file, hosts: HashMap::new(), names: Vec::new(), meshes, active: BTreeMap::new(), known: HashMap::new() }
    }

    /// Replaces the hosts of the fleet, with their presence at a Unix time.
    pub fn set_hosts(&mut self, hosts: &[FleetHost], now_unix_s: u64) {
        let mut before = std::mem::take(&mut self.hosts);
        for host in hosts {
            let old = before.remove(&host.name);
            let absent_since = if host.present {
                None
            } else {
                Some(old.as_ref().and_then(|old| old.absent_since).unwrap_or(now_unix_s))
            };
            let number = self.number(old.map(|old| old.number), &host.name);
            let links = self.file.links.iter().enumerate();
            let links = links.filter(|(_, link)| link.selector.matches(&host.name, &host.labels));
            let links = links.map(|(index, _)| index).collect();
            let state = HostState { number, labels: host.labels.clone(), links, absent_since };
            self.hosts.insert(host.name.clone(), state);
        }
        // Results of hosts that have left are no evidence any more.
        for number in before.values().map(|host| host.number) {
            for mesh in &mut self.meshes {
                mesh.pairs.retain(|pair, _| pair.0 != number && pair.1 != number);
            }
        }
    }

    fn number(&mut self, known: Option<u32>, name: &HostName) -> u32 {
        known.unwrap_or_else(|| {
            self.names.push(name.clone());
            self.names.len() as u32 - 1
        })
    }

    /// Adds a result. Returns whether it shows that the level of the pair changed for the worse, which is a suspicion to check.
    ///
    /// A concurrent result only counts as a kept slot. Ignores meshes and hosts that the fleet does not have.
    pub fn result(&mut self, result: &PairResult) -> bool {
        let Some(index) = self.file.meshes.iter().position(|mesh| mesh.name == result.mesh) else { return false };
        let (Some(from), Some(to)) = (self.hosts.get(&result.from), self.hosts.get(&result.to)) else { return false };
        let thresholds = &self.file.alerts.thresholds;
        let mesh = &mut self.meshes[index];
        if let Some(window) = &mut mesh.window {
            window.kept += 1;
        } else {
            mesh.window = Some(Window { begin: result.at_unix_s, kept: 1, missed: 0 });
        }
        // It shows the load of the other trial, not the state of the path.
        if result.concurrent {
            return false;
        }
        let pair = mesh.pairs.entry((from.number, to.number)).or_insert_with(|| PairState {
            series: Series::new(result.unit),
            limit: None,
            beyond: vec![Beyond::default(); thresholds.len()],
            newest: [0; CONSECUTIVE as usize],
        });
        pair.limit = result.limit;
        pair.newest.rotate_left(1);
        pair.newest[CONSECUTIVE as usize - 1] = result.at_unix_s;
        for (threshold, beyond) in thresholds.iter().zip(&mut pair.beyond) {
            if threshold.mesh == index && threshold.unit == result.unit {
                let is_beyond = match threshold.side {
                    Side::Below => result.value < threshold.value,
                    Side::Above => result.value > threshold.value,
                };
                beyond.add(is_beyond, result.at_unix_s);
            }
        }
        pair.series.add(result.value, result.unit, result.at_unix_s)
    }

    /// Counts a missed slot. Those of absent hosts are not counted: a silent host has an alert of its own.
    pub fn missed(&mut self, missed: &Missed) {
        let index = self.file.meshes.iter().position(|mesh| mesh.name == missed.mesh);
        if let (Some(index), false) = (index, matches!(missed.reason, MissReason::HostAbsent(_))) {
            let window = self.meshes[index].window.get_or_insert(Window { begin: missed.due, kept: 0, missed: 0 });
            window.missed += 1;
        }
    }

    /// Returns the alerts that are raised or resolved at a Unix time. Members of an active alert change without another message.
    pub fn evaluate(&mut self, now_unix_s: u64) -> Vec<Alert> {
        let mut wanted = Vec::new();
        for mesh in 0..self.meshes.len() {
            self.pair_alerts(Rule::Level, mesh, now_unix_s, &mut wanted);
            for threshold in 0..self.file.alerts.thresholds.len() {
                if self.file.alerts.thresholds[threshold].mesh == mesh {
                    self.pair_alerts(Rule::Threshold(threshold), mesh, now_unix_s, &mut wanted);
                }
            }
            self.schedule_alert(mesh, now_unix_s, &mut wanted);
        }
        self.silent_hosts(now_unix_s, &mut wanted);
        let mut messages = Vec::new();
        let mut before = std::mem::take(&mut self.active);
        for mut alert in wanted {
            match before.remove(&alert.id) {
                Some(old) => alert.since_unix_s = old.since_unix_s,
                None => messages.push(alert.clone()),
            }
            self.active.insert(alert.id.clone(), alert);
        }
        for (_, alert) in before {
            messages.push(Alert { resolved_unix_s: Some(now_unix_s), ..alert });
        }
        messages
    }

    /// Returns the alerts that are raised and not resolved.
    pub fn active(&self) -> impl Iterator<Item = &Alert> {
        self.active.values()
    }

    fn pair_alerts(&mut self, rule: Rule, mesh: usize, now: u64, alerts: &mut Vec<Alert>) {
        let mut affected: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for (pair, state) in &self.meshes[mesh].pairs {
            let since = match rule {
                Rule::Level => state.series.change.map(|change| change.since),
                Rule::Threshold(threshold) => state.beyond[threshold].since,
            };
            affected.extend(since.map(|since| (*pair, since)));
        }
        if affected.is_empty() {
            self.known.remove(&(rule, mesh));
            return;
        }
        let settle = (self.file.meshes[mesh].every.get() / 1_000_000_000).min(MAX_SETTLE_S);
        let mut pairs: Vec<(u32, u32)> = self.meshes[mesh].pairs.keys().copied().collect();
        pairs.sort_unstable();
        let mut candidates = Vec::new();
        // Since this time, each unaffected pair of a cause had as many results as raise an alert.
        let mut checked: BTreeMap<Cause, u64> = BTreeMap::new();
        for pair in pairs {
            let causes = self.causes(pair);
            let is_affected = affected.contains_key(&pair);
            if !is_affected {
                let first = self.meshes[mesh].pairs[&pair].newest[0];
                for cause in causes.iter().filter(|cause| **cause != Cause::Mesh) {
                    let time = checked.entry(*cause).or_insert(first);
                    *time = first.min(*time);
                }
            }
            candidates.push(Candidate { pair, causes, affected: is_affected });
        }
        let mut known = self.known.remove(&(rule, mesh)).unwrap_or_default();
        let (causes, alone) = common_causes(candidates, &known.causes);
        let mut subjects: BTreeMap<Subject, Vec<(u32, u32)>> = BTreeMap::new();
        known.causes.clear();
        known.explained.retain(|_, at| *at + RECOVERY * settle >= now);
        for (cause, members) in causes {
            // A common cause is named when the other pairs have had their turn.
            if members.iter().all(|pair| now < affected[pair] + settle) {
                continue;
            }
            known.causes.push(cause);
            known.explained.extend(members.iter().map(|pair| (*pair, now)));
            subjects.entry(self.subject(cause, mesh)).or_default().extend(members);
        }
        for pair in alone {
            let since = affected[&pair];
            // A schedule that is not kept gives other pairs their turn later.
            let is_alone = self.causes(pair).iter().all(|cause| checked.get(cause).is_none_or(|time| *time > since));
            let is_due = now >= since + 2 * settle && (is_alone || now >= since + MAX_WAIT * settle);
            // Pairs recover one by one after their common cause.
            if is_due && !known.explained.contains_key(&pair) {
                let (from, to) = (self.name(pair.0), self.name(pair.1));
                subjects.insert(Subject::Pair { from, to }, vec![pair]);
            }
        }
        self.known.insert((rule, mesh), known);
        for (subject, members) in subjects {
            alerts.push(self.pair_alert(rule, mesh, subject, &members, &affected));
        }
    }

    /// Returns what a pair has in common with others.
    fn causes(&self, pair: (u32, u32)) -> Vec<Cause> {
        let mut causes = vec![Cause::Host(pair.0, Direction::Out), Cause::Host(pair.1, Direction::In), Cause::Mesh];
        let (Some(from), Some(to)) = (self.hosts.get(&self.name(pair.0)), self.hosts.get(&self.name(pair.1))) else {
            return causes;
        };
        for link in from.links.iter().filter(|link| !to.links.contains(link)) {
            causes.push(Cause::Link(*link, Direction::Out));
        }
        for link in to.links.iter().filter(|link| !from.links.contains(link)) {
            causes.push(Cause::Link(*link, Direction::In));
        }
        causes
    }

    fn subject(&self, cause: Cause, mesh: usize) -> Subject {
        match cause {
            Cause::Link(link, _) => Subject::Link(self.file.links[link].name.clone()),
            Cause::Host(host, _) => Subject::Host(self.name(host)),
            Cause::Mesh => Subject::Mesh(self.file.meshes[mesh].name.clone()),
        }
    }

    fn pair_alert(
        &self,
        rule: Rule,
        mesh: usize,
        subject: Subject,
        members: &[(u32, u32)],
        affected: &BTreeMap<(u32, u32), u64>,
    ) -> Alert {
        let name = &self.file.meshes[mesh].name;
        let (kind, id, condition) = match rule {
            Rule::Level => (AlertKind::LevelChanged, "level-changed".to_owned(), "a worse level".to_owned()),
            Rule::Threshold(index) => {
                let threshold = &self.file.alerts.thresholds[index];
                let side = if threshold.side == Side::Below { "below" } else { "above" };
                let condition = format!("results {side} {}", threshold.text);
                (AlertKind::Threshold, format!("threshold/{}", threshold.name), condition)
            }
        };
        let count = match (&subject, members.len()) {
            (Subject::Pair { .. }, _) => String::new(),
            (Subject::Link(_), count) => format!(" on {count} pairs through it"),
            (_, count) => format!(" on {count} of its pairs"),
        };
        let summary = format!("{subject}: {condition}{count} in mesh {name}.");
        let labels = self.shared_labels(name, members);
        Alert {
            id: format!("{id}/{name}/{subject}"),
            kind,
            members: members.iter().map(|pair| (self.name(pair.0), self.name(pair.1))).collect(),
            labels,
            summary,
            description: self.evidence(mesh, rule, members),
            since_unix_s: members.iter().map(|pair| affected[pair]).min().unwrap_or_default(),
            resolved_unix_s: None,
            subject,
        }
    }

    /// Returns the figures of the first members, what limits them, and what to do.
    fn evidence(&self, mesh: usize, rule: Rule, members: &[(u32, u32)]) -> String {
        let mut text = String::new();
        let mut limits: BTreeMap<String, usize> = BTreeMap::new();
        for (index, pair) in members.iter().enumerate() {
            let state = &self.meshes[mesh].pairs[pair];
            if let Some(limit) = state.limit {
                *limits.entry(limit.to_string()).or_default() += 1;
            }
            if index >= 5 {
                continue;
            }
            let (from, to) = (self.name(pair.0), self.name(pair.1));
            let unit = state.series.unit();
            let newest = figure(state.series.newest().unwrap_or_default(), unit);
            match (rule, state.series.change) {
                (Rule::Level, Some(change)) => {
                    text += &format!(
                        "{from} to {to}: {} after {}. ",
                        figure(change.after, unit),
                        figure(change.before, unit)
                    );
                }
                _ => text += &format!("{from} to {to}: {newest}. "),
            }
        }
        if members.len() > 5 {
            text += &format!("{} more pairs. ", members.len() - 5);
        }
        for (limit, count) in limits {
            text += &format!("Limit of {count}: {limit}. ");
        }
        text + "Open the matrix of the mesh, and the record of a pair, for the evidence."
    }

    /// Returns `mesh`, and the labels that all hosts of the members share.
    fn shared_labels(&self, mesh: &str, members: &[(u32, u32)]) -> BTreeMap<String, String> {
        let mut shared: Option<BTreeMap<String, String>> = None;
        for number in members.iter().flat_map(|pair| [pair.0, pair.1]) {
            let Some(host) = self.hosts.get(&self.name(number)) else { continue };
            match &mut shared {
                None => shared = Some(host.labels.clone()),
                Some(shared) => shared.retain(|key, value| host.labels.get(key) == Some(value)),
            }
        }
        let mut labels = shared.unwrap_or_default();
        labels.insert("mesh".to_owned(), mesh.to_owned());
        labels
    }

    fn schedule_alert(&mut self, index: usize, now: u64, alerts: &mut Vec<Alert>) {
        let every = self.file.meshes[index].every.get() / 1_000_000_000;
        let allowed = 1.0 - self.file.alerts.keep;
        let mesh = &mut self.meshes[index];
        if let Some(window) = &mesh.window
            && now >= window.begin + every.max(MIN_WINDOW_S)
        {
            let all = window.kept + window.missed;
            let share = window.missed as f64 / all.max(1) as f64;
            if all >= FEWEST_SLOTS && share > allowed {
                let since = mesh.not_kept_since.map_or(window.begin, |(since, ..)| since);
                mesh.not_kept_since = Some((since, window.missed, all));
            } else if all >= FEWEST_SLOTS && share <= allowed / 2.0 {
                mesh.not_kept_since = None;
            }
            mesh.window = Some(Window { begin: now, kept: 0, missed: 0 });
        }
        let Some((since, missed, all)) = mesh.not_kept_since else { return };
        let name = self.file.meshes[index].name.clone();
        alerts.push(Alert {
            id: format!("schedule-not-kept/{name}"),
            kind: AlertKind::ScheduleNotKept,
            members: Vec::new(),
            labels: BTreeMap::from([("mesh".to_owned(), name.clone())]),
            summary: format!("mesh {name}: {missed} of {all} due trials were missed."),
            description: "`linerate fleet status` lists the reasons. Raise `every` or the budget, or lower `sample`."
                .to_owned(),
            since_unix_s: since,
            resolved_unix_s: None,
            subject: Subject::Mesh(name),
        });
    }

    fn silent_hosts(&self, now: u64, alerts: &mut Vec<Alert>) {
        let after = self.file.alerts.silent_after.get() / 1_000_000_000;
        let mut silent: BTreeMap<&HostName, (u64, &HostState)> = BTreeMap::new();
        for (name, host) in &self.hosts {
            if let Some(since) = host.absent_since.filter(|since| now >= since + after) {
                silent.insert(name, (since, host));
            }
        }
        // A site of which no host answers has one alert.
        for (index, link) in self.file.links.iter().enumerate() {
            let at_site = self.hosts.values().filter(|host| host.links.contains(&index)).count();
            let quiet: Vec<&HostName> =
                silent.iter().filter(|(_, (_, host))| host.links.contains(&index)).map(|(name, _)| *name).collect();
            if at_site < 2 || quiet.len() < at_site {
                continue;
            }
            let mut since = now;
            for name in &quiet {
                since = silent.remove(name).map_or(since, |(at, _)| since.min(at));
            }
            alerts.push(silence(Subject::Link(link.name.clone()), since, at_site, BTreeMap::new()));
        }
        for (name, (since, host)) in silent {
            alerts.push(silence(Subject::Host(name.clone()), since, 1, host.labels.clone()));
        }
    }

    fn name(&self, number: u32) -> HostName {
        self.names[number as usize].clone()
    }
}

impl Beyond {
    fn add(&mut self, is_beyond: bool, at: u64) {
        if is_beyond == self.since.is_some() {
            self.against = 0;
            return;
        }
        self.against += 1;
        if self.against >= CONSECUTIVE {
            self.against = 0;
            self.since = is_beyond.then_some(at);
        }
    }
}

fn silence(subject: Subject, since: u64, hosts: usize, labels: BTreeMap<String, String>) -> Alert {
    let summary = match &subject {
        Subject::Link(_) => format!("{subject}: all {hosts} hosts at its site are silent."),
        _ => format!("{subject} is silent."),
    };
    Alert {
        id: format!("silent-host/{subject}"),
        kind: AlertKind::SilentHost,
        subject,
        members: Vec::new(),
        labels,
        summary,
        description: "Its agent is not connected to NATS. Check the host, its network, and `linerate serve` on it."
            .to_owned(),
        since_unix_s: since,
        resolved_unix_s: None,
    }
}

fn figure(value: f64, unit: MeasureUnit) -> String {
    match unit {
        MeasureUnit::BitsPerS => BitRate::per_second(value.max(0.0) as u64).to_string(),
        MeasureUnit::Nanos | MeasureUnit::NanosHeld => Nanos::new(value.max(0.0) as u64).to_string(),
        MeasureUnit::Share => format!("{:.2} %", value * 100.0),
        MeasureUnit::PerS => format!("{value:.0} /s"),
        MeasureUnit::Times | MeasureUnit::Count => format!("{value:.2}"),
    }
}
