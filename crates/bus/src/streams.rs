//! The streams and buckets of a fleet in JetStream.
//!
//! | name       | subjects or keys                  | kept                                        |
//! |------------|-----------------------------------|---------------------------------------------|
//! | `presence` | signs of life of agents           | the last of each agent                      |
//! | `orders`   | trials to be run                  | until a controller has finished them        |
//! | `records`  | parts of records                  | for a week                                  |
//! | `pairs`    | the last trial of each pair       | the last of each pair and mesh              |
//! | `state`    | agents, invitations, lease, pause | until it is changed (a key-value bucket)    |

use crate::{AgentName, Bus, BusError, Presence, Role};
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::stream::{Config, DiscardPolicy, Stream};
use async_nats::jetstream::{self, Context, kv};
use futures_util::StreamExt as _;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Time for which records are kept for those who store them.
const RECORDS_KEPT: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Time after which an order is dropped that no controller has finished.
const ORDERS_KEPT: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Time for which the last sign of life of an agent is kept.
const PRESENCE_KEPT: Duration = Duration::from_secs(24 * 3_600);

/// Time within which the server drops a message that was published twice.
const DUPLICATES: Duration = Duration::from_secs(600);

/// Time for an answer of JetStream.
const ANSWER: Duration = Duration::from_secs(5);

/// Messages that are read at a time.
const BATCH: usize = 1_000;

/// A message that is kept.
#[derive(Debug, Clone)]
pub struct Kept<T> {
    /// Subject that it was published to.
    pub subject: String,
    /// Time of the server at its publication, in nanoseconds since 1970.
    pub published_unix_ns: u64,
    /// Number in its stream.
    pub sequence: u64,
    /// Content.
    pub value: T,
}

/// A member that has enrolled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Name of the member.
    pub name: AgentName,
    /// Its role.
    pub role: Role,
    /// Its public key.
    pub public_key: String,
    /// Labels of an agent.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Invitation that it came with.
    pub invitation: String,
    /// Time of its enrolment, in seconds since 1970.
    pub enrolled_unix_s: u64,
}

impl Bus {
    /// Returns the client of JetStream.
    pub fn jetstream(&self) -> Context {
        let mut context = jetstream::new(self.client().clone());
        context.set_timeout(ANSWER);
        context
    }

    /// Creates the streams of the fleet that are missing.
    ///
    /// # Errors
    /// The server has no JetStream, or refuses a stream.
    pub async fn create_streams(&self) -> Result<(), BusError> {
        let context = self.jetstream();
        context
            .query_account()
            .await
            .map_err(|error| BusError::NoJetStream { servers: self.servers(), reason: error.to_string() })?;
        let subjects = self.subjects();
        let all = |subject: String| vec![subject];
        let presence = Config {
            subjects: all(format!("linerate.{}.from.*.presence", subjects.fleet())),
            max_messages_per_subject: 1,
            max_age: PRESENCE_KEPT,
            ..self.stream_config("presence")
        };
        let orders =
            Config { subjects: all(subjects.order("*")), max_age: ORDERS_KEPT, ..self.stream_config("orders") };
        let records = Config {
            subjects: all(subjects.record("*", "*")),
            max_age: RECORDS_KEPT,
            discard: DiscardPolicy::New,
            ..self.stream_config("records")
        };
        let pairs = Config {
            subjects: all(subjects.pair("*", "*", "*")),
            max_messages_per_subject: 1,
            ..self.stream_config("pairs")
        };
        for config in [presence, orders, records, pairs] {
            let name = config.name.clone();
            let created = context.create_or_update_stream(config).await;
            created.map_err(|error| BusError::failed(format!("creating the stream {name}"), error))?;
        }
        let bucket = subjects.stream("state");
        let config = kv::Config { bucket: bucket.clone(), history: 1, ..kv::Config::default() };
        let created = context.create_or_update_key_value(config).await;
        created.map_err(|error| BusError::failed(format!("creating the bucket {bucket}"), error)).map(drop)
    }

    fn stream_config(&self, name: &str) -> Config {
        Config {
            name: self.subjects().stream(name),
            duplicate_window: DUPLICATES,
            allow_direct: true,
            ..Config::default()
        }
    }

    /// Returns a stream of the fleet.
    ///
    /// # Errors
    /// The server has no such stream: no controller has run yet.
    pub async fn stream(&self, name: &str) -> Result<Stream, BusError> {
        let name = self.subjects().stream(name);
        self.jetstream().get_stream(&name).await.map_err(|error| self.without_stream(&name, &error))
    }

    /// Returns the bucket with the state of the fleet.
    ///
    /// # Errors
    /// The server has no such bucket: no controller has run yet.
    pub async fn state(&self) -> Result<kv::Store, BusError> {
        let name = self.subjects().stream("state");
        self.jetstream().get_key_value(&name).await.map_err(|error| self.without_stream(&name, &error))
    }

    fn without_stream(&self, name: &str, error: &dyn std::fmt::Display) -> BusError {
        BusError::Failed {
            task: format!("opening {name}"),
            reason: format!(
                "{error}; `linerate fleet serve` creates it: check that it runs for the fleet {}",
                self.subjects().fleet()
            ),
        }
    }

    /// Returns the last message of each subject of a stream that matches `filter`.
    ///
    /// # Errors
    /// The stream is missing, or cannot be read.
    pub async fn last_of_each<T: DeserializeOwned>(
        &self,
        stream: &str,
        filter: String,
    ) -> Result<Vec<Kept<T>>, BusError> {
        read_all(&self.stream(stream).await?, filter, DeliverPolicy::LastPerSubject).await
    }

    /// Returns all messages of a stream that match `filter`, the oldest first.
    ///
    /// # Errors
    /// The stream is missing, or cannot be read.
    pub async fn all_of<T: DeserializeOwned>(&self, stream: &str, filter: String) -> Result<Vec<Kept<T>>, BusError> {
        read_all(&self.stream(stream).await?, filter, DeliverPolicy::All).await
    }

    /// Returns the server's time, in nanoseconds since 1970: hosts of a fleet may have wrong clocks.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn server_unix_ns(&self) -> Result<u64, BusError> {
        // Answers about streams carry the time of the server.
        let name = self.subjects().stream("presence");
        let request = format!("STREAM.INFO.{name}");
        let answer: Result<serde_json::Value, _> = self.jetstream().request(request, &()).await;
        let answer = answer.map_err(|error| self.without_stream(&name, &error))?;
        let now = answer["ts"].as_str().and_then(|time| time.parse::<jiff::Timestamp>().ok());
        let now = now.ok_or_else(|| BusError::failed("asking for the time", "the server reports none"))?;
        Ok(u64::try_from(now.as_nanosecond()).unwrap_or_default())
    }

    /// Returns the last sign of life of each agent.
    ///
    /// # Errors
    /// The stream is missing, or cannot be read.
    pub async fn presences(&self) -> Result<Vec<Kept<Presence>>, BusError> {
        self.last_of_each("presence", format!("linerate.{}.from.*.presence", self.subjects().fleet())).await
    }

    /// Returns the members that have enrolled and were not revoked.
    ///
    /// # Errors
    /// The bucket is missing, or cannot be read.
    pub async fn members(&self) -> Result<Vec<Member>, BusError> {
        let bucket = self.subjects().stream("state");
        let stream = format!("KV_{bucket}");
        let stream =
            self.jetstream().get_stream(&stream).await.map_err(|error| self.without_stream(&stream, &error))?;
        let kept = read_all(&stream, format!("$KV.{bucket}.member.*"), DeliverPolicy::LastPerSubject).await?;
        Ok(kept.into_iter().map(|kept: Kept<Member>| kept.value).collect())
    }
}

/// Reads the messages of a stream that are there now. Messages of another format are skipped: a neighbour of another
/// version may have written them. So are those that mark a deleted key.
async fn read_all<T: DeserializeOwned>(
    stream: &Stream,
    filter: String,
    deliver_policy: DeliverPolicy,
) -> Result<Vec<Kept<T>>, BusError> {
    let failed = |error: &dyn std::fmt::Display| BusError::failed(format!("reading {filter}"), error);
    let config = pull::Config {
        filter_subject: filter.clone(),
        deliver_policy,
        ack_policy: AckPolicy::None,
        inactive_threshold: Duration::from_secs(30),
        memory_storage: true,
        ..pull::Config::default()
    };
    let consumer = stream.create_consumer(config).await.map_err(|error| failed(&error))?;
    let mut pending = consumer.cached_info().num_pending;
    let mut values = Vec::new();
    while pending > 0 {
        let batch = consumer.fetch().max_messages(BATCH).expires(ANSWER).messages().await;
        let mut batch = batch.map_err(|error| failed(&error))?;
        let mut received = 0;
        while let Some(message) = batch.next().await {
            let message = message.map_err(|error| failed(&error))?;
            received += 1;
            let info = message.info().map_err(|error| failed(&error))?;
            pending = info.pending;
            if let Ok(value) = serde_json::from_slice(&message.payload) {
                values.push(Kept {
                    subject: message.subject.to_string(),
                    published_unix_ns: u64::try_from(info.published.unix_timestamp_nanos()).unwrap_or_default(),
                    sequence: info.stream_sequence,
                    value,
                });
            }
        }
        if received == 0 {
            return Err(failed(&"the server stopped sending"));
        }
    }
    Ok(values)
}
