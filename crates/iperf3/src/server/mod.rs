//! A server for clients of iperf3, several at once.
//!
//! iperf3's protocol has no secret: whoever reaches the port may have a test. So tests are bounded in number, flows, time and rate, and
//! data go only to the address that the control connection comes from. A connection that does not name its test in time is closed.

mod flow_counts;
mod listener;
mod test;
mod test_request;
mod tests_under_way;

pub use listener::Iperf3Service;

use linerate_engine::{AllowedPeers, Reserve, Work};
use linerate_model::{HostCounts, Observation, Series, StreamTask, Timing};
use linerate_units::{BitRate, Nanos};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Who sees the tests of a service.
pub trait Observer: Send + Sync {
    /// Takes a line about a test that has ended or was refused: the client's address, and what came of it.
    fn report(&self, line: &str);

    /// Takes a test that is about to begin. It may take its time: the client waits.
    fn begins(self: Arc<Self>, test: ServedTest) -> Box<dyn TestWatch>;
}

/// Who watches one test. Dropped before [`ended`](Self::ended), the test came to nothing.
pub trait TestWatch {
    /// Watches this host from now on, under the load `work` of the test. The client's clock runs already.
    fn watch(&mut self, work: Work);

    /// Ends the watch of this host. Gives what was seen in the window, and the course of the load.
    fn seen(&mut self) -> (Observation, Series);

    /// Takes what was counted of a test that went to its end, and how long it was measured: what this host counted and saw, and what
    /// the client told of its end.
    fn ended(self: Box<Self>, timing: Timing, counts: HostCounts);
}

/// A test that a client of iperf3 asked for.
#[derive(Debug, Clone)]
pub struct ServedTest {
    /// The client's address.
    pub peer: IpAddr,
    /// Where it reached the service.
    pub service: SocketAddr,
    /// The stream as it is seen from here: this host receives what the client sends. Its path is yet to be named.
    pub stream: StreamTask,
    /// Its warm-up, and the longest that it may be measured. The client ends it.
    pub timing: Timing,
    /// Payload bytes after which it is over; none where it has a time.
    pub bytes: Option<u64>,
}

/// What the clients of iperf3 may have.
#[derive(Debug, Clone)]
pub struct ServiceLimits {
    /// Payload bits per second that all tests together may ask this host to send, and to receive; none is no limit. With one, a
    /// test without a rate is refused.
    pub max_rate: Option<BitRate>,
    /// The longest test, warm-up included.
    pub max_time: Nanos,
    /// Tests at once.
    pub max_tests: usize,
    /// Flows of one test, both directions together.
    pub max_flows: u64,
    /// Who may have a test.
    pub peers: AllowedPeers,
    /// Memory, threads and descriptors for each test, of what is there for all that this host serves.
    pub reserve: Reserve,
}

/// What fuzzing needs of the private parts.
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing {
    use super::ServiceLimits;
    use super::test_request::TestRequest;
    use linerate_engine::{AllowedPeers, Reserve};
    use linerate_units::{BitRate, Nanos};
    use serde_json::Value;
    use std::net::{IpAddr, Ipv4Addr};

    /// Reads parameters of a test, and weighs them.
    pub(crate) fn asked(text: &Value) {
        let Ok(asked) = TestRequest::read(text) else { return };
        let limits = ServiceLimits {
            max_rate: Some(BitRate::per_second(1_000_000_000)),
            max_time: Nanos::from_secs(600),
            max_tests: 4,
            max_flows: 128,
            peers: AllowedPeers::default(),
            reserve: Reserve::default(),
        };
        if asked.check(&limits, (1, 1)).is_ok() {
            let (sends, receives) = asked.rates();
            assert!([sends, receives].into_iter().all(|rate| rate.is_some_and(|rate| rate < 1_000_000_000)));
            assert!(asked.ways().len() <= 128);
            let needs = asked.needs(IpAddr::V4(Ipv4Addr::LOCALHOST)).expect("what is allowed can be served");
            assert!(needs.threads > 0 && needs.descriptors > asked.ways().len() as u64 && needs.memory > 0);
        }
        if let Some(name) = &asked.socket.congestion {
            assert_eq!(linerate_model::shell_word(name), *name, "it can be typed into a shell as it is");
        }
        let _ = asked.assignment(IpAddr::V4(Ipv4Addr::LOCALHOST), limits.max_time);
    }
}
