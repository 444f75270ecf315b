//! Cross traffic: datagrams between two hosts of a bench that share links with what is measured.

use super::{Bench, RATE_MINIMUM};
use crate::error::host_list;
use crate::linux::written;
use linerate_model::HostName;
use linerate_units::{BitRate, ByteCount, Nanos};
use serde::Deserialize;
use std::str::FromStr;

/// IP and UDP headers, bytes.
const HEADERS: u32 = 28;
/// Ethernet header, FCS, preamble and gap, bytes.
const AROUND: u64 = 14 + 24;
/// The shortest frame without its FCS, and with its Ethernet header, bytes (IEEE 802.3 clause 4.4.2).
const SHORTEST: u64 = 60;

/// Datagrams from one host to another, for as long as the lab lives.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrossTraffic {
    /// The host that sends.
    pub from: HostName,
    /// The host that receives.
    pub to: HostName,
    /// The rate, on the wire.
    #[serde(deserialize_with = "written::text")]
    pub rate: BitRate,
    /// Payload of a datagram, bytes.
    #[serde(deserialize_with = "written::number")]
    pub size: ByteCount,
}

impl CrossTraffic {
    /// Checks that `bench` can carry it; says what is wrong.
    pub(crate) fn check(&self, bench: &Bench) -> Result<(), String> {
        let fail = |problem: String| Err(format!("cross traffic from {} to {}: {problem}", self.from, self.to));
        for (field, host) in [("from", &self.from), ("to", &self.to)] {
            if !bench.hosts.contains(host) {
                return fail(format!("{field}: there is no such host (hosts: {})", host_list(&bench.hosts)));
            }
            if bench.testers.contains(host) {
                return fail(format!("{field}: this host tests the device with raw frames, and has no other traffic"));
            }
            if let Some(rate) = bench.link_of(host).rate.filter(|rate| *rate < self.rate) {
                return fail(format!("rate: {} is more than the link of {host} carries, {rate}", self.rate));
            }
        }
        if self.from == self.to {
            return fail(String::from("it goes from one host to another"));
        }
        if self.rate < RATE_MINIMUM {
            return fail(format!("rate: {} is below {RATE_MINIMUM}", self.rate));
        }
        let mtu = [&self.from, &self.to].map(|host| bench.mtu_of(host)).into_iter().min().unwrap_or_default();
        let longest = u64::from(mtu - HEADERS);
        if !(1..=longest).contains(&self.size.get()) {
            return fail(format!("size: a datagram has 1 to {longest} bytes on these links, not {}", self.size.get()));
        }
        Ok(())
    }

    /// The time between two datagrams.
    pub(crate) fn interval(&self) -> Nanos {
        let frame = (self.size.get() + u64::from(HEADERS) + AROUND).max(SHORTEST + 24);
        self.rate.time_for(ByteCount::new(frame)).unwrap_or_default()
    }
}

/// Reads the form of the command line: `from=c,to=b,rate=50Mbit/s,size=1400`.
impl FromStr for CrossTraffic {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        written::table([], text)?.try_into().map_err(|error: toml::de::Error| {
            format!("{}, as in from=c,to=b,rate=50Mbit/s,size=1400", error.message().trim_end())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_what_a_table_is() {
        let line: CrossTraffic = "from=c,to=b,rate=50Mbit/s,size=1400".parse().expect("cross traffic");
        let file = toml::from_str("from = 'c'\nto = 'b'\nrate = '50Mbit/s'\nsize = 1400");
        assert_eq!(file.as_ref(), Ok(&line));
        for (text, part) in
            [("from=c,to=b,rate=1M", "`size`"), ("from=c,speed=1", "`speed`"), ("x", "`x` has no value")]
        {
            let error = text.parse::<CrossTraffic>().expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn its_rate_is_that_on_the_wire() {
        let of = |size| CrossTraffic {
            from: "c".into(),
            to: "b".into(),
            rate: BitRate::per_second(100_000_000),
            size: ByteCount::new(size),
        };
        // 1,538 bytes of line time, and 84.
        assert_eq!(of(1472).interval(), Nanos::new(123_040));
        assert_eq!(of(1).interval(), Nanos::new(6_720));
    }

    #[test]
    fn an_error_names_the_traffic_and_the_field() {
        for (fields, part) in [
            ("from = 'z'\nto = 'b'\nrate = '1M'\nsize = 1", "from: there is no such host (hosts: a, b)"),
            ("from = 'a'\nto = 'z'\nrate = '1M'\nsize = 1", "to: there is no such host"),
            ("from = 'a'\nto = 'a'\nrate = '1M'\nsize = 1", "to another"),
            ("from = 'a'\nto = 'b'\nrate = '0'\nsize = 1", "rate: 0 bit/s is below"),
            ("from = 'a'\nto = 'b'\nrate = '1G'\nsize = 1", "the link of a carries"),
            ("from = 'a'\nto = 'b'\nrate = '1M'\nsize = 0", "size: a datagram has 1 to 1472"),
            ("from = 'a'\nto = 'b'\nrate = '1M'\nsize = 1473", "size: a datagram has 1 to 1472"),
            ("from = 'a'\nto = 'b'\nrate = '1M'\nsize = 1\nburst = 2", "`burst`"),
        ] {
            let text = format!("name = 'x'\nhosts = ['a', 'b']\nlink = {{ rate = '100M' }}\n[[cross]]\n{fields}");
            let error = Bench::parse(&text, "lab.toml").expect_err(fields).to_string();
            assert!(error.contains(part), "{fields}\n{error}");
        }
    }
}
