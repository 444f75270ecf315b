//! The lease of the scheduler: one process of a fleet orders trials at a time.
//!
//! The lease is one key of the fleet's bucket. Its holder renews it every 2 s by compare-and-set on the key's revision;
//! another process takes it when the revision has not changed for 10 s. Both measure with their own monotonic clock, so
//! that wrong wall clocks do no harm. Each takeover raises the fence, which every order carries: whoever carries an order
//! out refuses one with a lower fence than the lease's.

use async_nats::jetstream::kv::{self, Operation};
use linerate_bus::{Bus, BusError};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Key of the lease.
const KEY: &str = "lease";

/// Time from one renewal to the next.
const RENEWAL: Duration = Duration::from_secs(2);

/// Time after the beginning of a renewal for which its holder orders trials.
const VALID: Duration = Duration::from_secs(6);

/// Time without a renewal after which another process takes the lease. Longer than [`VALID`], so that the holder stops
/// first.
const EXPIRY: Duration = Duration::from_secs(10);

/// Content of the key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    /// Name of the process. `None` if it gave the lease back.
    holder: Option<String>,
    fence: u64,
    /// Number of the last order that the holder found when it took the lease. `None` until it has looked. Later orders
    /// with a lower fence come from a scheduler that had lost the lease.
    #[serde(default)]
    found_orders: Option<u64>,
}

/// A moment of the server's clock, and the same on this process's monotonic clock. Fleets reckon with the server's time,
/// so that the wall clock of no process matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerClock {
    unix_ns: u64,
    at: Instant,
}

impl ServerClock {
    /// Returns the server's time now, in nanoseconds since 1970.
    pub fn unix_ns(&self) -> u64 {
        self.unix_ns + u64::try_from(self.at.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Returns the server's time now, in seconds since 1970.
    pub fn unix_s(&self) -> u64 {
        self.unix_ns() / 1_000_000_000
    }

    fn of(entry: &kv::Entry) -> Self {
        let unix_ns = u64::try_from(entry.created.unix_timestamp_nanos()).unwrap_or_default();
        Self { unix_ns, at: Instant::now() }
    }
}

/// The lease while this process holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    /// Fence of the orders of this term.
    pub fence: u64,
    /// Time of the server.
    pub clock: ServerClock,
    valid_until: Instant,
}

impl Term {
    /// Returns whether this process may order trials now.
    pub fn is_valid(&self) -> bool {
        Instant::now() < self.valid_until
    }
}

/// The lease as another process sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseView {
    /// Fence of the current holder.
    pub fence: u64,
    /// Number of the last order of earlier terms. `None` until the holder has looked.
    pub found_orders: Option<u64>,
    /// Time of the server.
    pub clock: ServerClock,
}

impl LeaseView {
    /// Returns whether a scheduler renewed the lease recently. Without one no trial begins.
    pub fn is_alive(&self) -> bool {
        self.clock.at.elapsed() < EXPIRY
    }
}

/// Relation of this process to the lease.
enum State {
    /// This process holds the lease, at this revision of its key.
    Holding { revision: u64, fence: u64 },
    /// Another process may hold the lease. Its last revision was first seen at `since`.
    Following { revision: u64, since: Instant },
}

/// Competes for the lease as `holder` and publishes the term while it is held, until `stop` turns true. The lease is then
/// given back. `found_orders` has the fence of a term and the number of the last order that its scheduler found.
pub async fn hold(
    bus: Bus,
    holder: String,
    term: watch::Sender<Option<Term>>,
    mut found_orders: watch::Receiver<Option<(u64, u64)>>,
    mut stop: watch::Receiver<bool>,
) {
    let mut state = State::Following { revision: 0, since: Instant::now() };
    let mut valid_until = Instant::now();
    loop {
        let found = *found_orders.borrow_and_update();
        state = match step(&bus, &holder, state, found, &term, &mut valid_until).await {
            Ok(state) => state,
            Err(state) => {
                // The server did not answer: the term ends by its own clock.
                if valid_until <= Instant::now() {
                    term.send_replace(None);
                }
                state
            }
        };
        tokio::select! {
            () = tokio::time::sleep(RENEWAL) => {}
            Ok(()) = found_orders.changed() => {}
            _ = stop.wait_for(|stop| *stop) => break,
        }
    }
    term.send_replace(None);
    if let State::Holding { revision, fence } = state
        && let Ok(bucket) = bus.state().await
    {
        let _ = bucket.update(KEY, encode(&Entry { holder: None, fence, found_orders: None }).into(), revision).await;
    }
}

/// Renews the lease, or takes it if it is free. An error returns the state to go on with.
async fn step(
    bus: &Bus,
    holder: &str,
    state: State,
    found: Option<(u64, u64)>,
    term: &watch::Sender<Option<Term>>,
    valid_until: &mut Instant,
) -> Result<State, State> {
    let begin = Instant::now();
    let Ok(bucket) = bus.state().await else { return Err(state) };
    let taken = |fence: u64| {
        let found_orders = found.filter(|(of, _)| *of == fence).map(|(_, last)| last);
        Entry { holder: Some(holder.to_owned()), fence, found_orders }
    };
    let written = match state {
        State::Holding { revision, fence } => {
            bucket.update(KEY, encode(&taken(fence)).into(), revision).await.map(|revision| (revision, fence)).map_err(
                |error| {
                    if error.kind() == kv::UpdateErrorKind::WrongLastRevision {
                        *valid_until = begin;
                        State::Following { revision: 0, since: begin }
                    } else {
                        State::Holding { revision, fence }
                    }
                },
            )?
        }
        State::Following { revision, since } => {
            let entry = bucket.entry(KEY).await.map_err(|_| State::Following { revision, since })?;
            let Some(entry) = entry.filter(|entry| entry.operation == Operation::Put) else {
                // Fences rise also when the bucket was lost.
                let fence = u64::try_from(jiff::Timestamp::now().as_second()).unwrap_or(1);
                return match bucket.create(KEY, encode(&taken(fence)).into()).await {
                    Ok(revision) => {
                        begin_term(&bucket, State::Holding { revision, fence }, begin, term, valid_until).await
                    }
                    Err(_) => Err(State::Following { revision, since }),
                };
            };
            let content: Option<Entry> = serde_json::from_slice(&entry.value).ok();
            let is_free = content.as_ref().is_some_and(|content| content.holder.is_none());
            if entry.revision != revision && !is_free {
                return Ok(State::Following { revision: entry.revision, since: begin });
            }
            if !is_free && since.elapsed() < EXPIRY {
                return Ok(State::Following { revision, since });
            }
            let fence = content.map_or(0, |content| content.fence) + 1;
            match bucket.update(KEY, encode(&taken(fence)).into(), entry.revision).await {
                Ok(revision) => (revision, fence),
                Err(_) => return Ok(State::Following { revision: entry.revision, since: begin }),
            }
        }
    };
    let (revision, fence) = written;
    begin_term(&bucket, State::Holding { revision, fence }, begin, term, valid_until).await
}

/// Publishes the term of a lease that was written in a request begun at `begin`.
async fn begin_term(
    bucket: &kv::Store,
    state: State,
    begin: Instant,
    term: &watch::Sender<Option<Term>>,
    valid_until: &mut Instant,
) -> Result<State, State> {
    let State::Holding { fence, .. } = state else { return Ok(state) };
    match bucket.entry(KEY).await {
        Ok(Some(entry)) => {
            *valid_until = begin + VALID;
            term.send_replace(Some(Term { fence, clock: ServerClock::of(&entry), valid_until: *valid_until }));
            Ok(state)
        }
        _ => Err(state),
    }
}

fn encode(entry: &Entry) -> Vec<u8> {
    serde_json::to_vec(entry).expect("an entry has text keys only")
}

/// Follows the lease and publishes what it sees, for ever.
///
/// # Errors
/// The bucket is missing.
pub async fn watch_lease(bus: Bus, view: watch::Sender<Option<LeaseView>>) -> Result<(), BusError> {
    let bucket = bus.state().await?;
    let mut last_revision = 0;
    loop {
        if let Ok(Some(entry)) = bucket.entry(KEY).await
            && entry.operation == Operation::Put
            && let Ok(content) = serde_json::from_slice::<Entry>(&entry.value)
            && entry.revision != last_revision
        {
            last_revision = entry.revision;
            let clock = ServerClock::of(&entry);
            view.send_replace(Some(LeaseView { fence: content.fence, found_orders: content.found_orders, clock }));
        }
        tokio::time::sleep(RENEWAL / 2).await;
    }
}
