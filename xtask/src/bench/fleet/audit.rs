//! Checks of a fleet's records against the session logs of its agents.
//!
//! Sessions of a fleet's runs are called RECORD-ATTEMPT-LOAD-PLACE, so that a log and a record name the same trial.

use linerate_testsuite::fleet::{FleetLab, LoggedSession};
use std::collections::{BTreeMap, BTreeSet};

/// Time between two clocks, and from the end of a trial to the next begin, in nanoseconds.
const OVERLAP_NS: u64 = 1_000_000;

/// An attempt of a run: its record, and its number there.
type Attempt = (String, u64);

/// A session of an agent, with the attempt that it belongs to.
struct Part {
    attempt: Attempt,
    /// Place in the load: 0 sends.
    place: u64,
    host: String,
    begun_unix_ns: u64,
    /// End, or the greatest number if it is open.
    ended_unix_ns: u64,
    is_finished: bool,
}

/// Result of an audit.
#[derive(Debug, Default)]
pub(super) struct Audit {
    /// Attempts that all their agents finished.
    pub(super) finished: usize,
    /// Attempts in the store.
    pub(super) stored: usize,
    /// Finished attempts that the store lacks.
    pub(super) lost: Vec<String>,
    /// Attempts that were counted more than once.
    pub(super) twice: Vec<String>,
    /// Pairs of exclusive trials that shared a host or a link.
    pub(super) shared: Vec<String>,
}

impl Audit {
    /// Compares the store with the logs. `sites` has the site of each host; `dead` has the times at which agents were killed.
    pub(super) fn of(lab: &FleetLab, sites: &BTreeMap<String, String>, dead: &[(String, u64)]) -> Self {
        let parts = parts(&lab.session_logs(), dead);
        let mut audit = Self::default();
        audit.compare(&parts, &lab.sql("SELECT r.id, t.number FROM run r JOIN trial t ON t.run = r.number"));
        let counted = lab.sql("SELECT coalesce(sum(results), 0) FROM pair_hour");
        let results = lab.sql("SELECT count(*) FROM pair_result");
        if counted != results {
            audit.twice.push(format!("{counted} results are in the sums by hour, and {results} in the store"));
        }
        audit.share(&parts, sites);
        audit
    }

    /// Returns whether nothing is wrong.
    pub(super) fn is_clean(&self) -> bool {
        self.lost.is_empty() && self.twice.is_empty() && self.shared.is_empty()
    }

    fn compare(&mut self, parts: &[Part], rows: &str) {
        let mut stored = BTreeSet::new();
        for row in rows.lines() {
            let Some((record, number)) = row.split_once('|') else { continue };
            let attempt = (record.to_owned(), number.parse().unwrap_or(u64::MAX));
            if !stored.insert(attempt) {
                self.twice.push(format!("attempt {number} of {record} is stored twice"));
            }
        }
        self.stored = stored.len();
        let mut ends: BTreeMap<&Attempt, BTreeMap<u64, u32>> = BTreeMap::new();
        for part in parts {
            let places = ends.entry(&part.attempt).or_default();
            *places.entry(part.place).or_default() += u32::from(part.is_finished);
        }
        for (attempt, places) in &ends {
            let (record, number) = attempt;
            if places.values().any(|finished| *finished > 1) {
                self.twice.push(format!("attempt {number} of {record} was run twice"));
            }
            let is_finished = places.len() == 2 && places.values().all(|finished| *finished > 0);
            if is_finished {
                self.finished += 1;
                if !stored.contains(*attempt) {
                    self.lost.push(format!("attempt {number} of {record}"));
                }
            }
        }
    }

    /// Looks for exclusive trials that shared a host, or a link in one direction.
    fn share(&mut self, parts: &[Part], sites: &BTreeMap<String, String>) {
        let mut hosts: BTreeMap<&Attempt, BTreeMap<u64, &str>> = BTreeMap::new();
        for part in parts {
            hosts.entry(&part.attempt).or_default().insert(part.place, &part.host);
        }
        let mut uses: BTreeMap<String, Vec<&Part>> = BTreeMap::new();
        for part in parts {
            uses.entry(format!("host {}", part.host)).or_default().push(part);
            let ends = &hosts[&part.attempt];
            let (Some(from), Some(to)) = (ends.get(&0), ends.get(&1)) else { continue };
            if sites.get(*from) == sites.get(*to) {
                continue;
            }
            let site = sites.get(&part.host).map_or("", String::as_str);
            let way = if part.place == 0 { "from" } else { "to" };
            uses.entry(format!("the link {way} {site}")).or_default().push(part);
        }
        for (name, mut users) in uses {
            users.sort_by_key(|part| part.begun_unix_ns);
            let mut users = users.into_iter();
            let Some(mut first) = users.next() else { continue };
            for second in users {
                if first.attempt != second.attempt && first.ended_unix_ns > second.begun_unix_ns + OVERLAP_NS {
                    let late_ms = (first.ended_unix_ns.min(second.ended_unix_ns) - second.begun_unix_ns) / 1_000_000;
                    let (first, second) = (&first.attempt.0, &second.attempt.0);
                    self.shared.push(format!("{first} and {second} shared {name} for {late_ms} ms"));
                }
                if second.ended_unix_ns > first.ended_unix_ns {
                    first = second;
                }
            }
        }
    }
}

/// Returns the sessions of all agents that belong to runs of the fleet.
fn parts(logs: &BTreeMap<String, Vec<LoggedSession>>, dead: &[(String, u64)]) -> Vec<Part> {
    let mut parts = Vec::new();
    for (host, sessions) in logs {
        for session in sessions {
            let Some((attempt, place)) = attempt_of(&session.id) else { continue };
            let killed =
                dead.iter().filter(|(name, at)| name == host && *at > session.begun_unix_ns).map(|(_, at)| *at);
            parts.push(Part {
                attempt,
                place,
                host: host.clone(),
                begun_unix_ns: session.begun_unix_ns,
                ended_unix_ns: session.ended_unix_ns.or(killed.min()).unwrap_or(u64::MAX),
                is_finished: session.outcome.as_deref() == Some("finished"),
            });
        }
    }
    parts
}

/// Splits the name of a session.
fn attempt_of(session: &str) -> Option<(Attempt, u64)> {
    let mut words = session.rsplitn(4, '-');
    let place = words.next()?.parse().ok()?;
    let _load: u64 = words.next()?.parse().ok()?;
    let number = words.next()?.parse().ok()?;
    Some(((words.next()?.to_owned(), number), place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(id: &str, begun: u64, ended: Option<u64>) -> LoggedSession {
        LoggedSession {
            id: id.to_owned(),
            begun_unix_ns: begun * 1_000_000_000,
            ended_unix_ns: ended.map(|end| end * 1_000_000_000),
            outcome: ended.map(|_| "finished".to_owned()),
        }
    }

    fn sites() -> BTreeMap<String, String> {
        [("a-1", "a"), ("a-2", "a"), ("b-1", "b"), ("c-1", "c")]
            .map(|(host, site)| (host.to_owned(), site.to_owned()))
            .into()
    }

    #[test]
    fn lost_and_repeated_attempts_are_found() {
        let logs = BTreeMap::from([
            ("a-1".to_owned(), vec![session("R-0-0-0", 1, Some(2)), session("R-1-0-0", 3, Some(4))]),
            ("b-1".to_owned(), vec![session("R-0-0-1", 1, Some(2)), session("R-1-0-1", 3, Some(4))]),
        ]);
        let parts = parts(&logs, &[]);
        let mut audit = Audit::default();
        audit.compare(&parts, "R|0\nR|0");
        assert_eq!((audit.finished, audit.stored), (2, 1));
        assert_eq!(audit.lost, ["attempt 1 of R"]);
        assert_eq!(audit.twice, ["attempt 0 of R is stored twice"]);
    }

    #[test]
    fn trials_that_share_a_host_or_a_link_are_found() {
        let logs = BTreeMap::from([
            ("a-1".to_owned(), vec![session("R-0-0-0", 1, Some(5))]),
            ("b-1".to_owned(), vec![session("R-0-0-1", 1, Some(5)), session("T-0-0-0", 4, Some(6))]),
            ("a-2".to_owned(), vec![session("S-0-0-0", 2, Some(4))]),
            ("c-1".to_owned(), vec![session("S-0-0-1", 2, Some(4)), session("T-0-0-1", 4, Some(6))]),
        ]);
        let mut audit = Audit::default();
        audit.share(&parts(&logs, &[]), &sites());
        let shared = ["R and T shared host b-1 for 1000 ms", "R and S shared the link from a for 2000 ms"];
        assert_eq!(audit.shared, shared);
    }

    #[test]
    fn session_of_a_killed_agent_ends_with_it() {
        let logs =
            BTreeMap::from([("a-1".to_owned(), vec![session("R-0-0-0", 1, None), session("S-0-0-0", 4, Some(5))])]);
        let mut audit = Audit::default();
        audit.share(&parts(&logs, &[("a-1".to_owned(), 3_000_000_000)]), &sites());
        assert!(audit.shared.is_empty(), "{:?}", audit.shared);
        audit.share(&parts(&logs, &[]), &sites());
        assert_eq!(audit.shared.len(), 1);
    }
}
