//! Client of an agent's API.

use crate::bus::BusTransport;
use crate::dial::{Dialer, Route, Unreached};
use crate::http::{Http, json};
use crate::pin::Pinned;
use crate::retries::{Retries, Unanswered};
use crate::sse::Events;
use crate::time_limit::within;
use crate::transport::{Answer, Ask, Pieces, Transport, TransportError};
use crate::{
    AgentError, ApiError, ClockReading, Closed, ErrorKind, PROTOCOL, PROTOCOL_HEADER, Resolve, SessionHandle,
    is_neighbour, pin,
};
use futures_util::StreamExt as _;
use hyper::Method;
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue, USER_AGENT};
use linerate_bus::{AgentName, Bus, CallError};
use linerate_model::{
    AgentUrl, Assignment, ClockExchange, Host, HostCounters, HostCounts, Mac, Order, PortInfo, SessionId, Stage,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::VecDeque;
use std::error::Error as StdError;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Longest wait for the beginning of an answer, and between two parts of it.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Time for which an unanswered request is repeated. Agents keep a session without followers for 40 s (`Timeouts` of
/// the agent), so sessions survive a cut of 30 s.
const RETRY_FOR: Duration = Duration::from_secs(40);
/// Time during which a request for counts is repeated. Agents keep them for 120 s.
const RETRY_COUNTS_FOR: Duration = Duration::from_secs(110);
/// Time during which an order to all hosts is repeated. A later order would shift their windows apart.
const RETRY_TOGETHER_FOR: Duration = Duration::from_secs(1);

/// Time without an answer to the first request after which the client checks for a loss of large packets.
const STALL: Duration = Duration::from_secs(4);

/// Padding of the first request in bytes, so that it does not fit into one Ethernet packet.
const LARGE: usize = 1_500;

/// Longest accepted answer in bytes. The counts of a session with a full series are a tenth of it.
const LONGEST_ANSWER: usize = 64 << 20;

/// Time limit for ending a session and removing its objects.
const CLOSING: Duration = Duration::from_secs(3_600);

/// Longest silence while waiting for events. Agents send something three times as often.
const SILENCE: Duration = Duration::from_secs(15);

/// Client of one agent. Clones share its connections.
#[derive(Debug, Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    transport: Arc<dyn Transport>,
    /// Address as host:port, or the name in a fleet, for messages.
    address: String,
    /// Whether the agent has answered before. Until then no request is repeated.
    was_reached: AtomicBool,
    /// Description of the host in the first answer. Unset for a client without a token.
    first_description: OnceLock<Host>,
}

impl Shared {
    fn new(transport: Arc<dyn Transport>, address: String) -> Self {
        Self { transport, address, was_reached: AtomicBool::new(false), first_description: OnceLock::new() }
    }
}

/// Failure of an attempt at a request.
enum Failed {
    /// The connection could not be made, or it broke.
    Broken(TransportError),
    /// No answer came in time.
    Late(String),
    /// Any failure that another attempt would repeat.
    Final(AgentError),
}

impl Failed {
    /// Returns the kind of missing answer. Returns `None` if there was an answer.
    fn unanswered(&self) -> Option<Unanswered> {
        match self {
            Self::Broken(error) if find::<rustls::Error>(&**error).is_some() => None,
            Self::Broken(error) => match find::<CallError>(&**error) {
                Some(CallError::NoAgent) => Some(Unanswered::Absent),
                Some(CallError::TooLong { .. } | CallError::Bad(_)) => None,
                Some(CallError::Down | CallError::Lost) => Some(Unanswered::Silent),
                None => {
                    let is_refused = find::<Unreached>(&**error).is_some_and(Unreached::is_refused);
                    Some(if is_refused { Unanswered::Refused } else { Unanswered::Silent })
                }
            },
            Self::Late(_) => Some(Unanswered::Silent),
            Self::Final(_) => None,
        }
    }
}

impl Client {
    /// Connects to the agent and checks its identity, that it accepts the token, and that both speak the same protocol.
    ///
    /// # Errors
    /// The address cannot be reached, is not this agent, does not accept the token, or speaks another protocol.
    pub async fn connect(url: &AgentUrl) -> Result<Self, AgentError> {
        let (client, http) = Self::new(url, &Pinned::known(&url.fingerprint), Some(&url.token))?;
        // An agent that has never answered is unreachable, not lost.
        let host = client.reach(&http, &url.host).await.map_err(not_reached)?;
        client.shared.first_description.get_or_init(|| host);
        Ok(client)
    }

    /// Reaches the agent `agent` by the NATS of its fleet, and checks that both speak neighbouring protocols. `fence` is
    /// that of the scheduler in whose name sessions are opened.
    ///
    /// # Errors
    /// No agent of this name is connected to the fleet, or it speaks another protocol.
    pub async fn over_bus(bus: Bus, agent: AgentName, fence: Option<u64>) -> Result<Self, AgentError> {
        let address = format!("fleet:{agent}");
        let fleet = bus.subjects().fleet().to_string();
        let transport = Arc::new(BusTransport::new(bus, agent, fence));
        let client = Self { shared: Arc::new(Shared::new(transport, address)) };
        let host = client.host().await.map_err(|error| match error {
            AgentError::Lost { address, reason, .. } => AgentError::Unreachable {
                address,
                reason: format!(
                    "{reason}; `linerate fleet list` shows the agents of the fleet {fleet}: check the name, and that \
                     `linerate serve --fleet` runs on that host"
                ),
            },
            error => error,
        })?;
        client.shared.first_description.get_or_init(|| host);
        Ok(client)
    }

    /// Creates a client without a token, for the agent with the pinned certificate at the host and port of `url`.
    ///
    /// # Errors
    /// The agent cannot be reached, or TLS is not available.
    pub(crate) async fn unadmitted(url: &AgentUrl, pinned: &Pinned) -> Result<Self, AgentError> {
        let (client, http) = Self::new(url, pinned, None)?;
        http.dialer().prepare().await.map_err(|error| client.unreachable(error.to_string()))?;
        Ok(client)
    }

    fn new(url: &AgentUrl, pinned: &Pinned, token: Option<&str>) -> Result<(Self, Arc<Http>), AgentError> {
        let address = url.address();
        let name = HeaderValue::from_static(concat!("linerate/", env!("CARGO_PKG_VERSION")));
        let protocol = PROTOCOL_HEADER.parse().expect("plain");
        let mut headers = HeaderMap::from_iter([(protocol, PROTOCOL.into()), (USER_AGENT, name)]);
        if let Some(token) = token {
            let mut token =
                HeaderValue::try_from(format!("Bearer {token}")).map_err(|error| unusable(&address, &error))?;
            token.set_sensitive(true);
            headers.insert(AUTHORIZATION, token);
        }
        let dialer = Dialer::new(url.host.clone(), url.port);
        let http = Arc::new(Http::new(dialer, pinned, headers).map_err(|error| unusable(&address, &error))?);
        let transport = Arc::clone(&http) as Arc<dyn Transport>;
        let client = Self { shared: Arc::new(Shared::new(transport, address)) };
        Ok((client, http))
    }

    /// Waits for the description of the host, on a connection with segments that fit the path. Request and answer are longer
    /// than a packet.
    async fn reach(&self, http: &Http, host: &str) -> Result<Host, AgentError> {
        let ask = Ask { padding: LARGE, ..Ask::new(Method::GET, &["host"], "describe its host") };
        loop {
            let watched = http.dialer().prepare().await.map_err(|error| self.unreachable(error.to_string()))?;
            let mut request = pin!(self.json::<Host>(ask.clone(), RETRY_FOR));
            let answer = within(STALL, request.as_mut()).await;
            // An agent closes a connection with a stalled handshake.
            let has_stalled = answer.as_ref().is_none_or(|answer| matches!(answer, Err(AgentError::Lost { .. })));
            if !has_stalled || !watched.loses_large_segments() {
                return match answer {
                    Some(answer) => answer,
                    None => request.await,
                };
            }
            if !http.dialer().limit_segments() {
                return Err(self.unreachable(format!(
                    "TCP connects, but packets of more than 552 bytes are lost on the way, and nothing says so (`tracepath -n {}` shows \
                     where); a tunnel or firewall there drops them",
                    host
                )));
            }
            http.renew();
        }
    }

    /// Returns the route of connections to the agent. Returns `None` before the first connection, and for an agent that
    /// is reached by its fleet.
    pub fn route(&self) -> Option<Route> {
        self.shared.transport.route()
    }

    /// Posts a request to an agent that has not answered yet.
    ///
    /// # Errors
    /// The agent cannot be reached, or the request fails.
    pub(crate) async fn first<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &(impl Serialize + ?Sized),
        task: &'static str,
    ) -> Result<T, AgentError> {
        self.post(path, body, task).await.map_err(not_reached)
    }

    /// Returns host:port of the agent, or its name in a fleet, for messages.
    pub fn address(&self) -> &str {
        &self.shared.address
    }

    /// Returns the description of the host and its capabilities as of the time of connecting. `None` for a client without a
    /// token.
    pub fn first_description(&self) -> Option<&Host> {
        self.shared.first_description.get()
    }

    /// Asks for the description of the host and its capabilities.
    ///
    /// # Errors
    /// The agent is lost, or cannot describe its host.
    pub async fn host(&self) -> Result<Host, AgentError> {
        self.get(&["host"], "describe its host").await
    }

    /// Returns the counters of the host since it was started.
    ///
    /// # Errors
    /// The agent is lost, or cannot read its counters.
    pub async fn counters(&self) -> Result<HostCounters, AgentError> {
        self.get(&["counters"], "tell its counters").await
    }

    /// Exchanges times with the agent. They do not include the set-up of a connection.
    ///
    /// # Errors
    /// The agent is lost.
    pub async fn clock(&self) -> Result<ClockExchange, AgentError> {
        let ask = Ask::new(Method::GET, &["clock"], "tell its clock");
        let (bytes, origin_ns, destination_ns) = self
            .repeated(&ask, RETRY_FOR, async |answer| {
                let times = answer.times.clone();
                let bytes = read(answer).await?;
                // A connection carries nothing else until the answer is read, so these are the times of this exchange.
                Ok((bytes, times.wrote(), times.read()))
            })
            .await?;
        let ClockReading { receive_ns, transmit_ns } = self.parse(&bytes)?;
        Ok(ClockExchange { origin_ns, receive_ns, transmit_ns, destination_ns })
    }

    /// Checks that the agent answers now. An agent that is away for a second fails the check, although other requests
    /// would wait for it.
    ///
    /// # Errors
    /// The agent does not answer.
    pub async fn check(&self) -> Result<(), AgentError> {
        let ask = Ask::new(Method::GET, &["clock"], "go on with the trial");
        self.repeated(&ask, RETRY_TOGETHER_FOR, async |answer| read(answer).await).await.map(drop)
    }

    /// Returns the properties of the host's interfaces, for tasks with raw frames.
    ///
    /// # Errors
    /// The agent is lost, allows no raw frames, or has no such interface.
    pub async fn ports(&self, interfaces: &[String]) -> Result<Vec<PortInfo>, AgentError> {
        self.post(&["ports"], interfaces, "describe its ports").await
    }

    /// Asks a neighbour of one of the host's ports for its Ethernet address.
    ///
    /// # Errors
    /// The agent is lost, allows no raw frames, or the neighbour does not answer.
    pub async fn resolve(&self, ask: &Resolve) -> Result<Mac, AgentError> {
        self.post(&["resolve"], ask, "ask a neighbour").await
    }

    /// Opens a session, which begins at once. The handle reports its stages.
    ///
    /// # Errors
    /// The agent is lost, its limits forbid the assignment, or the assignment is invalid.
    pub async fn open(&self, assignment: &Assignment) -> Result<SessionHandle, AgentError> {
        let mut ask = Ask::new(Method::POST, &["sessions"], "do its part of the trial");
        ask.body = Some(self.body(assignment, ask.task)?);
        let following = Following::begin(self.clone(), ask).await?;
        let stages = futures_util::stream::unfold(following, |mut following| async move {
            let next = following.next().await?;
            following.ended = next.as_ref().map_or(true, Stage::is_last);
            Some((next, following))
        });
        Ok(SessionHandle::new(assignment.id.clone(), stages.boxed()))
    }

    /// Orders the next step of a session. The agent answers at once; the session's stages report the result.
    ///
    /// # Errors
    /// The agent is lost, or the session is at another stage.
    pub async fn order(&self, session: &SessionId, order: &Order) -> Result<(), AgentError> {
        let mut ask = Ask::new(Method::POST, &["sessions", &session.0, "order"], "go on with the trial");
        ask.body = Some(self.body(order, ask.task)?);
        let retries = match order {
            Order::Start { .. } | Order::Open { .. } => RETRY_TOGETHER_FOR,
            Order::Connect(_) | Order::Drain => RETRY_FOR,
        };
        self.repeated(&ask, retries, async |answer| read(answer).await).await.map(drop)
    }

    /// Fetches the counts of a finished session.
    ///
    /// # Errors
    /// The agent is lost, the session failed or is not done, or its counts were dropped.
    pub async fn counts(&self, session: &SessionId) -> Result<HostCounts, AgentError> {
        let ask = Ask::new(Method::GET, &["sessions", &session.0, "counts"], "hand over its counts");
        self.json(ask, RETRY_COUNTS_FOR).await
    }

    /// Ends a session at any stage, waits until it has released everything, and returns the objects that could not be
    /// removed.
    ///
    /// Succeeds if there is no such session.
    ///
    /// # Errors
    /// The agent is lost, or the session does not end.
    pub async fn close(&self, session: &SessionId) -> Result<Vec<String>, AgentError> {
        let since = Instant::now();
        while since.elapsed() < CLOSING {
            // The agent answers within seconds, and delays the answer "not yet".
            let ask = Ask::new(Method::DELETE, &["sessions", &session.0], "end the trial");
            let closed: Closed = self.json(ask, RETRY_FOR).await?;
            if closed.over {
                return Ok(closed.remains);
            }
        }
        let message = format!("the session `{session}` does not end; restart the agent");
        Err(AgentError::Failed { address: self.shared.address.clone(), message })
    }

    async fn get<T: DeserializeOwned>(&self, path: &[&str], task: &'static str) -> Result<T, AgentError> {
        self.json(Ask::new(Method::GET, path, task), RETRY_FOR).await
    }

    async fn post<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &(impl Serialize + ?Sized),
        task: &'static str,
    ) -> Result<T, AgentError> {
        let mut ask = Ask::new(Method::POST, path, task);
        ask.body = Some(self.body(body, task)?);
        self.json(ask, RETRY_FOR).await
    }

    fn body(&self, value: &(impl Serialize + ?Sized), task: &'static str) -> Result<Bytes, AgentError> {
        json(value).map_err(|error| self.lost(task, error.to_string()))
    }

    /// Sends a request and reads the answer.
    async fn json<T: DeserializeOwned>(&self, ask: Ask, retries: Duration) -> Result<T, AgentError> {
        let bytes = self.repeated(&ask, retries, async |answer| read(answer).await).await?;
        self.parse(&bytes)
    }

    /// Sends a request that may be repeated, and passes the answer to `take`. An unanswered request is sent again for
    /// `retries`, on a new connection.
    async fn repeated<T>(
        &self,
        ask: &Ask,
        retries: Duration,
        take: impl AsyncFn(Answer) -> Result<T, Failed>,
    ) -> Result<T, AgentError> {
        let mut retries = Retries::new(retries, Instant::now());
        let mut ask = ask.clone();
        loop {
            let attempt = async { take(self.send(&ask).await?).await };
            let failed = match attempt.await {
                Ok(value) => return Ok(value),
                Err(failed) => failed,
            };
            let was_reached = self.shared.was_reached.load(Ordering::Relaxed);
            let unanswered = failed.unanswered().filter(|_| was_reached);
            match unanswered.and_then(|why| retries.pause(why, Instant::now())) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(self.error(ask.task, failed)),
            }
            ask.is_repeated = true;
            self.shared.transport.renew();
        }
    }

    fn parse<T: DeserializeOwned>(&self, answer: &[u8]) -> Result<T, AgentError> {
        let value = match std::str::from_utf8(answer) {
            Ok(text) => serde_json::from_str(text).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        value.map_err(|error| self.not_an_agent(format!("its answer cannot be read: {error}")))
    }

    /// Sends a request once. An error answer becomes an error.
    async fn send(&self, ask: &Ask) -> Result<Answer, Failed> {
        let answer = self.shared.transport.send(ask);
        let answer = within(REQUEST_TIMEOUT, answer).await.ok_or_else(|| Failed::Late(no_answer()))?;
        let answer = answer.map_err(Failed::Broken)?;
        self.shared.was_reached.store(true, Ordering::Relaxed);
        // All versions of the protocol have this header.
        let is_stranger = |theirs: &&String| !theirs.parse().is_ok_and(is_neighbour);
        if let Some(theirs) = answer.protocol.as_ref().filter(is_stranger) {
            let theirs = theirs.chars().filter(char::is_ascii_graphic).take(20).collect();
            return Err(Failed::Final(AgentError::WrongProtocol { address: self.shared.address.clone(), theirs }));
        }
        let status = answer.status;
        if (200..300).contains(&status) {
            return Ok(answer);
        }
        let bytes = read(answer).await?;
        Err(Failed::Final(match serde_json::from_slice(&bytes) {
            Ok(error) => self.refused(error),
            Err(_) => self.not_an_agent(format!("it answered with HTTP status {status}")),
        }))
    }

    /// Returns why a request failed, as an error of this agent.
    fn error(&self, task: &'static str, failed: Failed) -> AgentError {
        match failed {
            Failed::Broken(error) => self.broken(task, error),
            Failed::Late(reason) => self.lost(task, reason),
            Failed::Final(error) => error,
        }
    }

    /// Converts an error answer of the agent.
    fn refused(&self, error: ApiError) -> AgentError {
        let address = self.shared.address.clone();
        let message = error.message;
        match error.error {
            ErrorKind::Unauthorized => AgentError::WrongToken { address, message },
            ErrorKind::Limit => AgentError::Refused { address, message },
            ErrorKind::Failed => AgentError::Failed { address, message },
            ErrorKind::Protocol
            | ErrorKind::NotFound
            | ErrorKind::Method
            | ErrorKind::Conflict
            | ErrorKind::BadRequest
            | ErrorKind::TooLarge => AgentError::Rejected { address, message },
        }
    }

    /// Returns the error of a connection that could not be made or that broke.
    fn broken(&self, task: &'static str, error: TransportError) -> AgentError {
        let address = self.shared.address.clone();
        if let Some(unreached) = find::<Unreached>(&*error) {
            return self.lost(task, unreached.to_string());
        }
        if let Some(failure) = find::<CallError>(&*error) {
            return match failure {
                CallError::Bad(_) => self.not_an_agent(failure.to_string()),
                _ => self.lost(task, failure.to_string()),
            };
        }
        match find::<rustls::Error>(&*error) {
            Some(tls) if pin::is_wrong_fingerprint(tls) => AgentError::WrongFingerprint { address },
            Some(tls) => self.not_an_agent(pin::what_is_wrong(tls).to_owned()),
            None => self.lost(task, self.how_broken(find::<std::io::Error>(&*error).map(std::io::Error::kind))),
        }
    }

    /// Describes the failure of a connection to the agent.
    fn how_broken(&self, system: Option<std::io::ErrorKind>) -> String {
        use std::io::ErrorKind::{ConnectionReset, HostUnreachable, NetworkUnreachable, TimedOut};
        let agent = self.route().map_or_else(|| self.shared.address.clone(), |route| route.agent.to_string());
        match system {
            Some(TimedOut) => format!("nothing acknowledges what is sent by TCP to {agent}"),
            Some(HostUnreachable | NetworkUnreachable) => format!("there is no way to {agent} any more"),
            Some(ConnectionReset) => format!("the TCP connection to {agent} was reset"),
            _ => format!("the TCP connection to {agent} was closed"),
        }
    }

    fn unreachable(&self, reason: String) -> AgentError {
        AgentError::Unreachable { address: self.shared.address.clone(), reason }
    }

    fn lost(&self, task: &'static str, reason: String) -> AgentError {
        AgentError::Lost { address: self.shared.address.clone(), task, reason }
    }

    fn not_an_agent(&self, reason: String) -> AgentError {
        AgentError::NotAnAgent { address: self.shared.address.clone(), reason }
    }
}

/// Turns the loss of an agent that has never answered into an unreachable agent.
fn not_reached(error: AgentError) -> AgentError {
    const REMEDY: &str = "check that an agent runs there (`linerate serve`), that it is not stopped or overloaded, and that its \
                          `--allow-peer`, if any, lists this host";
    match error {
        AgentError::Lost { address, reason, .. } => {
            AgentError::Unreachable { address, reason: format!("TCP connects, but {reason}; {REMEDY}") }
        }
        error => error,
    }
}

/// Describes a missing answer.
fn no_answer() -> String {
    format!("there is no answer for {} s", REQUEST_TIMEOUT.as_secs())
}

/// Reads the body of an answer.
async fn read(answer: Answer) -> Result<Bytes, Failed> {
    whole(answer.pieces, LONGEST_ANSWER, REQUEST_TIMEOUT).await
}

/// Reads a body to its end. A slow path may take any time as long as pieces arrive.
///
/// # Errors
/// The body breaks, nothing arrived for `silence`, or it is longer than `limit` bytes, which protects against a hostile
/// agent.
async fn whole(mut pieces: Pieces, limit: usize, silence: Duration) -> Result<Bytes, Failed> {
    let mut bytes = Vec::new();
    while let Some(piece) = within(silence, pieces.next()).await.ok_or_else(|| Failed::Late(no_answer()))? {
        let piece = piece.map_err(Failed::Broken)?;
        if bytes.len() + piece.len() > limit {
            return Err(Failed::Broken(format!("the answer is longer than {limit} bytes").into()));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes.into())
}

/// Stages of a session, read on one connection after another.
struct Following {
    client: Client,
    /// Request that opens the session, and continues it when it is repeated.
    ask: Ask,
    pieces: Pieces,
    events: Events,
    ready: VecDeque<String>,
    /// Whether the session has been ready, after which it prepares nothing any more.
    was_ready: bool,
    ended: bool,
}

impl Following {
    async fn begin(client: Client, ask: Ask) -> Result<Self, AgentError> {
        let pieces = follow(&client, &ask).await?;
        Ok(Self {
            client,
            ask,
            pieces,
            events: Events::default(),
            ready: VecDeque::new(),
            was_ready: false,
            ended: false,
        })
    }

    /// Returns the next stage, or `None` after the last.
    async fn next(&mut self) -> Option<Result<Stage, AgentError>> {
        if self.ended {
            return None;
        }
        loop {
            if let Some(data) = self.ready.pop_front() {
                return Some(self.stage(&data));
            }
            let failed = match within(SILENCE, self.pieces.next()).await {
                Some(Some(Ok(piece))) => {
                    match self.events.push(&piece) {
                        Ok(events) => self.ready.extend(events),
                        Err(error) => return Some(Err(self.client.not_an_agent(error.to_string()))),
                    }
                    continue;
                }
                Some(Some(Err(error))) => Failed::Broken(error),
                Some(None) => Failed::Late("it closed the connection".to_owned()),
                None => Failed::Late(format!("nothing heard for {} s", SILENCE.as_secs())),
            };
            if failed.unanswered().is_none() {
                return Some(Err(self.client.error(self.ask.task, failed)));
            }
            self.ask.is_repeated = true;
            self.client.shared.transport.renew();
            match follow(&self.client, &self.ask).await {
                Ok(pieces) => {
                    self.pieces = pieces;
                    self.events = Events::default();
                }
                // The first reason is more specific than that of the later attempts.
                Err(AgentError::Lost { .. }) => return Some(Err(self.client.error(self.ask.task, failed))),
                Err(error) => return Some(Err(error)),
            }
        }
    }

    fn stage(&mut self, data: &str) -> Result<Stage, AgentError> {
        let stage =
            serde_json::from_str(data).map_err(|error| self.client.not_an_agent(format!("its events: {error}")))?;
        let prepares = matches!(stage, Stage::Preparing { .. } | Stage::Listening { .. });
        if self.was_ready && prepares {
            return Err(self.client.lost(self.ask.task, "it was started again, and has lost the session".to_owned()));
        }
        self.was_ready |= !prepares;
        Ok(stage)
    }
}

/// Opens or continues the session of `ask`. Returns its events.
async fn follow(client: &Client, ask: &Ask) -> Result<Pieces, AgentError> {
    client.repeated(ask, RETRY_FOR, async |answer| Ok(answer.pieces)).await
}

fn unusable(address: &str, error: &(dyn StdError + 'static)) -> AgentError {
    AgentError::Unreachable { address: address.to_owned(), reason: cause(error) }
}

/// Iterates over an error and its causes, outermost first. `source` of an [`std::io::Error`] skips the inner error.
fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| {
        let hidden = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        hidden.map(|hidden| hidden as &(dyn StdError + 'static)).or_else(|| error.source())
    })
}

/// Returns the first cause of type `T`.
fn find<'a, T: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a T> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

/// Returns the text of the innermost cause, which is the error of the system.
fn cause(error: &(dyn StdError + 'static)) -> String {
    causes(error).last().map_or_else(String::new, ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;

    #[tokio::test]
    async fn length_of_an_answer_is_limited() {
        let answer = Bytes::from_static(b"ten bytes.");
        for (limit, expected) in [(10, Some(answer.clone())), (9, None)] {
            let pieces = stream::iter([Ok(answer.slice(..4)), Ok(answer.slice(4..))]).boxed();
            assert_eq!(whole(pieces, limit, REQUEST_TIMEOUT).await.ok(), expected, "{limit}");
        }
    }
}
