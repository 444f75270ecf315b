//! What the agent has done so far, for Prometheus.
//! <https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format>

use linerate_control::PROTOCOL;
use linerate_model::{HostCounts, RoleCounts, RoleKind, TaskKind};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since the agent started.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// By task, then by event.
    sessions: [[Counter; SessionEvent::ALL.len()]; TaskKind::ALL.len()],
    pub(crate) turned_away: Counter,
    sent_bytes: Counter,
    received_bytes: Counter,
}

/// Change of a session. Each session that was opened ends once as finished, failed or stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionEvent {
    Opened,
    Finished,
    Failed,
    Stopped,
    Refused,
}

impl SessionEvent {
    const ALL: [Self; 5] = [Self::Opened, Self::Finished, Self::Failed, Self::Stopped, Self::Refused];

    fn name(self) -> &'static str {
        match self {
            Self::Opened => "opened",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Refused => "refused",
        }
    }
}

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Metrics {
    /// Counts what became of a session.
    pub(crate) fn count(&self, task: TaskKind, event: SessionEvent) {
        if let Some(counter) = self.session(task, event) {
            counter.add(1);
        }
    }

    fn session(&self, task: TaskKind, event: SessionEvent) -> Option<&Counter> {
        let task = TaskKind::ALL.iter().position(|each| *each == task)?;
        let event = SessionEvent::ALL.iter().position(|each| *each == event)?;
        self.sessions.get(task)?.get(event)
    }

    /// Counts the payload of a finished session that had `roles`.
    pub(crate) fn count_payload<'a>(&self, roles: impl Iterator<Item = &'a RoleKind>, counts: &HostCounts) {
        for (role, counted) in roles.zip(&counts.roles) {
            let (sent, received) = payload(role, counted);
            self.sent_bytes.add(sent);
            self.received_bytes.add(received);
        }
    }

    /// The page Prometheus reads, while `under_way` sessions are.
    pub(crate) fn page(&self, under_way: usize) -> String {
        let mut page = String::new();
        let mut metric = |name: &str, kind: &str, help: &str, samples: &[(String, u64)]| {
            let _ = writeln!(page, "# HELP linerate_{name} {help}\n# TYPE linerate_{name} {kind}");
            for (labels, value) in samples {
                let _ = writeln!(page, "linerate_{name}{labels} {value}");
            }
        };
        metric(
            "build_info",
            "gauge",
            "Version of the agent and its protocol.",
            &[(format!("{{version=\"{}\",protocol=\"{PROTOCOL}\"}}", env!("CARGO_PKG_VERSION")), 1)],
        );
        metric("sessions_under_way", "gauge", "Sessions that have not ended.", &[(String::new(), under_way as u64)]);
        let all = TaskKind::ALL.into_iter().flat_map(|task| SessionEvent::ALL.map(|event| (task, event)));
        let sessions: Vec<_> = all
            .map(|(task, event)| {
                let count = self.session(task, event).map_or(0, Counter::get);
                (format!("{{task=\"{task}\",state=\"{}\"}}", event.name()), count)
            })
            .collect();
        metric(
            "sessions_total",
            "counter",
            "Sessions by task and what became of them; each opened one ends as finished, failed or stopped, and only once.",
            &sessions,
        );
        let single = |counter: &Counter| [(String::new(), counter.get())];
        metric(
            "requests_turned_away_total",
            "counter",
            "Requests without a valid token, and connections from peers that are not allowed or that lost their place to others.",
            &single(&self.turned_away),
        );
        metric(
            "sent_bytes_total",
            "counter",
            "Payload bytes sent in the measured windows of finished sessions; of raw frames, bytes of frames.",
            &single(&self.sent_bytes),
        );
        metric(
            "received_bytes_total",
            "counter",
            "Payload bytes received in the measured windows of finished sessions; of raw frames, bytes of frames.",
            &single(&self.received_bytes),
        );
        page
    }
}

/// Bytes that a role sent and received.
pub(crate) fn payload(role: &RoleKind, counts: &RoleCounts) -> (u64, u64) {
    match counts {
        RoleCounts::Flows(end) => {
            let sent = end.flows.iter().map(|flow| flow.sent_bytes).sum();
            (sent, end.flows.iter().map(|flow| flow.received_bytes).sum())
        }
        RoleCounts::Frames(part) => {
            let sent = part.streams.iter().filter_map(|stream| stream.sent.as_ref()).map(|sent| sent.bytes).sum();
            let arrived = part.streams.iter().filter_map(|stream| stream.arrived.as_ref());
            (sent, arrived.map(|arrived| arrived.bytes).sum())
        }
        RoleCounts::Copy(part) => {
            let bytes = part.sides.iter().map(|side| side.bytes).sum();
            if matches!(role, RoleKind::Source | RoleKind::FileServer) { (bytes, 0) } else { (0, bytes) }
        }
        RoleCounts::Hops(end) => (end.way.as_ref().map_or(0, |way| way.sent_bytes), 0),
    }
}
