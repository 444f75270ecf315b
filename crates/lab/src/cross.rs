//! Cross traffic: datagrams between two hosts of a bench that share links with what is measured.
//!
//! A process beside the lab sends and receives them by two connected sockets, so that nothing answers with ICMP.

use crate::bench::{Bench, RATE_MINIMUM, join};
use crate::beside::{Beside, until_the_end};
use crate::wiring::{WiredHost, mtu_of};
use crate::{LabError, written};
use linerate_model::HostName;
use linerate_sys::Error;
use linerate_sys::clock::{now, sleep_until};
use linerate_sys::socket::force_receive_buffer;
use linerate_sys::thread::sharpen_timers;
use linerate_sys::udp;
use linerate_units::{BitRate, ByteCount, Nanos};
use serde::Deserialize;
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::str::FromStr;
use std::thread;
use std::time::Duration;

/// IP and UDP headers, bytes.
const HEADERS: u32 = 28;
/// Ethernet header, FCS, preamble and gap, bytes.
const AROUND: u64 = 14 + 24;
/// The shortest frame without its FCS, and with its Ethernet header, bytes (IEEE 802.3 clause 4.4.2).
const SHORTEST: u64 = 60;
/// How much of its time a sender that was late makes up for.
const LATE: Nanos = Nanos::from_millis(20);
/// The shortest sleep between datagrams: those that are due meanwhile leave together.
const PAUSE: Nanos = Nanos::new(200_000);
/// What the receiving socket holds, bytes: what comes while its process waits for a core.
const RECEIVE_BUFFER: i32 = 8 << 20;

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
                return fail(format!("{field}: there is no such host (hosts: {})", join(&bench.hosts)));
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
        let mtu = [&self.from, &self.to].map(|host| mtu_of(bench, host)).into_iter().min().unwrap_or_default();
        let longest = u64::from(mtu - HEADERS);
        match (1..=longest).contains(&self.size.get()) {
            true => Ok(()),
            false => fail(format!("size: a datagram has 1 to {longest} bytes on these links, not {}", self.size.get())),
        }
    }

    /// Starts it between two hosts.
    pub(crate) fn start(&self, from: &WiredHost, to: &WiredHost, beside: &mut Beside) -> Result<(), LabError> {
        let failed = || LabError::at(format!("start the cross traffic from {} to {}", self.from, self.to));
        let receiver = bound(to).map_err(failed())?;
        let sender = bound(from).map_err(failed())?;
        for (socket, peer) in [(&sender, &receiver), (&receiver, &sender)] {
            let connected = peer.local_addr().and_then(|address| socket.connect(address));
            connected.map_err(|error| failed()(Error::new("connect", "a UDP socket", error)))?;
        }
        beside.exchange([sender, receiver].map(OwnedFd::from), self.interval(), self.size)
    }

    /// The time between two datagrams.
    fn interval(&self) -> Nanos {
        let frame = (self.size.get() + u64::from(HEADERS) + AROUND).max(SHORTEST + 24);
        self.rate.time_for(ByteCount::new(frame)).unwrap_or_default()
    }
}

/// As on the command line: `from=c,to=b,rate=50Mbit/s,size=1400`.
impl FromStr for CrossTraffic {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        written::table([], text)?.try_into().map_err(|error: toml::de::Error| {
            format!("{}, as in from=c,to=b,rate=50Mbit/s,size=1400", error.message().trim_end())
        })
    }
}

/// A socket at the first address of a host.
fn bound(host: &WiredHost) -> Result<UdpSocket, Error> {
    let address = host.addresses.first().copied().unwrap_or(IpAddr::from([0, 0, 0, 0]));
    let bound = host.namespace.enter(|| UdpSocket::bind((address, 0)))?;
    bound.map_err(|error| Error::new("bind", address.to_string(), error))
}

/// Sends datagrams of `size` bytes by the socket that is the standard output, one each `interval`, and receives by the one that
/// is the standard error, until standard input ends.
///
/// # Errors
/// One of the two is no socket.
pub fn exchange(interval: Nanos, size: u16) -> Result<(), Error> {
    let owned = |socket: BorrowedFd<'_>| {
        let owned = socket.try_clone_to_owned().map(UdpSocket::from);
        owned.map_err(|error| Error::new("dup", "a socket of cross traffic", error))
    };
    let (sender, receiver) = (owned(io::stdout().as_fd())?, owned(io::stderr().as_fd())?);
    force_receive_buffer(receiver.as_fd(), RECEIVE_BUFFER)?;
    thread::spawn(move || send(&sender, interval, size));
    thread::spawn(move || receive(&receiver));
    until_the_end()
}

fn send(socket: &UdpSocket, interval: Nanos, size: u16) {
    sharpen_timers();
    let (datagram, interval) = (vec![0; usize::from(size)], interval.get().max(1));
    let mut due = now();
    loop {
        due = due.max(now().saturating_sub(LATE.get()));
        while due <= now() {
            // What the host's own queue or filter drops is lost as any datagram.
            let _ = socket.send(&datagram);
            due += interval;
        }
        sleep_until(due.max(now() + PAUSE.get()));
    }
}

fn receive(socket: &UdpSocket) {
    let mut first = [0; 16];
    loop {
        if udp::receive_one(socket, &mut first, true).is_err() {
            thread::sleep(Duration::from_millis(1));
        }
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
