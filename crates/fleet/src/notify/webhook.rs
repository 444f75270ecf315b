//! Alerts as JSON, one request each. docs/fleet.md describes the body.

use super::links::PageLinks;
use super::outbox::{Outbox, Outgoing, rfc3339};
use crate::endpoint::Delivery;
use linerate_schedule::Alert;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Version of the body. A field may be added without a new version.
const VERSION: u32 = 1;

/// Most alerts that wait for a webhook.
const MAX_WAITING: usize = 1_000;

/// Body of a request.
#[derive(Debug, Serialize)]
struct Body<'a> {
    version: u32,
    fleet: &'a str,
    /// `firing` or `resolved`.
    status: &'static str,
    id: &'a str,
    kind: &'static str,
    subject: String,
    pairs: Vec<Pair<'a>>,
    labels: &'a BTreeMap<String, String>,
    summary: &'a str,
    description: &'a str,
    since: String,
    resolved: Option<String>,
    page: Option<String>,
    sent: String,
}

#[derive(Debug, Serialize)]
struct Pair<'a> {
    from: &'a str,
    to: &'a str,
}

/// Alerts in the order of their arrival.
pub(super) struct WebhookOutbox {
    fleet: String,
    links: Option<PageLinks>,
    queue: VecDeque<Alert>,
}

impl WebhookOutbox {
    pub(super) fn new(fleet: String, links: Option<PageLinks>) -> Self {
        Self { fleet, links, queue: VecDeque::new() }
    }
}

impl Outbox for WebhookOutbox {
    /// Drops the oldest alert if the queue is full. A change of an alert that waits replaces it.
    fn put(&mut self, alert: Alert, _now: Duration) -> usize {
        let same = |waiting: &&mut Alert| {
            waiting.id == alert.id && waiting.resolved_unix_s.is_some() == alert.resolved_unix_s.is_some()
        };
        // The front may be on its way already.
        if let Some(waiting) = self.queue.iter_mut().skip(1).find(same) {
            *waiting = alert;
            return 0;
        }
        self.queue.push_back(alert);
        if self.queue.len() <= MAX_WAITING {
            return 0;
        }
        self.queue.remove(1);
        1
    }

    fn next(&self, _now: Duration, unix_s: u64) -> Option<Outgoing> {
        let alert = self.queue.front()?;
        let body = Body {
            version: VERSION,
            fleet: &self.fleet,
            status: if alert.resolved_unix_s.is_some() { "resolved" } else { "firing" },
            id: &alert.id,
            kind: alert.kind.name(),
            subject: alert.subject.to_string(),
            pairs: alert.members.iter().map(|(from, to)| Pair { from: &from.0, to: &to.0 }).collect(),
            labels: &alert.labels,
            summary: &alert.summary,
            description: &alert.description,
            since: rfc3339(alert.since_unix_s),
            resolved: alert.resolved_unix_s.map(rfc3339),
            page: self.links.as_ref().map(|links| links.page(alert).to_string()),
            sent: rfc3339(unix_s),
        };
        let body = serde_json::to_vec(&body).expect("the body has text keys only");
        Some(Outgoing { body, alerts: vec![alert.clone()] })
    }

    fn settle(&mut self, _sent: &[Alert], delivery: &Delivery, _now: Duration) {
        if !matches!(delivery, Delivery::Unavailable(_)) {
            self.queue.pop_front();
        }
    }

    fn due(&self) -> Option<Duration> {
        self.queue.front().map(|_| Duration::ZERO)
    }

    fn waiting(&self) -> usize {
        self.queue.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::outbox::tests::{alert, resolved};

    fn outbox() -> WebhookOutbox {
        WebhookOutbox::new("lab".to_owned(), Some(PageLinks::new("https://view.example/lr/").expect("a URL")))
    }

    #[test]
    fn body_has_the_documented_shape() {
        let mut outbox = outbox();
        outbox.put(resolved("1"), Duration::ZERO);
        let request = outbox.next(Duration::ZERO, 1_800_000_700).expect("a request");
        let body: serde_json::Value = serde_json::from_slice(&request.body).expect("JSON");
        let expected = serde_json::json!({
            "version": 1,
            "fleet": "lab",
            "status": "resolved",
            "id": "1",
            "kind": "level-changed",
            "subject": "a to b",
            "pairs": [{ "from": "a", "to": "b" }],
            "labels": { "mesh": "core" },
            "summary": "a to b fell from 941 to 310 Mbit/s.",
            "description": "Limited by a shaper.",
            "since": "2027-01-15T08:00:00Z",
            "resolved": "2027-01-15T08:10:00Z",
            "page": "https://view.example/lr/fleet/pair?from=a&to=b",
            "sent": "2027-01-15T08:11:40Z",
        });
        assert_eq!(body, expected);
        // docs/fleet.md shows every field.
        let page = include_str!("../../../../docs/fleet.md");
        for field in expected.as_object().expect("an object").keys() {
            assert!(page.contains(&format!("\"{field}\": ")), "docs/fleet.md lacks `{field}`");
        }
    }

    #[test]
    fn unavailable_target_keeps_the_order() {
        let mut outbox = outbox();
        for alert in [alert("1"), alert("2"), resolved("1")] {
            outbox.put(alert, Duration::ZERO);
        }
        let mut sent = Vec::new();
        for delivery in [
            Delivery::Unavailable("refused".to_owned()),
            Delivery::Accepted,
            Delivery::Refused("404".to_owned()),
            Delivery::Accepted,
        ] {
            let request = outbox.next(Duration::ZERO, 0).expect("a request");
            sent.push((request.alerts[0].id.clone(), request.alerts[0].resolved_unix_s.is_some()));
            outbox.settle(&request.alerts, &delivery, Duration::ZERO);
        }
        let expected = [("1", false), ("1", false), ("2", false), ("1", true)];
        assert_eq!(sent, expected.map(|(id, ended)| (id.to_owned(), ended)));
        assert_eq!((outbox.waiting(), outbox.due()), (0, None));
    }

    #[test]
    fn full_queue_drops_the_oldest_but_the_one_on_its_way() {
        let mut outbox = outbox();
        let dropped: usize =
            (0..MAX_WAITING + 5).map(|number| outbox.put(alert(&number.to_string()), Duration::ZERO)).sum();
        assert_eq!((dropped, outbox.waiting()), (5, MAX_WAITING));
        let ids: Vec<&str> = outbox.queue.iter().take(2).map(|alert| alert.id.as_str()).collect();
        assert_eq!(ids, ["0", "6"]);
    }

    #[test]
    fn change_replaces_the_alert_that_waits() {
        let mut outbox = outbox();
        outbox.put(alert("1"), Duration::ZERO);
        outbox.put(alert("2"), Duration::ZERO);
        outbox.put(Alert { summary: "12 pairs".to_owned(), ..alert("2") }, Duration::ZERO);
        assert_eq!((outbox.waiting(), outbox.queue[1].summary.as_str()), (2, "12 pairs"));
    }
}
