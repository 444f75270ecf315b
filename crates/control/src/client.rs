//! The agent as its caller sees it.

use crate::http::{Http, HttpError, json};
use crate::pin::Pinned;
use crate::sse::Events;
use crate::time_limit::within;
use crate::wire_times::WireTimes;
use crate::{
    AgentError, ApiError, ClockReading, Closed, ErrorKind, PROTOCOL, PROTOCOL_HEADER, Resolve, SessionHandle, pin,
};
use futures_util::{Stream, StreamExt as _};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue, USER_AGENT};
use hyper::{Method, Response};
use linerate_model::{
    AgentUrl, Assignment, ClockExchange, Host, HostCounters, HostCounts, Mac, Order, PortInfo, SessionId, Stage,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::VecDeque;
use std::error::Error as StdError;
use std::sync::Arc;
use std::time::{Duration, Instant};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of the longest answer that is read. The counts of a session with a full series are a tenth of it.
const LONGEST_ANSWER: usize = 64 << 20;

/// How long an agent may take to end a session and remove what it made.
const CLOSING: Duration = Duration::from_secs(3_600);

/// Agents send something this often while events are awaited, three times over.
const SILENCE: Duration = Duration::from_secs(15);

/// Why an agent counts as lost that did not answer.
const NOT_IN_TIME: &str = "no answer in time";

/// A connection to one agent. Clones share it.
#[derive(Debug, Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    http: Http,
    /// host:port, for messages.
    address: String,
}

impl Client {
    /// Reaches the agent and makes sure that it is the one the URL means, that it accepts the token, and that both speak the
    /// same protocol.
    ///
    /// # Errors
    /// It cannot be reached, is no agent or another one, does not accept the token, or speaks another protocol.
    pub async fn connect(url: &AgentUrl) -> Result<Self, AgentError> {
        let client = Self::new(url.address(), &Pinned::known(&url.fingerprint), Some(&url.token))?;
        // It had not answered before, so it was not lost.
        client.host().await.map_err(not_reached)?;
        Ok(client)
    }

    /// A client without a token, for the agent that shows the pinned certificate at `address`.
    ///
    /// # Errors
    /// TLS is not to be had.
    pub(crate) fn unadmitted(address: &str, pinned: &Pinned) -> Result<Self, AgentError> {
        Self::new(address.to_owned(), pinned, None)
    }

    fn new(address: String, pinned: &Pinned, token: Option<&str>) -> Result<Self, AgentError> {
        let unusable = |error: &(dyn StdError + 'static)| AgentError::Unreachable {
            address: address.clone(),
            reason: cause(error),
        };
        let name = HeaderValue::from_static(concat!("linerate/", env!("CARGO_PKG_VERSION")));
        let protocol = PROTOCOL_HEADER.parse().expect("plain");
        let mut headers = HeaderMap::from_iter([(protocol, PROTOCOL.into()), (USER_AGENT, name)]);
        if let Some(token) = token {
            let mut token = HeaderValue::try_from(format!("Bearer {token}")).map_err(|error| unusable(&error))?;
            token.set_sensitive(true);
            headers.insert(AUTHORIZATION, token);
        }
        let http = Http::new(format!("https://{address}/v1"), pinned, headers);
        let http = http.map_err(|error| unusable(&error))?;
        Ok(Self { shared: Arc::new(Shared { http, address }) })
    }

    /// Posts a request to an agent that may not be there.
    ///
    /// # Errors
    /// It cannot be reached, or does not do as asked.
    pub(crate) async fn first<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &(impl Serialize + ?Sized),
        task: &'static str,
    ) -> Result<T, AgentError> {
        self.post(path, body, task).await.map_err(not_reached)
    }

    /// host:port of the agent, for messages.
    pub fn address(&self) -> &str {
        &self.shared.address
    }

    /// What the host is and what it can do.
    ///
    /// # Errors
    /// The agent is lost, or cannot describe its host.
    pub async fn host(&self) -> Result<Host, AgentError> {
        self.get(&["host"], "describe its host").await
    }

    /// What the host has counted since it was started.
    ///
    /// # Errors
    /// The agent is lost, or cannot read its counters.
    pub async fn counters(&self) -> Result<HostCounters, AgentError> {
        self.get(&["counters"], "tell its counters").await
    }

    /// Exchanges times with the agent. Setting up a connection is not in them.
    ///
    /// # Errors
    /// The agent is lost.
    pub async fn clock(&self) -> Result<ClockExchange, AgentError> {
        const TASK: &str = "tell its clock";
        let answered = async {
            let response = self.send(Method::GET, &["clock"], None, TASK).await?;
            let times = response.extensions().get::<WireTimes>().expect("every connection keeps its times").clone();
            let bytes = self.read(response, TASK).await?;
            // Nothing else goes over a connection until the answer is read, so these are the times of this exchange.
            Ok((bytes, times.wrote(), times.read()))
        };
        let (bytes, origin_ns, destination_ns) = self.in_time(answered, TASK).await?;
        let ClockReading { receive_ns, transmit_ns } = self.parse(&bytes)?;
        Ok(ClockExchange { origin_ns, receive_ns, transmit_ns, destination_ns })
    }

    /// What is known of the host's interfaces, for tasks with raw frames.
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

    /// Opens a session. It begins at once; its stages are told by the handle.
    ///
    /// # Errors
    /// The agent is lost, its limits forbid the assignment, or it cannot be meant.
    pub async fn open(&self, assignment: &Assignment) -> Result<SessionHandle, AgentError> {
        const TASK: &str = "do its part of the trial";
        let stages = self.follow(&["sessions"], self.body(assignment, TASK)?, TASK, Stage::is_last).await?;
        Ok(SessionHandle::new(assignment.id.clone(), stages.boxed()))
    }

    /// Orders the next step of a session. The agent answers at once; what comes of it is told by the session's stages.
    ///
    /// # Errors
    /// The agent is lost, or the session is at another stage.
    pub async fn order(&self, session: &SessionId, order: &Order) -> Result<(), AgentError> {
        const TASK: &str = "go on with the trial";
        let path = ["sessions", &session.0, "order"];
        let sent = async { self.send(Method::POST, &path, Some(self.body(order, TASK)?), TASK).await };
        self.in_time(sent, TASK).await.map(|_| ())
    }

    /// Fetches what the host counted in a session that is done.
    ///
    /// # Errors
    /// The agent is lost, the session failed or is not done, or its counts were dropped.
    pub async fn counts(&self, session: &SessionId) -> Result<HostCounts, AgentError> {
        self.get(&["sessions", &session.0, "counts"], "hand over its counts").await
    }

    /// Ends a session at whatever stage, waits until it has let go of everything, and returns what could not be removed. Fine
    /// if there is no such session.
    ///
    /// # Errors
    /// The agent is lost, or the session does not end.
    pub async fn close(&self, session: &SessionId) -> Result<Vec<String>, AgentError> {
        let since = Instant::now();
        while since.elapsed() < CLOSING {
            // The agent answers within seconds, and waits before it says "not yet".
            let path = ["sessions", &session.0];
            let closed: Closed = self.json(Method::DELETE, &path, None, "end the trial").await?;
            if closed.over {
                return Ok(closed.remains);
            }
        }
        let message = format!("the session `{session}` does not end; restart the agent");
        Err(AgentError::Failed { address: self.shared.address.clone(), message })
    }

    async fn get<T: DeserializeOwned>(&self, path: &[&str], task: &'static str) -> Result<T, AgentError> {
        self.json(Method::GET, path, None, task).await
    }

    async fn post<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &(impl Serialize + ?Sized),
        task: &'static str,
    ) -> Result<T, AgentError> {
        self.json(Method::POST, path, Some(self.body(body, task)?), task).await
    }

    fn body(&self, value: &(impl Serialize + ?Sized), task: &'static str) -> Result<Bytes, AgentError> {
        json(value).map_err(|error| self.lost(task, error.to_string()))
    }

    /// Posts a request and reads the events it is answered with, until one that is the last.
    async fn follow<T: DeserializeOwned + Send + 'static>(
        &self,
        path: &[&str],
        body: Bytes,
        task: &'static str,
        is_last: fn(&T) -> bool,
    ) -> Result<impl Stream<Item = Result<T, AgentError>> + Send + Unpin + use<T>, AgentError> {
        // No limit on the whole, which takes as long as the trial; each piece has its own below.
        let sent = self.send(Method::POST, path, Some(body), task);
        let response = within(REQUEST_TIMEOUT, sent)
            .await
            .ok_or_else(|| self.lost(task, format!("no answer for {} s", REQUEST_TIMEOUT.as_secs())))??;
        let following = Following {
            client: self.clone(),
            pieces: response.into_body().into_data_stream(),
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

    /// Sends a request and reads the answer.
    async fn json<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &[&str],
        body: Option<Bytes>,
        task: &'static str,
    ) -> Result<T, AgentError> {
        let answered = async {
            let response = self.send(method, path, body, task).await?;
            self.read(response, task).await
        };
        self.parse(&self.in_time(answered, task).await?)
    }

    fn parse<T: DeserializeOwned>(&self, answer: &[u8]) -> Result<T, AgentError> {
        let unread = |error: &dyn std::error::Error| self.not_an_agent(format!("its answer cannot be read: {error}"));
        let text = std::str::from_utf8(answer).map_err(|error| unread(&error))?;
        serde_json::from_str(text).map_err(|error| unread(&error))
    }

    async fn in_time<T>(
        &self,
        answered: impl Future<Output = Result<T, AgentError>>,
        task: &'static str,
    ) -> Result<T, AgentError> {
        let late = || Err(self.lost(task, NOT_IN_TIME.to_owned()));
        within(REQUEST_TIMEOUT, answered).await.unwrap_or_else(late)
    }

    /// Sends a request; an answer that is no success becomes its error.
    async fn send(
        &self,
        method: Method,
        path: &[&str],
        body: Option<Bytes>,
        task: &'static str,
    ) -> Result<Response<Incoming>, AgentError> {
        let response = self.shared.http.send(method, path, body).await;
        let response = response.map_err(|error| self.broken(task, error))?;
        // Whatever else another version answers, this header is where it was.
        let theirs = response.headers().get(PROTOCOL_HEADER).map(|value| String::from_utf8_lossy(value.as_bytes()));
        if let Some(theirs) = theirs.filter(|theirs| *theirs != PROTOCOL.to_string()) {
            let theirs = theirs.chars().filter(char::is_ascii_graphic).take(20).collect();
            return Err(AgentError::WrongProtocol { address: self.shared.address.clone(), theirs });
        }
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let bytes = self.read(response, task).await?;
        match serde_json::from_slice(&bytes) {
            Ok(error) => Err(self.refused(error)),
            Err(_) => Err(self.not_an_agent(format!("it answered with HTTP status {status}"))),
        }
    }

    async fn read(&self, response: Response<Incoming>, task: &'static str) -> Result<Bytes, AgentError> {
        whole(response.into_body(), LONGEST_ANSWER).await.map_err(|error| self.broken(task, error))
    }

    /// What the agent says went wrong, as an error here.
    fn refused(&self, error: ApiError) -> AgentError {
        let (address, message) = (self.shared.address.clone(), error.message);
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

    /// A connection that could not be made or that broke.
    fn broken(&self, task: &'static str, error: HttpError) -> AgentError {
        let address = self.shared.address.clone();
        let system = find::<std::io::Error>(&*error).map(std::io::Error::kind);
        match find::<rustls::Error>(&*error) {
            Some(tls) if pin::is_wrong_fingerprint(tls) => AgentError::WrongFingerprint { address },
            Some(tls) => self.not_an_agent(format!("TLS: {tls}")),
            None if system == Some(std::io::ErrorKind::TimedOut) => self.lost(task, NOT_IN_TIME.to_owned()),
            None => self.lost(task, cause(&*error)),
        }
    }

    fn lost(&self, task: &'static str, reason: String) -> AgentError {
        AgentError::Lost { address: self.shared.address.clone(), task, reason }
    }

    fn not_an_agent(&self, reason: String) -> AgentError {
        AgentError::NotAnAgent { address: self.shared.address.clone(), reason }
    }
}

/// An agent that has yet to answer for the first time is not lost.
fn not_reached(error: AgentError) -> AgentError {
    match error {
        AgentError::Lost { address, reason, .. } => AgentError::Unreachable { address, reason },
        error => error,
    }
}

/// Reads a body to its end.
///
/// # Errors
/// It breaks, or it is longer than `most` bytes: a hostile agent must not fill the memory here.
async fn whole<B>(body: B, most: usize) -> Result<Bytes, HttpError>
where
    B: Body,
    B::Error: Into<HttpError>,
{
    Ok(Limited::new(body, most).collect().await?.to_bytes())
}

/// An event stream being read.
struct Following<S> {
    client: Client,
    pieces: S,
    events: Events,
    ready: VecDeque<String>,
    ended: bool,
}

impl<S: Stream<Item = Result<Bytes, hyper::Error>> + Unpin> Following<S> {
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
            let pushed = match within(SILENCE, self.pieces.next()).await {
                Some(Some(Ok(piece))) => self.events.push(&piece),
                Some(Some(Err(error))) => return Some(Err(self.client.broken(task, error.into()))),
                Some(None) => return Some(Err(self.client.lost(task, "it closed the connection".to_owned()))),
                None => {
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

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::Full;

    #[tokio::test]
    async fn an_endless_answer_of_a_hostile_agent_is_cut_off() {
        let answer = Bytes::from_static(b"ten bytes.");
        assert_eq!(whole(Full::new(answer.clone()), 10).await.expect("as long as may be"), answer);
        assert!(whole(Full::new(answer), 9).await.is_err(), "one byte more than may be");
    }
}
