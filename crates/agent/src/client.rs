//! The agent as its caller sees it.

use crate::api_error::{ApiError, ErrorKind};
use crate::sse::Events;
use crate::{AgentError, HalfStage, PROTOCOL, PROTOCOL_HEADER, Resolve, Start, copy, frames, pin};
use futures_util::{Stream, StreamExt as _};
use linerate_model::{
    Connect, CopyHalf, CopyHalfResult, CopyHalfStage, FrameHalf, FrameHalfResult, FrameTrial, FrameTrialResult,
    HalfResult, HalfSpec, Host, HostCounters, Join, Mac, PortInfo, Prepared, Progress, TrialId,
};
use linerate_units::Nanos;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Method, RequestBuilder, Response, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, VecDeque};
use std::error::Error as StdError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// A trial's result is waited for as long as the trial takes and this: stragglers and a busy host.
const FINISH_SLACK: Duration = Duration::from_secs(15);

/// The length assumed of a trial that another client prepared: the longest an agent allows by default.
const UNKNOWN_LENGTH: Duration = Duration::from_secs(600);

/// Agents send something this often while events are awaited, three times over.
const SILENCE: Duration = Duration::from_secs(15);

/// Shorter than agents keep idle connections, so that no request meets one that is being closed.
const IDLE: Duration = Duration::from_secs(60);

/// A connection to one agent. Clones share it.
#[derive(Debug, Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    http: reqwest::Client,
    base: Url,
    /// host:port, for messages.
    address: String,
    /// How long the trials prepared here take, delayed starts included.
    lengths: Mutex<BTreeMap<TrialId, Length>>,
}

/// How long a trial's steps may take.
#[derive(Debug, Clone, Copy)]
struct Length {
    /// Connecting, beyond what is usual.
    set_up: Duration,
    /// From the start to the result.
    length: Duration,
}

impl Client {
    /// Reaches the agent and makes sure that it is the one the join line means, that it accepts the token, and that
    /// both speak the same protocol.
    pub async fn connect(join: &Join) -> Result<Self, AgentError> {
        let address = join.address();
        let unusable = |error: &(dyn StdError + 'static)| AgentError::Unreachable {
            address: address.clone(),
            reason: cause(error),
        };
        let tls = pin::client_config(&join.fingerprint).map_err(|error| unusable(&error))?;
        let mut token = HeaderValue::try_from(format!("Bearer {}", join.token)).map_err(|error| unusable(&error))?;
        token.set_sensitive(true);
        let headers =
            HeaderMap::from_iter([(AUTHORIZATION, token), (PROTOCOL_HEADER.parse().expect("plain"), PROTOCOL.into())]);
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .default_headers(headers)
            .user_agent(concat!("linerate/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_idle_timeout(IDLE)
            .tcp_nodelay(true)
            .http1_only()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| unusable(&error))?;
        let base = Url::parse(&format!("https://{address}/v1/")).map_err(|error| unusable(&error))?;
        let client = Self { shared: Arc::new(Shared { http, base, address, lengths: Mutex::default() }) };
        match client.host().await {
            Ok(_) => Ok(client),
            // This is the first word with the agent, so it was not lost.
            Err(AgentError::Lost { address, reason, .. }) => Err(AgentError::Unreachable { address, reason }),
            Err(error) => Err(error),
        }
    }

    /// host:port of the agent, for messages.
    pub fn address(&self) -> &str {
        &self.shared.address
    }

    /// What the host is and what it can do.
    pub async fn host(&self) -> Result<Host, AgentError> {
        self.json(self.request(Method::GET, &["host"]), "describe its host").await
    }

    /// What the host has counted since it was started.
    pub async fn counters(&self) -> Result<HostCounters, AgentError> {
        self.json(self.request(Method::GET, &["counters"]), "tell its counters").await
    }

    /// Prepares the host's half of a trial.
    pub async fn prepare(&self, spec: &HalfSpec) -> Result<Prepared, AgentError> {
        let prepared = self.json(self.request(Method::POST, &["trials"]).json(spec), "prepare the trial").await?;
        let set_up = Duration::from(spec.workload.set_up());
        // What was made has to be removed again before there is a result.
        let length = Duration::from(spec.timing.warmup + spec.timing.measure) + set_up;
        self.lengths().insert(spec.id.clone(), Length { set_up, length });
        Ok(prepared)
    }

    /// Connects the half's openers to their listeners.
    pub async fn connect_trial(&self, id: &TrialId, connect: &Connect) -> Result<(), AgentError> {
        let set_up = self.lengths().get(id).map_or(Duration::ZERO, |length| length.set_up);
        self.post(id, "connect", connect, "connect the trial", REQUEST_TIMEOUT + set_up).await
    }

    /// Starts the half `delay` after the request arrives.
    pub async fn start(&self, id: &TrialId, delay: Nanos) -> Result<(), AgentError> {
        if let Some(length) = self.lengths().get_mut(id) {
            length.length += Duration::from(delay);
        }
        self.post(id, "start", &Start { delay }, "start the trial", REQUEST_TIMEOUT).await
    }

    /// Progress, about five times a second, until one that is `done`.
    pub async fn events(
        &self,
        id: &TrialId,
    ) -> Result<impl Stream<Item = Result<Progress, AgentError>> + Send + Unpin + use<>, AgentError> {
        let request = self.request(Method::GET, &["trials", &id.0, "events"]);
        self.follow(request, "tell its progress", |progress: &Progress| progress.done).await
    }

    /// Waits until the half is done, and fetches its result.
    pub async fn finish(&self, id: &TrialId) -> Result<HalfResult, AgentError> {
        let length = self.lengths().get(id).map_or(UNKNOWN_LENGTH, |length| length.length);
        let request = self.request(Method::POST, &["trials", &id.0, "finish"]).timeout(length + FINISH_SLACK);
        let result = self.json(request, "finish the trial").await;
        self.lengths().remove(id);
        result
    }

    /// Ends the trial, whatever its state. Fine if there is none.
    pub async fn abort(&self, id: &TrialId) -> Result<(), AgentError> {
        let set_up = self.lengths().remove(id).map_or(Duration::ZERO, |length| length.set_up);
        let request = self.request(Method::DELETE, &["trials", &id.0]).timeout(REQUEST_TIMEOUT + set_up);
        self.send(request, "abort the trial").await.map(|_| ())
    }

    /// What is known of the host's interfaces, for trials with raw frames.
    pub async fn ports(&self, interfaces: &[String]) -> Result<Vec<PortInfo>, AgentError> {
        self.json(self.request(Method::POST, &["ports"]).json(interfaces), "describe its ports").await
    }

    /// Asks a neighbour of one of the host's ports for its Ethernet address.
    pub async fn resolve(&self, ask: &Resolve) -> Result<Mac, AgentError> {
        self.json(self.request(Method::POST, &["resolve"]).json(ask), "ask a neighbour").await
    }

    /// Takes part in a trial with raw frames between ports of several hosts: how far the host's half is. Dropping the stream
    /// ends the half.
    pub async fn frame_half(
        &self,
        half: &FrameHalf,
    ) -> Result<impl Stream<Item = Result<HalfStage, AgentError>> + Send + Unpin + use<>, AgentError> {
        let request = self.request(Method::POST, &["frames", "halves"]).json(half);
        let client = self.clone();
        let stages = self.follow(request, "run the trial", HalfStage::is_last).await?;
        Ok(stages.map(move |stage| match stage? {
            HalfStage::Failed(error) => Err(client.refused(error)),
            stage => Ok(stage),
        }))
    }

    /// Tells the half that the ports of all hosts count: it sends `delay` after the request arrives.
    pub async fn start_half(&self, tag: u16, delay: Nanos) -> Result<(), AgentError> {
        let request = self.request(Method::POST, &["frames", "halves", &tag.to_string(), "start"]);
        let request = request.json(&Start { delay }).timeout(REQUEST_TIMEOUT);
        self.send(request, "start the trial").await.map(|_| ())
    }

    /// Tells the half that all hosts have sent, waits for the stragglers of `trial` with it, and fetches what it counted.
    pub async fn finish_half(&self, tag: u16, trial: &FrameTrial) -> Result<FrameHalfResult, AgentError> {
        let request = self.request(Method::POST, &["frames", "halves", &tag.to_string(), "finish"]);
        self.json(request.timeout(Duration::from(trial.settle) + FINISH_SLACK), "finish the trial").await
    }

    /// Takes part in a copy: how far the host's part is. Dropping the stream ends the part.
    pub async fn copy(
        &self,
        half: &CopyHalf,
    ) -> Result<impl Stream<Item = Result<CopyHalfStage, AgentError>> + Send + Unpin + use<>, AgentError> {
        let request = self.request(Method::POST, &["copies"]).json(half);
        let client = self.clone();
        let stages = self.follow(request, "copy", copy::is_last).await?;
        Ok(stages.map(move |stage| match stage? {
            CopyHalfStage::Failed { message } => {
                Err(AgentError::TrialFailed { address: client.shared.address.clone(), message })
            }
            stage => Ok(stage),
        }))
    }

    /// Tells the host's part of a copy that all hosts are ready: it begins `delay` after the request arrives.
    pub async fn start_copy(&self, id: &TrialId, delay: Nanos) -> Result<(), AgentError> {
        let request = self.request(Method::POST, &["copies", &id.0, "start"]);
        let request = request.json(&Start { delay }).timeout(REQUEST_TIMEOUT);
        self.send(request, "start the copy").await.map(|_| ())
    }

    /// Fetches what the host counted of a copy that is done.
    pub async fn finish_copy(&self, id: &TrialId) -> Result<CopyHalfResult, AgentError> {
        self.json(self.request(Method::POST, &["copies", &id.0, "finish"]), "finish the copy").await
    }

    /// Runs a trial with raw frames. Dropping the future ends the trial.
    pub async fn frames(&self, trial: &FrameTrial) -> Result<FrameTrialResult, AgentError> {
        let request = self.request(Method::POST, &["frames"]).json(trial).timeout(frames::longest(trial));
        self.json(request, "run the trial").await
    }

    fn request(&self, method: Method, path: &[&str]) -> RequestBuilder {
        let mut url = self.shared.base.clone();
        url.path_segments_mut().expect("an https URL has a path").pop_if_empty().extend(path);
        self.shared.http.request(method, url)
    }

    async fn post(
        &self,
        id: &TrialId,
        verb: &str,
        body: &impl Serialize,
        task: &'static str,
        timeout: Duration,
    ) -> Result<(), AgentError> {
        let request = self.request(Method::POST, &["trials", &id.0, verb]).json(body).timeout(timeout);
        self.send(request, task).await.map(|_| ())
    }

    /// Sends a request and reads the events it is answered with, until one that is the last.
    async fn follow<T: DeserializeOwned + Send + 'static>(
        &self,
        request: RequestBuilder,
        task: &'static str,
        is_last: fn(&T) -> bool,
    ) -> Result<impl Stream<Item = Result<T, AgentError>> + Send + Unpin + use<T>, AgentError> {
        // No limit on the whole, which takes as long as the trial; each piece has its own below.
        let response = tokio::time::timeout(REQUEST_TIMEOUT, self.send(request, task))
            .await
            .map_err(|_| self.lost(task, format!("no answer for {} s", REQUEST_TIMEOUT.as_secs())))??;
        let following = Following {
            client: self.clone(),
            pieces: response.bytes_stream().boxed(),
            events: Events::default(),
            ready: VecDeque::new(),
            ended: false,
        };
        Ok(futures_util::stream::unfold(following, move |mut following| async move {
            let next = following.next(task).await?;
            following.ended = next.as_ref().map_or(true, is_last);
            Some((next, following))
        })
        .boxed())
    }

    /// Sends a request and reads the answer. The request's own time limit comes first.
    async fn json<T: DeserializeOwned>(&self, request: RequestBuilder, task: &'static str) -> Result<T, AgentError> {
        let (http, request) = request.build_split();
        let mut request = request.map_err(|error| self.lost(task, cause(&error)))?;
        request.timeout_mut().get_or_insert(REQUEST_TIMEOUT);
        let response = self.send(RequestBuilder::from_parts(http, request), task).await?;
        let bytes = response.bytes().await.map_err(|error| self.broken(task, &error))?;
        serde_json::from_slice(&bytes).map_err(|error| self.not_an_agent(format!("its answer cannot be read: {error}")))
    }

    /// Sends a request; an answer that is no success becomes its error.
    async fn send(&self, request: RequestBuilder, task: &'static str) -> Result<Response, AgentError> {
        let response = request.send().await.map_err(|error| self.broken(task, &error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let bytes = response.bytes().await.map_err(|error| self.broken(task, &error))?;
        match serde_json::from_slice(&bytes) {
            Ok(error) => Err(self.refused(error)),
            Err(_) => Err(self.not_an_agent(format!("it answered with HTTP status {status}"))),
        }
    }

    /// The agent's own word for what went wrong, as an error here.
    fn refused(&self, error: ApiError) -> AgentError {
        let (address, message) = (self.shared.address.clone(), error.message);
        match error.error {
            ErrorKind::Unauthorized => AgentError::WrongToken { address },
            ErrorKind::Protocol => AgentError::WrongProtocol { address, message },
            ErrorKind::Limit => AgentError::Refused { address, message },
            ErrorKind::TrialFailed => AgentError::TrialFailed { address, message },
            ErrorKind::NotFound
            | ErrorKind::Method
            | ErrorKind::Conflict
            | ErrorKind::BadRequest
            | ErrorKind::TooLarge
            | ErrorKind::Aborted => AgentError::Rejected { address, message },
        }
    }

    /// A connection that could not be made or that broke.
    fn broken(&self, task: &'static str, error: &reqwest::Error) -> AgentError {
        let address = self.shared.address.clone();
        match find::<rustls::Error>(error) {
            Some(tls) if pin::is_wrong_fingerprint(tls) => AgentError::WrongFingerprint { address },
            Some(tls) => self.not_an_agent(format!("TLS: {tls}")),
            None if error.is_timeout() => self.lost(task, "no answer in time".to_owned()),
            None => self.lost(task, cause(error)),
        }
    }

    fn lost(&self, task: &'static str, reason: String) -> AgentError {
        AgentError::Lost { address: self.shared.address.clone(), task, reason }
    }

    fn not_an_agent(&self, reason: String) -> AgentError {
        AgentError::NotAnAgent { address: self.shared.address.clone(), reason }
    }

    fn lengths(&self) -> MutexGuard<'_, BTreeMap<TrialId, Length>> {
        self.shared.lengths.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An event stream being read.
struct Following<S> {
    client: Client,
    pieces: S,
    events: Events,
    ready: VecDeque<String>,
    ended: bool,
}

impl<S: Stream<Item = reqwest::Result<impl AsRef<[u8]>>> + Unpin> Following<S> {
    /// The next event; none after the last.
    async fn next<T: DeserializeOwned>(&mut self, task: &'static str) -> Option<Result<T, AgentError>> {
        if self.ended {
            return None;
        }
        loop {
            if let Some(data) = self.ready.pop_front() {
                let read = serde_json::from_str(&data);
                return Some(read.map_err(|error| self.client.not_an_agent(format!("its events: {error}"))));
            }
            let piece = tokio::time::timeout(SILENCE, self.pieces.next()).await;
            let pushed = match piece {
                Ok(Some(Ok(piece))) => self.events.push(piece.as_ref()),
                Ok(Some(Err(error))) => return Some(Err(self.client.broken(task, &error))),
                Ok(None) => return Some(Err(self.client.lost(task, "it closed the connection".to_owned()))),
                Err(_) => {
                    let reason = format!("nothing heard for {} s", SILENCE.as_secs());
                    return Some(Err(self.client.lost(task, reason)));
                }
            };
            match pushed {
                Ok(events) => self.ready.extend(events),
                Err(error) => return Some(Err(self.client.not_an_agent(error.to_string()))),
            }
        }
    }
}

/// An error and its causes, outermost first. An [`std::io::Error`] hides the error it was made of from `source`.
fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| {
        let hidden = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        hidden.map(|hidden| hidden as &(dyn StdError + 'static)).or_else(|| error.source())
    })
}

/// The first cause of type `T`.
fn find<'a, T: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a T> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

/// The innermost cause in words: what the system said.
fn cause(error: &(dyn StdError + 'static)) -> String {
    causes(error).last().map_or_else(String::new, ToString::to_string)
}
