//! The lab's end of the socket to the process of Open vSwitch.

use super::failed;
use crate::LabError;
use linerate_model::Message;
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::net::UnixStream;
use std::sync::Mutex;

/// A running Open vSwitch. Its process writes one line if a program ends.
#[derive(Debug)]
pub struct OpenVswitchWatch(Mutex<State>);

#[derive(Debug)]
struct State {
    output: BufReader<UnixStream>,
    /// Problem of a program that has ended.
    problem: Option<String>,
}

impl OpenVswitchWatch {
    /// Watches a switch that is ready.
    pub(crate) fn new(output: BufReader<UnixStream>) -> Result<Self, LabError> {
        output.get_ref().set_nonblocking(true).map_err(failed)?;
        Ok(Self(Mutex::new(State { output, problem: None })))
    }

    /// Returns `None` while the switch runs, because it has no limits to miss.
    ///
    /// # Errors
    ///
    /// Fails if one of its programs has ended, with its last log line.
    pub fn missed(&self) -> Result<Option<Message>, LabError> {
        let mut state = self.0.lock().map_err(|_| LabError::Down)?;
        if state.problem.is_none() {
            let mut line = String::new();
            state.problem = match state.output.read_line(&mut line) {
                Ok(0) => Some(String::from("its process ended")),
                Ok(_) => Some(line.trim_end().to_owned()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
                Err(error) => Some(error.to_string()),
            };
        }
        match &state.problem {
            Some(problem) => Err(LabError::OpenVswitch { problem: problem.clone() }),
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn a_program_that_ended_stays_a_problem() {
        let (ours, mut its) = UnixStream::pair().expect("a socket");
        let watch = OpenVswitchWatch::new(BufReader::new(ours)).expect("a watch");
        assert_eq!(watch.missed().expect("it runs"), None);
        writeln!(its, "ovs-vswitchd ended").expect("written");
        for _ in 0..2 {
            let error = watch.missed().expect_err("a program has ended").to_string();
            assert!(error.contains("ovs-vswitchd ended"), "{error}");
        }
    }

    #[test]
    fn a_process_that_ended_is_a_problem() {
        let (ours, its) = UnixStream::pair().expect("a socket");
        let watch = OpenVswitchWatch::new(BufReader::new(ours)).expect("a watch");
        drop(its);
        let error = watch.missed().expect_err("its process has ended").to_string();
        assert!(error.contains("its process ended"), "{error}");
    }
}
