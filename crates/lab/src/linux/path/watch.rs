//! The lab's end of the socket to its path.

use super::{ASK, PathCounts};
use crate::LabError;
use linerate_model::Message;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::time::Duration;

/// Time for an answer: the machine may be busy.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// A running path that can be asked for its counts.
#[derive(Debug)]
pub struct PathWatch {
    /// `None` after a late or broken answer: later bytes would be taken for the answer to a later question.
    output: Mutex<Option<BufReader<UnixStream>>>,
    /// Counts when the lab was ready.
    before: PathCounts,
    /// Counts at the last check.
    asked: Mutex<PathCounts>,
}

impl PathWatch {
    pub(crate) fn new(output: BufReader<UnixStream>) -> Self {
        Self { output: Mutex::new(Some(output)), before: PathCounts::default(), asked: Mutex::default() }
    }

    /// Counts from now on.
    pub(crate) fn begin(&mut self) -> Result<(), LabError> {
        self.before = self.ask()?;
        Ok(())
    }

    /// Returns a warning if the path has not done what was planted since the last call.
    ///
    /// # Errors
    ///
    /// Fails if the path's process has ended.
    pub fn missed(&self) -> Result<Option<Message>, LabError> {
        let now = self.ask()?;
        let mut last_counts = self.asked.lock().map_err(|_| LabError::Down)?;
        let warning = now.clone().since(&last_counts).warning();
        *last_counts = now;
        Ok(warning)
    }

    /// Returns the counts since the lab was ready.
    pub(crate) fn counts(&self) -> Result<PathCounts, LabError> {
        Ok(self.ask()?.since(&self.before))
    }

    fn ask(&self) -> Result<PathCounts, LabError> {
        let mut held = self.output.lock().map_err(|_| LabError::Down)?;
        let answer = |output: &mut BufReader<UnixStream>| -> io::Result<PathCounts> {
            output.get_ref().set_read_timeout(Some(ANSWER_TIMEOUT))?;
            output.get_mut().write_all(&[ASK])?;
            let mut line = String::new();
            output.read_line(&mut line)?;
            Ok(serde_json::from_str(&line)?)
        };
        let counts = match held.as_mut() {
            Some(output) => answer(output),
            None => Err(io::Error::other("it did not answer an earlier question")),
        };
        if counts.is_err() {
            *held = None;
        }
        counts.map_err(|error| {
            LabError::at("ask the path for its counts")(linerate_sys::Error::new("read", "the path", error))
        })
    }
}
