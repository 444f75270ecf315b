//! A trial made ready: its ports found, its frames built, its times computed.

use crate::FrameError;
use crate::headers::frame;
use crate::port::{mac, usable};
use crate::signature::Signature;
use linerate_model::{FrameStream, FrameTrial, Mac, MacRule, SimulatedHosts};
use linerate_sys::clock;
use linerate_sys::netlink::Route;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU16, Ordering};

/// A port of the trial.
#[derive(Debug, Clone)]
pub(crate) struct Port {
    pub(crate) interface: String,
    pub(crate) link: u32,
    pub(crate) mac: Mac,
}

/// A stream of the trial.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    pub(crate) wish: FrameStream,
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// A frame of it, with number 0.
    pub(crate) frame: Vec<u8>,
    /// Where the signature begins in it.
    pub(crate) signature_at: usize,
    /// Between frames, in 2^-32 ns; 0 sends without pause.
    pub(crate) gap: u128,
    /// Frames that are due in the trial's time; none without a rate or a count.
    pub(crate) due: Option<u64>,
}

/// A trial ready to run.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) name: String,
    pub(crate) tag: u16,
    pub(crate) ports: Vec<Port>,
    pub(crate) streams: Vec<Stream>,
    /// How long is sent, nanoseconds.
    pub(crate) time: u64,
}

impl Plan {
    /// Checks the trial against itself and against this host.
    pub(crate) fn new(trial: &FrameTrial) -> Result<Self, FrameError> {
        let bad = |why: String| FrameError::BadTrial { trial: trial.name.clone(), why };
        let links = Route::open()?.links()?;
        let ports = trial.ports.iter().map(|interface| {
            let link = usable(&links, interface)?;
            Ok(Port { interface: interface.clone(), link: link.index, mac: mac(&link)? })
        });
        let ports = ports.collect::<Result<Vec<_>, FrameError>>()?;
        if trial.streams.is_empty() || trial.streams.len() > usize::from(u16::MAX) {
            return Err(bad(format!("it has {} streams: 1 to 65535 can be told apart", trial.streams.len())));
        }
        for hosts in &trial.hosts {
            check_hosts(hosts, ports.len()).map_err(bad)?;
        }
        let tag = tag();
        let mut streams = Vec::with_capacity(trial.streams.len());
        for (index, wish) in (0u16..).zip(&trial.streams) {
            let headers = &wish.headers;
            let (from, to) = (usize::from(wish.from), usize::from(wish.to));
            if from.max(to) >= ports.len() {
                return Err(bad(format!("stream {index} goes from port {from} to {to} of {}", ports.len())));
            }
            if headers.source.is_ipv4() != headers.destination.is_ipv4() {
                return Err(bad(format!(
                    "stream {index}: {} and {} are of two families",
                    headers.source, headers.destination
                )));
            }
            if headers.vlans.len() > 2 {
                return Err(bad(format!("stream {index} has {} VLAN tags; at most 2 are read", headers.vlans.len())));
            }
            let smallest = headers.smallest_frame();
            if wish.size < smallest {
                let (size, smallest) = (wish.size.get(), smallest.get());
                return Err(bad(format!(
                    "stream {index}: frames of {size} bytes have no room for the headers and the \
                     signature; the smallest are {smallest}"
                )));
            }
            let length = wish.size.without_fcs() as usize;
            let signature = Signature { tag, stream: index, number: 0, time: 0 };
            let rate = wish.rate.map(|rate| rate.get());
            if rate == Some(0) {
                return Err(bad(format!("stream {index} has rate 0: leave the stream out")));
            }
            let in_time = rate.map(|rate| in_time(rate, trial.time.get()));
            streams.push(Stream {
                wish: wish.clone(),
                from,
                to,
                frame: frame(headers, length, signature),
                signature_at: headers.bytes() as usize,
                gap: rate.map_or(0, |rate| (1_000_000_000u128 << 32) / u128::from(rate)),
                due: match (in_time, wish.count) {
                    (Some(in_time), Some(count)) => Some(in_time.min(count)),
                    (in_time, count) => in_time.or(count),
                },
            });
        }
        Ok(Self { name: trial.name.clone(), tag, ports, streams, time: trial.time.get() })
    }
}

impl Plan {
    /// How long after its time a trial may still send what was due: a sender that was held up sends the rest later, at the
    /// trial's rate.
    pub(crate) fn patience(&self) -> u64 {
        self.time / 8 + 20_000_000
    }

    /// When the last frame of `stream` may leave in a trial that began at `start`.
    pub(crate) fn end(&self, stream: &Stream, start: u64) -> u64 {
        start + self.time + if stream.gap == 0 { 0 } else { self.patience() }
    }
}

/// Simulated hosts must be hosts, each with addresses of its own.
fn check_hosts(hosts: &SimulatedHosts, ports: usize) -> Result<(), String> {
    let (first, steps) = (hosts.first, hosts.count.saturating_sub(1));
    if usize::from(hosts.port) >= ports {
        return Err(format!("hosts from {first} on are behind port {} of {ports}", hosts.port));
    }
    let last = match first {
        IpAddr::V4(v4) => v4.to_bits().checked_add(steps).map(|bits| IpAddr::from(bits.to_be_bytes())),
        IpAddr::V6(v6) => v6.to_bits().checked_add(steps.into()).map(|bits| IpAddr::from(bits.to_be_bytes())),
    };
    let Some(last) = last.filter(|last| hosts.count > 0 && !first.is_multicast() && !last.is_multicast()) else {
        return Err(format!("there are no {} hosts from {first} on: give 1 or more, none a group's", hosts.count));
    };
    if let MacRule::Counting { first: mac } = hosts.mac {
        let end = mac.plus(steps);
        if mac.0[0] & 1 != 0 || end.0[0] != mac.0[0] {
            return Err(format!("hosts {first} to {last} cannot have Ethernet addresses {mac} to {end}: take 02:..."));
        }
    }
    Ok(())
}

/// Frames that are due within `time` nanoseconds at `rate`, the first at once.
pub(crate) fn in_time(rate: u64, time: u64) -> u64 {
    (u128::from(rate) * u128::from(time)).div_ceil(1_000_000_000) as u64
}

/// A number that tells this trial's frames from the stragglers of others.
fn tag() -> u16 {
    static TRIALS: AtomicU16 = AtomicU16::new(0);
    let seed = clock::unix_now() / 1_000_000_000 + u64::from(std::process::id()) * 257;
    (seed as u16).wrapping_add(TRIALS.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x6487))
}

/// The streams that each of `lanes` serves, in turn.
pub(crate) fn deal(streams: usize, lanes: usize) -> Vec<Vec<usize>> {
    (0..lanes.min(streams)).map(|lane| (lane..streams).step_by(lanes).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_due_are_counted_from_the_first() {
        assert_eq!(in_time(10_000, 1_000_000_000), 10_000);
        assert_eq!(in_time(3, 1_000_000_000), 3);
        assert_eq!(in_time(3, 1_000_000_001), 4);
        assert_eq!(in_time(14_880_952, 60_000_000_000), 892_857_120);
    }

    #[test]
    fn every_stream_has_a_lane() {
        assert_eq!(deal(5, 2), [vec![0, 2, 4], vec![1, 3]]);
        assert_eq!(deal(1, 4), [vec![0]]);
    }
}
