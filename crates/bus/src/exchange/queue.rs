//! The agent's end of exchanges.

use super::frame::{BadMessage, End, Head, Part, Request};
use super::{PART, SILENCE};
use crate::instances::InstanceNotice;
use crate::{Bus, BusError};
use async_nats::{Client, Message, Subscriber};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio::time::Instant;

/// Most bytes of the name of an exchange.
const MAX_ID: usize = 64;

/// Requests that arrive for this agent.
#[derive(Debug)]
pub struct RequestQueue {
    messages: Subscriber,
    client: Client,
    /// Prefix of the subjects that callers publish to.
    to_agent: String,
    /// Prefix of the reply subjects.
    replies: String,
    answers: Arc<Answers>,
}

/// Answers in progress by the name of their exchange, each with the time of its caller's latest sign of life. An answer
/// without an entry is dropped.
#[derive(Debug, Default)]
struct Answers(Mutex<HashMap<String, watch::Sender<Instant>>>);

/// What has arrived.
#[derive(Debug)]
pub enum Arrival {
    /// A request.
    Call(Box<Call>),
    /// A message between processes with this agent's credentials.
    Instance(InstanceNotice),
}

/// A request that waits for its answer.
#[derive(Debug)]
pub struct Call {
    /// The request, or what is wrong with the message.
    pub request: Result<Request, BadMessage>,
    /// Number of answers in progress, this one included.
    pub in_progress: usize,
    id: String,
    reply: String,
    client: Client,
    answers: Arc<Answers>,
    heard: watch::Receiver<Instant>,
}

impl Bus {
    /// Subscribes to the requests for this agent.
    ///
    /// # Errors
    /// The connection is closed for good.
    pub async fn requests(&self) -> Result<RequestQueue, BusError> {
        let name = &self.credentials().name;
        let prefix = |subject: String| subject.strip_suffix('>').unwrap_or(&subject).to_owned();
        let all = self.subjects().to_agent(name, ">");
        let failed = |error: &dyn std::fmt::Display| BusError::failed(format!("subscribing to {all}"), error);
        let messages = self.client().subscribe(all.clone()).await.map_err(|error| failed(&error))?;
        // The subscription is in force when this returns.
        self.client().flush().await.map_err(|error| failed(&error))?;
        Ok(RequestQueue {
            messages,
            client: self.client().clone(),
            to_agent: prefix(all),
            replies: prefix(self.subjects().from_agent(name, "reply.>")),
            answers: Arc::default(),
        })
    }
}

impl RequestQueue {
    /// Waits for the next request. Returns `None` when the connection is closed for good.
    pub async fn next(&mut self) -> Option<Arrival> {
        loop {
            let message = self.messages.next().await?;
            let name = message.subject.strip_prefix(&self.to_agent).unwrap_or_default().to_owned();
            match name.split_once('.') {
                Some(("alive", id)) => self.answers.hear(id),
                Some(("cancel", id)) => self.answers.drop_answer(id),
                None if name == "api" => {
                    if let Some(call) = self.call(message) {
                        return Some(Arrival::Call(Box::new(call)));
                    }
                }
                None if name == "instance" => {
                    if let Ok(notice) = serde_json::from_slice(&message.payload) {
                        return Some(Arrival::Instance(notice));
                    }
                }
                // Of a later version.
                _ => {}
            }
        }
    }

    /// Returns the request of a message. Returns `None` if nobody could receive an answer, or if the name of its
    /// exchange is taken.
    fn call(&self, message: Message) -> Option<Call> {
        let reply = message.reply?.to_string();
        let id = reply.strip_prefix(&self.replies)?.to_owned();
        if id.is_empty() || id.len() > MAX_ID || !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return None;
        }
        let (heard, in_progress) = self.answers.begin(&id)?;
        let request = Request::of(message.headers.as_ref(), message.payload);
        let (client, answers) = (self.client.clone(), Arc::clone(&self.answers));
        Some(Call { request, in_progress, id, reply, client, answers, heard })
    }
}

impl Answers {
    fn begin(&self, id: &str) -> Option<(watch::Receiver<Instant>, usize)> {
        let mut all = self.all();
        if all.contains_key(id) {
            return None;
        }
        let (sender, receiver) = watch::channel(Instant::now());
        all.insert(id.to_owned(), sender);
        Some((receiver, all.len()))
    }

    fn hear(&self, id: &str) {
        if let Some(caller) = self.all().get(id) {
            caller.send_replace(Instant::now());
        }
    }

    fn drop_answer(&self, id: &str) {
        self.all().remove(id);
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, watch::Sender<Instant>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Call {
    /// Sends the answer that `answer` makes. Drops it if the caller does, or is silent for 15 s.
    pub async fn answer<B, E>(self, answer: impl Future<Output = (Head, B)>)
    where
        B: Stream<Item = Result<Bytes, E>>,
    {
        let mut sender = PartSender { client: &self.client, reply: &self.reply, number: 0 };
        let send = async {
            let (head, body) = answer.await;
            sender.send_all(head, body).await;
        };
        tokio::select! {
            () = send => {}
            () = abandoned(self.heard.clone()) => {}
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.answers.drop_answer(&self.id);
    }
}

/// Waits until the caller has dropped the answer or is silent for too long.
async fn abandoned(mut heard: watch::Receiver<Instant>) {
    loop {
        let limit = *heard.borrow_and_update() + SILENCE;
        tokio::select! {
            changed = heard.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            () = tokio::time::sleep_until(limit) => return,
        }
    }
}

/// Sends the parts of one answer.
struct PartSender<'a> {
    client: &'a Client,
    reply: &'a str,
    number: u64,
}

impl PartSender<'_> {
    /// Sends an answer. A piece of the body is held back only until it is known whether another follows at once, so
    /// that a short answer is one message.
    async fn send_all<B, E>(&mut self, head: Head, body: B)
    where
        B: Stream<Item = Result<Bytes, E>>,
    {
        let mut body = pin!(body);
        let mut head = Some(head);
        let mut held = Bytes::new();
        let end = loop {
            let next = tokio::select! {
                biased;
                next = body.next() => next,
                () = std::future::ready(()), if head.is_some() || !held.is_empty() => {
                    self.send_pieces(&mut head, &mut held).await;
                    continue;
                }
            };
            match next {
                Some(Ok(piece)) => {
                    if !held.is_empty() {
                        self.send_pieces(&mut head, &mut held).await;
                    }
                    held = piece;
                }
                Some(Err(_)) => break End::Broken,
                None => break End::Whole,
            }
        };
        while held.len() > PART {
            let piece = held.split_to(PART);
            self.send(head.take(), piece, None).await;
        }
        self.send(head.take(), held, Some(end)).await;
    }

    /// Sends what is held, in parts that NATS carries.
    async fn send_pieces(&mut self, head: &mut Option<Head>, held: &mut Bytes) {
        loop {
            let piece = held.split_to(held.len().min(PART));
            self.send(head.take(), piece, None).await;
            if held.is_empty() {
                return;
            }
        }
    }

    /// Sends a part. It waits while the connection is down.
    async fn send(&mut self, head: Option<Head>, payload: Bytes, end: Option<End>) {
        let headers = Part { number: self.number, head, end }.to_headers();
        self.number += 1;
        // An error is a closed connection, and the caller finds that a part is missing.
        let _ = self.client.publish_with_headers(self.reply.to_owned(), headers, payload).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn answer_is_abandoned_after_silence_or_when_it_is_cancelled() {
        let answers = Answers::default();
        let begun = Instant::now();
        let (silent, _) = answers.begin("silent").expect("a free name");
        let (alive, count) = answers.begin("alive").expect("a free name");
        let (cancelled, _) = answers.begin("cancelled").expect("a free name");
        assert!(count == 2 && answers.begin("alive").is_none());
        let signs = async {
            for _ in 0..4 {
                tokio::time::sleep(Duration::from_secs(10)).await;
                answers.hear("alive");
                answers.hear("unknown");
            }
        };
        let cancel = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            answers.drop_answer("cancelled");
        };
        let until = |heard| async move {
            abandoned(heard).await;
            begun.elapsed().as_secs()
        };
        let (.., silent, alive, cancelled) = tokio::join!(signs, cancel, until(silent), until(alive), until(cancelled));
        assert_eq!([silent, alive, cancelled], [15, 55, 1]);
    }
}
