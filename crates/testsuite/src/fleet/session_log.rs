//! Session logs of agents: the owner's record of what its host did.

use serde_json::Value;
use std::path::Path;

/// A session in the log of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedSession {
    /// Identifier of the session.
    pub id: String,
    /// Begin, in nanoseconds since 1970.
    pub begun_unix_ns: u64,
    /// End, in nanoseconds since 1970. `None` if the log has none.
    pub ended_unix_ns: Option<u64>,
    /// Outcome of the session.
    pub outcome: Option<String>,
}

/// Reads the log of an agent. An agent that has served nothing has none.
///
/// # Panics
/// A line has another format.
pub fn read_session_log(path: &Path) -> Vec<LoggedSession> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut sessions: Vec<LoggedSession> = Vec::new();
    // The last line may be cut if the agent was killed.
    for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
        let event: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        let id = event["session"].as_str().unwrap_or_else(|| panic!("a line without session: {line}")).to_owned();
        let time = event["unix_ns"].as_u64().unwrap_or_else(|| panic!("a line without time: {line}"));
        match event["event"].as_str() {
            Some("begin") => {
                sessions.push(LoggedSession { id, begun_unix_ns: time, ended_unix_ns: None, outcome: None });
            }
            Some("end") => {
                let session = sessions.iter_mut().rev().find(|session| session.id == id);
                let session = session.unwrap_or_else(|| panic!("the end of an unknown session: {line}"));
                session.ended_unix_ns = Some(time);
                session.outcome = event["outcome"].as_str().map(str::to_owned);
            }
            _ => panic!("an unknown event: {line}"),
        }
    }
    sessions
}
