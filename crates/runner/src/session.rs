//! One attempt at a trial through the agents: open a session for each load and host, and lead them all through their stages.
//!
//! Barriers are here alone: no session connects before all listen, none starts before all are ready, none opens its window on order
//! before all run, and none stops counting before all have sent.

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
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Agents that do not answer within this when told to stop are left to their own bounds.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long after a session failed the loss of another agent still counts as its cause. A client gives up an agent that was killed after
/// 1 s to 2 s.
const LOSS_NOTICED: Duration = Duration::from_secs(2);

/// A window that opens when the load is steady opens so long after that was found: all hosts have to hear of it.
const OPENING: Nanos = Nanos::from_millis(50);

/// Where a warm-up is to be over after a time in any case, and no host tells how long it runs, windows open so long after that.
const UNTOLD: Duration = Duration::from_secs(1);

/// Where events go. Sessions are followed side by side, and each may have something to tell.
pub(crate) type OnEvent<'a, 'b> = &'a RefCell<&'b mut dyn FnMut(Event<'_>)>;

/// All sessions of one attempt.
pub(crate) struct Sessions<'a> {
    trial: &'a Trial,
    agents: &'a dyn Agents,
    all: Vec<One<'a>>,
    /// The hosts that each load lost and goes on without.
    lost: Vec<RefCell<Vec<HostName>>>,
    /// Doubts about each load that arose when it was shared out.
    caveats: Vec<Vec<Caveat>>,
    warm_up: WarmUp,
    /// How each host samples.
    sampling: Sampling,
}

/// The warm-up of a trial whose windows open when it is steady.
struct WarmUp {
    /// None where its length is fixed, and once it is over.
    state: RefCell<Option<SteadyState>>,
    /// Sessions whose load does not run yet.
    left: watch::Sender<usize>,
    /// How long after that it is over in any case, and when that is.
    longest: Cell<Duration>,
    latest: Cell<Instant>,
    is_over: watch::Sender<bool>,
}

impl WarmUp {
    fn of(trial: &Trial) -> Self {
        Self {
            state: RefCell::new(SteadyState::of(trial)),
            left: watch::Sender::default(),
            longest: Cell::default(),
            latest: Cell::new(Instant::now()),
            is_over: watch::Sender::new(false),
        }
    }

    /// Takes what `host` told of the measured load.
    fn take(&self, host: &HostName, progress: &SessionProgress) {
        if let Some(state) = &mut *self.state.borrow_mut() {
            state.take(host, progress);
        }
    }

    /// The load of a session runs from now on.
    fn one_runs(&self) {
        self.latest.set(Instant::now() + self.longest.get());
        self.left.send_modify(|left| *left = left.saturating_sub(1));
    }

    /// Ends it where the load is steady and all sessions run.
    fn judge(&self) {
        let mut state = self.state.borrow_mut();
        if *self.left.borrow() == 0 && state.as_ref().is_some_and(SteadyState::is_over) {
            *state = None;
            self.is_over.send_replace(true);
        }
    }

    /// Waits until a window is to be ordered open, and returns how long after the order it opens; never where it opens by itself.
    async fn ends(&self, opening: Option<Nanos>) -> Nanos {
        let Some(delay) = opening else { return std::future::pending().await };
        let (mut is_over, mut left) = (self.is_over.subscribe(), self.left.subscribe());
        let untold = async {
            let _ = left.wait_for(|left| *left == 0).await;
            sleep_until(self.latest.get()).await;
        };
        tokio::select! {
            // It fails only if the sender is gone, and that is part of self.
            _ = is_over.wait_for(|is_over| *is_over) => {}
            () = untold => {}
        }
        delay
    }
}

/// One session.
struct One<'a> {
    load: usize,
    /// Its place among the sessions of the load.
    place: usize,
    asked: &'a Load,
    host: HostName,
    part: Assignment,
    session: Box<dyn OpenSession>,
    /// The latest stage told.
    stage: Stage,
    /// How far its orders let it go.
    allowed: Allowed,
    /// How long after the order its window opens; none once it was ordered, or where the window opens by itself.
    opening: Option<Nanos>,
    listens: Endpoints,
    ready: Ready,
    /// Why the agent was lost, where the load goes on without it.
    lost: Option<String>,
}

/// How far a session may go by the orders that it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Allowed {
    Listening,
    Ready,
    Sent,
    Done,
}

impl<'a> Sessions<'a> {
    /// Sessions for `trial`, none of them open.
    pub(crate) fn new(trial: &'a Trial, agents: &'a dyn Agents, sampling: Sampling) -> Self {
        let lost = trial.loads.iter().map(|_| RefCell::default()).collect();
        Self { trial, agents, all: Vec::new(), lost, caveats: Vec::new(), warm_up: WarmUp::of(trial), sampling }
    }

    /// Opens them and leads them to their counts. When it fails, those that are open stay open: [`Sessions::close`] ends them.
    ///
    /// # Errors
    /// A host has no address or no agent, refuses, fails, is lost, or tells a stage that is not due.
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
                let lost = self.lost_beside(&host).await;
                Err(lost.unwrap_or(RunError::Host { host, stage, source: failure.into() }))
            }
            led => led,
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

    /// The loss of an agent, where that follows at once on the failure of the session at `failed`. When an agent is lost, its peers
    /// may be the first to tell: their connections to it break.
    async fn lost_beside(&mut self, failed: &HostName) -> Option<RunError> {
        let others = self.all.iter_mut().filter(|one| one.host != *failed && one.lost.is_none());
        let mut losses: FuturesUnordered<_> = others.map(One::loss).collect();
        tokio::time::timeout(LOSS_NOTICED, losses.next()).await.ok().flatten()
    }

    async fn open(&mut self, password: Option<&Password>) -> Result<(), RunError> {
        let unique: u64 = rand::random();
        for (index, asked) in self.trial.loads.iter().enumerate() {
            let mut assigned = assign(asked, self.agents).map_err(RunError::Plan)?;
            assigned.mark(rand::random());
            self.caveats.push(assigned.caveats);
            let (load, key) = (assigned.load, SessionKey(rand::random()));
            let (agents, all) = (self.agents, RefCell::new(&mut self.all));
            // All agents of a load hear of it at once. A session is known as soon as it is open, so that it is closed whatever
            // becomes of the others.
            let opened = join_all(assigned.parts.into_iter().enumerate().map(async |(place, (host, roles))| {
                let part = Assignment {
                    id: SessionId(format!("{unique:016x}-{index}-{place}")),
                    key,
                    task: load.task.clone(),
                    timing: load.timing,
                    roles,
                    password: password.cloned(),
                    sampling: self.sampling,
                };
                let session = agents.open(&host, &part).await.map_err(|error| error.in_stage("opening"))?;
                all.borrow_mut().push(One {
                    load: index,
                    place,
                    asked,
                    host,
                    part,
                    session,
                    stage: Stage::Preparing { doing: String::new() },
                    allowed: Allowed::Listening,
                    opening: None,
                    listens: Endpoints::new(),
                    ready: Ready::default(),
                    lost: None,
                });
                Ok(())
            }))
            .await;
            opened.into_iter().collect::<Result<(), RunError>>()?;
        }
        self.all.sort_by_key(|one| (one.load, one.place));
        Ok(())
    }

    /// Waits until every session has come to a stage that is `wanted`. The first failure ends it.
    async fn reach(&mut self, wanted: fn(&Stage) -> bool, on_event: OnEvent<'_, '_>) -> Result<(), RunError> {
        all_reach(self.all.iter_mut(), wanted, None, &self.warm_up, on_event).await
    }

    /// Each session learns where the links it connects are listened on.
    async fn connect(&mut self) -> Result<(), RunError> {
        let listened = |one: &One<'_>, link: LinkId| {
            let peers = self.all.iter().filter(|other| other.load == one.load);
            let address = peers.filter_map(|other| Some((other.listens.get(&link)?, &other.host))).next();
            address.map(|(address, host)| (link, self.agents.endpoint(*address, host, &one.host))).ok_or_else(|| {
                RunError::Plan(format!("no host of the trial listens on link {} of {}", link.0, one.host))
            })
        };
        let links = self.all.iter().map(|one| one.part.connects().map(|link| listened(one, link)).collect());
        let links = links.collect::<Result<Vec<Endpoints>, _>>()?;
        try_join_all(self.all.iter_mut().zip(links).map(|(one, links)| one.order(Order::Connect(links)))).await?;
        Ok(())
    }

    /// Starts all sessions at the same time: agents that are further away are told a shorter delay.
    async fn start(&mut self, on_event: OnEvent<'_, '_>) -> Result<(), RunError> {
        let files = self.all.iter().map(|one| one.ready.files).sum();
        let bytes = self.all.iter().map(|one| one.ready.bytes).sum();
        on_event.borrow_mut()(Event::Starts { files, bytes });
        let lead = self.all.iter().map(|one| one.ready.lead).max().unwrap_or_default();
        let agents = self.agents;
        let round_trip = |one: &One<'_>| agents.round_trip(&one.host);
        let furthest = self.all.iter().map(round_trip).max().unwrap_or_default();
        // Windows open together, also those of loads beside the measured one. What is `then` waited for, their agents add.
        let at_most = self.trial.loads.iter().filter_map(steady_at_most).max();
        self.warm_up.left.send_replace(self.all.len());
        self.warm_up.longest.set(Duration::from(lead + furthest + at_most.unwrap_or_default()) + UNTOLD);
        try_join_all(self.all.iter_mut().map(|one| {
            let head_start = Nanos::new((furthest - round_trip(one)).get() / 2);
            one.opening = steady_at_most(one.asked).map(|_| OPENING + head_start);
            one.order(Order::Start { delay: lead + head_start })
        }))
        .await?;
        Ok(())
    }

    /// Follows all sessions to their end. Those of a load that drains wait for each other before they do.
    async fn follow(&mut self, on_event: OnEvent<'_, '_>) -> Result<(), RunError> {
        let mut loads: Vec<Vec<&mut One<'_>>> = self.trial.loads.iter().map(|_| Vec::new()).collect();
        for one in &mut self.all {
            loads[one.load].push(one);
        }
        let warm_up = &self.warm_up;
        // A load that drains must not wait for one that does not.
        try_join_all(loads.into_iter().zip(&self.lost).map(async |(mut ones, lost)| {
            if ones.iter().any(|one| drains(&one.asked.task)) {
                // One that sends nothing has sent at once, and its loss is noticed while the others still send.
                all_reach(ones.iter_mut().map(|one| &mut **one), is_sent, Some(lost), warm_up, on_event).await?;
                let still = ones.iter_mut().filter(|one| one.lost.is_none());
                try_join_all(still.map(|one| one.order(Order::Drain))).await?;
            }
            try_join_all(ones.iter_mut().map(|one| one.until(is_done, Some(lost), warm_up, on_event))).await
        }))
        .await?;
        Ok(())
    }

    /// Fetches what each session counted, and joins it.
    async fn counts(&self, attempt: u32) -> Result<TrialResult, RunError> {
        let counted = try_join_all(self.all.iter().map(async |one| match &one.lost {
            Some(why) => Ok(Err(why.clone())),
            None => one.session.counts().await.map(Ok).map_err(|error| one.failed(error)),
        }))
        .await?;
        let joining = |caveats: &Vec<Caveat>| Joining { caveats: caveats.clone(), parts: Vec::new() };
        let mut loads: Vec<Joining> = self.caveats.iter().map(joining).collect();
        for (one, counted) in self.all.iter().zip(counted) {
            loads[one.load].parts.push((one.host.clone(), counted));
        }
        join(self.trial, attempt, loads).map_err(RunError::Counts)
    }

    /// Ends all sessions that are open, those that connect first: they may have to remove from the others what they made there.
    /// Returns what could not be removed. An agent that is lost ends its session by itself.
    pub(crate) async fn close(self) -> Vec<Caveat> {
        let set_up = self.trial.loads.iter().map(|load| load.task.set_up()).max().unwrap_or_default();
        let timeout = CLOSE_TIMEOUT + Duration::from(set_up);
        let mut remains = Vec::new();
        for clients in [true, false] {
            let those = self.all.iter().filter(|one| one.part.connects().next().is_some() == clients);
            let closed = join_all(those.map(async |one| {
                let closed = tokio::time::timeout(timeout, one.session.close()).await;
                closed
                    .ok()
                    .and_then(Result::ok)
                    .unwrap_or_default()
                    .into_iter()
                    .map(|text| left_behind(&one.host, &text))
            }))
            .await;
            remains.extend(closed.into_iter().flatten());
        }
        remains
    }
}

impl One<'_> {
    /// Follows the session until a stage that is `wanted`. Where the load can go on without a host, `lost` names those it lost
    /// so far, and this one may become one of them.
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
                    if !survives(self.asked, &lost.borrow()) {
                        return Err(error);
                    }
                    self.lost = Some(error.to_string());
                }
            }
        }
        Ok(())
    }

    /// Waits until its agent is lost. A session that is over tells of none.
    async fn loss(&mut self) -> RunError {
        while !matches!(self.stage, Stage::Done | Stage::Failed(_)) {
            match self.session.stage().await {
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
            Order::Start { .. } if drains(&self.asked.task) => Allowed::Sent,
            Order::Start { .. } | Order::Drain => Allowed::Done,
        };
        self.session.order(&order).await.map_err(|error| self.failed(error))
    }

    /// Takes the next stage.
    async fn next(&mut self, warm_up: &WarmUp, on_event: OnEvent<'_, '_>) -> Result<(), RunError> {
        // An agent knows of the window when its load runs.
        let opening = self.opening.filter(|_| matches!(self.stage, Stage::Running(_)));
        let stage = tokio::select! {
            biased;
            delay = warm_up.ends(opening) => {
                self.opening = None;
                return self.order(Order::Open { delay }).await;
            }
            stage = self.session.stage() => stage.map_err(|error| self.failed(error))?,
        };
        if let Stage::Failed(failure) = stage {
            return Err(self.failed(failure));
        }
        if !self.may_reach(&stage) {
            return Err(self.failed(HostFailure::OutOfOrder { told: name(&stage) }));
        }
        match &stage {
            Stage::Preparing { doing } => on_event.borrow_mut()(Event::Preparing { host: &self.host, doing }),
            Stage::Listening { endpoints } => {
                self.check_listens(endpoints)?;
                self.listens.clone_from(endpoints);
            }
            Stage::Ready(ready) => self.ready = *ready,
            Stage::Running(progress) => {
                if !matches!(self.stage, Stage::Running(_)) {
                    warm_up.one_runs();
                }
                if self.load == 0 {
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

    /// Checks that the links that its agent tells are those that it was asked to listen on, at the addresses asked for: other
    /// agents connect there.
    fn check_listens(&self, endpoints: &Endpoints) -> Result<(), RunError> {
        for (link, told) in endpoints {
            let listen = self.part.listens().find(|listen| listen.link == *link);
            let (link, told) = (link.0, *told);
            let Some(asked) = listen.map(|listen| listen.address) else {
                return Err(self.failed(HostFailure::ListensUnasked { link, told }));
            };
            if told.port() == 0 || told.ip().to_canonical() != asked.to_canonical() {
                return Err(self.failed(HostFailure::ListensElsewhere { link, told, asked }));
            }
        }
        Ok(())
    }

    /// Whether the session may be at `stage` now. It goes no further than it was ordered to, and never back, but for what it
    /// prepares for its connections. Stages that wait for no order may be left out.
    fn may_reach(&self, stage: &Stage) -> bool {
        let needed = match stage {
            Stage::Preparing { .. } => return matches!(self.stage, Stage::Preparing { .. } | Stage::Listening { .. }),
            Stage::Listening { .. } => Allowed::Listening,
            Stage::Ready(_) => Allowed::Ready,
            Stage::Running(_) | Stage::Sent => Allowed::Sent,
            Stage::Done | Stage::Failed(_) => Allowed::Done,
        };
        let sends = drains(&self.asked.task) || *stage != Stage::Sent;
        sends && place(stage) >= place(&self.stage) && needed <= self.allowed
    }

    /// What ended the session, and in which stage.
    fn failed(&self, source: impl Into<HostFailure>) -> RunError {
        RunError::Host { host: self.host.clone(), stage: name(&self.stage), source: source.into() }
    }
}

/// Follows sessions until all have come to a stage that is `wanted`. One that is there already is followed on, so that its loss
/// is noticed while others are still on their way. Where the load can go on without a host, `lost` names those it lost.
async fn all_reach<'a, 'b: 'a>(
    ones: impl Iterator<Item = &'a mut One<'b>>,
    wanted: fn(&Stage) -> bool,
    lost: Option<&RefCell<Vec<HostName>>>,
    warm_up: &WarmUp,
    on_event: OnEvent<'_, '_>,
) -> Result<(), RunError> {
    let ones: Vec<_> = ones.collect();
    let on_their_way = watch::Sender::new(ones.len());
    try_join_all(ones.into_iter().map(async |one| {
        let mut others = on_their_way.subscribe();
        one.until(wanted, lost, warm_up, on_event).await?;
        on_their_way.send_modify(|left| *left -= 1);
        tokio::select! {
            biased;
            _ = others.wait_for(|left| *left == 0) => Ok(()),
            ended = one.until(is_done, lost, warm_up, on_event) => ended,
        }
    }))
    .await?;
    Ok(())
}

/// After which time the warm-up of a load is over in any case; none where its length is fixed.
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

/// The order of the stages.
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

/// A stage's name, as the agents' API has it.
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
