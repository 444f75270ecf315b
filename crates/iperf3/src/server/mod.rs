//! A server for iperf3 clients, several at a time.
//!
//! iperf3's protocol has no secret: everybody who reaches the port may run a test. So tests are limited in number,
//! flows, time and rate, and data go only to the address of the control connection. A connection that does not name its
//! test in time is closed.

mod flow_counts;
mod listener;
mod running_tests;
mod test;
mod test_request;

pub use listener::Iperf3Service;

use linerate_engine::{AllowedPeers, Reserve, Work};
use linerate_model::{HostCounts, Observation, Series, StreamTask, Timing};
use linerate_units::{BitRate, Nanos};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Observer of the tests of a service.
pub trait Observer: Send + Sync {
    /// Reports a test that has ended or was refused: the client's address, and the outcome.
    fn report(&self, line: &str);

    /// Begins to observe a test that is about to start. The client waits meanwhile.
    fn begins(self: Arc<Self>, test: ServedTest) -> Box<dyn TestWatch>;
}

/// Observer of one test. Dropped before [`ended`](Self::ended), the test has failed.
pub trait TestWatch {
    /// Starts to watch this host under the load `work` of the test. The client's clock runs already.
    fn watch(&mut self, work: Work);

    /// Stops watching this host. Returns the observation of the window, and the series of the load.
    fn seen(&mut self) -> (Observation, Series);

    /// Receives the timing and the counts of a completed test: those of this host, and those that the client reported.
    fn ended(self: Box<Self>, timing: Timing, counts: HostCounts);
}

/// Test that an iperf3 client requested.
#[derive(Debug, Clone)]
pub struct ServedTest {
    /// Address of the client.
    pub peer: IpAddr,
    /// Address of the service that the client uses.
    pub service: SocketAddr,
    /// Stream as seen from this host, which receives the data of the client. Its path is yet to be named.
    pub stream: StreamTask,
    /// Warm-up, and longest measurement. The client ends the test.
    pub timing: Timing,
    /// Payload bytes after which the test is over. `None` if it has a time.
    pub bytes: Option<u64>,
}

/// Limits for iperf3 clients.
#[derive(Debug, Clone)]
pub struct ServiceLimits {
    /// Payload rate that all tests together may request this host to send, and to receive. `None` is no limit. With a
    /// limit, a test without a rate is refused.
    pub max_rate: Option<BitRate>,
    /// The longest test, warm-up included.
    pub max_time: Nanos,
    /// Tests at once.
    pub max_tests: usize,
    /// Flows of one test, both directions together.
    pub max_flows: u64,
    /// Addresses of clients that may run a test.
    pub peers: AllowedPeers,
    /// Reserve of memory, threads and descriptors, from the budget of everything that this host serves.
    pub reserve: Reserve,
}

/// Private parts for fuzzing.
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing {
    use super::ServiceLimits;
    use super::test_request::TestRequest;
    use linerate_engine::{AllowedPeers, Reserve};
    use linerate_units::{BitRate, Nanos};
    use serde_json::Value;
    use std::net::{IpAddr, Ipv4Addr};

    /// Reads parameters of a test, and checks them against limits.
    pub(crate) fn read_request(text: &Value) {
        let Ok(request) = TestRequest::read(text) else { return };
        let limits = ServiceLimits {
            max_rate: Some(BitRate::per_second(1_000_000_000)),
            max_time: Nanos::from_secs(600),
            max_tests: 4,
            max_flows: 128,
            peers: AllowedPeers::default(),
            reserve: Reserve::default(),
        };
        if request.check(&limits, (1, 1)).is_ok() {
            let (sends, receives) = request.rates();
            assert!([sends, receives].into_iter().all(|rate| rate.is_some_and(|rate| rate < 1_000_000_000)));
            assert!(request.ways().len() <= 128);
            let needs = request.needs(IpAddr::V4(Ipv4Addr::LOCALHOST)).expect("an allowed test can be served");
            assert!(needs.threads > 0 && needs.descriptors > request.ways().len() as u64 && needs.memory > 0);
        }
        if let Some(name) = &request.socket.congestion {
            assert_eq!(linerate_model::shell_word(name), *name, "it can be typed into a shell as it is");
        }
        let _ = request.assignment(IpAddr::V4(Ipv4Addr::LOCALHOST), limits.max_time);
    }
}
