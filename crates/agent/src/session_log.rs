//! A log of sessions for the agent's owner: a line of JSON at the begin and at the end of each.

use crate::session::{Outcome, Session};
use linerate_model::{FailureKind, TaskKind};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// File that lines are appended to.
#[derive(Debug)]
pub struct SessionLog {
    file: Mutex<File>,
    path: PathBuf,
}

#[derive(Debug, Serialize)]
struct Line<'a> {
    /// Time of this host's clock, in nanoseconds since 1970.
    unix_ns: u64,
    event: &'static str,
    session: &'a str,
    task: TaskKind,
    /// Host that opened the session. `None` for a fleet.
    opener: Option<IpAddr>,
    /// Invitation that it was opened by.
    #[serde(skip_serializing_if = "Option::is_none")]
    invitation: Option<&'a str>,
    /// Fence of the scheduler that opened it.
    #[serde(skip_serializing_if = "Option::is_none")]
    fence: Option<u64>,
    /// Hosts that it connected to.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    peers: BTreeSet<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

impl SessionLog {
    /// Opens the file at `path` to append to it.
    ///
    /// # Errors
    /// The file cannot be opened for writing.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().create(true).append(true).open(path)?;
        Ok(Self { file: Mutex::new(file), path: path.to_owned() })
    }

    /// Appends the begin of a session.
    ///
    /// # Errors
    /// The line cannot be written; the text names the file.
    pub(crate) fn begin(&self, session: &Session) -> Result<(), String> {
        self.append(&line(session, "begin"))
    }

    /// Appends the end of a session.
    ///
    /// # Errors
    /// The line cannot be written; the text names the file.
    pub(crate) fn end(&self, session: &Session, outcome: &Outcome) -> Result<(), String> {
        let (text, reason) = match outcome {
            Ok(_) => ("finished", None),
            Err(failure) if failure.kind == FailureKind::Stopped => ("stopped", Some(failure.message.as_str())),
            Err(failure) => ("failed", Some(failure.message.as_str())),
        };
        self.append(&Line { outcome: Some(text), reason, peers: session.peers(), ..line(session, "end") })
    }

    /// Writes a line at once and whole, so that another reader or writer finds no part of one.
    fn append(&self, line: &Line) -> Result<(), String> {
        let mut text = serde_json::to_string(line).expect("a line has text keys only");
        text.push('\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(text.as_bytes()).map_err(|error| {
            format!("the session log {} lacks a line: {error}; make room, or move the file away", self.path.display())
        })
    }
}

fn line<'a>(session: &'a Session, event: &'static str) -> Line<'a> {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Line {
        unix_ns: u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX),
        event,
        session: &session.id.0,
        task: session.task,
        opener: session.opener.host,
        invitation: session.opener.credential.as_deref(),
        fence: session.opener.fence,
        peers: BTreeSet::new(),
        outcome: None,
        reason: None,
    }
}
