//! One session: its stages, the orders that lead it from one to the next, and how it ends.
//!
//! The engine runs on a thread of its own and waits here for orders; requests and time limits come from the agent's
//! event loop. Everything that decides stands in [`State`], under one lock.

mod lead;

use crate::grant::CredentialId;
use crate::watching::{Seen, Signal};
use lead::Lead;
use linerate_control::{ApiError, ErrorKind};
use linerate_engine::{
    Counted, Demand, Engine, EngineFailure, FailedBy, ListenOptions, PEER_GONE, Stop, Stopped, Timeline, proof,
};
use linerate_model::{
    Assignment, Endpoints, FailureKind, HostCounts, LinkId, Order, SessionFailure, SessionId, SessionKey,
    SessionProgress, Stage, TaskKind,
};
use linerate_sys::clock;
use linerate_units::Nanos;
use std::any::Any;
use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};

/// Outcome of a session.
pub(crate) type Outcome = Result<HostCounts, SessionFailure>;

/// Part of one host in one load of a trial.
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) task: TaskKind,
    pub(crate) demand: Demand,
    pub(crate) opener: Opener,
    /// Proves that a repeated request to open the session comes from its runner.
    key: SessionKey,
    /// The links that it connects to.
    connects: Vec<LinkId>,
    /// Options of its listeners.
    listening: ListenOptions,
    stop: Arc<Stop>,
    orders: Arc<Orders>,
    stage: watch::Sender<Stage>,
    /// Told at every change that moves the session's time limit.
    pub(crate) changed: Notify,
}

/// Client that opened a session, and the limits that follow.
#[derive(Debug)]
pub(crate) struct Opener {
    /// Address that the request came from. `None` for a request by NATS.
    pub(crate) host: Option<IpAddr>,
    pub(crate) credential: CredentialId,
    /// Fence of the fleet's scheduler that asked. `None` for other requests.
    pub(crate) fence: Option<u64>,
    /// The agent or the credential has a limit of rate.
    pub(crate) rate_limited: bool,
}

/// Waiting point of the engine.
struct Orders {
    state: Mutex<State>,
    given: Condvar,
}

struct State {
    /// Order that the engine waits for. `None` while it is at work.
    awaited: Option<Awaited>,
    /// Beginning of the wait or of the work.
    since: Instant,
    endpoints: Option<Endpoints>,
    /// Hosts that it was ordered to connect to.
    peers: BTreeSet<IpAddr>,
    /// Start time, on the clock of [`clock::now`].
    start: Option<u64>,
    /// Past or future start, on this lock's own clock.
    started: Option<Instant>,
    /// The times of the load that runs, and what wakes its watch; none where it has no window, or does not run.
    timeline: Option<(Timeline, Arc<Signal>)>,
    all_sent: bool,
    /// Orders that were carried out. Repeated ones change nothing.
    given: Vec<Order>,
    /// Connections that follow its stages.
    followers: usize,
    /// Time at which the last of them closed. `None` while it is followed.
    unfollowed: Option<Instant>,
    /// First reason why the agent stopped the session.
    stopped: Option<(FailureKind, String)>,
    outcome: Option<(Arc<Outcome>, Instant)>,
    /// Memory that the outcome takes while it is kept.
    kept_bytes: u64,
}

/// An order that an engine waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaited {
    Connect,
    Start,
    Drain,
}

/// A moment at which a session is stopped, and why.
#[derive(Debug)]
pub(crate) struct Deadline {
    pub(crate) at: Instant,
    pub(crate) kind: FailureKind,
    pub(crate) message: String,
}

/// Time that a session may take beyond its request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// For an order to come.
    pub(crate) unordered: Duration,
    /// For its runner to follow it again.
    pub(crate) unfollowed: Duration,
    /// From the start to the end.
    pub(crate) max_time: Nanos,
}

/// A task of known length that has not ended this long after it should have never will. Until then its path may be cut.
const OVERDUE: Duration = PEER_GONE;

impl Session {
    /// A session that has not begun, whose ends will listen so.
    pub(crate) fn new(assignment: &Assignment, demand: Demand, opener: Opener, listening: ListenOptions) -> Self {
        let state = State {
            awaited: None,
            since: Instant::now(),
            endpoints: None,
            peers: BTreeSet::new(),
            start: None,
            started: None,
            timeline: None,
            all_sent: false,
            given: Vec::new(),
            followers: 0,
            unfollowed: None,
            stopped: None,
            outcome: None,
            kept_bytes: 0,
        };
        let orders = Arc::new(Orders { state: Mutex::new(state), given: Condvar::new() });
        let stop = Arc::<Stop>::default();
        stop.on_stop({
            let orders = Arc::clone(&orders);
            move || {
                // Under the lock: whoever is about to wait sees the stop or hears of it.
                let _state = orders.lock();
                orders.given.notify_all();
            }
        });
        Self {
            id: assignment.id.clone(),
            task: assignment.task.kind(),
            demand,
            opener,
            key: assignment.key,
            connects: assignment.connects().collect(),
            listening,
            stop,
            orders,
            stage: watch::channel(Stage::Preparing { doing: None }).0,
            changed: Notify::new(),
        }
    }

    /// Follows its stages from now on. It goes on for a while after the last follower was dropped.
    pub(crate) fn follow(self: &Arc<Self>) -> (watch::Receiver<Stage>, Follower) {
        let mut state = self.orders.lock();
        state.followers += 1;
        state.unfollowed = None;
        self.changed.notify_one();
        (self.stage.subscribe(), Follower(Arc::clone(self)))
    }

    /// Returns whether `assignment` has the session's key, so that it comes from whoever opened the session.
    pub(crate) fn is_opened_by(&self, assignment: &Assignment) -> bool {
        proof::is_same(&self.key.0, &assignment.key.0)
    }

    /// Returns whether nobody follows it.
    pub(crate) fn is_unfollowed(&self) -> bool {
        self.orders.lock().unfollowed.is_some()
    }

    /// Returns whether its thread has returned.
    pub(crate) fn is_over(&self) -> bool {
        self.orders.lock().outcome.is_some()
    }

    /// Waits until its thread has returned.
    pub(crate) async fn ended(&self) {
        // It fails only if the sender is gone, and that is part of self.
        let _ = self.stage.subscribe().wait_for(Stage::is_last).await;
    }

    /// Returns the outcome and its time. `None` before the end.
    pub(crate) fn outcome(&self) -> Option<(Arc<Outcome>, Instant)> {
        self.orders.lock().outcome.clone()
    }

    /// Returns the memory that its counts take, bytes; zero before its end.
    pub(crate) fn kept_bytes(&self) -> u64 {
        self.orders.lock().kept_bytes
    }

    /// Returns the hosts that it was ordered to connect to.
    pub(crate) fn peers(&self) -> BTreeSet<IpAddr> {
        self.orders.lock().peers.clone()
    }

    /// Lists what the session left on the host; empty before its end.
    pub(crate) fn remains(&self) -> Vec<String> {
        match self.outcome().as_ref().map(|(outcome, _)| outcome.as_ref()) {
            Some(Ok(counts)) => counts.remains.clone(),
            Some(Err(failure)) => failure.remains.clone(),
            None => Vec::new(),
        }
    }

    /// Returns whether it connects to a peer by this link.
    pub(crate) fn connects_by(&self, link: &LinkId) -> bool {
        self.connects.contains(link)
    }

    /// Gives the engine the order that it waits for. A start may be delayed by `longest_delay` at most.
    ///
    /// # Errors
    /// It waits for another order or for none, or the order lacks something.
    pub(crate) fn order(&self, order: Order, longest_delay: Duration) -> Result<(), ApiError> {
        let bad = |message: String| Err(ApiError::new(ErrorKind::BadRequest, message));
        let mut state = self.orders.lock();
        // Once it has the lock: a window must not be opened in the past.
        let (now, instant) = (clock::now(), Instant::now());
        if state.stopped.is_some() && state.outcome.is_none() {
            return Err(self.conflict("is being stopped"));
        }
        // The answer to it was lost.
        if state.given.contains(&order) {
            return Ok(());
        }
        let accepted = order.clone();
        match (order, state.awaited) {
            (Order::Connect(endpoints), Some(Awaited::Connect)) => {
                if let Some(missing) = self.connects.iter().find(|link| !endpoints.contains_key(link)) {
                    return bad(format!("the order to connect lacks the address of link {}", missing.0));
                }
                state.peers = endpoints.values().map(|endpoint| endpoint.ip().to_canonical()).collect();
                state.endpoints = Some(endpoints);
            }
            (Order::Start { delay }, Some(Awaited::Start)) => {
                if Duration::from(delay) > longest_delay {
                    let longest = Nanos::from(longest_delay);
                    return bad(format!("a start can be delayed by {longest} at most, not by {delay}"));
                }
                state.start = Some(now.saturating_add(delay.get()));
                state.started = Some(instant + Duration::from(delay));
            }
            (Order::Drain, Some(Awaited::Drain)) => state.all_sent = true,
            (Order::Open { delay }, None) if matches!(*self.stage.borrow(), Stage::Running(_)) => {
                if Duration::from(delay) > longest_delay {
                    let longest = Nanos::from(longest_delay);
                    return bad(format!("a window can be opened {longest} from now at most, not {delay}"));
                }
                let Some((timeline, signal)) = &state.timeline else {
                    return Err(self.conflict("has no window to open: its task runs until it is done"));
                };
                // The order may come before the load begins.
                if !timeline.set_open(now.saturating_add(delay.get()).max(timeline.start())) {
                    let state =
                        "has its window set already: it opens once, and after a warm-up of fixed length by itself";
                    return Err(self.conflict(state));
                }
                signal.window_is_set();
                state.given.push(accepted);
                // Its time limit moves.
                self.changed.notify_one();
                return Ok(());
            }
            (order, _) => {
                let verb = match order {
                    Order::Connect(_) => "connect",
                    Order::Start { .. } => "start",
                    Order::Open { .. } => "open its window",
                    Order::Drain => "drain",
                };
                let stage = self.describe_stage(&state);
                return Err(self.conflict(&format!("{stage}, so it cannot {verb}")));
            }
        }
        state.given.push(accepted);
        state.awaited = None;
        state.since = instant;
        self.orders.given.notify_all();
        self.changed.notify_one();
        Ok(())
    }

    /// Stops it at whatever stage. Does nothing if it is over.
    pub(crate) fn stop(&self, kind: FailureKind, message: impl Into<String>) {
        let message = message.into();
        {
            let mut state = self.orders.lock();
            if state.outcome.is_some() {
                return;
            }
            state.stopped.get_or_insert_with(|| (kind, message.clone()));
        }
        self.stop.set(message);
    }

    /// Returns the deadline in the current state. `None` if the session has been stopped or is over.
    pub(crate) fn deadline(&self, bounds: Bounds) -> Option<Deadline> {
        let state = self.orders.lock();
        if state.stopped.is_some() || state.outcome.is_some() {
            return None;
        }
        let own = self.stage_deadline(&state, bounds);
        let unfollowed = state.unfollowed.map(|since| Deadline {
            at: since + bounds.unfollowed,
            kind: FailureKind::Stopped,
            message: format!(
                "whoever opened the session closed its connection and did not come back within {}",
                Nanos::from(bounds.unfollowed)
            ),
        });
        Some(unfollowed.filter(|unfollowed| unfollowed.at < own.at).unwrap_or(own))
    }

    /// Returns the time limit of the stage it is in.
    fn stage_deadline(&self, state: &State, bounds: Bounds) -> Deadline {
        let max_time = Duration::from(bounds.max_time);
        let beyond = "start it with a higher `linerate serve --max-time`";
        // To make and remove what a load needs is work of this host, too. Connecting waits for other hosts, which get
        // the time for an order in any case.
        let set_up = Duration::from(self.demand.set_up).min(max_time);
        let preparing = max_time.max(bounds.unordered);
        // The other hosts of a task without a length of its own may prepare as long as this one.
        let waiting = bounds.unordered + if self.demand.time.is_some() { set_up } else { preparing };
        let length = self.demand.time.map_or(max_time, Duration::from);
        match (state.awaited, state.started) {
            // A host that has nothing to send has sent at once, and waits for the others.
            (Some(Awaited::Drain), Some(started)) => Deadline {
                at: started + length + waiting,
                kind: FailureKind::Stopped,
                message: String::from("nobody ordered it to drain"),
            },
            (Some(awaited), _) => Deadline {
                at: state.since + waiting,
                kind: FailureKind::Stopped,
                message: format!("nobody ordered it to {} for {}", awaited.verb(), Nanos::from(waiting)),
            },
            (None, None) => Deadline {
                at: state.since + preparing,
                kind: FailureKind::Limit,
                message: format!(
                    "preparing took longer than the {} this agent allows; {beyond}",
                    Nanos::from(preparing)
                ),
            },
            (None, Some(started)) => match (self.demand.time, &state.timeline) {
                (None, _) => Deadline {
                    at: started + max_time,
                    kind: FailureKind::Limit,
                    message: format!("it took longer than the {} this agent allows; {beyond}", bounds.max_time),
                },
                (Some(time), Some((timeline, _))) if !timeline.is_set() => {
                    let warmup = time - timeline.measure();
                    Deadline {
                        at: started + Duration::from(warmup) + bounds.unordered,
                        kind: FailureKind::Stopped,
                        message: format!(
                            "nobody ordered it to open its window for {} after the {warmup} its warm-up was to take at most",
                            Nanos::from(bounds.unordered)
                        ),
                    }
                }
                (Some(time), timeline) => {
                    // Its window may have been opened later than it was to.
                    let took = timeline.as_ref().map(|(times, _)| Nanos::new(times.close() - times.start()));
                    let time = took.map_or(time, |took| took.max(time));
                    Deadline {
                        at: started + Duration::from(time) + set_up + OVERDUE,
                        kind: FailureKind::Limit,
                        message: format!("it was to take {time} and did not end"),
                    }
                }
            },
        }
    }

    /// Runs `engine` to its end and returns what the session has come to. Called once, on a thread of its own.
    pub(crate) fn run(self: &Arc<Self>, engine: &dyn Engine, assignment: &Assignment) -> Outcome {
        let lead = Lead::of(self, assignment.sampling);
        let ran = catch_unwind(AssertUnwindSafe(|| engine.run(assignment, &lead)));
        let seen = lead.stop_watching();
        match ran {
            Ok(Ok(counted)) => self.counted(counted, seen),
            Ok(Err(failure)) => Err(self.failed(failure)),
            Err(panic) => Err(panicked(engine.name(), panic.as_ref())),
        }
    }

    /// Ends the session: nothing of it is left on the host but what `outcome` names.
    pub(crate) fn settle(&self, outcome: Outcome) {
        let kept_bytes = memory_of(&outcome);
        let outcome = Arc::new(outcome);
        let mut state = self.orders.lock();
        state.outcome = Some((Arc::clone(&outcome), Instant::now()));
        state.kept_bytes = kept_bytes;
        // Nobody connects any more.
        state.endpoints = None;
        drop(state);
        // What is still to be woken holds sockets, and a thread left by a panic is to end.
        self.stop.set(String::from("the session is over"));
        self.stage.send_replace(match outcome.as_ref() {
            Ok(_) => Stage::Done,
            Err(failure) => Stage::Failed(failure.clone()),
        });
        self.changed.notify_one();
    }

    fn counted(&self, counted: Counted, seen: Seen) -> Outcome {
        let Counted { roles, started_unix_ns, caveats, remains } = counted;
        // Stopped too late for the engine to notice: whoever stopped it waits for no counts.
        if let Some((kind, message)) = self.orders.lock().stopped.clone() {
            return Err(SessionFailure { kind, message, remains });
        }
        let Seen { observation, series } = seen;
        Ok(HostCounts {
            roles,
            observation: observation.unwrap_or_default(),
            series,
            started_unix_ns,
            caveats,
            remains,
        })
    }

    fn failed(&self, failure: EngineFailure) -> SessionFailure {
        let EngineFailure { error, remains } = failure;
        let (kind, message) = match (self.orders.lock().stopped.clone(), error) {
            // What the engine met after the stop follows from it.
            (Some(stopped), _) => stopped,
            (None, FailedBy::Task(error)) => (FailureKind::Task, error.message),
            // The engine stopped itself, and gave the stop its reason.
            (None, FailedBy::Stop(stopped)) => {
                (FailureKind::Task, self.stop.take_reason().unwrap_or_else(|| stopped.to_string()))
            }
        };
        SessionFailure { kind, message, remains }
    }

    /// Says which stage it has reached, and what it waits for there.
    fn reach(&self, stage: Stage, awaited: Option<Awaited>) {
        let mut state = self.orders.lock();
        state.awaited = awaited;
        // All that is prepared takes its part of one time.
        let goes_on = matches!((&*self.stage.borrow(), &stage), (Stage::Preparing { .. }, Stage::Preparing { .. }));
        if !goes_on {
            state.since = Instant::now();
        }
        self.stage.send_replace(stage);
        self.changed.notify_one();
    }

    /// Waits until `order` finds the order that is waited for at `stage`.
    fn wait<T>(&self, stage: Stage, awaited: Awaited, order: impl Fn(&State) -> Option<T>) -> Result<T, Stopped> {
        let mut state = self.orders.lock();
        if let Some(given) = order(&state) {
            return Ok(given);
        }
        drop(state);
        self.reach(stage, Some(awaited));
        state = self.orders.lock();
        loop {
            if self.stop.is_set() {
                state.awaited = None;
                return Err(Stopped);
            }
            if let Some(given) = order(&state) {
                return Ok(given);
            }
            state = self.orders.given.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Tells progress, if it is at work.
    fn progress(&self, progress: SessionProgress) {
        self.stage.send_if_modified(|stage| match stage {
            Stage::Running(last) if *last != progress => {
                *last = progress;
                true
            }
            _ => false,
        });
    }

    fn describe_stage(&self, state: &State) -> String {
        match (&*self.stage.borrow(), state.awaited) {
            (Stage::Preparing { doing: None }, _) => String::from("is being prepared"),
            (Stage::Preparing { doing: Some(doing) }, _) => format!("is being prepared ({doing})"),
            (Stage::Listening { .. }, Some(_)) => String::from("waits for the order to connect"),
            (Stage::Listening { .. }, None) => String::from("is connecting"),
            (Stage::Ready(_), Some(_)) => String::from("waits for the order to start"),
            (Stage::Ready(_), None) => String::from("was started"),
            (Stage::Running(_), _) => String::from("is running"),
            (Stage::Sent, Some(_)) => String::from("waits for the order to drain"),
            (Stage::Sent, None) => String::from("is draining"),
            (Stage::Done, _) => String::from("is done"),
            (Stage::Failed(_), _) => String::from("has failed"),
        }
    }

    pub(crate) fn conflict(&self, state: &str) -> ApiError {
        ApiError::new(ErrorKind::Conflict, format!("the session `{}` {state}", self.id))
    }
}

/// Memory that an outcome takes, bytes: about twice its JSON, of which most is short numbers.
fn memory_of(outcome: &Outcome) -> u64 {
    let mut json = Length(0);
    let written = match outcome {
        Ok(counts) => serde_json::to_writer(&mut json, counts),
        Err(failure) => serde_json::to_writer(&mut json, failure),
    };
    // What cannot be written is not kept long either: nobody can fetch it.
    if written.is_ok() { json.0.saturating_mul(2) } else { 0 }
}

/// Counts the bytes that are written.
struct Length(u64);

impl io::Write for Length {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A connection that follows a session.
pub(crate) struct Follower(Arc<Session>);

impl Drop for Follower {
    fn drop(&mut self) {
        let mut state = self.0.orders.lock();
        state.followers -= 1;
        if state.followers == 0 {
            state.unfollowed = Some(Instant::now());
            self.0.changed.notify_one();
        }
    }
}

impl Orders {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Awaited {
    fn verb(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Start => "start",
            Self::Drain => "drain",
        }
    }
}

/// A panic is a failure like others: it must not leave a session that never ends.
pub(crate) fn panicked(engine: &str, panic: &(dyn Any + Send)) -> SessionFailure {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    SessionFailure {
        kind: FailureKind::Panic,
        message: format!(
            "the engine `{engine}` panicked ({}); this is a bug in linerate, please report it",
            text.unwrap_or("no message")
        ),
        remains: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_engine::Needs;
    use linerate_model::Preparation;
    use linerate_model::{Ready, SessionKey, Task, Timing, TransactTask, Transport, Warmup, Window};

    const BOUNDS: Bounds = Bounds {
        unordered: Duration::from_secs(30),
        unfollowed: Duration::from_secs(40),
        max_time: Nanos::from_secs(600),
    };

    /// A session that waits for its start; an engine's thread would block in `wait`.
    fn ready(time: Option<Nanos>, set_up: Nanos) -> Session {
        let assignment = Assignment {
            id: SessionId("t".into()),
            key: SessionKey([0; 16]),
            task: Task::Transact(TransactTask::plain(Transport::Tcp)),
            timing: Timing::UntilDone,
            roles: Vec::new(),
            password: None,
            sampling: linerate_model::Sampling::default(),
        };
        let (flows, needs) = (1, Needs::default());
        let demand = Demand { sends: None, receives: None, time, flows, needs, exclusive: None, set_up };
        let host = Some([192, 0, 2, 9].into());
        let opener = Opener { host, credential: None, fence: None, rate_limited: false };
        let session = Session::new(&assignment, demand, opener, ListenOptions::default());
        session.reach(Stage::Ready(Ready::default()), Some(Awaited::Start));
        session
    }

    /// Asserts that the time limit is so many seconds after some moment since `begun`, and why it is there.
    #[track_caller]
    fn assert_bound(session: &Session, begun: Instant, seconds: u64, kind: FailureKind, what: &str) {
        let deadline = session.deadline(BOUNDS).expect("a limit");
        let earliest = begun + Duration::from_secs(seconds);
        assert!(
            (earliest..=earliest + begun.elapsed()).contains(&deadline.at),
            "{what}: {deadline:?} is not {seconds} s after"
        );
        assert_eq!(deadline.kind, kind, "{what}");
    }

    #[test]
    fn a_limit_of_time_holds_at_every_stage() {
        let (time, set_up) = (Some(Nanos::from_secs(10)), Nanos::from_secs(100));
        let begun = Instant::now();
        let session = ready(time, set_up);
        assert_bound(&session, begun, 30 + 100, FailureKind::Stopped, "for an order");
        session.order(Order::Start { delay: Nanos::from_secs(5) }, Duration::from_secs(30)).expect("it is ready");
        assert_bound(&session, begun, 5 + 10 + 100 + 90, FailureKind::Limit, "for the end of what has a length");
        session.reach(Stage::Sent, Some(Awaited::Drain));
        assert_bound(&session, begun, 5 + 10 + 30 + 100, FailureKind::Stopped, "for the other hosts to have sent");

        let begun = Instant::now();
        let session = ready(None, set_up);
        assert_bound(&session, begun, 30 + 600, FailureKind::Stopped, "other hosts may prepare as long");
        session.order(Order::Start { delay: Nanos::default() }, Duration::from_secs(30)).expect("it is ready");
        assert_bound(&session, begun, 600, FailureKind::Limit, "for the end of what has none");
        session.reach(Stage::Running(SessionProgress::default()), None);
        assert_bound(&session, begun, 600, FailureKind::Limit, "work does not move it");

        let begun = Instant::now();
        let session = ready(time, set_up);
        session.reach(Stage::Preparing { doing: Some(Preparation::MakingFiles) }, None);
        assert_bound(&session, begun, 600, FailureKind::Limit, "for preparing");
        session.stop(FailureKind::Stopped, "enough");
        assert!(session.deadline(BOUNDS).is_none(), "it is being stopped already");
    }

    /// The attack: an engine that always has something else to prepare, as for a task of its caller's choice, never
    /// ends.
    #[test]
    fn all_that_is_prepared_has_one_limit_of_time() {
        let begun = Instant::now();
        let session = ready(None, Nanos::default());
        let preparing = |doing| session.reach(Stage::Preparing { doing: Some(doing) }, None);
        preparing(Preparation::MakingFiles);
        let limit = session.deadline(BOUNDS).expect("a limit").at;
        preparing(Preparation::EmptyingCaches);
        assert_eq!(session.deadline(BOUNDS).expect("a limit").at, limit, "the next step has what the first left");
        session.reach(Stage::Ready(Ready::default()), Some(Awaited::Start));
        preparing(Preparation::CountingTree);
        assert!(session.deadline(BOUNDS).expect("a limit").at > limit, "another stage lay between");
        assert_bound(&session, begun, 600, FailureKind::Limit, "for preparing again");
    }

    #[test]
    fn a_window_that_waits_for_its_order_moves_the_limit() {
        let [at_most, measure] = [4, 6].map(Nanos::from_secs);
        let begun = Instant::now();
        let session = ready(Some(at_most + measure), Nanos::from_secs(100));
        session.order(Order::Start { delay: Nanos::default() }, Duration::from_secs(30)).expect("it is ready");
        let start = clock::now();
        let warmup = Warmup::Steady { at_most, then: Nanos::default() };
        let timeline = Timeline::new(start, Window { warmup, measure });
        session.orders.lock().timeline = Some((timeline.clone(), Arc::default()));
        session.reach(Stage::Running(SessionProgress::default()), None);
        assert_bound(&session, begun, 4 + 30, FailureKind::Stopped, "for the order");
        session.order(Order::Open { delay: Nanos::from_secs(9) }, Duration::from_secs(30)).expect("it waits for it");
        assert_bound(&session, begun, 9 + 6 + 100 + 90, FailureKind::Limit, "for the end, later than it was to be");
        let again = session.order(Order::Open { delay: Nanos::default() }, Duration::from_secs(30)).expect_err("set");
        assert!(again.message.contains("has its window set already"), "{}", again.message);
    }

    #[test]
    fn unfollowed_session_has_a_grace_period() {
        let session = Arc::new(ready(None, Nanos::default()));
        session.order(Order::Start { delay: Nanos::default() }, Duration::from_secs(30)).expect("it is ready");
        let (_, first) = session.follow();
        let (_, second) = session.follow();
        let begun = Instant::now();
        drop(first);
        assert!(!session.is_unfollowed(), "a runner that connects again drops the old connection later");
        drop(second);
        assert_bound(&session, begun, 40, FailureKind::Stopped, "after the last follower");
        let message = session.deadline(BOUNDS).expect("a limit").message;
        assert!(message.contains("did not come back within 40 s"), "{message}");
        let (_, _back) = session.follow();
        assert_eq!(session.deadline(BOUNDS).expect("a limit").kind, FailureKind::Limit, "its runner is back");
    }

    #[test]
    fn repeated_order_changes_nothing() {
        let session = ready(Some(Nanos::from_secs(10)), Nanos::default());
        let start = Order::Start { delay: Nanos::from_secs(5) };
        session.order(start.clone(), Duration::from_secs(30)).expect("it is ready");
        let limit = session.deadline(BOUNDS).expect("a limit").at;
        session.order(start, Duration::from_secs(30)).expect("its answer was lost");
        assert_eq!(session.deadline(BOUNDS).expect("a limit").at, limit, "it starts once");
        session.order(Order::Start { delay: Nanos::default() }, Duration::ZERO).expect_err("another order");
    }

    #[test]
    fn the_first_reason_to_stop_counts() {
        let session = ready(None, Nanos::default());
        session.stop(FailureKind::Limit, "too long");
        session.stop(FailureKind::Stopped, "closed");
        let waited = session.wait(Stage::Ready(Ready::default()), Awaited::Start, |state| state.start);
        let failure = session.failed(EngineFailure::from(waited.expect_err("it is stopped")));
        assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::Limit, "too long"));
        let late = session.order(Order::Start { delay: Nanos::default() }, Duration::ZERO).expect_err("stopped");
        assert!(late.message.contains("is being stopped"), "{}", late.message);
    }
}
