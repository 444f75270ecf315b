//! The sessions of one agent: opened within its limits, bounded in time, their counts kept for a while.
//!
//! Whoever opened a session may vanish at any moment, and come back: the network under test may be the one that carries
//! the requests. A session is stopped when nobody has followed its stages for a while, when no order comes, and when it
//! takes longer than allowed; counts that nobody fetches are dropped.

use crate::admission::admit;
use crate::grant::{CredentialId, Credentials, Grant};
use crate::metrics::{Metrics, SessionEvent};
use crate::origin::Origin;
use crate::session::{Bounds, Follower, Opener, Outcome, Session, panicked};
use crate::{Limits, SessionLog, Timeouts, served};
use futures_util::{Stream, StreamExt as _};
use jiff::Timestamp;
use linerate_control::{ApiError, Closed, ErrorKind};
use linerate_engine::{
    Demand, Engine, ListenOptions, Needs, PortServer, Report, SharedPort, StrangerReplies, only_zone, with_zone,
};
use linerate_model::{Assignment, FailureKind, HostCounts, Order, SessionFailure, SessionId, Stage};
use std::collections::BTreeMap;
use std::future::ready;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio_stream::wrappers::WatchStream;

/// Sessions that are over are kept, with their counts, until they are fetched; the oldest makes room.
const KEPT: usize = 16;

/// The part of the memory of all sessions that the kept counts of one credential may take: one of so many.
const KEPT_SHARE: u64 = 8;

/// Time that one request to close a session waits for its end. Clients ask again.
const CLOSING: Duration = Duration::from_secs(5);

/// Origin of a request for a session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Opening {
    /// Host that asks. `None` for a request by NATS.
    pub(crate) peer: Option<IpAddr>,
    /// Whether the agent may have received the request before.
    pub(crate) is_repeated: bool,
    /// Fence of the fleet's scheduler that asks. `None` for other requests.
    pub(crate) fence: Option<u64>,
}

/// The sessions of one agent.
pub(crate) struct Sessions {
    /// Sessions in progress, and kept ones that are over.
    held: Mutex<BTreeMap<SessionId, Arc<Session>>>,
    engines: Vec<Box<dyn Engine>>,
    limits: Limits,
    /// The agent's port, if sessions listen there.
    port: Option<SharedPort>,
    timeouts: Timeouts,
    /// The agent is being shut down.
    closing: AtomicBool,
    pub(crate) metrics: Metrics,
    /// What strangers may be sent beside the sessions.
    pub(crate) replies: Arc<StrangerReplies>,
    /// Told of each session that has ended.
    pub(crate) report: Report,
    /// Log of sessions for the owner.
    log: Option<SessionLog>,
    /// Highest fence of a fleet's scheduler that has opened a session.
    fence: AtomicU64,
    /// Reservations of the budget by work that is no session.
    reserved: Mutex<Vec<Weak<Needs>>>,
}

impl Sessions {
    pub(crate) fn new(
        engines: Vec<Box<dyn Engine>>,
        limits: Limits,
        port: Option<&PortServer>,
        timeouts: Timeouts,
        report: Report,
        log: Option<SessionLog>,
    ) -> Self {
        let (held, closing, metrics) = (Mutex::default(), AtomicBool::new(false), Metrics::default());
        let replies = Arc::new(StrangerReplies::within(limits.max_rate));
        let port = port.map(|server| server.port().clone());
        let reserved = Mutex::default();
        let fence = AtomicU64::new(0);
        Self { held, engines, limits, port, timeouts, closing, metrics, replies, report, log, fence, reserved }
    }

    /// Begins with a session that the limits allow, and reports its stages. A repeated
    /// request goes on with the session that it opened before. A session is stopped a while after the last of its
    /// streams was dropped.
    ///
    /// # Errors
    /// The limits forbid the assignment, its name is taken, it cannot be meant, or a newer scheduler has taken over.
    pub(crate) async fn open(
        self: &Arc<Self>,
        assignment: Assignment,
        grant: &Grant,
        opening: Opening,
    ) -> Result<impl Stream<Item = Stage> + use<>, ApiError> {
        self.check_fence(opening.fence)?;
        if opening.is_repeated
            && let Ok(session) = self.get(&assignment.id, grant)
            && session.is_opened_by(&assignment)
        {
            return Ok(stages(session.follow()));
        }
        let task = assignment.task.kind();
        let mut admitted = self.admit(&assignment, grant, opening);
        if admitted.is_err() && self.stop_unfollowed(grant).await {
            admitted = self.admit(&assignment, grant, opening);
        }
        let (session, engine) = admitted.inspect_err(|_| self.metrics.count(task, SessionEvent::Refused))?;
        self.metrics.count(task, SessionEvent::Opened);
        self.log(|log| log.begin(&session));
        let followed = session.follow();
        let assignment = Arc::new(assignment);
        let spawned = std::thread::Builder::new().name("session".into()).spawn({
            let (sessions, session, assignment) = (Arc::clone(self), Arc::clone(&session), Arc::clone(&assignment));
            move || sessions.run(&session, engine, &assignment)
        });
        if let Err(error) = spawned {
            let message = format!("starting a thread for the session: {error}");
            self.end(
                &session,
                &assignment,
                Err(SessionFailure { kind: FailureKind::Task, message, remains: Vec::new() }),
            );
        }
        tokio::spawn(Arc::clone(self).tend(session));
        Ok(stages(followed))
    }

    /// Checks the fence of the scheduler that asks for a session, and remembers the highest.
    ///
    /// # Errors
    /// A newer scheduler has asked before.
    fn check_fence(&self, fence: Option<u64>) -> Result<(), ApiError> {
        let Some(fence) = fence else { return Ok(()) };
        let highest = self.fence.fetch_max(fence, Ordering::AcqRel);
        if fence >= highest {
            return Ok(());
        }
        let message = format!(
            "another scheduler has taken over: its fence is {highest}, and that of this request {fence}; stop the older scheduler"
        );
        Err(ApiError::new(ErrorKind::Conflict, message))
    }

    /// Writes to the owner's log, if there is one. A failure is reported: a session goes on without its line.
    fn log(&self, write: impl FnOnce(&SessionLog) -> Result<(), String>) {
        if let Some(Err(problem)) = self.log.as_ref().map(write) {
            self.report.line(&problem);
        }
    }

    /// Stops the sessions of a credential that nobody follows, whose runner may be gone, and waits a while for their
    /// end. Returns whether there were any.
    async fn stop_unfollowed(&self, grant: &Grant) -> bool {
        let mut sessions = self.under_way();
        sessions.retain(|session| session.opener.credential == grant.credential && session.is_unfollowed());
        for session in &sessions {
            session.stop(FailureKind::Stopped, "nobody followed the session, and another needed its place");
        }
        let ends = futures_util::future::join_all(sessions.iter().map(|session| session.ended()));
        let _ = tokio::time::timeout(CLOSING, ends).await;
        !sessions.is_empty()
    }

    /// Orders the next step of a session.
    ///
    /// # Errors
    /// The credential has no such session, it may not connect to its peers, or it waits for another order or for none.
    pub(crate) fn order(
        &self,
        id: &SessionId,
        mut order: Order,
        grant: &Grant,
        origin: Origin,
    ) -> Result<(), ApiError> {
        let session = self.get(id, grant)?;
        if let Order::Connect(endpoints) = &mut order {
            // To look at each takes time that others wait for.
            endpoints.retain(|link, _| session.connects_by(link));
            for endpoint in endpoints.values_mut() {
                *endpoint = with_zone(*endpoint, || origin.zone.or_else(only_zone));
            }
            grant.check_endpoints(endpoints)?;
            self.limits.check_targets(endpoints, origin.peer)?;
        }
        session.order(order, self.timeouts.unordered)
    }

    /// The counts of a session that is done.
    ///
    /// # Errors
    /// The credential has no such session, it is not done, or it failed.
    pub(crate) fn counts(&self, id: &SessionId, grant: &Grant) -> Result<HostCounts, ApiError> {
        let session = self.get(id, grant)?;
        match session.outcome().as_ref().map(|(outcome, _)| outcome.as_ref()) {
            Some(Ok(counts)) => Ok(counts.clone()),
            Some(Err(failure)) => Err(ApiError::new(ErrorKind::Failed, failure.message.clone())),
            None => Err(session.conflict("is not done, so it has no counts yet")),
        }
    }

    /// Stops a session at whatever stage, and waits a while for its end. Fine if there is no such session.
    pub(crate) async fn close(&self, id: &SessionId, grant: &Grant) -> Closed {
        let Ok(session) = self.get(id, grant) else { return Closed { over: true, remains: Vec::new() } };
        session.stop(FailureKind::Stopped, "the session was closed");
        if tokio::time::timeout(CLOSING, session.ended()).await.is_err() {
            return Closed { over: false, remains: Vec::new() };
        }
        self.forget(&session);
        Closed { over: true, remains: session.remains() }
    }

    /// Stops the sessions whose credential has ended, without waiting.
    pub(crate) fn stop_ended(&self, credentials: &Credentials) {
        for session in self.under_way() {
            if let Some(how) = credentials.ended(&session.opener.credential) {
                let id = session.opener.credential.as_deref().unwrap_or_default();
                session.stop(FailureKind::Stopped, format!("the invitation {id} {how}"));
            }
        }
    }

    /// Stops all sessions and opens no more, without waiting.
    pub(crate) fn stop_all(&self) {
        self.closing.store(true, Ordering::Release);
        for session in self.under_way() {
            session.stop(FailureKind::Stopped, "the agent is shutting down");
        }
    }

    /// Stops all sessions and opens no more, and waits until they have let go of everything, as long as removing what
    /// they made may take.
    pub(crate) async fn shut_down(&self) {
        self.stop_all();
        let under_way = self.under_way();
        let set_up = under_way.iter().map(|session| Duration::from(session.demand.set_up)).max().unwrap_or_default();
        let all = futures_util::future::join_all(under_way.iter().map(|session| session.ended()));
        let _ = tokio::time::timeout(CLOSING + set_up, all).await;
    }

    /// Sessions that have not ended.
    pub(crate) fn count_under_way(&self) -> usize {
        self.under_way().len()
    }

    fn under_way(&self) -> Vec<Arc<Session>> {
        self.held().values().filter(|session| !session.is_over()).cloned().collect()
    }

    /// Weighs the assignment against the limits and the other sessions, and holds a place for it. Returns the index of
    /// its engine with it.
    fn admit(
        &self,
        assignment: &Assignment,
        grant: &Grant,
        opening: Opening,
    ) -> Result<(Arc<Session>, usize), ApiError> {
        let task = assignment.task.kind();
        let bad = |message: String| ApiError::new(ErrorKind::BadRequest, message);
        let engine = self.engines.iter().position(|engine| engine.takes(&assignment.task));
        let engine = engine.ok_or_else(|| bad(format!("this agent has no engine for the task `{task}`")))?;
        let demand = self.demand(engine, assignment)?;
        if let Some(hours) = &self.limits.hours {
            hours.check(Timestamp::now(), demand.time)?;
        }

        let mut held = self.held();
        if self.closing.load(Ordering::Acquire) {
            return Err(ApiError::new(ErrorKind::Conflict, "this agent is shutting down"));
        }
        if let Some(other) = held.get(&assignment.id) {
            // One that is over has counts, which are for its opener.
            let is_own = other.opener.credential == grant.credential;
            if !is_own || !other.is_over() {
                let remedy = match grant.leads_sessions_of(&other.opener.credential) {
                    true => "close it first, or use another name",
                    false => "use another name",
                };
                let message = format!("there is a session `{}` already; {remedy}", assignment.id);
                return Err(ApiError::new(ErrorKind::Conflict, message));
            }
        }
        let under_way = held.values().filter(|session| !session.is_over());
        let under_way = under_way.map(|session| (&session.opener.credential, &session.demand));
        admit(&self.limits, grant, task, &demand, under_way, &self.reserved(&held))?;
        let rate_limited = self.limits.max_rate.is_some() || grant.max_rate.is_some();
        let host = opening.peer.map(|peer| peer.to_canonical());
        let opener = Opener { host, credential: grant.credential.clone(), fence: opening.fence, rate_limited };
        let peers = self.limits.data_peers().and(grant.data_peers());
        let (shared, ports, replies) = (self.port.clone(), self.limits.data_ports, Arc::clone(&self.replies));
        let listening = ListenOptions { peers, shared, ports, replies };
        let session = Arc::new(Session::new(assignment, demand, opener, listening));
        held.insert(assignment.id.clone(), Arc::clone(&session));
        Ok((session, engine))
    }

    /// Takes a part of the budget for work that is no session, until the returned value is dropped.
    ///
    /// # Errors
    /// The sessions do not leave as much; the text says of what, and the remedy.
    pub(crate) fn reserve(&self, needs: Needs) -> Result<Arc<Needs>, String> {
        let held = self.held();
        let others = self.reserved(&held);
        let under_way = held.values().filter(|session| !session.is_over()).map(|session| &session.demand.needs);
        self.limits.budget.check(&needs, under_way.chain(&others))?;
        let taken = Arc::new(needs);
        self.reservations().push(Arc::downgrade(&taken));
        Ok(taken)
    }

    /// Returns what is taken of the budget by others than sessions under way: work that is no session, and the counts
    /// of sessions that are over.
    fn reserved(&self, held: &BTreeMap<SessionId, Arc<Session>>) -> Vec<Needs> {
        let mut reservations = self.reservations();
        reservations.retain(|needs| needs.strong_count() > 0);
        let mut reserved: Vec<Needs> =
            reservations.iter().filter_map(Weak::upgrade).map(Arc::unwrap_or_clone).collect();
        let memory = held.values().map(|session| session.kept_bytes()).sum();
        reserved.push(Needs { memory, ..Needs::default() });
        reserved
    }

    fn reservations(&self) -> MutexGuard<'_, Vec<Weak<Needs>>> {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn demand(&self, engine: usize, assignment: &Assignment) -> Result<Demand, ApiError> {
        let engine = &self.engines[engine];
        match catch_unwind(AssertUnwindSafe(|| engine.demand(assignment))) {
            Ok(demand) => demand.map_err(|error| ApiError::new(ErrorKind::BadRequest, error.message)),
            Err(panic) => Err(ApiError::new(ErrorKind::Failed, panicked(engine.name(), panic.as_ref()).message)),
        }
    }

    /// Runs a session to its end. Called once, on a thread of its own.
    fn run(&self, session: &Arc<Session>, engine: usize, assignment: &Assignment) {
        let sending = self.replies.session(session.demand.sends.unwrap_or_default());
        let outcome = session.run(self.engines[engine].as_ref(), assignment);
        drop(sending);
        if let Ok(counts) = &outcome {
            self.metrics.count_payload(assignment.roles.iter().map(|role| &role.kind), counts);
        }
        self.end(session, assignment, outcome);
    }

    /// Settles what a session has come to, after its engine has let go of everything, and says so.
    fn end(&self, session: &Session, assignment: &Assignment, outcome: Outcome) {
        let event = match &outcome {
            Ok(_) => SessionEvent::Finished,
            Err(failure) if failure.kind == FailureKind::Stopped => SessionEvent::Stopped,
            Err(_) => SessionEvent::Failed,
        };
        self.metrics.count(session.task, event);
        let line = served::line(&session.opener, assignment, &outcome);
        // Before its place is free, so that the log shows no two sessions at a time that were none.
        self.log(|log| log.end(session, &outcome));
        // Whoever learns that the session is over finds the oldest gone already.
        let mut held = self.held();
        session.settle(outcome);
        make_room(&mut held, self.limits.budget.memory.get() / KEPT_SHARE);
        drop(held);
        // Last, for it may write where nobody reads.
        self.report.line(&line);
    }

    /// Stops a session that takes too long, and drops its counts when nobody fetches them.
    async fn tend(self: Arc<Self>, session: Arc<Session>) {
        let Timeouts { unordered, unfollowed, .. } = self.timeouts;
        let bounds = Bounds { unordered, unfollowed, max_time: self.limits.max_time };
        while let Some(deadline) = session.deadline(bounds) {
            tokio::select! {
                () = session.changed.notified() => {}
                () = tokio::time::sleep_until(deadline.at.into()) => session.stop(deadline.kind, deadline.message),
            }
        }
        session.ended().await;
        let over = Arc::downgrade(&session);
        drop(session);
        tokio::time::sleep(self.timeouts.unfetched).await;
        if let Some(session) = over.upgrade() {
            self.forget(&session);
        }
    }

    /// Takes the session out; another of the same name stays.
    fn forget(&self, session: &Arc<Session>) {
        let mut held = self.held();
        if held.get(&session.id).is_some_and(|other| Arc::ptr_eq(other, session)) {
            held.remove(&session.id);
        }
    }

    /// Returns the session of this name, if `grant` may lead it. To others it is as if there were none, but they cannot
    /// open one of its name.
    fn get(&self, id: &SessionId, grant: &Grant) -> Result<Arc<Session>, ApiError> {
        let mine = |session: &&Arc<Session>| grant.leads_sessions_of(&session.opener.credential);
        self.held().get(id).filter(mine).cloned().ok_or_else(|| {
            let message = format!(
                "there is no session `{id}` here; it was never opened, or it was closed, or its counts were dropped"
            );
            ApiError::new(ErrorKind::NotFound, message)
        })
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<SessionId, Arc<Session>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets the oldest sessions of each credential that are over, beyond those that are kept: nobody drops another's
/// counts. Those of one credential take at most `most_bytes`, unless the last one alone takes more.
fn make_room(held: &mut BTreeMap<SessionId, Arc<Session>>, most_bytes: u64) {
    let mut over = BTreeMap::<CredentialId, Vec<(Instant, SessionId, u64)>>::new();
    for session in held.values() {
        if let Some((_, ended)) = session.outcome() {
            let kept = (ended, session.id.clone(), session.kept_bytes());
            over.entry(session.opener.credential.clone()).or_default().push(kept);
        }
    }
    for sessions in over.values_mut() {
        sessions.sort();
        let mut bytes = 0_u64;
        for (number, (_, id, own)) in sessions.iter().rev().enumerate() {
            bytes = bytes.saturating_add(*own);
            if number >= KEPT || (number > 0 && bytes > most_bytes) {
                held.remove(id);
            }
        }
    }
}

/// Returns the stages of a session until its last one, which are followed until the stream is dropped.
fn stages((stages, follower): (watch::Receiver<Stage>, Follower)) -> impl Stream<Item = Stage> + use<> {
    WatchStream::new(stages).scan(false, move |ended, stage| {
        let _followed_until_dropped = &follower;
        let next = (!*ended).then_some(stage);
        *ended = next.as_ref().is_some_and(Stage::is_last);
        ready(next)
    })
}
