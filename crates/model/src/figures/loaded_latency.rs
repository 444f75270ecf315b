//! Latency under load: what requests take on the idle path and beside a stream, and what the difference is worth.

use super::Latency;
use crate::{Arrivals, Net, SocketOptions, StreamTask, Summary, TransactTask, Transport};
use linerate_units::{ByteCount, Nanos, OpRate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Probes a second of each path: draft-ietf-ippm-responsiveness-04 section 4.2 allows at most so many (MPS), so that they
/// are no load of their own. With Ethernet's framing they take 0.1 Mbit/s each way.
const PROBES_PER_S: u64 = 100;
/// Bytes of a probe's request and of its response.
const PROBE_BYTES: u64 = 64;

impl TransactTask {
    /// Requests that time the path beside `stream`: few, small, on a connection of their own, marked and bound as the
    /// stream is. They are sent at random times, whether the last one was answered or not: a Poisson process sees a queue
    /// as often full as it is full (RFC 2330 section 11.1.1), and a stall cannot keep requests from being made.
    pub fn beside(stream: &StreamTask, transport: Transport) -> Self {
        let socket = &stream.net.socket;
        let socket = SocketOptions {
            dscp: socket.dscp,
            bind_address: socket.bind_address,
            bind_device: socket.bind_device.clone(),
            ..SocketOptions::default()
        };
        Self {
            paths: stream.paths.clone(),
            net: Net { ip: stream.net.ip, socket, ..Net::plain(transport) },
            request_bytes: ByteCount::new(PROBE_BYTES),
            response_bytes: ByteCount::new(PROBE_BYTES),
            rate: Some(OpRate::per_second(PROBES_PER_S)),
            arrivals: Arrivals::Poisson,
            ..Self::plain(transport)
        }
    }
}

/// What requests took on the idle path and beside the load, all runs and paths together.
///
/// A request that got no answer is in every figure here: it counts as [`LoadedLatency::UNANSWERED`], or as the slowest answer
/// where that took longer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadedLatency {
    /// What the requests went over.
    pub transport: Transport,
    /// From request to response on the idle path, nanoseconds.
    pub idle_ns: Latency,
    /// The same beside the load.
    pub loaded_ns: Latency,
    /// Requests on the idle path that got no answer.
    pub idle_unanswered: u64,
    /// Requests beside the load that got no answer.
    pub loaded_unanswered: u64,
    /// What the load added, nanoseconds.
    pub added_ns: AddedDelay,
    /// Round trips a minute.
    pub rpm: RoundTripsPerMinute,
    /// (mean round trip under load - baseline) / baseline x 100, the buffer delay of RFC 6349; the baseline is the idle median.
    pub buffer_delay_percent: f64,
    /// What the added delay at the median is called.
    pub grade: DelayGrade,
}

impl LoadedLatency {
    /// What a request without an answer took at the least: the engine gives up after so long.
    pub const UNANSWERED: Nanos = Nanos::from_secs(1);
}

/// The loaded less the idle percentile, nanoseconds; below zero where the idle path answered later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AddedDelay {
    /// At the median.
    pub p50: i64,
    /// At the 90th percentile.
    pub p90: i64,
    /// At the 99th percentile.
    pub p99: i64,
    /// At the median, each run by itself.
    pub p50_runs: Summary,
}

/// Round trips that fit into a minute one after another: 60 s over the mean of the quicker 95 % of them. It is what
/// draft-ietf-ippm-responsiveness-04 section 4.3.1 computes from `http_f`; no connection set-up and no probe within the
/// stream's own connections is part of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoundTripsPerMinute {
    /// On the idle path.
    pub idle: f64,
    /// Beside the load.
    pub loaded: f64,
}

/// Added delay at the median in a letter. The bounds are those of the bufferbloat grades that speed tests for home lines
/// made common (dslreports.com/faq/17930), so that the letter means what it means there; like there, there is no E.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum DelayGrade {
    /// Below 5 ms.
    #[serde(rename = "A+")]
    APlus,
    /// Below 30 ms.
    A,
    /// Below 60 ms.
    B,
    /// Below 200 ms.
    C,
    /// Below 400 ms.
    D,
    /// 400 ms and more.
    F,
}

impl DelayGrade {
    /// All grades with the delay that each stays below, the best first; the last has no bound.
    pub const ALL: [(Self, Option<Nanos>); 6] = [
        (Self::APlus, Some(Nanos::from_millis(5))),
        (Self::A, Some(Nanos::from_millis(30))),
        (Self::B, Some(Nanos::from_millis(60))),
        (Self::C, Some(Nanos::from_millis(200))),
        (Self::D, Some(Nanos::from_millis(400))),
        (Self::F, None),
    ];

    /// The delay it begins with and the one it stays below.
    pub fn bounds(self) -> (Option<Nanos>, Option<Nanos>) {
        let above = Self::ALL.iter().rev().find(|(grade, _)| *grade < self).and_then(|(_, below)| *below);
        (above, Self::ALL.iter().find(|(grade, _)| *grade == self).and_then(|(_, below)| *below))
    }

    /// The grade of so many added nanoseconds.
    pub fn of(added_ns: i64) -> Self {
        let added = Nanos::new(u64::try_from(added_ns).unwrap_or(0));
        let within = |(_, below): &&(Self, Option<Nanos>)| below.is_none_or(|below| added < below);
        Self::ALL.iter().find(within).map_or(Self::F, |(grade, _)| *grade)
    }
}

impl fmt::Display for DelayGrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::APlus => "A+",
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
            Self::D => "D",
            Self::F => "F",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_grade_begins_where_the_one_before_ends() {
        use DelayGrade::{A, APlus, B, C, D, F};
        for (added_us, grade) in [
            (-300, APlus),
            (4_999, APlus),
            (5_000, A),
            (29_999, A),
            (30_000, B),
            (60_000, C),
            (199_999, C),
            (200_000, D),
            (399_999, D),
            (400_000, F),
            (9_000_000, F),
        ] {
            assert_eq!(DelayGrade::of(added_us * 1_000), grade, "{added_us} us");
        }
        let ms = |ms| Some(Nanos::from_millis(ms));
        assert_eq!([APlus, B, F].map(DelayGrade::bounds), [(None, ms(5)), (ms(30), ms(60)), (ms(400), None)]);
        assert_eq!(serde_json::to_string(&APlus).ok(), Some("\"A+\"".to_owned()));
    }

    #[test]
    fn probes_go_where_the_stream_goes() {
        let socket =
            SocketOptions { dscp: Some(46), congestion: Some("cubic".into()), mss: Some(500), ..Default::default() };
        let stream = StreamTask {
            net: Net { socket, ..Net::plain(Transport::Tcp) },
            ..StreamTask::plain(Transport::Tcp, ByteCount::new(1))
        };
        let probe = TransactTask::beside(&stream, Transport::Udp);
        assert_eq!(probe.net.socket, SocketOptions { dscp: Some(46), ..Default::default() });
        assert_eq!((probe.net.flows, probe.arrivals), (1, Arrivals::Poisson));
    }
}
