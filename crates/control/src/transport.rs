//! Transports of requests to an agent. The API is the same on each.

use crate::dial::Route;
use crate::wire_times::WireTimes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use hyper::Method;
use hyper::body::Bytes;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::error::Error as StdError;
use std::fmt;

/// Cause of an unanswered request.
pub(crate) type TransportError = Box<dyn StdError + Send + Sync>;

/// Request that may be sent more than once.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    /// Segments of the path.
    pub(crate) path: Vec<String>,
    pub(crate) body: Option<Bytes>,
    /// Whether the agent may have received it before.
    pub(crate) is_repeated: bool,
    /// Bytes of a header that only makes the request longer.
    pub(crate) padding: usize,
    /// Task of the agent, for messages.
    pub(crate) task: &'static str,
}

impl Ask {
    pub(crate) fn new(method: Method, path: &[&str], task: &'static str) -> Self {
        let path = path.iter().map(ToString::to_string).collect();
        Self { method, path, body: None, is_repeated: false, padding: 0, task }
    }

    /// Returns the path of the request.
    pub(crate) fn encoded_path(&self) -> String {
        let mut path = String::from("/v1");
        for segment in &self.path {
            path.push('/');
            path.extend(utf8_percent_encode(segment, NON_ALPHANUMERIC));
        }
        path
    }
}

/// Body of an answer, in pieces.
pub(crate) type Pieces = BoxStream<'static, Result<Bytes, TransportError>>;

/// Answer of an agent, as soon as its head has arrived.
pub(crate) struct Answer {
    /// Status, as in HTTP.
    pub(crate) status: u16,
    /// Version of the agent's protocol. `None` if it reports none.
    pub(crate) protocol: Option<String>,
    /// Times of the connection that carried the answer.
    pub(crate) times: WireTimes,
    pub(crate) pieces: Pieces,
}

/// Carries requests to one agent.
pub(crate) trait Transport: fmt::Debug + Send + Sync {
    /// Sends `ask` and returns the answer as soon as its head has arrived. The caller limits the time.
    fn send<'a>(&'a self, ask: &'a Ask) -> BoxFuture<'a, Result<Answer, TransportError>>;

    /// Opens new connections for all requests from now on, if the transport has connections of its own.
    fn renew(&self);

    /// Returns the route of connections to the agent. Returns `None` before the first connection, and if there is none.
    fn route(&self) -> Option<Route>;
}
