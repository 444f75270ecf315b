//! The test of a mesh: a command of linerate without hosts.

use linerate_units::{BitRate, ByteCount, Nanos};
use serde::{Deserialize, Serialize};

/// Time of a trial in addition to its measured time: connections, warm-up, and collecting the results.
const OVERHEAD: Nanos = Nanos::from_secs(2);
/// Default measured time of a trial.
const DEFAULT_TIME: Nanos = Nanos::from_secs(3);
/// Default number of trials of a command.
const DEFAULT_REPEATS: u64 = 3;
/// Assumed bytes of a light test: requests and probes.
const LIGHT_BYTES: ByteCount = ByteCount::new(1_000_000);

/// Commands that a mesh can run.
const COMMANDS: [(&str, Class, Flow); 8] = [
    ("stream", Class::Exclusive, Flow::Forward),
    ("copy", Class::Exclusive, Flow::Forward),
    ("nfs", Class::Exclusive, Flow::Both),
    ("rpc", Class::Exclusive, Flow::Both),
    ("device", Class::Exclusive, Flow::Both),
    ("ladder", Class::Exclusive, Flow::Both),
    ("transact", Class::Light, Flow::Both),
    ("path", Class::Light, Flow::Both),
];

/// Options without a value. The word after any other option is its value.
const SWITCHES: [&str; 34] = [
    "-4",
    "-6",
    "-J",
    "-R",
    "-Z",
    "-u",
    "-v",
    "--bidir",
    "--both",
    "--busy-poll",
    "--connect",
    "--curve",
    "--force",
    "--hops",
    "--ipv4",
    "--ipv6",
    "--json",
    "--json-stream",
    "--loaded-latency",
    "--no-load",
    "--no-offload",
    "--no-store",
    "--no-tester-limit",
    "--poisson",
    "--prove",
    "--reverse",
    "--server-output",
    "--smb-sign",
    "--tcp",
    "--tui",
    "--udp",
    "--verbose",
    "--zerocopy",
    "--get-server-output",
];

/// Whether a trial needs its hosts and links for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Shares no host and no declared link with another exclusive trial.
    Exclusive,
    /// Runs at any time.
    Light,
}

/// Direction of a test's data, seen from the first host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// To the second host.
    Forward,
    /// From the second host.
    Backward,
    /// Both.
    Both,
}

/// Bytes and time of one trial, as far as they are known beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Bytes that the trial moves.
    pub bytes: ByteCount,
    /// Time from begin to end.
    pub time: Nanos,
}

/// The words of a command of linerate, without hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestWords {
    words: Vec<String>,
    class: Class,
    flow: Flow,
    time: Nanos,
    repeats: u64,
    rate: Option<BitRate>,
    bytes: Option<ByteCount>,
}

/// A test that a mesh cannot run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TestWordsError {
    /// An open quotation mark.
    #[error("has an open quotation mark; close it")]
    Quotation,
    /// No words.
    #[error("is empty; write it like \"stream --time 5s\"")]
    Empty,
    /// The first word is no command for two hosts.
    #[error("`{command}` is no test between two hosts; expected one of {expected}")]
    Unknown {
        /// The word.
        command: String,
        /// The commands.
        expected: String,
    },
    /// A word that is neither an option nor its value.
    #[error("`{0}` looks like a host; the mesh adds the hosts, so leave it out")]
    Host(String),
    /// A value that an option does not take.
    #[error("{0}")]
    Value(String),
}

impl TestWords {
    /// Reads the words of a command.
    pub fn parse(text: &str) -> Result<Self, TestWordsError> {
        let words = shlex::split(text).ok_or(TestWordsError::Quotation)?;
        let command = words.first().ok_or(TestWordsError::Empty)?;
        let Some((_, class, flow)) = COMMANDS.iter().find(|(name, ..)| name == command) else {
            let names: Vec<&str> = COMMANDS.iter().map(|(name, ..)| *name).collect();
            return Err(TestWordsError::Unknown { command: command.clone(), expected: names.join(", ") });
        };
        let mut test = Self {
            class: *class,
            flow: *flow,
            time: DEFAULT_TIME,
            repeats: DEFAULT_REPEATS,
            rate: None,
            bytes: None,
            words: Vec::new(),
        };
        let mut rest = words[1..].iter();
        while let Some(word) = rest.next() {
            if !word.starts_with('-') {
                return Err(TestWordsError::Host(word.clone()));
            }
            if let Some((option, value)) = word.split_once('=') {
                test.option(option, value)?;
            } else if SWITCHES.contains(&word.as_str()) {
                test.switch(word);
            } else {
                let value = rest.next().ok_or_else(|| TestWordsError::Value(format!("`{word}` has no value")))?;
                test.option(word, value)?;
            }
        }
        test.words = words;
        Ok(test)
    }

    fn switch(&mut self, word: &str) {
        match word {
            "-R" | "--reverse" => self.flow = Flow::Backward,
            "--bidir" | "--both" => self.flow = Flow::Both,
            _ => {}
        }
    }

    fn option(&mut self, option: &str, value: &str) -> Result<(), TestWordsError> {
        match option {
            "--time" | "-t" => self.time = number(value)?,
            "--repeats" | "-r" => self.repeats = value.parse().map_err(|_| bad_number(option, value))?,
            "--bytes" | "-n" => self.bytes = Some(number(value)?),
            // A rate may also be in messages, which says nothing of bytes.
            "--rate" | "-b" => self.rate = value.parse().ok(),
            "--direction" => {
                self.flow = match value {
                    "send" => Flow::Forward,
                    "receive" => Flow::Backward,
                    _ => Flow::Both,
                };
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the words, the command first.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Returns the class of the command.
    pub fn class(&self) -> Class {
        self.class
    }

    /// Returns the direction of the data.
    pub fn flow(&self) -> Flow {
        self.flow
    }

    /// Returns the bytes and the time of a trial on a path of `rate`. A rate among the words counts if it is lower.
    pub fn estimate(&self, rate: BitRate) -> Estimate {
        let repeats = self.repeats.max(1);
        let rate = self.rate.map_or(rate, |limit| limit.min(rate));
        let bytes = match (self.class, self.bytes) {
            (Class::Light, _) => LIGHT_BYTES.get(),
            (Class::Exclusive, Some(bytes)) => bytes.get(),
            (Class::Exclusive, None) => (rate.get() as f64 / 8.0 * self.time.as_secs_f64()) as u64,
        };
        let time = match self.bytes {
            Some(bytes) => rate.time_for(bytes).unwrap_or(self.time),
            None => self.time,
        };
        Estimate {
            bytes: ByteCount::new(bytes.saturating_mul(repeats)),
            time: Nanos::new((time + OVERHEAD).get().saturating_mul(repeats)),
        }
    }
}

fn number<T: std::str::FromStr<Err = linerate_units::ParseError>>(value: &str) -> Result<T, TestWordsError> {
    value.parse().map_err(|error: linerate_units::ParseError| TestWordsError::Value(error.to_string()))
}

fn bad_number(option: &str, value: &str) -> TestWordsError {
    TestWordsError::Value(format!("`{value}` is no number for {option}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_give_class_direction_and_estimate() {
        let test = TestWords::parse("stream --time 5s --repeats 1 --udp -R").expect("a test");
        assert_eq!((test.class(), test.flow()), (Class::Exclusive, Flow::Backward));
        let estimate = test.estimate(BitRate::per_second(1_000_000_000));
        assert_eq!(estimate, Estimate { bytes: ByteCount::new(625_000_000), time: Nanos::from_secs(7) });
        let limited = TestWords::parse("stream --time=1s --repeats=1 --rate 8Mbit/s").expect("a test");
        assert_eq!(limited.estimate(BitRate::per_second(1_000_000_000)).bytes, ByteCount::new(1_000_000));
        assert_eq!(TestWords::parse("transact --udp").expect("a test").class(), Class::Light);
    }

    #[test]
    fn hosts_and_unknown_commands_are_refused() {
        assert_eq!(TestWords::parse("stream a b"), Err(TestWordsError::Host("a".into())));
        assert_eq!(TestWords::parse("stream --udp a"), Err(TestWordsError::Host("a".into())));
        assert_eq!(TestWords::parse(""), Err(TestWordsError::Empty));
        assert_eq!(TestWords::parse("stream 'a"), Err(TestWordsError::Quotation));
        let error = TestWords::parse("ping -c 3").expect_err("no command");
        assert!(error.to_string().contains("expected one of stream, copy"), "{error}");
        assert!(matches!(TestWords::parse("stream --time soon"), Err(TestWordsError::Value(_))));
    }
}
