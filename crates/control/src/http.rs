//! HTTP/1.1 over TLS to one agent, on connections that are kept for the next request.

use crate::REPEATED_HEADER;
use crate::dial::Dialer;
use crate::pin::{self, Pinned};
use crate::wire_times::TimedStream;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, Uri};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::Client as Pool;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rustls::ClientConfig;
use serde::Serialize;
use std::error::Error as StdError;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tower_service::Service;

/// Prefix of each request's path. The dialer decides the destination, so the name has no meaning.
const BASE: &str = "https://linerate/v1";

/// Lifetime of idle connections, shorter than that of agents, so that no request uses a closing connection.
const IDLE: Duration = Duration::from_secs(60);

/// Header that only makes a request longer.
const PADDING: HeaderName = HeaderName::from_static("linerate-padding");

/// Cause of an unanswered request.
pub(crate) type HttpError = Box<dyn StdError + Send + Sync>;

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
}

/// HTTP client for one agent, without redirections and proxies.
#[derive(Debug)]
pub(crate) struct Http {
    connector: Connector,
    /// Connections kept for the next request.
    pool: Mutex<Pool<Connector, Full<Bytes>>>,
    /// Headers of every request.
    headers: HeaderMap,
    dialer: Arc<Dialer>,
}

impl Http {
    /// Creates a client for the agent with the pinned certificate, connected by `dialer`.
    ///
    /// # Errors
    /// TLS 1.3 is not available in this build's cryptography.
    pub(crate) fn new(dialer: Dialer, pinned: &Pinned, headers: HeaderMap) -> Result<Self, rustls::Error> {
        let dialer = Arc::new(dialer);
        let connector = Connector { dialer: Arc::clone(&dialer), tls: Arc::new(pin::pinned_config(pinned)?) };
        let pool = Mutex::new(new_pool(&connector));
        Ok(Self { connector, pool, headers, dialer })
    }

    /// Opens new connections for all requests from now on. Running requests keep theirs.
    pub(crate) fn renew(&self) {
        *self.pool.lock().unwrap_or_else(PoisonError::into_inner) = new_pool(&self.connector);
    }

    /// Returns the opener of the connections.
    pub(crate) fn dialer(&self) -> &Dialer {
        &self.dialer
    }

    /// Sends `ask` and returns the answer as soon as its head has arrived.
    ///
    /// # Errors
    /// The connection could not be made, or it broke. The caller limits the time.
    pub(crate) async fn send(&self, ask: &Ask) -> Result<Response<Incoming>, HttpError> {
        let mut uri = BASE.to_owned();
        for segment in &ask.path {
            uri.push('/');
            uri.extend(utf8_percent_encode(segment, NON_ALPHANUMERIC));
        }
        let mut request = Request::builder().method(ask.method.clone()).uri(uri).body(Full::default())?;
        request.headers_mut().extend(self.headers.clone());
        if ask.is_repeated {
            request.headers_mut().insert(REPEATED_HEADER, HeaderValue::from_static("1"));
        }
        if ask.padding > 0 {
            request.headers_mut().insert(PADDING, HeaderValue::try_from("-".repeat(ask.padding))?);
        }
        if let Some(body) = &ask.body {
            request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            *request.body_mut() = Full::new(body.clone());
        }
        let pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(pool.request(request).await?)
    }
}

fn new_pool(connector: &Connector) -> Pool<Connector, Full<Bytes>> {
    Pool::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE).build(connector.clone())
}

/// Connector for TCP and TLS. The caller limits the time.
#[derive(Debug, Clone)]
struct Connector {
    dialer: Arc<Dialer>,
    tls: Arc<ClientConfig>,
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<TimedStream>;
    type Error = HttpError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, HttpError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), HttpError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let dialer = Arc::clone(&self.dialer);
        let tls = Arc::clone(&self.tls);
        Box::pin(async move {
            let stream = TimedStream::new(dialer.take().await?);
            HttpsConnector::from((Connected(Some(stream)), tls)).call(uri).await
        })
    }
}

/// Existing TCP connection, for TLS on top of it.
struct Connected(Option<TimedStream>);

impl Service<Uri> for Connected {
    type Response = TimedStream;
    type Error = HttpError;
    type Future = Ready<Result<TimedStream, HttpError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), HttpError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        ready(self.0.take().ok_or_else(|| "the connection is used already".into()))
    }
}

/// Encodes the body of a request.
///
/// # Errors
/// The value cannot be represented in JSON.
pub(crate) fn json(value: &(impl Serialize + ?Sized)) -> Result<Bytes, HttpError> {
    Ok(serde_json::to_vec(value)?.into())
}
