//! The scheduler's process: it asks the planner which trials begin, and publishes them as orders.
//!
//! The planner decides and has no clock; the process gives it the server's time, the agents that are present and the
//! ends of trials. All of it is in NATS, so that a process that takes over the lease begins with what it reads there.

use crate::lease::{Term, hold};
use crate::orders::{OrderOutcome, PairEnd, PublishedOrder};
use crate::presence::PresentAgents;
use crate::state::{OutstandingOrder, ScheduleStatus, pause, put_status, take_run_requests};
use crate::watch_post::WatchPost;
use async_nats::HeaderMap;
use async_nats::header::NATS_MESSAGE_ID;
use futures_util::StreamExt as _;
use linerate_bus::{Bus, BusError, Link};
use linerate_engine::Report;
use linerate_model::RecordId;
use linerate_schedule::{FleetFile, LastRun, Moment, Order, OrderId, Outcome, Planner};
use linerate_units::ByteCount;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Time from one look at what is due to the next.
const LOOK: Duration = Duration::from_millis(500);

/// Time from one status to the next, and from one look at pause and requests to the next.
const STATUS: Duration = Duration::from_secs(2);

/// Time from one search for orders whose end was not heard to the next.
const SEARCH: Duration = Duration::from_secs(30);

/// Outstanding orders in a status, at most.
const MAX_LISTED: usize = 1_000;

/// Options of a scheduler.
#[derive(Debug, Clone)]
pub struct SchedulerOptions {
    /// Name of the process, for the lease.
    pub holder: String,
    /// The declared meshes.
    pub file: FleetFile,
    /// Seed of random choices.
    pub seed: u64,
    /// Difference of local time from UTC in seconds, for hours of the day.
    pub utc_offset_s: i32,
}

/// Competes for the lease, and schedules while it is held, until `stop` turns true.
///
/// # Errors
/// The streams of the fleet are missing.
pub async fn schedule(
    bus: Bus,
    options: SchedulerOptions,
    mut watch_post: WatchPost,
    report: Report,
    mut stop: watch::Receiver<bool>,
) -> Result<(), BusError> {
    let (term_sender, mut terms) = watch::channel(None);
    let (found_sender, found) = watch::channel(None);
    let holding = tokio::spawn(hold(bus.clone(), options.holder.clone(), term_sender, found, stop.clone()));
    loop {
        let began = tokio::select! {
            began = terms.wait_for(Option::is_some) => began.ok().and_then(|term| *term),
            _ = stop.wait_for(|stop| *stop) => None,
        };
        let Some(term) = began else { break };
        report.line(&format!("{} schedules now, with fence {}", options.holder, term.fence));
        watch_post.set_leader(true);
        let mut scheduler =
            Scheduler { bus: &bus, options: &options, watch_post: &mut watch_post, found: &found_sender };
        if let Err(error) = scheduler.serve_term(&mut terms, term.fence, &stop).await {
            report.line(&format!("the schedule is read again: {error}"));
            tokio::time::sleep(LOOK).await;
        }
        watch_post.set_leader(false);
        if *stop.borrow() {
            break;
        }
    }
    watch_post.finish().await;
    let _ = holding.await;
    Ok(())
}

struct Scheduler<'a> {
    bus: &'a Bus,
    options: &'a SchedulerOptions,
    watch_post: &'a mut WatchPost,
    found: &'a watch::Sender<Option<(u64, u64)>>,
}

impl Scheduler<'_> {
    /// Schedules until the term ends or the connection is lost, after which all is read again.
    async fn serve_term(
        &mut self,
        terms: &mut watch::Receiver<Option<Term>>,
        fence: u64,
        stop: &watch::Receiver<bool>,
    ) -> Result<(), BusError> {
        // Subscribed first: nothing that ends while the streams are read is missed.
        let subject = self.bus.subjects().pair("*", "*", "*");
        let failed = |error: &dyn std::fmt::Display| BusError::failed("following trials", error);
        let mut ends = self.bus.client().subscribe(subject.clone()).await.map_err(|error| failed(&error))?;
        self.bus.client().flush().await.map_err(|error| failed(&error))?;
        let mut agents = PresentAgents::read(self.bus).await?;
        let mut signs = agents.subscribe(self.bus).await?;

        let mut planner = Planner::new(self.options.file.clone(), self.options.seed);
        planner.set_hosts(agents.hosts());
        let mut last_runs = self.bus.all_of::<PairEnd>("pairs", subject).await?;
        last_runs.sort_by_key(|end| end.sequence);
        planner.restore(last_runs.iter().map(|end| LastRun {
            mesh: end.value.order.mesh.clone(),
            from: end.value.order.from.clone(),
            to: end.value.order.to.clone(),
            at: end.published_unix_ns / 1_000_000_000,
            bytes: ByteCount::new(end.value.bytes),
        }));
        let server_now = self.bus.server_unix_ns().await? / 1_000_000_000;
        let now = Moment { unix_s: server_now, utc_offset_s: self.options.utc_offset_s };
        let orders = self.bus.stream("orders").await?;
        let last_order = orders.cached_info().state.last_sequence;
        for order in self.bus.all_of::<PublishedOrder>("orders", self.bus.subjects().order("*")).await? {
            planner.hold(order.value.order, now);
        }
        self.found.send_replace(Some((fence, last_order)));
        self.watch_post.begin(&agents, &last_runs, server_now);

        let mut link = self.bus.link();
        let mut paused = false;
        let mut status_at = Instant::now();
        let mut search_at = Instant::now() + SEARCH;
        let mut missed: BTreeMap<String, u64> = BTreeMap::new();
        let mut look = tokio::time::interval(LOOK);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = look.tick() => {}
                Some(message) = ends.next() => {
                    if let Ok(end) = serde_json::from_slice::<PairEnd>(&message.payload) {
                        self.end(&mut planner, &end, terms);
                    }
                    continue;
                }
                Some(sign) = signs.next() => {
                    agents.hear(&sign);
                    continue;
                }
                changed = link.wait_for(|link| *link == Link::Down) => {
                    drop(changed);
                    return Err(BusError::failed("scheduling", "the connection to NATS was lost"));
                }
            }
            let term = *terms.borrow();
            let Some(term) = term.filter(|term| term.fence == fence) else { return Ok(()) };
            if *stop.borrow() {
                return Ok(());
            }
            let now_unix_s = term.clock.unix_s();
            let now = Moment { unix_s: now_unix_s, utc_offset_s: self.options.utc_offset_s };
            let begin = Instant::now();
            if begin >= status_at {
                planner.set_hosts(agents.hosts());
                paused = pause(self.bus).await?.is_some();
                let meshes = self.options.file.meshes.iter().map(|mesh| mesh.name.as_str());
                for mesh in take_run_requests(self.bus, meshes).await? {
                    planner.run_now(&mesh, now);
                }
            }
            if begin >= search_at {
                search_at = begin + SEARCH;
                self.end_unheard(&mut planner, now).await?;
            }
            let due = if paused { Vec::new() } else { planner.due(now) };
            let took = begin.elapsed();
            for order in due {
                // A scheduler that was held up here orders nothing any more.
                if !term.is_valid() {
                    return Ok(());
                }
                self.publish(&order, fence, now_unix_s).await?;
            }
            let slots = planner.missed();
            for slot in &slots {
                *missed.entry(slot.reason.to_string()).or_default() += 1;
            }
            if !slots.is_empty() {
                self.watch_post.missed(&slots);
            }
            self.watch_post.planned(took, planner.outstanding().len(), now_unix_s);
            if begin >= status_at {
                status_at = begin + STATUS;
                self.watch_post.agents(&agents, now_unix_s);
                let status = ScheduleStatus {
                    scheduler: self.options.holder.clone(),
                    present: agents.present(),
                    outstanding: listed(&planner),
                    outstanding_count: planner.outstanding().len(),
                    next_unix_s: planner.next_wake(now),
                    planning_ns: u64::try_from(took.as_nanos()).unwrap_or(u64::MAX),
                    warnings: planner.warnings().iter().map(ToString::to_string).collect(),
                    missed: missed.clone(),
                    alerts: self.watch_post.raised(),
                };
                put_status(self.bus, &status).await?;
            }
        }
    }

    fn end(&mut self, planner: &mut Planner, end: &PairEnd, terms: &watch::Receiver<Option<Term>>) {
        let Some(term) = *terms.borrow() else { return };
        let now = Moment { unix_s: term.clock.unix_s(), utc_offset_s: self.options.utc_offset_s };
        let outcome = match &end.outcome {
            OrderOutcome::Measured => Outcome::Done,
            OrderOutcome::Failed { .. } => Outcome::Failed,
            OrderOutcome::Missed { .. } => Outcome::Lost,
        };
        let ended = planner.ended(&end.order.id, outcome, ByteCount::new(end.bytes), now);
        let concurrent = ended.map_or(end.order.concurrent, |ended| ended.concurrent);
        if self.watch_post.ended(end, concurrent, now.unix_s) {
            planner.suspect(&end.order.mesh, &end.order.from, &end.order.to, now);
        }
    }

    /// Ends overdue orders that are no longer in the stream: the message of their end was lost on its way.
    async fn end_unheard(&self, planner: &mut Planner, now: Moment) -> Result<(), BusError> {
        let overdue: Vec<OrderId> = planner.overdue(now).into_iter().map(|order| order.id.clone()).collect();
        if overdue.is_empty() {
            return Ok(());
        }
        let kept = self.bus.all_of::<PublishedOrder>("orders", self.bus.subjects().order("*")).await?;
        let kept: BTreeSet<OrderId> = kept.into_iter().map(|order| order.value.order.id).collect();
        for id in overdue.into_iter().filter(|id| !kept.contains(id)) {
            planner.ended(&id, Outcome::Lost, ByteCount::default(), now);
        }
        Ok(())
    }

    async fn publish(&self, order: &Order, fence: u64, now_unix_s: u64) -> Result<(), BusError> {
        let failed = |error: &dyn std::fmt::Display| BusError::failed(format!("ordering {}", order.id), error);
        let record = record_name(order, now_unix_s);
        let published = PublishedOrder { order: order.clone(), record, fence };
        let payload = serde_json::to_vec(&published).map_err(|error| failed(&error))?;
        let name = format!("{}-{:016x}", now_unix_s, hash(&order.id.to_string()));
        let mut headers = HeaderMap::new();
        headers.insert(NATS_MESSAGE_ID, name.as_str());
        let subject = self.bus.subjects().order(&name);
        let sent = self.bus.jetstream().publish_with_headers(subject, headers, payload.into()).await;
        sent.map_err(|error| failed(&error))?.await.map_err(|error| failed(&error)).map(drop)
    }
}

/// Returns the first outstanding orders by identity, at most [`MAX_LISTED`].
fn listed(planner: &Planner) -> Vec<OutstandingOrder> {
    let mut orders: Vec<&Order> = planner.outstanding().collect();
    orders.sort_unstable_by(|one, other| one.id.cmp(&other.id));
    orders.into_iter().take(MAX_LISTED).map(OutstandingOrder::of).collect()
}

/// Returns the name of an order's record: the time by the server's clock, and a tail that the order decides.
fn record_name(order: &Order, now_unix_s: u64) -> RecordId {
    let time = jiff::Timestamp::from_second(i64::try_from(now_unix_s).unwrap_or_default()).unwrap_or_default();
    let tail = hash(&order.id.to_string()) & 0xffff_ffff;
    RecordId(format!("{}-{tail:08x}", time.strftime("%Y%m%dT%H%M%S")))
}

/// FNV-1a, which is the same in all processes and versions.
fn hash(text: &str) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}
