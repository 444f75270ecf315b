//! What is kept of a run.

use crate::{
    Caveat, CopyFigures, CurveFound, CurvePlan, DeviceFound, DevicePlan, Goal, Host, Ladder, Measurement, Outcome,
    Plan, RecordId, StudyRun, TrialResult,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;

/// The format's name and version. Fields may be added within a version; none changes its meaning.
pub const SCHEMA: &str = "linerate.record/2";

/// A run: what was asked, of whom, every attempt, and what they amount to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: String,
    /// The record's own name.
    pub id: RecordId,
    /// Version of the program that wrote it.
    pub version: String,
    /// The command as typed, secrets left out.
    pub command: Vec<String>,
    /// The run of a study that it is; none for what is no part of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub study: Option<StudyRun>,
    /// The records that one command made together carry the same group; none where it made one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// When it began, nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// What was asked.
    pub plan: Plan,
    /// The hosts that took part.
    pub hosts: Vec<Host>,
    /// One entry for each trial measured at least once, in the plan's order; a device test has none.
    pub results: Vec<Measurement>,
    /// Every attempt at every trial, in the order they ran.
    pub trials: Vec<TrialResult>,
    /// What was found beside the results.
    pub outcome: Outcome,
    /// Doubts about the run as a whole.
    pub caveats: Vec<Caveat>,
}

/// The words of a command as people type them: the program's folder left out.
pub fn typed(command: &[String]) -> impl Iterator<Item = &str> {
    let program = command.first().map(|path| path.rsplit('/').next().unwrap_or(path));
    program.into_iter().chain(command.iter().skip(1).map(String::as_str))
}

/// A command as it can be typed into a shell, the program's folder left out. Whatever the words hold, the shell runs nothing else:
/// records of served tests, and those of others, have words that a stranger chose.
pub fn shell_command(command: &[String]) -> String {
    typed(command).map(shell_word).collect::<Vec<_>>().join(" ")
}

/// A word as a shell takes it: in quotes unless it is plain.
pub fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The words of a command line from its command's name on: `words` are those behind the program. The option `--lang` may stand
/// before any command.
pub fn from_command_name<Word: AsRef<OsStr>>(words: &[Word]) -> &[Word] {
    match words.first().and_then(|word| word.as_ref().to_str()) {
        Some("--lang") => from_command_name(words.get(2..).unwrap_or_default()),
        Some(option) if option.starts_with("--lang=") => from_command_name(&words[1..]),
        _ => words,
    }
}

impl Record {
    /// Reads a record of this format. All records are read here: the code that reads each of their hundred types is large, and is
    /// compiled once then.
    ///
    /// # Errors
    /// The text is not JSON, or something in it is missing or cannot be.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// A record of `plan` in which nothing has happened yet: no command, time or hosts either.
    pub fn new(id: RecordId, plan: Plan) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            id,
            version: String::new(),
            command: Vec::new(),
            study: None,
            group: None,
            started_unix_ns: 0,
            plan,
            hosts: Vec::new(),
            results: Vec::new(),
            trials: Vec::new(),
            outcome: Outcome::Sweep,
            caveats: Vec::new(),
        }
    }

    /// The attempts whose figures count, in the order they ran.
    pub fn counted(&self) -> impl Iterator<Item = &TrialResult> {
        self.trials.iter().filter(|result| result.is_counted())
    }

    /// The result of that name.
    pub fn result(&self, name: &str) -> Option<&Measurement> {
        self.results.iter().find(|result| result.name == name)
    }

    /// Returns the results of streams, transactions, RPC and NFS.
    pub fn flows(&self) -> impl Iterator<Item = &Measurement> {
        self.results.iter().filter(|result| result.flows().is_some())
    }

    /// The results of copies, each with its figures.
    pub fn copies(&self) -> impl Iterator<Item = (&Measurement, &CopyFigures)> {
        self.results.iter().filter_map(|result| Some((result, result.copy()?)))
    }

    /// What was asked and found of a device; none for other runs.
    pub fn device(&self) -> Option<(&DevicePlan, &DeviceFound)> {
        match (&self.plan.goal, &self.outcome) {
            (Goal::Device(plan), Outcome::Device(found)) => Some((plan, found)),
            _ => None,
        }
    }

    /// What was asked and found of a curve; none for other runs.
    pub fn curve(&self) -> Option<(&CurvePlan, &CurveFound)> {
        match (&self.plan.goal, &self.outcome) {
            (Goal::Curve(plan), Outcome::Curve(found)) => Some((plan, found)),
            _ => None,
        }
    }

    /// The path layer by layer; none for other runs.
    pub fn ladder(&self) -> Option<&Ladder> {
        match &self.outcome {
            Outcome::Ladder(ladder) => Some(ladder),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_quoted_for_the_shell() {
        let words = |text: &[&str]| text.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let typed = words(&["/opt/linerate", "compare", "--live", "stream B", "it's", "", "-t", "10s", "a#b"]);
        assert_eq!(shell_command(&words(&["iperf3", "-c", "192.0.2.5"])), "iperf3 -c 192.0.2.5");
        assert_eq!(shell_command(&typed), "linerate compare --live 'stream B' 'it'\\''s' '' -t 10s 'a#b'");
        for chosen in ["$(reboot)", "`reboot`", "a;reboot", "a\nreboot", "~", "*"] {
            assert_eq!(shell_command(&words(&["iperf3", "-C", chosen])), format!("iperf3 -C '{chosen}'"));
        }
    }
}
