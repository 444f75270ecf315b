//! Alerts for Alertmanager, API version 2: `POST /api/v2/alerts`.
//! <https://github.com/prometheus/alertmanager/blob/main/api/v2/openapi.yaml>
//!
//! Alertmanager forgets an alert at its `endsAt`. A firing alert is sent every minute with an end four minutes ahead, as
//! Prometheus does, so that alerts of a controller that died resolve. A resolved alert is sent once with its end.

use super::links::PageLinks;
use super::outbox::{Outbox, Outgoing, rfc3339};
use crate::endpoint::Delivery;
use linerate_schedule::Alert;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Path of the API below the target's URL.
pub(super) const PATH: &str = "api/v2/alerts";

/// Time between two requests with the same firing alert.
const RESEND: Duration = Duration::from_secs(60);

/// Time after which Alertmanager resolves an alert that is not sent again.
const EXPIRY_S: u64 = 240;

/// Most alerts of a request.
const MAX_BATCH: usize = 64;

/// Most alerts that fire at a time.
const MAX_FIRING: usize = 10_000;

/// Most pairs that an annotation lists.
const MAX_LISTED: usize = 20;

/// An alert in the form of the API.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PostableAlert {
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<&'static str, String>,
    starts_at: String,
    ends_at: String,
    #[serde(rename = "generatorURL", skip_serializing_if = "Option::is_none")]
    generator_url: Option<String>,
}

/// Alerts that fire, and those that are resolved and not yet sent as such.
pub(super) struct AlertmanagerOutbox {
    fleet: String,
    links: Option<PageLinks>,
    alerts: BTreeMap<String, Entry>,
}

struct Entry {
    alert: Alert,
    due: Duration,
    delivered: bool,
}

impl AlertmanagerOutbox {
    pub(super) fn new(fleet: String, links: Option<PageLinks>) -> Self {
        Self { fleet, links, alerts: BTreeMap::new() }
    }

    fn postable(&self, alert: &Alert, unix_s: u64) -> PostableAlert {
        let mut labels: BTreeMap<String, String> =
            alert.labels.iter().map(|(label, value)| (label_name(label), value.clone())).collect();
        labels.extend([
            ("alertname".to_owned(), format!("linerate-{}", alert.kind.name())),
            ("fleet".to_owned(), self.fleet.clone()),
            ("kind".to_owned(), alert.kind.name().to_owned()),
            ("subject".to_owned(), alert.subject.to_string()),
            ("id".to_owned(), alert.id.clone()),
        ]);
        let mut annotations =
            BTreeMap::from([("summary", alert.summary.clone()), ("description", alert.description.clone())]);
        if !alert.members.is_empty() {
            annotations.insert("pairs", pairs(alert));
        }
        let ends = alert.resolved_unix_s.unwrap_or(unix_s + EXPIRY_S);
        PostableAlert {
            labels,
            annotations,
            starts_at: rfc3339(alert.since_unix_s),
            ends_at: rfc3339(ends.max(alert.since_unix_s)),
            generator_url: self.links.as_ref().map(|links| links.page(alert).to_string()),
        }
    }
}

/// Lists the pairs of an alert, at most 20.
fn pairs(alert: &Alert) -> String {
    let listed: Vec<String> =
        alert.members.iter().take(MAX_LISTED).map(|(from, to)| format!("{from} to {to}")).collect();
    let mut text = listed.join(", ");
    if alert.members.len() > MAX_LISTED {
        text += &format!(" and {} more", alert.members.len() - MAX_LISTED);
    }
    text
}

/// Replaces each character that the name of a label must not have by an underscore.
fn label_name(label: &str) -> String {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let name: String = label.chars().map(|letter| if allowed(letter) { letter } else { '_' }).collect();
    if name.starts_with(|first: char| first.is_ascii_digit()) { format!("_{name}") } else { name }
}

impl Outbox for AlertmanagerOutbox {
    /// Keeps the labels of an alert that is known: Alertmanager takes other labels for another alert.
    fn put(&mut self, mut alert: Alert, now: Duration) -> usize {
        let known = self.alerts.get(&alert.id);
        if known.is_none() && self.alerts.len() >= MAX_FIRING {
            return 1;
        }
        if let Some(known) = known {
            alert.labels.clone_from(&known.alert.labels);
            alert.subject = known.alert.subject.clone();
        }
        self.alerts.insert(alert.id.clone(), Entry { alert, due: now, delivered: false });
        0
    }

    fn next(&self, now: Duration, unix_s: u64) -> Option<Outgoing> {
        let due = self.alerts.values().filter(|entry| entry.due <= now).take(MAX_BATCH);
        let alerts: Vec<Alert> = due.map(|entry| entry.alert.clone()).collect();
        if alerts.is_empty() {
            return None;
        }
        let postable: Vec<PostableAlert> = alerts.iter().map(|alert| self.postable(alert, unix_s)).collect();
        let body = serde_json::to_vec(&postable).expect("the body has text keys only");
        Some(Outgoing { body, alerts })
    }

    /// A firing alert is due again after a minute, even if it was refused: the configuration of Alertmanager may change.
    fn settle(&mut self, sent: &[Alert], delivery: &Delivery, now: Duration) {
        if matches!(delivery, Delivery::Unavailable(_)) {
            return;
        }
        for alert in sent {
            // The alert may have changed since.
            if self.alerts.get(&alert.id).is_some_and(|entry| entry.alert == *alert) {
                if alert.resolved_unix_s.is_some() {
                    self.alerts.remove(&alert.id);
                } else {
                    let entry = Entry { alert: alert.clone(), due: now + RESEND, delivered: true };
                    self.alerts.insert(alert.id.clone(), entry);
                }
            }
        }
    }

    fn due(&self) -> Option<Duration> {
        self.alerts.values().map(|entry| entry.due).min()
    }

    fn waiting(&self) -> usize {
        self.alerts.values().filter(|entry| !entry.delivered).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::outbox::tests::{alert, resolved};
    use linerate_schedule::Subject;
    use serde_json::Value;

    const START: Duration = Duration::ZERO;

    fn outbox() -> AlertmanagerOutbox {
        AlertmanagerOutbox::new("lab".to_owned(), None)
    }

    fn body(request: &Outgoing) -> Value {
        serde_json::from_slice(&request.body).expect("JSON")
    }

    #[test]
    fn firing_alert_is_sent_every_minute_and_a_resolved_one_once() {
        let mut outbox = outbox();
        outbox.put(alert("1"), START);
        for minute in 0..3 {
            let now = START + RESEND * minute;
            let request = outbox.next(now, 1_800_000_000).expect("the alert is due");
            assert_eq!(body(&request)[0]["endsAt"], "2027-01-15T08:04:00Z");
            outbox.settle(&request.alerts, &Delivery::Accepted, now);
            assert_eq!(outbox.next(now + RESEND / 2, 1_800_000_000), None);
            assert_eq!((outbox.due(), outbox.waiting()), (Some(now + RESEND), 0));
        }
        outbox.put(resolved("1"), START);
        let request = outbox.next(START, 1_800_009_000).expect("the alert is due at once");
        assert_eq!(body(&request)[0]["endsAt"], "2027-01-15T08:10:00Z");
        outbox.settle(&request.alerts, &Delivery::Unavailable("503".to_owned()), START);
        let again = outbox.next(START, 1_800_009_000).expect("it was not delivered");
        outbox.settle(&again.alerts, &Delivery::Accepted, START);
        assert_eq!((outbox.next(RESEND * 10, 1_800_009_000), outbox.due()), (None, None));
    }

    #[test]
    fn alert_that_changes_keeps_its_labels() {
        let mut outbox = outbox();
        outbox.put(alert("1"), START);
        let request = outbox.next(START, 0).expect("a request");
        // It is resolved while the request is on its way.
        outbox.put(Alert { labels: BTreeMap::new(), ..resolved("1") }, START);
        outbox.settle(&request.alerts, &Delivery::Accepted, START);
        let request = outbox.next(START, 0).expect("the resolved alert is due");
        assert_eq!(request.alerts[0].resolved_unix_s, Some(1_800_000_600));
        assert_eq!(body(&request)[0]["labels"]["mesh"], "core");
    }

    #[test]
    fn labels_are_made_valid_and_pairs_are_bounded() {
        let mut outbox = outbox();
        let members = (0..45).map(|number| ("a".into(), format!("b{number}").into())).collect();
        let labels = [("topology.kubernetes.io/zone".to_owned(), "z1".to_owned()), ("10g".to_owned(), "x".to_owned())];
        let subject = Subject::Link("oslo".to_owned());
        outbox.put(Alert { members, subject, labels: labels.into(), ..alert("1") }, START);
        let request = outbox.next(START, 1_800_000_000).expect("a request");
        let sent = &body(&request)[0];
        let expected = serde_json::json!({
            "alertname": "linerate-level-changed",
            "fleet": "lab",
            "kind": "level-changed",
            "subject": "link oslo",
            "id": "1",
            "topology_kubernetes_io_zone": "z1",
            "_10g": "x",
        });
        assert_eq!(sent["labels"], expected);
        let pairs = sent["annotations"]["pairs"].as_str().expect("pairs");
        assert!(pairs.starts_with("a to b0, a to b1, ") && pairs.ends_with("a to b19 and 25 more"), "{pairs}");
    }

    #[test]
    fn alerts_beyond_the_bound_are_dropped() {
        let mut outbox = outbox();
        let dropped: usize = (0..MAX_FIRING + 3).map(|number| outbox.put(alert(&number.to_string()), START)).sum();
        assert_eq!(dropped, 3);
        assert_eq!(outbox.put(resolved("0"), START), 0, "a known alert always has a place");
        assert_eq!(outbox.next(START, 0).expect("a request").alerts.len(), MAX_BATCH);
    }
}
