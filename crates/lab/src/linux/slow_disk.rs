//! A planted limit: all that a host's agent reads and writes for copies is on a slow disk.
//!
//! The disk is a file system in user space (FUSE) over the folders themselves, mounted in a mount namespace that only
//! the agent shares. A child process of the lab serves it; when that ends, however it ends, the kernel removes the
//! mount.

mod files;
mod head;
mod nodes;
mod serve;

pub(crate) use serve::READY;
pub use serve::serve;

use linerate_model::HostName;
use linerate_units::{BitRate, Nanos, ParseError};
use serde::{Deserialize, Deserializer, de};
use std::str::FromStr;

/// Slow disk of a host. It has one head and no cache: reads and writes take their time, one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SlowDisk {
    /// The host.
    pub host: HostName,
    /// Limit of the read rate.
    #[serde(default, deserialize_with = "text")]
    pub read_rate: Option<BitRate>,
    /// Limit of the write rate.
    #[serde(default, deserialize_with = "text")]
    pub write_rate: Option<BitRate>,
    /// Time to access a file that is opened or created.
    #[serde(default, deserialize_with = "text")]
    pub access_time: Option<Nanos>,
}

impl SlowDisk {
    /// Checks that it can be planted among `hosts`. Errors name the field.
    pub(crate) fn check(&self, hosts: &[HostName]) -> Result<(), String> {
        let fail = |problem: &str| Err(format!("slow-disk {}: {problem}", self.host));
        let rates = [self.read_rate, self.write_rate];
        match () {
            () if !hosts.contains(&self.host) => {
                fail(&format!("there is no such host (hosts: {})", crate::error::host_list(hosts)))
            }
            () if rates == [None, None] && self.access_time.is_none() => {
                fail("say what is slow: read-rate, write-rate, access-time")
            }
            () if rates.iter().flatten().any(|rate| rate.get() == 0) => fail("a rate is above 0"),
            () if self.access_time.is_some_and(|time| time.get() == 0) => fail("access-time is above 0"),
            () => Ok(()),
        }
    }
}

/// Reads the form of the command line: `b,write-rate=20MB/s,access-time=5ms`.
impl FromStr for SlowDisk {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let fail = || ParseError {
            text: text.to_owned(),
            expected: "a slow disk",
            example: "b,write-rate=20MB/s or a,read-rate=50MB/s,access-time=5ms",
        };
        let mut fields = text.split(',');
        let host = fields.next().filter(|host| !host.is_empty()).ok_or_else(fail)?;
        let mut disk = Self { host: host.into(), read_rate: None, write_rate: None, access_time: None };
        for field in fields {
            match field.split_once('=') {
                Some(("read-rate", rate)) => disk.read_rate = Some(rate.parse()?),
                Some(("write-rate", rate)) => disk.write_rate = Some(rate.parse()?),
                Some(("access-time", time)) => disk.access_time = Some(time.parse()?),
                _ => return Err(fail()),
            }
        }
        Ok(disk)
    }
}

/// Writes the form that [`FromStr`] reads.
impl std::fmt::Display for SlowDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.host)?;
        for (word, rate) in [("read-rate", self.read_rate), ("write-rate", self.write_rate)] {
            rate.map_or(Ok(()), |rate| write!(f, ",{word}={}bit/s", rate.get()))?;
        }
        self.access_time.map_or(Ok(()), |time| write!(f, ",access-time={}ns", time.get()))
    }
}

fn text<'de, D: Deserializer<'de>, T: FromStr<Err = ParseError>>(deserializer: D) -> Result<Option<T>, D::Error> {
    String::deserialize(deserializer)?.parse().map(Some).map_err(de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_a_file_says() {
        let line: SlowDisk = "b,write-rate=20MB/s,access-time=5ms".parse().expect("a slow disk");
        let file = "host = 'b'\nwrite-rate = '20MB/s'\naccess-time = '5ms'";
        assert_eq!(toml::from_str::<SlowDisk>(file).expect("a slow disk"), line);
        assert_eq!(line.write_rate, Some(BitRate::per_second(160_000_000)));
        assert_eq!(line.to_string().parse(), Ok(line.clone()));
        let hosts = ["a".into(), "b".into()];
        assert_eq!(line.check(&hosts), Ok(()));
        for (text, problem) in [
            ("c,read-rate=1MB/s", "no such host (hosts: a, b)"),
            ("b", "say what is slow"),
            ("b,read-rate=0", "above 0"),
            ("b,access-time=0ms", "above 0"),
        ] {
            let error = text.parse::<SlowDisk>().expect("can be read").check(&hosts).expect_err(text);
            assert!(error.contains(problem), "{error}");
        }
        for text in ["", ",read-rate=1MB/s", "b,1MB/s", "b,read-rate=slow", "b,access-time=soon", "b,rate=1MB/s"] {
            assert!(text.parse::<SlowDisk>().is_err(), "{text}");
        }
    }
}
