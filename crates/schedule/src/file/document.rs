//! The TOML of a fleet file.

use super::budget::Budget;
use super::error::{FleetFileError, Source};
use super::fleet::{AlertRules, FleetFile, Group, Link, Mesh, Pattern, Selector, Side, Threshold};
use super::hours::Hours;
use super::test_words::{Class, TestWords};
use linerate_model::{HostName, MeasureUnit};
use linerate_units::{BitRate, Nanos, Ratio};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::str::FromStr;
use toml::Spanned;

/// Default time after which a host is silent.
const SILENT_AFTER: Nanos = Nanos::from_secs(600);
/// Default share of slots that are kept.
const KEEP: f64 = 0.9;
/// Shortest period of a mesh.
const SHORTEST_EVERY: Nanos = Nanos::from_secs(1);

type Text = Spanned<String>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    group: Vec<GroupEntry>,
    #[serde(default)]
    mesh: Vec<MeshEntry>,
    #[serde(default)]
    link: Vec<LinkEntry>,
    #[serde(default)]
    alerts: AlertsEntry,
    #[serde(default)]
    alert: Vec<AlertEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupEntry {
    name: Text,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    hosts: BTreeSet<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkEntry {
    name: Text,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    hosts: BTreeSet<String>,
    rate: Option<Text>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MeshEntry {
    name: Text,
    between: Option<Spanned<Vec<Text>>>,
    #[serde(default)]
    pattern: PatternName,
    pairs: Option<Spanned<Vec<Spanned<[String; 2]>>>>,
    #[serde(default = "yes")]
    both_ways: bool,
    test: Text,
    class: Option<Class>,
    every: Text,
    sample: Option<Spanned<u32>>,
    budget: Option<Text>,
    hours: Option<Text>,
    slip: Option<Text>,
    expected_rate: Option<Text>,
    suspect: Option<Text>,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum PatternName {
    #[default]
    Full,
    Pairs,
    Hub,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct AlertsEntry {
    silent_after: Option<Text>,
    keep: Option<Text>,
    #[serde(default)]
    webhook: Vec<Text>,
    #[serde(default)]
    alertmanager: Vec<Text>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AlertEntry {
    name: Text,
    mesh: Text,
    below: Option<Text>,
    above: Option<Text>,
}

impl FleetFile {
    /// Reads the text of a fleet file. Errors name `file`.
    pub fn parse(file: &str, text: &str) -> Result<Self, FleetFileError> {
        let document: Document = toml::from_str(text).map_err(|error| FleetFileError::Toml {
            file: file.to_owned(),
            message: error.to_string().trim_end().to_owned(),
        })?;
        document.fleet(&Source { file, text })
    }
}

impl Document {
    fn fleet(self, source: &Source<'_>) -> Result<FleetFile, FleetFileError> {
        if self.mesh.is_empty() {
            let message =
                "there is no [[mesh]], so nothing is measured; add one with `name`, `between`, `test` and `every`";
            return Err(FleetFileError::Toml { file: source.file.to_owned(), message: message.to_owned() });
        }
        unique(source, self.group.iter().map(|entry| &entry.name), "group")?;
        unique(source, self.mesh.iter().map(|entry| &entry.name), "mesh")?;
        unique(source, self.link.iter().map(|entry| &entry.name), "link")?;
        unique(source, self.alert.iter().map(|entry| &entry.name), "alert")?;
        let mut groups = Vec::new();
        for entry in self.group {
            let selector = selector(source, &entry.name, "group", entry.labels, entry.hosts)?;
            groups.push(Group { name: entry.name.into_inner(), selector });
        }
        let mut links = Vec::new();
        for entry in self.link {
            let selector = selector(source, &entry.name, "link", entry.labels, entry.hosts)?;
            let rate = optional::<BitRate>(source, entry.rate.as_ref(), "rate")?;
            links.push(Link { name: entry.name.into_inner(), selector, rate });
        }
        let names: Vec<String> = self.mesh.iter().map(|entry| entry.name.get_ref().clone()).collect();
        let mut suspects = Vec::new();
        let mut meshes = Vec::new();
        for entry in self.mesh {
            suspects.push(entry.suspect.clone());
            meshes.push(entry.mesh(source, &groups, &links, &names)?);
        }
        for (mesh, suspect) in meshes.iter().zip(&suspects) {
            let (Some(target), Some(at)) = (mesh.suspect, suspect) else { continue };
            if meshes[target].class == Class::Light {
                let problem = format!(
                    "mesh `{}` has light tests, which say nothing new about a pair; name a mesh of throughput tests",
                    names[target]
                );
                return Err(source.error(at, "suspect", problem));
            }
        }
        let mut thresholds = Vec::new();
        for entry in self.alert {
            thresholds.push(entry.threshold(source, &names)?);
        }
        let alerts = self.alerts.rules(source, thresholds)?;
        Ok(FleetFile { groups, meshes, links, alerts })
    }
}

impl MeshEntry {
    fn mesh(
        self,
        source: &Source<'_>,
        groups: &[Group],
        links: &[Link],
        meshes: &[String],
    ) -> Result<Mesh, FleetFileError> {
        let pattern = self.pattern(source, groups)?;
        let test = TestWords::parse(self.test.get_ref())
            .map_err(|error| source.error(&self.test, "test", error.to_string()))?;
        let every: Nanos = value(source, &self.every, "every")?;
        if every < SHORTEST_EVERY {
            return Err(source.error(&self.every, "every", "is less than a second; write it like 30s, 10min or 6h"));
        }
        let slip = optional(source, self.slip.as_ref(), "slip")?.unwrap_or(Nanos::new(every.get() / 4));
        let hours = optional(source, self.hours.as_ref(), "hours")?.unwrap_or_else(Hours::all_day);
        if let (Some(sample), Pattern::Pairs(_)) = (&self.sample, &pattern) {
            let problem = "goes with groups only; listed pairs are all measured, so leave it out";
            return Err(source.error(sample, "sample", problem));
        }
        let budget = optional::<Budget>(source, self.budget.as_ref(), "budget")?;
        let suspect = match &self.suspect {
            Some(name) => Some(index(source, name, "suspect", "mesh", meshes)?),
            None => None,
        };
        let mesh = Mesh {
            pattern,
            both_ways: self.both_ways,
            class: self.class.unwrap_or(test.class()),
            test,
            every,
            sample: self.sample.as_ref().map(|sample| *sample.get_ref()).filter(|sample| *sample > 0),
            budget,
            hours,
            slip,
            expected_rate: optional(source, self.expected_rate.as_ref(), "expected_rate")?,
            suspect,
            name: self.name.into_inner(),
        };
        let estimate = mesh.estimate(links);
        if let (Some(at), Some(budget)) = (&self.budget, budget) {
            if estimate.bytes > budget.bytes {
                let problem = format!(
                    "allows nothing: one trial is about {}, and the budget is {} a day; raise it, or shorten `test` or lower its --rate",
                    estimate.bytes, budget.bytes
                );
                return Err(source.error(at, "budget", problem));
            }
            if budget.scope == super::budget::BudgetScope::Link && links.is_empty() {
                let problem =
                    "counts each link apart, and the file has no [[link]]; declare one, or leave out `and link`";
                return Err(source.error(at, "budget", problem));
            }
        }
        if let (Some(at), None) = (&self.hours, mesh.hours.shortened(estimate.time.get().div_ceil(1_000_000_000))) {
            let problem = format!("`{}` is shorter than one trial of about {}", mesh.hours, estimate.time);
            return Err(source.error(at, "hours", problem));
        }
        Ok(mesh)
    }

    fn pattern(&self, source: &Source<'_>, groups: &[Group]) -> Result<Pattern, FleetFileError> {
        if self.pattern == PatternName::Pairs {
            return self.listed_pairs(source);
        }
        if let Some(pairs) = &self.pairs {
            return Err(source.error(pairs, "pairs", "goes with pattern = \"pairs\" only; add that, or use `between`"));
        }
        let Some(between) = &self.between else {
            let problem = "has no pairs; name one or two groups in `between`, or list `pairs` with pattern = \"pairs\"";
            return Err(source.error(&self.name, "mesh", problem));
        };
        let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
        let mut indexes = Vec::new();
        for name in between.get_ref() {
            indexes.push(index(source, name, "between", "group", &names)?);
        }
        match (self.pattern, indexes[..].as_ref()) {
            (PatternName::Hub, [hubs, spokes]) => Ok(Pattern::Hub { hubs: *hubs, spokes: *spokes }),
            (PatternName::Hub, _) => {
                Err(source.error(between, "between", "expected two groups with pattern = \"hub\": hubs, then spokes"))
            }
            (_, [group]) => Ok(Pattern::Within(*group)),
            (_, [one, other]) if one == other => Ok(Pattern::Within(*one)),
            (_, [one, other]) => Ok(Pattern::Between(*one, *other)),
            (_, []) => Err(source.error(between, "between", "has no pairs; name one or two groups")),
            (..) => {
                let problem =
                    "has more than two groups; write a [[mesh]] for each two, or one group of all their hosts";
                Err(source.error(between, "between", problem))
            }
        }
    }

    fn listed_pairs(&self, source: &Source<'_>) -> Result<Pattern, FleetFileError> {
        if let Some(between) = &self.between {
            return Err(source.error(
                between,
                "between",
                "does not go with pattern = \"pairs\"; leave one of them out",
            ));
        }
        let Some(pairs) = self.pairs.as_ref().filter(|pairs| !pairs.get_ref().is_empty()) else {
            let problem = "has no pairs; list them, as in pairs = [[\"a\", \"b\"]]";
            return Err(source.error(&self.name, "pairs", problem));
        };
        let mut seen = BTreeSet::new();
        let mut listed = Vec::new();
        for pair in pairs.get_ref() {
            let [from, to] = pair.get_ref();
            if from == to {
                return Err(source.error(pair, "pairs", format!("`{from}` is paired with itself; name two hosts")));
            }
            let is_listed = seen.contains(&(from, to)) || (self.both_ways && seen.contains(&(to, from)));
            if is_listed {
                return Err(source.error(
                    pair,
                    "pairs",
                    format!("`{from}` and `{to}` are listed twice; leave one out"),
                ));
            }
            seen.insert((from, to));
            listed.push((HostName(from.clone()), HostName(to.clone())));
        }
        Ok(Pattern::Pairs(listed))
    }
}

impl AlertsEntry {
    fn rules(self, source: &Source<'_>, thresholds: Vec<Threshold>) -> Result<AlertRules, FleetFileError> {
        let keep = match &self.keep {
            Some(text) => value::<Ratio>(source, text, "keep")?.as_f64(),
            None => KEEP,
        };
        for (key, urls) in [("webhook", &self.webhook), ("alertmanager", &self.alertmanager)] {
            for url in urls {
                if !url.get_ref().starts_with("http://") && !url.get_ref().starts_with("https://") {
                    let problem = format!("`{}` is no URL; write it like https://alerts.example:9093", url.get_ref());
                    return Err(source.error(url, key, problem));
                }
            }
        }
        Ok(AlertRules {
            silent_after: optional(source, self.silent_after.as_ref(), "silent_after")?.unwrap_or(SILENT_AFTER),
            keep,
            webhooks: self.webhook.into_iter().map(Spanned::into_inner).collect(),
            alertmanagers: self.alertmanager.into_iter().map(Spanned::into_inner).collect(),
            thresholds,
        })
    }
}

impl AlertEntry {
    fn threshold(self, source: &Source<'_>, meshes: &[String]) -> Result<Threshold, FleetFileError> {
        let (side, limit) = match (&self.below, &self.above) {
            (Some(limit), None) => (Side::Below, limit),
            (None, Some(limit)) => (Side::Above, limit),
            _ => {
                let problem = "expected either `below`, as in \"500Mbit/s\", or `above`, as in \"20ms\"";
                return Err(source.error(&self.name, "alert", problem));
            }
        };
        let text = limit.get_ref().clone();
        let (value, unit) = figure(&text).ok_or_else(|| {
            let key = if side == Side::Below { "below" } else { "above" };
            let problem = format!("`{text}` has no unit of a result; write it like 500Mbit/s, 20ms, 1% or 1000/s");
            source.error(limit, key, problem)
        })?;
        let mesh = index(source, &self.mesh, "mesh", "mesh", meshes)?;
        Ok(Threshold { name: self.name.into_inner(), mesh, side, value, unit, text })
    }
}

/// Returns the value and unit of a limit. A bare number has no unit.
fn figure(text: &str) -> Option<(f64, MeasureUnit)> {
    if text.trim().ends_with('%') {
        return text.parse::<Ratio>().ok().map(|share| (share.as_f64(), MeasureUnit::Share));
    }
    if !text.contains(|letter: char| letter.is_ascii_alphabetic() || letter == '/') {
        return None;
    }
    if let Ok(time) = text.parse::<Nanos>() {
        return Some((time.get() as f64, MeasureUnit::Nanos));
    }
    if text.contains("bit") || text.contains("bps") || text.contains("b/s") || text.contains("B/s") {
        return text.parse::<BitRate>().ok().map(|rate| (rate.get() as f64, MeasureUnit::BitsPerS));
    }
    let rate = text.parse::<linerate_units::OpRate>().ok()?;
    Some((rate.get() as f64, MeasureUnit::PerS))
}

fn unique<'a>(source: &Source<'_>, names: impl Iterator<Item = &'a Text>, kind: &str) -> Result<(), FleetFileError> {
    let mut seen = BTreeSet::new();
    for name in names {
        if name.get_ref().trim().is_empty() {
            return Err(source.error(name, "name", format!("is empty; give each [[{kind}]] a name")));
        }
        if !seen.insert(name.get_ref()) {
            let problem = format!("there are two [[{kind}]] of the name `{}`; rename one", name.get_ref());
            return Err(source.error(name, "name", problem));
        }
    }
    Ok(())
}

fn selector(
    source: &Source<'_>,
    name: &Text,
    kind: &str,
    labels: BTreeMap<String, String>,
    hosts: BTreeSet<String>,
) -> Result<Selector, FleetFileError> {
    if labels.is_empty() && hosts.is_empty() {
        let problem = "selects no hosts; add `labels`, as in { site = \"oslo\" }, or `hosts`";
        return Err(source.error(name, kind, problem));
    }
    Ok(Selector { labels, hosts: hosts.into_iter().map(HostName).collect() })
}

fn index<N: AsRef<str>>(
    source: &Source<'_>,
    name: &Text,
    key: &str,
    kind: &str,
    names: &[N],
) -> Result<usize, FleetFileError> {
    names.iter().position(|other| other.as_ref() == name.get_ref()).ok_or_else(|| {
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        let problem = if names.is_empty() {
            format!("there is no [[{kind}]] of the name `{}`; declare it", name.get_ref())
        } else {
            format!("there is no [[{kind}]] of the name `{}`; expected one of {}", name.get_ref(), names.join(", "))
        };
        source.error(name, key, problem)
    })
}

fn value<T>(source: &Source<'_>, text: &Text, key: &str) -> Result<T, FleetFileError>
where
    T: FromStr,
    T::Err: Display,
{
    text.get_ref().parse().map_err(|error: T::Err| source.error(text, key, error.to_string()))
}

fn optional<T>(source: &Source<'_>, text: Option<&Text>, key: &str) -> Result<Option<T>, FleetFileError>
where
    T: FromStr,
    T::Err: Display,
{
    text.map(|text| value(source, text, key)).transpose()
}
