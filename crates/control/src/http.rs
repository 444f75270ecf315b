//! HTTP/1.1 over TLS to one agent, on connections that are kept for the next request.

use crate::dial::{Dialer, Route};
use crate::pin::{self, Pinned};
use crate::transport::{Answer, Ask, Transport, TransportError};
use crate::wire_times::{TimedStream, WireTimes};
use crate::{PROTOCOL_HEADER, REPEATED_HEADER};
use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, TryStreamExt as _};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, Uri};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::Client as Pool;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use serde::Serialize;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tower_service::Service;

/// Prefix of each request's URI. The dialer decides the destination, so the name has no meaning.
const BASE: &str = "https://linerate";

/// Lifetime of idle connections, shorter than that of agents, so that no request uses a closing connection.
const IDLE: Duration = Duration::from_secs(60);

/// Header that only makes a request longer.
const PADDING: HeaderName = HeaderName::from_static("linerate-padding");

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

    /// Returns the opener of the connections.
    pub(crate) fn dialer(&self) -> &Dialer {
        &self.dialer
    }
}

impl Transport for Http {
    fn send<'a>(&'a self, ask: &'a Ask) -> BoxFuture<'a, Result<Answer, TransportError>> {
        Box::pin(async move {
            let uri = format!("{BASE}{}", ask.encoded_path());
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
            let response = pool.request(request).await?;
            let protocol = response.headers().get(PROTOCOL_HEADER);
            Ok(Answer {
                status: response.status().as_u16(),
                protocol: protocol.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()),
                times: response.extensions().get::<WireTimes>().expect("every connection keeps its times").clone(),
                pieces: response.into_body().into_data_stream().map_err(TransportError::from).boxed(),
            })
        })
    }

    fn renew(&self) {
        *self.pool.lock().unwrap_or_else(PoisonError::into_inner) = new_pool(&self.connector);
    }

    fn route(&self) -> Option<Route> {
        self.dialer.route()
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
    type Error = TransportError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, TransportError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
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
    type Error = TransportError;
    type Future = Ready<Result<TimedStream, TransportError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
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
pub(crate) fn json(value: &(impl Serialize + ?Sized)) -> Result<Bytes, TransportError> {
    Ok(serde_json::to_vec(value)?.into())
}
