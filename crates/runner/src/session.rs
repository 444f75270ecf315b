//! One attempt at a trial through the agents: open a session for each load and host, and lead them all through their stages.
//!
//! Barriers are here alone: no session connects before all listen, none starts before all are ready, and none stops counting before
//! all have sent.

use crate::error::at;
use crate::run::Event;
use crate::{Agents, OpenSession, RunError};
use futures_util::future::{join_all, try_join_all};
use linerate_method::{Joining, assign, drains, join, survives};
use linerate_model::{
    Assignment, Caveat, CaveatKind, Endpoints, HostName, LinkId, Load, Order, Password, Ready, SessionId, SessionKey,
    Stage, Trial, TrialResult,
};
use linerate_units::Nanos;
use std::cell::RefCell;
use std::time::Duration;
use tokio::sync::watch;

/// Agents that do not answer within this when told to stop are left to their own bounds.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

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
}

/// One session.
struct One<'a> {
    load: usize,
    asked: &'a Load,
    host: HostName,
    part: Assignment,
    session: Box<dyn OpenSession>,
    /// The latest stage told.
    stage: Stage,
    listens: Endpoints,
    ready: Ready,
    /// Why the agent was lost, where the load goes on without it.
    lost: Option<String>,
}

impl<'a> Sessions<'a> {
    /// Sessions for `trial`, none of them open.
    pub(crate) fn new(trial: &'a Trial, agents: &'a dyn Agents) -> Self {
        let lost = trial.loads.iter().map(|_| RefCell::default()).collect();
        Self { trial, agents, all: Vec::new(), lost, caveats: Vec::new() }
    }

    /// Opens them and leads them to their counts. When it fails, those that are open stay open: [`Sessions::close`] ends them.
    ///
    /// # Errors
    /// A host has no address or no agent, refuses, fails or is lost.
    pub(crate) async fn run(
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

    async fn open(&mut self, password: Option<&Password>) -> Result<(), RunError> {
        let unique: u64 = rand::random();
        for (index, asked) in self.trial.loads.iter().enumerate() {
            let mut assigned = assign(asked, self.agents).map_err(RunError::Plan)?;
            assigned.mark(rand::random());
            self.caveats.push(assigned.caveats);
            let (load, key) = (assigned.load, SessionKey(rand::random()));
            // All agents of a load hear of it at once; those that opened are known before the first failure is told.
            let opened = join_all(assigned.parts.into_iter().enumerate().map(async |(at, (host, roles))| {
                let part = Assignment {
                    id: SessionId(format!("{unique:016x}-{index}-{at}")),
                    key,
                    task: load.task.clone(),
                    timing: load.timing,
                    roles,
                    password: password.cloned(),
                };
                let session = self.agents.open(&host, &part).await?;
                Ok::<_, RunError>((host, part, session))
            }))
            .await;
            let mut failure = None;
            for opened in opened {
                match opened {
                    Ok((host, part, session)) => self.all.push(One {
                        load: index,
                        asked,
                        host,
                        part,
                        session,
                        stage: Stage::Preparing { doing: String::new() },
                        listens: Endpoints::new(),
                        ready: Ready::default(),
                        lost: None,
                    }),
                    Err(error) => failure = failure.or(Some(error)),
                }
            }
            if let Some(error) = failure {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Waits until every session has come to a stage that is `wanted`. The first failure ends it.
    async fn reach(&mut self, wanted: fn(&Stage) -> bool, on_event: OnEvent<'_, '_>) -> Result<(), RunError> {
        try_join_all(self.all.iter_mut().map(|one| one.until(wanted, None, on_event))).await?;
        Ok(())
    }

    /// Each session learns where the links it connects are listened on.
    async fn connect(&self) -> Result<(), RunError> {
        try_join_all(self.all.iter().map(async |one| {
            let listened = |link: LinkId| {
                let peers = self.all.iter().filter(|other| other.load == one.load);
                let address = peers.filter_map(|other| other.listens.get(&link)).next();
                address.map(|address| (link, *address)).ok_or_else(|| {
                    RunError::Plan(format!("no host of the trial listens on link {} of {}", link.0, one.host))
                })
            };
            let links = one.part.connects().map(listened).collect::<Result<Endpoints, _>>()?;
            one.order(Order::Connect(links)).await
        }))
        .await?;
        Ok(())
    }

    /// Starts all sessions at the same time: agents that are further away are told a shorter delay.
    async fn start(&self, on_event: OnEvent<'_, '_>) -> Result<(), RunError> {
        let files = self.all.iter().map(|one| one.ready.files).sum();
        let bytes = self.all.iter().map(|one| one.ready.bytes).sum();
        on_event.borrow_mut()(Event::Starts { files, bytes });
        let lead = self.all.iter().map(|one| one.ready.lead).max().unwrap_or_default();
        let round_trip = |one: &One<'_>| self.agents.round_trip(&one.host);
        let furthest = self.all.iter().map(round_trip).max().unwrap_or_default();
        try_join_all(self.all.iter().map(async |one| {
            let head_start = Nanos::new((furthest - round_trip(one)).get() / 2);
            one.order(Order::Start { delay: lead + head_start }).await
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
        // A load that drains must not wait for one that does not.
        try_join_all(loads.into_iter().zip(&self.lost).map(async |(mut ones, lost)| {
            if ones.iter().any(|one| drains(&one.asked.task)) {
                all_sent(&mut ones, lost, on_event).await?;
                let still = ones.iter().filter(|one| one.stage == Stage::Sent && one.lost.is_none());
                try_join_all(still.map(|one| one.order(Order::Drain))).await?;
            }
            try_join_all(ones.iter_mut().map(|one| one.until(is_done, Some(lost), on_event))).await
        }))
        .await?;
        Ok(())
    }

    /// Fetches what each session counted, and joins it.
    async fn counts(&self, attempt: u32) -> Result<TrialResult, RunError> {
        let counted = try_join_all(self.all.iter().map(async |one| match &one.lost {
            Some(why) => Ok(Err(why.clone())),
            None => one.session.counts().await.map(Ok).map_err(at(&one.host)),
        }))
        .await?;
        let joining = |caveats: &Vec<Caveat>| Joining { caveats: caveats.clone(), parts: Vec::new() };
        let mut loads: Vec<Joining> = self.caveats.iter().map(joining).collect();
        for (one, counted) in self.all.iter().zip(counted) {
            loads[one.load].parts.push((one.host.clone(), counted));
        }
        join(self.trial, attempt, loads).map_err(RunError::Plan)
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
        on_event: OnEvent<'_, '_>,
    ) -> Result<(), RunError> {
        while self.lost.is_none() && !wanted(&self.stage) {
            match self.next(on_event).await {
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

    async fn order(&self, order: Order) -> Result<(), RunError> {
        self.session.order(&order).await.map_err(at(&self.host))
    }

    /// Takes the next stage.
    async fn next(&mut self, on_event: OnEvent<'_, '_>) -> Result<(), RunError> {
        let stage = self.session.stage().await.map_err(at(&self.host))?;
        match &stage {
            Stage::Preparing { doing } => on_event.borrow_mut()(Event::Preparing { host: &self.host, doing }),
            Stage::Listening { endpoints } => self.listens.clone_from(endpoints),
            Stage::Ready(ready) => self.ready = *ready,
            Stage::Running(meter) if self.load == 0 => {
                on_event.borrow_mut()(Event::Progress { host: &self.host, meter });
            }
            Stage::Running(_) | Stage::Sent | Stage::Done => {}
            Stage::Failed(failure) => {
                return Err(RunError::Session { host: self.host.clone(), failure: failure.clone() });
            }
        }
        self.stage = stage;
        Ok(())
    }
}

/// Follows the sessions of a load that drains until all have sent. One that sends nothing has sent at once: it is followed on,
/// so that its loss is noticed while the others still send.
async fn all_sent(
    ones: &mut [&mut One<'_>],
    lost: &RefCell<Vec<HostName>>,
    on_event: OnEvent<'_, '_>,
) -> Result<(), RunError> {
    let sending = watch::Sender::new(ones.len());
    try_join_all(ones.iter_mut().map(async |one| {
        let mut others = sending.subscribe();
        one.until(|stage| matches!(stage, Stage::Sent | Stage::Done), Some(lost), on_event).await?;
        sending.send_modify(|sending| *sending -= 1);
        tokio::select! {
            _ = others.wait_for(|sending| *sending == 0) => Ok(()),
            ended = one.until(is_done, Some(lost), on_event) => ended,
        }
    }))
    .await?;
    Ok(())
}

fn is_done(stage: &Stage) -> bool {
    *stage == Stage::Done
}

fn left_behind(host: &HostName, text: &str) -> Caveat {
    Caveat::new(CaveatKind::LeftBehind, format!("{host}: {text}"))
}
