//! HTTP/1.1 over TLS to one agent, on connections that are kept for the next request.

use crate::REPEATED_HEADER;
use crate::pin::{self, Pinned};
use crate::wire_times::{TimedConnector, TimedStream};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, Uri};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::Client as Pool;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use std::error::Error as StdError;
use std::io;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tower_service::Service;

/// How long TCP and TLS may take to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Shorter than agents keep idle connections, so that no request meets one that is being closed.
const IDLE: Duration = Duration::from_secs(60);

/// An idle connection is probed this often: NATs and firewalls forget connections that carry nothing, some of them within 20 s.
const KEEPALIVE: Duration = Duration::from_secs(5);
/// A connection whose probes or data are not acknowledged for this long is closed, so that the next request opens another.
const UNACKNOWLEDGED: Duration = Duration::from_secs(5);

/// Why a request was not answered.
pub(crate) type HttpError = Box<dyn StdError + Send + Sync>;

/// Requests to one agent. They follow no redirection and no proxy.
#[derive(Debug)]
pub(crate) struct Http {
    connector: Connector,
    /// Connections that are kept for the next request.
    pool: Mutex<Pool<Connector, Full<Bytes>>>,
    /// Sent with every request.
    headers: HeaderMap,
    /// Before the path of each request.
    base: String,
}

impl Http {
    /// Requests below `base`, as `https://192.0.2.1:7117/v1`, to the holder of the pinned certificate.
    ///
    /// # Errors
    /// TLS 1.3 is not to be had from this build's cryptography.
    pub(crate) fn new(base: String, pinned: &Pinned, headers: HeaderMap) -> Result<Self, rustls::Error> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(KEEPALIVE));
        tcp.set_keepalive_interval(Some(KEEPALIVE));
        tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
        let connector = Connector(HttpsConnector::from((TimedConnector(tcp), pin::pinned_config(pinned)?)));
        let pool = Mutex::new(new_pool(&connector));
        Ok(Self { connector, pool, headers, base })
    }

    /// Opens new connections for all requests from now on. Those under way keep theirs.
    pub(crate) fn renew(&self) {
        *self.pool.lock().unwrap_or_else(PoisonError::into_inner) = new_pool(&self.connector);
    }

    /// Sends a request for the path of these segments and returns the answer as soon as its head is there.
    ///
    /// # Errors
    /// No connection, or one that broke. The caller limits the time.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &[&str],
        body: Option<Bytes>,
        is_repeated: bool,
    ) -> Result<Response<Incoming>, HttpError> {
        let mut uri = self.base.clone();
        for segment in path {
            uri.push('/');
            uri.extend(utf8_percent_encode(segment, NON_ALPHANUMERIC));
        }
        let mut request = Request::builder().method(method).uri(uri).body(Full::default())?;
        request.headers_mut().extend(self.headers.clone());
        if is_repeated {
            request.headers_mut().insert(REPEATED_HEADER, HeaderValue::from_static("1"));
        }
        if let Some(body) = body {
            request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            *request.body_mut() = Full::new(body);
        }
        let pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(pool.request(request).await?)
    }
}

fn new_pool(connector: &Connector) -> Pool<Connector, Full<Bytes>> {
    Pool::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE).build(connector.clone())
}

/// Connects by TCP and TLS within [`CONNECT_TIMEOUT`].
#[derive(Debug, Clone)]
struct Connector(HttpsConnector<TimedConnector>);

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<TimedStream>;
    type Error = HttpError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, HttpError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), HttpError>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, self.0.call(uri));
        Box::pin(async { connected.await.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into())) })
    }
}

/// The body of a request.
///
/// # Errors
/// The value has no form in JSON.
pub(crate) fn json(value: &(impl Serialize + ?Sized)) -> Result<Bytes, HttpError> {
    Ok(serde_json::to_vec(value)?.into())
}
