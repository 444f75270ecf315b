//! A planted limit: the NFS server of a host's agent takes its time.

use linerate_model::HostName;
use linerate_units::{Nanos, ParseError};
use serde::{Deserialize, Deserializer, de};
use std::str::FromStr;

/// NFS server of a host that takes a set time for each call.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SlowServer {
    /// The host.
    pub host: HostName,
    /// Time of each call.
    #[serde(default, deserialize_with = "time")]
    pub service_time: Option<Nanos>,
    /// Time of a WRITE or COMMIT instead.
    #[serde(default, deserialize_with = "time")]
    pub write_time: Option<Nanos>,
    /// Calls served at a time; 8 unless said.
    pub at_once: Option<u16>,
}

impl SlowServer {
    /// Checks that it can be planted among `hosts`. Errors name the field.
    pub(crate) fn check(&self, hosts: &[HostName]) -> Result<(), String> {
        let fail = |problem: &str| Err(format!("slow-server {}: {problem}", self.host));
        let times = [self.service_time, self.write_time];
        match () {
            () if !hosts.contains(&self.host) => {
                fail(&format!("there is no such host (hosts: {})", crate::error::host_list(hosts)))
            }
            () if times == [None, None] => fail("say what takes how long: service-time, write-time, or both"),
            () if times.iter().flatten().any(|time| time.get() == 0) => fail("a time is above 0"),
            () if self.at_once == Some(0) => fail("at-once is 1 or more"),
            () => Ok(()),
        }
    }

    /// Returns the agent's options for it.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let time = |option: &str, time: Option<Nanos>| time.map(|time| format!("{option}={}ns", time.get()));
        let times = [time("--nfs-service-time", self.service_time), time("--nfs-write-time", self.write_time)];
        times.into_iter().flatten().chain(self.at_once.map(|count| format!("--nfs-at-once={count}"))).collect()
    }
}

/// Reads the form of the command line: `b,service-time=2ms,at-once=1`.
impl FromStr for SlowServer {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let fail = || ParseError {
            text: text.to_owned(),
            expected: "a slow server",
            example: "b,service-time=2ms,at-once=1 or b,write-time=20ms",
        };
        let mut fields = text.split(',');
        let host = fields.next().filter(|host| !host.is_empty()).ok_or_else(fail)?;
        let mut server = Self { host: host.into(), service_time: None, write_time: None, at_once: None };
        for field in fields {
            match field.split_once('=') {
                Some(("service-time", time)) => server.service_time = Some(time.parse()?),
                Some(("write-time", time)) => server.write_time = Some(time.parse()?),
                Some(("at-once", count)) => server.at_once = Some(count.parse().map_err(|_| fail())?),
                _ => return Err(fail()),
            }
        }
        Ok(server)
    }
}

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Nanos>, D::Error> {
    String::deserialize(deserializer)?.parse().map(Some).map_err(de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_a_file_says() {
        let line: SlowServer = "b,service-time=2ms,at-once=1".parse().expect("a slow server");
        let file: SlowServer = toml::from_str("host = 'b'\nservice-time = '2ms'\nat-once = 1").expect("a slow server");
        assert_eq!(line, file);
        assert_eq!(line.arguments(), ["--nfs-service-time=2000000ns", "--nfs-at-once=1"]);
        let hosts = ["a".into(), "b".into()];
        assert_eq!(line.check(&hosts), Ok(()));
        for (text, problem) in [
            ("c,service-time=2ms", "no such host (hosts: a, b)"),
            ("b", "say what takes how long"),
            ("b,at-once=1", "say what takes how long"),
            ("b,write-time=0ms", "above 0"),
            ("b,write-time=1ms,at-once=0", "1 or more"),
        ] {
            let error = text.parse::<SlowServer>().expect("can be read").check(&hosts).expect_err(text);
            assert!(error.contains(problem), "{error}");
        }
        for text in ["", ",service-time=2ms", "b,2ms", "b,service-time=soon", "b,at-once=x", "b,time=2ms"] {
            assert!(text.parse::<SlowServer>().is_err(), "{text}");
        }
    }
}
