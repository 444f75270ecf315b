//! One attempt at a trial through the agents: open a session for each load and host, and lead them all through their
//! stages.
//!
//! Barriers are here alone: no session connects before all listen, none starts before all are ready, none opens its
//! window on order before all run, and none stops counting before all have sent.

use crate::error::HostFailure;
use crate::event::Event;
use crate::{Agents, OpenSession, RunError};
use futures_util::StreamExt;
use futures_util::future::{join_all, try_join_all};
use futures_util::stream::FuturesUnordered;
use linerate_method::{Joining, SteadyState, assign, drains, join, survives};
use linerate_model::{
    Assignment, Caveat, CaveatKind, Endpoints, FailureKind, HostName, LinkId, Load, Order, Password, Ready, Sampling,
    SessionId, SessionKey, SessionProgress, Stage, Trial, TrialResult, Warmup, message,
};
use linerate_units::Nanos;
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Time within which an agent must confirm that its session is closed. After it, the agent's own bounds end the
/// session.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Time after the failure of a session in which the loss of another agent counts as its cause. A check of an agent that
/// was killed fails after 1 s to 2 s.
const LOSS_NOTICED: Duration = Duration::from_secs(2);

/// Time from the end of a warm-up to the opening of the window: the order has to reach all hosts.
const OPENING: Nanos = Nanos::from_millis(50);

/// Time added to the longest warm-up before windows open without any progress report from the hosts.
const REPORT_GRACE: Duration = Duration::from_secs(1);

/// Consumer of events, shared by the sessions that are followed concurrently.
pub(crate) type OnEvent<'a, 'b> = &'a RefCell<&'b mut dyn FnMut(Event<'_>)>;

/// All sessions of one attempt.
pub(crate) struct Sessions<'a> {
    trial: &'a Trial,
    agents: &'a dyn Agents,
    all: Vec<Session<'a>>,
    /// The hosts that each load lost and goes on without.
    lost: Vec<RefCell<Vec<HostName>>>,
    /// Caveats of each load that arose when it was divided among the hosts.
    caveats: Vec<Vec<Caveat>>,
    warm_up: WarmUp,
    sampling: Sampling,
    /// Beginning of the names of the sessions.
    names: String,
}

/// The warm-up of a trial whose windows open when it is steady.
struct WarmUp {
    /// `None` if the length is fixed, or once the warm-up is over.
    state: RefCell<Option<SteadyState>>,
    /// Number of sessions without a running load.
    not_running: watch::Sender<usize>,
    /// Longest time that the warm-up may take after the last session runs.
    max_length: Cell<Duration>,
    /// Time at which the warm-up is over in any case.
    deadline: Cell<Instant>,
    is_over: watch::Sender<bool>,
}

impl WarmUp {
    fn of(trial: &Trial) -> Self {
        Self {
            state: RefCell::new(SteadyState::of(trial)),
            not_running: watch::Sender::default(),
            max_length: Cell::default(),
            deadline: Cell::new(Instant::now()),
            is_over: watch::Sender::new(false),
        }
    }

    /// Takes a progress report of `host` in the measured load.
    fn take(&self, host: &HostName, progress: &SessionProgress) {
        if let Some(state) = &mut *self.state.borrow_mut() {
            state.take(host, progress);
        }
    }

    /// Records that the load of one more session runs.
    fn session_runs(&self) {
        self.deadline.set(Instant::now() + self.max_length.get());
        self.not_running.send_modify(|count| *count = count.saturating_sub(1));
    }

    /// Ends the warm-up if the load is steady and all sessions run.
    fn judge(&self) {
        let mut state = self.state.borrow_mut();
        if *self.not_running.borrow() == 0 && state.as_ref().is_some_and(SteadyState::is_over) {
            *state = None;
            self.is_over.send_replace(true);
        }
    }

    /// Waits until the window has to be opened by order, and returns the delay for that order. Waits forever if the
    /// window opens by itself.
    async fn ends(&self, opening: Option<Nanos>) -> Nanos {
        let Some(delay) = opening else { return std::future::pending().await };
        let mut is_over = self.is_over.subscribe();
        let mut not_running = self.not_running.subscribe();
        let deadline = async {
            let _ = not_running.wait_for(|count| *count == 0).await;
            sleep_until(self.deadline.get()).await;
        };
        tokio::select! {
            // This fails only if the sender is gone, and the sender is part of `self`.
            _ = is_over.wait_for(|is_over| *is_over) => {}
            () = deadline => {}
        }
        delay
    }
}

/// Session of one load at one host.
struct Session<'a> {
    load_index: usize,
    /// Index among the sessions of the load.
    place: usize,
    load: &'a Load,
    host: HostName,
    part: Assignment,
    handle: Box<dyn OpenSession>,
    /// Latest stage that the agent reported.
    stage: Stage,
    /// Last stage that the orders given so far permit.
    allowed: Allowed,
    /// Delay from the order to the opening of the window. `None` once it was ordered, or if the window opens by itself.
    opening: Option<Nanos>,
    listens: Endpoints,
    ready: Ready,
    /// Reason for the loss of the agent, if the load goes on without it.
    lost: Option<String>,
}

/// Last stage that a session may enter by the orders given so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Allowed {
    Listening,
    Ready,
    Sent,
    Done,
}

impl<'a> Sessions<'a> {
    /// Prepares the sessions of `trial` without opening them. Their names begin with `names`, or with a random one.
    pub(crate) fn new(trial: &'a Trial, agents: &'a dyn Agents, sampling: Sampling, names: Option<String>) -> Self {
        let lost = trial.loads.iter().map(|_| RefCell::default()).collect();
        let names = names.unwrap_or_else(|| format!("{:016x}", rand::random::<u64>()));
        Self { trial, agents, all: Vec::new(), lost, caveats: Vec::new(), warm_up: WarmUp::of(trial), sampling, names }
    }

    fn name(&self, load_index: usize, place: usize) -> SessionId {
        SessionId(format!("{}-{load_index}-{place}", self.names))
    }

    /// Fetches the counts of an attempt that another runner led to its end. If a session of it is not done, all are
    /// closed, and the result is `None`.
    pub(crate) async fn take_over(&self, attempt: u32) -> Option<Result<TrialResult, RunError>> {
        let mut all_loads = Vec::new();
        let mut is_complete = true;
        for (load_index, load) in self.trial.loads.iter().enumerate() {
            let assigned = assign(load, self.agents).ok()?;
            let hosts = assigned.parts.into_iter().map(|(host, _)| host).enumerate();
            let parts = join_all(hosts.map(async |(place, host)| {
                let id = self.name(load_index, place);
                let counts = self.agents.kept_counts(&host, &id).await;
                (host, counts)
            }))
            .await;
            is_complete &= parts.iter().all(|(_, counts)| counts.is_some());
            all_loads.push((assigned.caveats, parts));
        }
        if is_complete {
            let mut loads = Vec::new();
            for (caveats, parts) in all_loads {
                let parts = parts.into_iter().filter_map(|(host, counts)| Some((host, Ok(counts?)))).collect();
                loads.push(Joining { caveats, parts });
            }
            return Some(join(self.trial, attempt, loads).map_err(RunError::Counts));
        }
        for (load_index, (_, parts)) in all_loads.iter().enumerate() {
            join_all(parts.iter().enumerate().map(async |(place, (host, _))| {
                let id = self.name(load_index, place);
                let closing = self.agents.close(host, &id);
                // An agent that does not answer ends the session by itself.
                let _ = tokio::time::timeout(CLOSE_TIMEOUT, closing).await;
            }))
            .await;
        }
        None
    }

    /// Opens the sessions and leads them to their counts. After a failure the open ones stay open: [`Sessions::close`]
    /// ends them.
    ///
    /// # Errors
    /// A host has no address or no agent, refuses, fails, is lost, or reports a stage that is not due.
    pub(crate) async fn run(
        &mut self,
        attempt: u32,
        password: Option<&Password>,
        on_event: OnEvent<'_, '_>,
    ) -> Result<TrialResult, RunError> {
        match self.lead(attempt, password, on_event).await {
            Err(RunError::Host { host, stage, source: HostFailure::Session(failure) })
                if failure.kind == FailureKind::Task =>
            {
                let loss = self.loss_after_failure(&host).await;
                Err(loss.unwrap_or(RunError::Host { host, stage, source: failure.into() }))
            }
            result => result,
        }
    }

    async fn lead(
        &mut self,
        attempt: u32,
        password: Option<&Password>,
        on_event: OnEvent<'_, '_>,
    ) -> Result<TrialResult, RunError> {
        self.open(password).await?;
        self.reach(|stage| matches!(stage, Stage::Listening { .. }), on_event).await?;
        self.connect().await?;
        self.reach(|stage| matches!(stage, Stage::Ready(_)), on_event).await?;
        self.start(on_event).await?;
        self.follow(on_event).await?;
        self.counts(attempt).await
    }

    /// Returns the loss of another agent within [`LOSS_NOTICED`] after the session at `failed` failed. When an agent is
    /// lost, its peers may be the first to report it, because their connections to it break.
    async fn loss_after_failure(&mut self, failed: &HostName) -> Option<RunError> {
        let others = self.all.iter_mut().filter(|session| session.host != *failed && session.lost.is_none());
        let mut losses: FuturesUnordered<_> = others.map(Session::loss).collect();
        tokio::time::timeout(LOSS_NOTICED, losses.next()).await.ok().flatten()
    }

    async fn open(&mut self, password: Option<&Password>) -> Result<(), RunError> {
        for (load_index, load) in self.trial.loads.iter().enumerate() {
            let mut assigned = assign(load, self.agents).map_err(RunError::Plan)?;
            assigned.mark(rand::random());
            self.caveats.push(assigned.caveats);
            let key = SessionKey(rand::random());
            let agents = self.agents;
            let names = &self.names;
            let all = RefCell::new(&mut self.all);
            // The sessions of a load are opened concurrently. Each is listed as soon as it is open, so that `close`
            // ends it even if another fails.
            let results = join_all(assigned.parts.into_iter().enumerate().map(async |(place, (host, roles))| {
                let part = Assignment {
                    id: SessionId(format!("{names}-{load_index}-{place}")),
                    key,
                    task: assigned.load.task.clone(),
                    timing: assigned.load.timing,
                    roles,
                    password: password.cloned(),
                    sampling: self.sampling,
                };
                let handle = agents.open(&host, &part).await.map_err(|error| error.in_stage("opening"))?;
                all.borrow_mut().push(Session {
                    load_index,
                    place,
                    load,
                    host,
                    part,
                    handle,
                    stage: Stage::Preparing { doing: None },
                    allowed: Allowed::Listening,
                    opening: None,
                    listens: Endpoints::new(),
                    ready: Ready::default(),
                    lost: None,
                });
                Ok(())
            }))
            .await;
            results.into_iter().collect::<Result<(), RunError>>()?;
        }
        self.all.sort_by_key(|session| (session.load_index, session.place));
        Ok(())
    }

    /// Waits until every session has reached a stage that is `wanted`, or one of them fails.
    async fn reach(&mut self, wanted: fn(&Stage) -> bool, on_event: OnEvent<'_, '_>) -> Result<(), RunError> {
        all_reach(self.all.iter_mut(), wanted, None, &self.warm_up, on_event).await
    }

    /// Orders each session to connect its links to the addresses at which its peers listen.
    async fn connect(&mut self) -> Result<(), RunError> {
        let mut endpoints = Vec::new();
        for session in &self.all {
            let links = session.part.connects().map(|link| self.endpoint(session, link));
            endpoints.push(links.collect::<Result<Endpoints, _>>()?);
        }
        let orders = self.all.iter_mut().zip(endpoints);
        try_join_all(orders.map(|(session, links)| session.order(Order::Connect(links)))).await?;
        Ok(())
    }

    /// Finds the address at which a peer of `session` listens on `link`.
    fn endpoint(&self, session: &Session<'_>, link: LinkId) -> Result<(LinkId, SocketAddr), RunError> {
        for peer in self.all.iter().filter(|peer| peer.load_index == session.load_index) {
            if let Some(address) = peer.listens.get(&link) {
                return Ok((link, self.agents.endpoint(*address, &peer.host, &session.host)));
            }
        }
        Err(RunError::Plan(format!("no host of the trial listens on link {} of {}", link.0, session.host)))
    }

    /// Starts all sessions at the same time: more distant agents are given a shorter delay.
    async fn start(&mut self, on_event: OnEvent<'_, '_>) -> Result<(), RunError> {
        let files = self.all.iter().map(|session| session.ready.files).sum();
        let bytes = self.all.iter().map(|session| session.ready.bytes).sum();
        on_event.borrow_mut()(Event::Starts { files, bytes });
        let lead = self.all.iter().map(|session| session.ready.lead).max().unwrap_or_default();
        let agents = self.agents;
        let round_trip = |session: &Session<'_>| agents.round_trip(&session.host);
        let furthest = self.all.iter().map(round_trip).max().unwrap_or_default();
        // The windows of all loads open together, not only that of the measured load. Agents add the time of a `then`
        // themselves.
        let at_most = self.trial.loads.iter().filter_map(steady_at_most).max();
        self.warm_up.not_running.send_replace(self.all.len());
        self.warm_up.max_length.set(Duration::from(lead + furthest + at_most.unwrap_or_default()) + REPORT_GRACE);
        try_join_all(self.all.iter_mut().map(|session| {
            let head_start = Nanos::new((furthest - round_trip(session)).get() / 2);
            session.opening = steady_at_most(session.load).map(|_| OPENING + head_start);
            session.order(Order::Start { delay: lead + head_start })
        }))
        .await?;
        Ok(())
    }

    /// Follows all sessions to their end. The sessions of a load that drains wait for each other before they drain.
    async fn follow(&mut self, on_event: OnEvent<'_, '_>) -> Result<(), RunError> {
        let mut loads: Vec<Vec<&mut Session<'_>>> = self.trial.loads.iter().map(|_| Vec::new()).collect();
        for session in &mut self.all {
            loads[session.load_index].push(session);
        }
        let warm_up = &self.warm_up;
        // A load that drains must not wait for one that does not.
        try_join_all(loads.into_iter().zip(&self.lost).map(async |(mut sessions, lost)| {
            if sessions.iter().any(|session| drains(&session.load.task)) {
                // A session that sends nothing is `Sent` at once; its loss is noticed while the others still send.
                all_reach(sessions.iter_mut().map(|session| &mut **session), is_sent, Some(lost), warm_up, on_event)
                    .await?;
                let remaining = sessions.iter_mut().filter(|session| session.lost.is_none());
                try_join_all(remaining.map(|session| session.order(Order::Drain))).await?;
            }
            try_join_all(sessions.iter_mut().map(|session| session.until(is_done, Some(lost), warm_up, on_event))).await
        }))
        .await?;
        Ok(())
    }

    /// Fetches the counts of each session and joins them.
    async fn counts(&self, attempt: u32) -> Result<TrialResult, RunError> {
        let counts = try_join_all(self.all.iter().map(async |session| match &session.lost {
            Some(reason) => Ok(Err(reason.clone())),
            None => session.handle.counts().await.map(Ok).map_err(|error| session.failed(error)),
        }))
        .await?;
        let mut loads = Vec::new();
        for caveats in &self.caveats {
            loads.push(Joining { caveats: caveats.clone(), parts: Vec::new() });
        }
        for (session, counts) in self.all.iter().zip(counts) {
            loads[session.load_index].parts.push((session.host.clone(), counts));
        }
        join(self.trial, attempt, loads).map_err(RunError::Counts)
    }

    /// Ends all open sessions and returns what could not be removed. Sessions that connect are closed first: they may
    /// have to remove what they made at their peers. A lost agent ends its session by itself.
    pub(crate) async fn close(self) -> Vec<Caveat> {
        let set_up = self.trial.loads.iter().map(|load| load.task.set_up()).max().unwrap_or_default();
        let timeout = CLOSE_TIMEOUT + Duration::from(set_up);
        let mut remains = Vec::new();
        for clients in [true, false] {
            let sessions = self.all.iter().filter(|session| session.part.connects().next().is_some() == clients);
            let closed = join_all(sessions.map(async |session| {
                let result = tokio::time::timeout(timeout, session.handle.close()).await;
                (&session.host, result.ok().and_then(Result::ok).unwrap_or_default())
            }))
            .await;
            for (host, texts) in closed {
                remains.extend(texts.iter().map(|text| left_behind(host, text)));
            }
        }
        remains
    }
}

impl Session<'_> {
    /// Follows the session until a stage that is `wanted`. If the load can go on without a host, `lost` lists the hosts
    /// lost so far, and this host may be added to them.
    async fn until(
        &mut self,
        wanted: fn(&Stage) -> bool,
        lost: Option<&RefCell<Vec<HostName>>>,
        warm_up: &WarmUp,
        on_event: OnEvent<'_, '_>,
    ) -> Result<(), RunError> {
        while self.lost.is_none() && !wanted(&self.stage) {
            match self.next(warm_up, on_event).await {
                Ok(()) => {}
                Err(error) => {
                    let Some(lost) = lost else { return Err(error) };
                    lost.borrow_mut().push(self.host.clone());
                    if !survives(self.load, &lost.borrow()) {
                        return Err(error);
                    }
                    self.lost = Some(error.to_string());
                }
            }
        }
        Ok(())
    }

    /// Checks the agent, and waits until it is lost. Waits forever once the session is over.
    async fn loss(&mut self) -> RunError {
        // An agent that was killed is absent from its fleet at once, but its stages are waited for.
        if let Err(error) = self.handle.check().await {
            return self.failed(error);
        }
        while !matches!(self.stage, Stage::Done | Stage::Failed(_)) {
            match self.handle.stage().await {
                Ok(stage) => self.stage = stage,
                Err(error) => return self.failed(error),
            }
        }
        std::future::pending().await
    }

    async fn order(&mut self, order: Order) -> Result<(), RunError> {
        self.allowed = match order {
            Order::Open { .. } => self.allowed,
            Order::Connect(_) => Allowed::Ready,
            Order::Start { .. } if drains(&self.load.task) => Allowed::Sent,
            Order::Start { .. } | Order::Drain => Allowed::Done,
        };
        self.handle.order(&order).await.map_err(|error| self.failed(error))
    }

    /// Waits for the next stage and acts on it, or orders the window open when the warm-up ends.
    async fn next(&mut self, warm_up: &WarmUp, on_event: OnEvent<'_, '_>) -> Result<(), RunError> {
        // An agent accepts this order only while its load runs.
        let opening = self.opening.filter(|_| matches!(self.stage, Stage::Running(_)));
        let stage = tokio::select! {
            biased;
            delay = warm_up.ends(opening) => {
                self.opening = None;
                return self.order(Order::Open { delay }).await;
            }
            stage = self.handle.stage() => stage.map_err(|error| self.failed(error))?,
        };
        if let Stage::Failed(failure) = stage {
            return Err(self.failed(failure));
        }
        if !self.may_reach(&stage) {
            return Err(self.failed(HostFailure::OutOfOrder { reported: name(&stage) }));
        }
        match &stage {
            Stage::Preparing { doing } => on_event.borrow_mut()(Event::Preparing { host: &self.host, doing: *doing }),
            Stage::Listening { endpoints } => {
                self.check_listens(endpoints)?;
                self.listens.clone_from(endpoints);
            }
            Stage::Ready(ready) => self.ready = *ready,
            Stage::Running(progress) => {
                if !matches!(self.stage, Stage::Running(_)) {
                    warm_up.session_runs();
                }
                if self.load_index == 0 {
                    warm_up.take(&self.host, progress);
                    on_event.borrow_mut()(Event::Progress { host: &self.host, progress });
                }
                warm_up.judge();
            }
            Stage::Sent | Stage::Done | Stage::Failed(_) => {}
        }
        self.stage = stage;
        Ok(())
    }

    /// Checks that the agent listens on requested links and addresses only, because other agents connect there.
    fn check_listens(&self, endpoints: &Endpoints) -> Result<(), RunError> {
        for (&LinkId(link), &reported) in endpoints {
            let listen = self.part.listens().find(|listen| listen.link.0 == link);
            let Some(requested) = listen.map(|listen| listen.address) else {
                return Err(self.failed(HostFailure::ListensUnasked { link, reported }));
            };
            if reported.port() == 0 || reported.ip().to_canonical() != requested.to_canonical() {
                return Err(self.failed(HostFailure::ListensElsewhere { link, reported, requested }));
            }
        }
        Ok(())
    }

    /// Returns whether the session may enter `stage` now: no further than its orders permit, and never back except to
    /// prepare for its connections. Stages that wait for no order may be skipped.
    fn may_reach(&self, stage: &Stage) -> bool {
        let needed = match stage {
            Stage::Preparing { .. } => return matches!(self.stage, Stage::Preparing { .. } | Stage::Listening { .. }),
            Stage::Listening { .. } => Allowed::Listening,
            Stage::Ready(_) => Allowed::Ready,
            Stage::Running(_) | Stage::Sent => Allowed::Sent,
            Stage::Done | Stage::Failed(_) => Allowed::Done,
        };
        let sends = drains(&self.load.task) || *stage != Stage::Sent;
        sends && place(stage) >= place(&self.stage) && needed <= self.allowed
    }

    /// Makes the error of a session that failed in its current stage.
    fn failed(&self, source: impl Into<HostFailure>) -> RunError {
        RunError::Host { host: self.host.clone(), stage: name(&self.stage), source: source.into() }
    }
}

/// Follows sessions until all have reached a stage that is `wanted`. A session that is there already is followed
/// further, so that its loss is noticed while others are still on their way. If the load can go on without a host,
/// `lost` lists the hosts lost.
async fn all_reach<'a, 'b: 'a>(
    sessions: impl Iterator<Item = &'a mut Session<'b>>,
    wanted: fn(&Stage) -> bool,
    lost: Option<&RefCell<Vec<HostName>>>,
    warm_up: &WarmUp,
    on_event: OnEvent<'_, '_>,
) -> Result<(), RunError> {
    let sessions: Vec<_> = sessions.collect();
    let unfinished = watch::Sender::new(sessions.len());
    try_join_all(sessions.into_iter().map(async |session| {
        let mut others = unfinished.subscribe();
        session.until(wanted, lost, warm_up, on_event).await?;
        unfinished.send_modify(|count| *count -= 1);
        tokio::select! {
            biased;
            _ = others.wait_for(|count| *count == 0) => Ok(()),
            result = session.until(is_done, lost, warm_up, on_event) => result,
        }
    }))
    .await?;
    Ok(())
}

/// Returns the longest warm-up of a load whose window opens when it is steady. `None` if the length is fixed.
fn steady_at_most(load: &Load) -> Option<Nanos> {
    match load.timing.window()?.warmup {
        Warmup::Steady { at_most, .. } => Some(at_most),
        Warmup::Fixed(_) => None,
    }
}

fn is_sent(stage: &Stage) -> bool {
    *stage == Stage::Sent
}

fn is_done(stage: &Stage) -> bool {
    *stage == Stage::Done
}

fn left_behind(host: &HostName, text: &str) -> Caveat {
    Caveat::new(CaveatKind::LeftBehind, message!("caveat-left-behind-on-host", "{host}: {text}", host, text))
}

/// Returns the position of a stage in the course of a session.
fn place(stage: &Stage) -> u8 {
    match stage {
        Stage::Preparing { .. } => 0,
        Stage::Listening { .. } => 1,
        Stage::Ready(_) => 2,
        Stage::Running(_) => 3,
        Stage::Sent => 4,
        Stage::Done | Stage::Failed(_) => 5,
    }
}

/// Returns the name of a stage in the agents' API.
fn name(stage: &Stage) -> &'static str {
    match stage {
        Stage::Preparing { .. } => "preparing",
        Stage::Listening { .. } => "listening",
        Stage::Ready(_) => "ready",
        Stage::Running(_) => "running",
        Stage::Sent => "sent",
        Stage::Done => "done",
        Stage::Failed(_) => "failed",
    }
}
