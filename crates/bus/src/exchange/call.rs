//! The caller's end of an exchange.

use super::ALIVE;
use super::frame::{BadMessage, End, Head, Part, Request};
use crate::{AgentName, Bus};
use async_nats::{Client, Message, StatusCode, Subscriber};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use linerate_sys::clock;
use rand::RngExt as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::sync::oneshot;

/// Failure of a request to an agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// This end has no connection to NATS.
    #[error("the connection to NATS is down")]
    Down,
    /// No process listens to the agent's subject.
    #[error("no agent of this name is connected to the fleet")]
    NoAgent,
    /// A part of the answer is missing, or the answer ended early.
    #[error("a part of the answer was lost")]
    Lost,
    /// The request is longer than the NATS server takes.
    #[error("the request has {length} bytes, and the NATS server takes {max}; raise its max_payload")]
    TooLong {
        /// Bytes of the request.
        length: usize,
        /// Most bytes of a message.
        max: usize,
    },
    /// The answer does not come from an agent.
    #[error("the answer does not come from an agent: {0}")]
    Bad(#[from] BadMessage),
}

/// Answer of an agent, as soon as its head has arrived.
#[derive(Debug)]
pub struct Response {
    /// Status and headers.
    pub head: Head,
    /// Time at which the request was passed to the connection, on the clock of [`clock::now`].
    pub sent_ns: u64,
    /// Body, which arrives in parts.
    pub body: ResponseBody,
}

/// Body of an answer. Dropping it drops the answer at the agent too.
#[derive(Debug)]
pub struct ResponseBody {
    parts: Subscriber,
    next_number: u64,
    /// Body of the first part, until it is read.
    first: Option<Bytes>,
    ended: Option<End>,
    received_ns: u64,
    alive: Alive,
}

/// Reports to the agent that its answer is read, until it is dropped.
#[derive(Debug)]
struct Alive {
    end: Option<oneshot::Sender<()>>,
}

impl Alive {
    /// Begins the reports of the exchange `id`. `alive` and `cancel` are its subjects.
    fn begin(client: Client, alive: String, cancel: String) -> Self {
        let (end, mut ended) = oneshot::channel();
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    ended = &mut ended => {
                        if ended.is_err() {
                            let _ = client.publish(cancel, Bytes::new()).await;
                        }
                        return;
                    }
                    () = tokio::time::sleep(ALIVE) => {
                        let _ = client.publish(alive.clone(), Bytes::new()).await;
                    }
                }
            }
        });
        Self { end: Some(end) }
    }

    /// Ends the reports of an answer that has arrived.
    fn finish(&mut self) {
        if let Some(end) = self.end.take() {
            let _ = end.send(());
        }
    }
}

impl Bus {
    /// Sends `request` to `agent` and returns the answer as soon as its head has arrived. The caller limits the time.
    ///
    /// # Errors
    /// The connection is down, or no agent of this name is connected.
    pub async fn call(&self, agent: &AgentName, request: Request) -> Result<Response, CallError> {
        let client = self.client();
        if !self.is_up() {
            // A request that waits for the connection might arrive after its caller has given up.
            return Err(CallError::Down);
        }
        let max = client.server_info().max_payload;
        if request.body.len() > max {
            return Err(CallError::TooLong { length: request.body.len(), max });
        }
        let id = format!("{:032x}", rand::rng().random::<u128>());
        let subjects = self.subjects();
        let reply = subjects.from_agent(agent, &format!("reply.{id}"));
        let mut parts = client.subscribe(reply.clone()).await.map_err(|_| CallError::Down)?;
        let headers = request.to_headers();
        let sent_ns = clock::now();
        client
            .publish_with_reply_and_headers(subjects.to_agent(agent, "api"), reply, headers, request.body)
            .await
            .map_err(|_| CallError::Down)?;
        let mut alive = Alive::begin(
            client.clone(),
            subjects.to_agent(agent, &format!("alive.{id}")),
            subjects.to_agent(agent, &format!("cancel.{id}")),
        );
        let message = parts.next().await.ok_or(CallError::Lost)?;
        let received_ns = clock::now();
        if message.status == Some(StatusCode::NO_RESPONDERS) {
            alive.finish();
            return Err(CallError::NoAgent);
        }
        let (part, first) = read(message, 0)?;
        let head = part.head.ok_or(CallError::Lost)?;
        if part.end.is_some() {
            alive.finish();
        }
        let first = Some(first);
        let body = ResponseBody { parts, next_number: 1, first, ended: part.end, received_ns, alive };
        Ok(Response { head, sent_ns, body })
    }
}

/// Reads a part of an answer, which must have this number.
fn read(message: Message, number: u64) -> Result<(Part, Bytes), CallError> {
    let part = Part::of(message.headers.as_ref())?;
    if part.number == number { Ok((part, message.payload)) } else { Err(CallError::Lost) }
}

impl ResponseBody {
    /// Returns the time at which the latest part was received, on the clock of [`clock::now`].
    pub fn received_ns(&self) -> u64 {
        self.received_ns
    }
}

impl Stream for ResponseBody {
    type Item = Result<Bytes, CallError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(first) = self.first.take().filter(|first| !first.is_empty()) {
                return Poll::Ready(Some(Ok(first)));
            }
            match self.ended {
                Some(End::Whole) => return Poll::Ready(None),
                Some(End::Broken) => {
                    self.ended = Some(End::Whole);
                    return Poll::Ready(Some(Err(CallError::Lost)));
                }
                None => {}
            }
            let message = ready!(self.parts.poll_next_unpin(context));
            self.received_ns = clock::now();
            let number = self.next_number;
            match message.ok_or(CallError::Lost).and_then(|message| read(message, number)) {
                Ok((part, payload)) => {
                    self.next_number += 1;
                    self.ended = part.end;
                    if part.end.is_some() {
                        self.alive.finish();
                    }
                    if !payload.is_empty() {
                        return Poll::Ready(Some(Ok(payload)));
                    }
                }
                Err(error) => {
                    self.ended = Some(End::Whole);
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }
}
