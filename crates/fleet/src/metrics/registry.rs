//! The newest values of all metrics.

use super::family::Family;
use super::pair::{PairFigure, PairResult};
use linerate_model::HostName;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Upper limits on the number of series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Most pairs and tests with series. Each has about six.
    pub pairs: usize,
    /// Most agents with a series each.
    pub agents: usize,
}

impl Default for Capacity {
    fn default() -> Self {
        Self { pairs: 10_000, agents: 10_000 }
    }
}

/// A host of the fleet as metrics show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRow {
    /// Name of the host.
    pub name: HostName,
    /// Value of its label `site`.
    pub site: Option<String>,
    /// Value of its label `zone`.
    pub zone: Option<String>,
    /// Whether its agent reports its presence.
    pub present: bool,
}

/// What became of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialOutcome {
    /// The trial counts.
    Counted,
    /// The tester itself was the limit, or the trial was disturbed.
    Spoilt,
    /// The trial ended with an error.
    Failed,
}

impl TrialOutcome {
    fn name(self) -> &'static str {
        match self {
            Self::Counted => "counted",
            Self::Spoilt => "spoilt",
            Self::Failed => "failed",
        }
    }
}

/// Receiver of all series, metric by metric.
pub(super) trait SampleSink {
    /// Begins a metric. Its samples follow.
    fn family(&mut self, family: Family);

    /// Adds a series of the metric. No label value is empty.
    fn sample(&mut self, labels: &[(&'static str, &str)], value: f64);
}

/// Newest values of a fleet's metrics.
#[derive(Debug)]
pub struct Metrics {
    capacity: Capacity,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    pairs: BTreeMap<PairKey, PairState>,
    hosts: HashMap<HostName, HostRow>,
    /// Series of all other metrics, by the values of their labels.
    series: BTreeMap<(Family, Vec<String>), f64>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct PairKey {
    from: HostName,
    to: HostName,
    test: String,
}

#[derive(Debug, Default)]
struct PairState {
    /// Newest figure and the time of its attempt's end.
    newest: Option<(PairFigure, u64)>,
    last_attempt_unix_s: u64,
    last_attempt_succeeded: bool,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new(Capacity::default())
    }
}

impl Metrics {
    /// Makes metrics with at most `capacity` pairs and agents.
    pub fn new(capacity: Capacity) -> Self {
        let metrics = Self { capacity, state: Mutex::default() };
        // A counter must exist before it first grows: `increase()` cannot see a series appear.
        for family in [Family::PairResultsLeftOut, Family::Plans, Family::PlanningSeconds] {
            metrics.add(family, &[], 0.0);
        }
        metrics.set(Family::BuildInfo, &[env!("CARGO_PKG_VERSION")], 1.0);
        metrics
    }

    /// Takes the result of a pair. An attempt older than the newest one changes nothing.
    ///
    /// A pair beyond the capacity gets no series; `linerate_pair_results_left_out_total` counts its results.
    pub fn record_pair(&self, result: PairResult) {
        let key = PairKey { from: result.from, to: result.to, test: result.test };
        let mut state = self.state();
        if state.pairs.len() >= self.capacity.pairs && !state.pairs.contains_key(&key) {
            state.add(Family::PairResultsLeftOut, &[], 1.0);
            return;
        }
        let pair = state.pairs.entry(key).or_default();
        if result.ended_unix_s < pair.last_attempt_unix_s {
            return;
        }
        pair.last_attempt_unix_s = result.ended_unix_s;
        pair.last_attempt_succeeded = result.figure.is_some();
        if let Some(figure) = result.figure {
            pair.newest = Some((figure, result.ended_unix_s));
        }
    }

    /// Removes the series of pairs without an attempt in the last `age` before `now_unix_s`.
    pub fn forget_pairs(&self, now_unix_s: u64, age: Duration) {
        let oldest = now_unix_s.saturating_sub(age.as_secs());
        self.state().pairs.retain(|_, pair| pair.last_attempt_unix_s >= oldest);
    }

    /// Replaces the hosts: presence of each agent, and the sites and zones in the labels of pairs.
    pub fn set_hosts(&self, hosts: impl IntoIterator<Item = HostRow>) {
        let hosts: HashMap<HostName, HostRow> = hosts.into_iter().map(|host| (host.name.clone(), host)).collect();
        let present = hosts.values().filter(|host| host.present).count();
        let mut state = self.state();
        state.set(Family::AgentsEnrolled, &[], hosts.len() as f64);
        state.set(Family::AgentsPresent, &[], present as f64);
        state.hosts = hosts;
    }

    /// Counts a trial that ended and the payload that it moved.
    pub fn count_trial(&self, mesh: &str, outcome: TrialOutcome, bytes: u64) {
        let mut state = self.state();
        state.add(Family::Trials, &[mesh, outcome.name()], 1.0);
        state.add(Family::TrialBytes, &[mesh], bytes as f64);
    }

    /// Counts a plan, the time that it took and the trials that are outstanding after it.
    pub fn count_plan(&self, took: Duration, now_unix_s: u64, outstanding: usize) {
        let mut state = self.state();
        state.add(Family::Plans, &[], 1.0);
        state.add(Family::PlanningSeconds, &[], took.as_secs_f64());
        state.set(Family::LastPlan, &[], now_unix_s as f64);
        state.set(Family::OutstandingTrials, &[], outstanding as f64);
    }

    /// Adds to a series. `values` are those of [`Family::labels`].
    pub fn add(&self, family: Family, values: &[&str], amount: f64) {
        self.state().add(family, values, amount);
    }

    /// Sets a series. `values` are those of [`Family::labels`].
    pub fn set(&self, family: Family, values: &[&str], value: f64) {
        self.state().set(family, values, value);
    }

    /// Replaces all series of a metric with one label, so that series without a value disappear.
    pub fn replace(&self, family: Family, series: impl IntoIterator<Item = (String, f64)>) {
        let mut state = self.state();
        state.series.retain(|(each, _), _| *each != family);
        for (label, value) in series {
            state.set(family, &[&label], value);
        }
    }

    /// Passes every series to `sink`.
    pub(super) fn visit(&self, sink: &mut impl SampleSink) {
        let state = self.state();
        for family in Family::ALL {
            sink.family(family);
            match family {
                Family::PairsShown => sink.sample(&[], state.pairs.len() as f64),
                Family::AgentPresent => state.visit_agents(self.capacity.agents, sink),
                family if family.is_per_pair() => state.visit_pairs(family, sink),
                family => state.visit_series(family, sink),
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn add(&mut self, family: Family, values: &[&str], amount: f64) {
        *self.entry(family, values) += amount;
    }

    fn set(&mut self, family: Family, values: &[&str], value: f64) {
        *self.entry(family, values) = value;
    }

    fn entry(&mut self, family: Family, values: &[&str]) -> &mut f64 {
        debug_assert_eq!(family.labels().len(), values.len(), "{}", family.name());
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        self.series.entry((family, values)).or_default()
    }

    fn visit_series(&self, family: Family, sink: &mut impl SampleSink) {
        let first = (family, Vec::new());
        for ((each, values), value) in self.series.range(first..) {
            if *each != family {
                break;
            }
            let labels: Vec<(&'static str, &str)> =
                family.labels().iter().copied().zip(values.iter().map(String::as_str)).collect();
            sink.sample(&labels, *value);
        }
    }

    fn visit_agents(&self, most: usize, sink: &mut impl SampleSink) {
        let mut hosts: Vec<&HostRow> = self.hosts.values().collect();
        hosts.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        for host in hosts.into_iter().take(most) {
            let mut labels = vec![("agent", host.name.0.as_str())];
            labels.extend(host.site.as_deref().map(|site| ("site", site)));
            labels.extend(host.zone.as_deref().map(|zone| ("zone", zone)));
            sink.sample(&labels, f64::from(u8::from(host.present)));
        }
    }

    fn visit_pairs(&self, family: Family, sink: &mut impl SampleSink) {
        for (key, pair) in &self.pairs {
            let Some((value, extra)) = pair.value(family) else {
                continue;
            };
            let mut labels = self.pair_labels(key);
            labels.extend(extra);
            sink.sample(&labels, value);
        }
    }

    fn pair_labels<'a>(&'a self, key: &'a PairKey) -> Vec<(&'static str, &'a str)> {
        let mut labels = vec![("from", key.from.0.as_str()), ("to", key.to.0.as_str()), ("test", key.test.as_str())];
        for (host, site_label, zone_label) in [(&key.from, "from_site", "from_zone"), (&key.to, "to_site", "to_zone")] {
            if let Some(host) = self.hosts.get(host) {
                labels.extend(host.site.as_deref().map(|site| (site_label, site)));
                labels.extend(host.zone.as_deref().map(|zone| (zone_label, zone)));
            }
        }
        labels
    }
}

/// Labels of a series in addition to those of its pair.
type ExtraLabels = Vec<(&'static str, &'static str)>;

impl PairState {
    /// Returns the value of a metric with its labels. Returns `None` if the pair has none.
    fn value(&self, family: Family) -> Option<(f64, ExtraLabels)> {
        if family == Family::PairLastAttemptSuccess {
            return Some((f64::from(u8::from(self.last_attempt_succeeded)), Vec::new()));
        }
        let (figure, ended_unix_s) = self.newest.as_ref()?;
        match family {
            Family::PairLinkShare => figure.link_share.map(|share| (share, Vec::new())),
            Family::PairLimit => figure.verdict.map(|verdict| {
                let confidence = match verdict.confidence {
                    linerate_model::Confidence::Low => "low",
                    linerate_model::Confidence::Medium => "medium",
                    linerate_model::Confidence::High => "high",
                };
                (1.0, vec![("limit", verdict.limit.name()), ("confidence", confidence)])
            }),
            Family::PairLastSuccess => Some((*ended_unix_s as f64, Vec::new())),
            family => {
                let (own, value, quantity) = figure.sample();
                (own == family).then(|| (value, quantity.map(|quantity| ("quantity", quantity)).into_iter().collect()))
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use linerate_model::{Confidence, HeadlineVerdict, Limit, Quantity};

    /// Result of a stream of `value` bit/s that the wire limits.
    pub(in crate::metrics) fn stream(from: &str, to: &str, ended_unix_s: u64, value: f64) -> PairResult {
        let verdict = HeadlineVerdict { limit: Limit::Wire, confidence: Confidence::High };
        let figure =
            PairFigure { quantity: Quantity::PayloadBps, value, link_share: Some(0.94), verdict: Some(verdict) };
        PairResult { from: from.into(), to: to.into(), test: "stream".to_owned(), ended_unix_s, figure: Some(figure) }
    }

    fn page(metrics: &Metrics) -> String {
        crate::metrics::exposition::text(metrics)
    }

    #[test]
    fn failed_attempt_keeps_the_newest_figure() {
        let metrics = Metrics::default();
        metrics.record_pair(stream("a", "b", 100, 9.4e8));
        metrics.record_pair(PairResult { figure: None, ..stream("a", "b", 200, 0.0) });
        let text = page(&metrics);
        let pair = "{from=\"a\",to=\"b\",test=\"stream\"}";
        assert!(text.contains(&format!("linerate_pair_throughput_bits_per_second{pair} 940000000\n")), "{text}");
        assert!(text.contains(&format!("linerate_pair_last_success_timestamp_seconds{pair} 100\n")), "{text}");
        assert!(text.contains(&format!("linerate_pair_last_attempt_success{pair} 0\n")), "{text}");
    }

    #[test]
    fn older_attempt_changes_nothing() {
        let metrics = Metrics::default();
        metrics.record_pair(stream("a", "b", 200, 2e9));
        metrics.record_pair(stream("a", "b", 100, 1e9));
        assert!(
            page(&metrics)
                .contains("linerate_pair_throughput_bits_per_second{from=\"a\",to=\"b\",test=\"stream\"} 2000000000\n")
        );
    }

    #[test]
    fn pairs_beyond_the_capacity_are_counted() {
        let metrics = Metrics::new(Capacity { pairs: 2, agents: 10 });
        for to in ["b", "c", "d", "e"] {
            metrics.record_pair(stream("a", to, 100, 1e9));
        }
        // A pair with series stays.
        metrics.record_pair(stream("a", "b", 101, 1e9));
        let text = page(&metrics);
        assert!(
            text.contains("linerate_pairs 2\n") && text.contains("linerate_pair_results_left_out_total 2\n"),
            "{text}"
        );
        metrics.forget_pairs(1_000, Duration::from_secs(899));
        metrics.record_pair(stream("a", "e", 1_000, 1e9));
        let text = page(&metrics);
        assert!(
            text.contains("to=\"e\"") && !text.contains("to=\"c\"") && text.contains("linerate_pairs 2\n"),
            "{text}"
        );
    }

    #[test]
    fn pairs_have_sites_and_zones_of_their_hosts() {
        let metrics = Metrics::default();
        let host = |name: &str, site: &str, present| HostRow {
            name: name.into(),
            site: Some(site.to_owned()),
            zone: None,
            present,
        };
        metrics.set_hosts([host("a", "oslo", true), host("b", "rome", false)]);
        metrics.record_pair(stream("a", "b", 100, 1e9));
        let text = page(&metrics);
        for line in [
            "linerate_pair_link_share_ratio{from=\"a\",to=\"b\",test=\"stream\",from_site=\"oslo\",to_site=\"rome\"} 0.94\n",
            "from_site=\"oslo\",to_site=\"rome\",limit=\"wire\",confidence=\"high\"} 1\n",
            "linerate_agents_enrolled 2\n",
            "linerate_agents_present 1\n",
            "linerate_agent_present{agent=\"a\",site=\"oslo\"} 1\n",
            "linerate_agent_present{agent=\"b\",site=\"rome\"} 0\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
    }

    #[test]
    fn replaced_series_disappear() {
        let metrics = Metrics::default();
        metrics.replace(Family::AlertsFiring, [("level".to_owned(), 2.0), ("silent".to_owned(), 1.0)]);
        metrics.replace(Family::AlertsFiring, [("silent".to_owned(), 3.0)]);
        let text = page(&metrics);
        assert!(text.contains("linerate_alerts_firing{kind=\"silent\"} 3\n"), "{text}");
        assert!(!text.contains("kind=\"level\""), "{text}");
    }
}
