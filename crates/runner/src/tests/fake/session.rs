//! One session, at one agent.

use super::{Act, Entry, FakeWindow, Moment, REQUEST_TIMEOUT, SILENCE, Step, Told, World};
use crate::OpenSession;
use futures_util::future::BoxFuture;
use linerate_control::AgentError;
use linerate_model::{
    Assignment, CoreUse, Endpoints, FailureKind, HostCounts, HostName, LinkId, Meter, Order, Preparation, Ready,
    SessionFailure, SessionProgress, Stage, Task, TaskKind, Warmup,
};
use linerate_units::Nanos;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

/// What a host takes to be opened, and for each answer.
const ANSWER: Duration = Duration::from_millis(1);
/// What a host takes to listen, to connect and to be ready. Each host takes longer than the one before it.
const PREPARATION: Duration = Duration::from_millis(10);
/// Progress is told this often while a window is waited for.
const TELLS: Duration = Duration::from_millis(50);

pub(super) struct FakeSession {
    world: Arc<World>,
    host: HostName,
    /// Its host's number.
    place: u32,
    attempt: usize,
    assignment: Assignment,
    /// The step that was told last.
    told: Mutex<Step>,
    /// The order that was taken last; `Open` before the first.
    taken: watch::Sender<Step>,
    /// The step that is on its way, what happens then, and when.
    coming: Option<(Step, Act, Instant)>,
    /// When the load began, and when its progress is told next.
    began: Mutex<Option<Instant>>,
    tells: Option<Instant>,
    /// When its window closes, where that was ordered open.
    closes: Mutex<Option<Instant>>,
    /// When the connection breaks.
    breaks: Option<Instant>,
}

impl FakeSession {
    pub(super) fn new(
        world: Arc<World>,
        host: &HostName,
        place: usize,
        attempt: usize,
        assignment: &Assignment,
    ) -> Self {
        Self {
            world,
            host: host.clone(),
            place: place as u32,
            attempt,
            assignment: assignment.clone(),
            told: Mutex::new(Step::Open),
            taken: watch::Sender::new(Step::Open),
            coming: None,
            began: Mutex::default(),
            tells: None,
            closes: Mutex::default(),
            breaks: None,
        }
    }

    /// Opens it.
    ///
    /// # Errors
    /// The script has it otherwise.
    pub(super) async fn open(self) -> Result<Self, AgentError> {
        let act = self.act(Step::Open);
        sleep(ANSWER).await;
        self.answer(Step::Open, act, "do its part of the trial").await?;
        Ok(self)
    }

    fn drains(&self) -> bool {
        self.assignment.task.kind() == TaskKind::Frames
    }

    /// How much later than ordered its window opens; none if that opens by itself.
    fn steady(&self) -> Option<Nanos> {
        match self.assignment.timing.window()?.warmup {
            Warmup::Steady { then, .. } => Some(then),
            Warmup::Fixed(_) => None,
        }
    }

    fn act(&self, step: Step) -> Act {
        (self.world.script)(&Moment { attempt: self.attempt, host: &self.host, step })
    }

    fn note(&self, told: Told) {
        self.world.log().push(Entry {
            id: self.assignment.id.0.clone(),
            host: self.host.clone(),
            client: self.assignment.connects().next().is_some(),
            told,
        });
    }

    fn lost(&self, task: &'static str, reason: &str) -> AgentError {
        AgentError::Lost { address: self.host.to_string(), task, reason: reason.into() }
    }

    /// The user presses Ctrl-C.
    async fn interrupt<T>(&self) -> T {
        self.world.cancel.send_replace(true);
        std::future::pending().await
    }

    /// What comes of a request by the script.
    async fn answer(&self, step: Step, act: Act, task: &'static str) -> Result<(), AgentError> {
        let message = String::from("as the script has it");
        match act {
            Act::Delay(time) => sleep(time).await,
            Act::Fail if step == Step::Open => {
                return Err(AgentError::Refused { address: self.host.to_string(), message });
            }
            Act::Fail => return Err(AgentError::Rejected { address: self.host.to_string(), message }),
            Act::Lose => return Err(self.lost(task, "it was reset")),
            Act::Silence => {
                sleep(REQUEST_TIMEOUT).await;
                return Err(self.lost(task, "no answer in time"));
            }
            Act::Interrupt => self.interrupt().await,
            Act::Pass | Act::LoseAfter(_) | Act::WrongStage | Act::ListenAt(_) | Act::Spoil | Act::Count(_) => {}
        }
        self.note(Told::Reached(step));
        Ok(())
    }

    /// The stage after the one told last.
    fn next(&self) -> Step {
        match *self.told.lock().expect("no holder panics") {
            Step::Open => Step::Preparing,
            Step::Preparing => Step::Listening,
            Step::Listening => Step::Ready,
            Step::Ready => Step::Running,
            Step::Running if self.drains() => Step::Sent,
            _ => Step::Done,
        }
    }

    /// The order that a stage waits for.
    fn order_before(&self, stage: Step) -> Step {
        match stage {
            Step::Ready => Step::Connect,
            Step::Running | Step::Sent => Step::Start,
            Step::Done if self.drains() => Step::Drain,
            Step::Done if self.steady().is_some() => Step::Window,
            Step::Done => Step::Start,
            _ => Step::Open,
        }
    }

    /// From the stage before, or the order, to a stage.
    fn time_to(&self, stage: Step) -> Duration {
        let sends = match &self.assignment.task {
            Task::Frames(task) => {
                task.streams.iter().any(|stream| *task.host(&task.ports[usize::from(stream.from)]) == self.host)
            }
            _ => true,
        };
        match stage {
            Step::Listening | Step::Ready => PREPARATION * (self.place + 1),
            Step::Sent if !sends => Duration::ZERO,
            Step::Sent => self.world.network.time(&self.assignment).into(),
            Step::Done if self.drains() => ANSWER,
            Step::Done => self.world.network.time(&self.assignment).into(),
            _ => ANSWER,
        }
    }

    /// Comes to the next stage. It can be dropped at any moment and called again.
    async fn advance(&mut self) -> Result<Stage, AgentError> {
        let step = self.next();
        if self.coming.is_none() {
            let needed = self.order_before(step);
            let mut taken = self.taken.subscribe();
            tokio::select! {
                biased;
                // It fails only if the sender is gone, and that is part of self.
                _ = taken.wait_for(|taken| *taken >= needed) => {}
                () = until(self.tells.filter(|_| needed == Step::Window)) => return Ok(self.progress()),
            }
            let act = self.act(step);
            let more = match act {
                Act::Delay(time) => time,
                Act::Silence => SILENCE,
                _ => Duration::ZERO,
            };
            let closes = self.closes.lock().expect("no holder panics").take().filter(|_| step == Step::Done);
            let at = closes.unwrap_or_else(|| Instant::now() + self.time_to(step));
            self.coming = Some((step, act, at + more));
        }
        let Some((_, act, at)) = self.coming else { unreachable!("it was just set") };
        sleep_until(at).await;
        match act {
            Act::Fail => {
                return Ok(Stage::Failed(SessionFailure {
                    kind: FailureKind::Task,
                    message: "as the script has it".into(),
                    remains: Vec::new(),
                }));
            }
            Act::Lose => return Err(self.lost("do its part of the trial", "it was reset")),
            Act::Silence => return Err(self.lost("do its part of the trial", "nothing heard for 15 s")),
            Act::WrongStage if step > Step::Start => return Ok(Stage::Listening { endpoints: Endpoints::new() }),
            Act::WrongStage => return Ok(Stage::Done),
            Act::Interrupt => self.interrupt().await,
            Act::LoseAfter(time) => self.breaks = Some(Instant::now() + time),
            Act::ListenAt(address) => {
                let own: Endpoints = self.assignment.listens().map(|listen| (listen.link, address)).collect();
                let endpoints = if own.is_empty() { [(LinkId(0), address)].into() } else { own };
                return Ok(Stage::Listening { endpoints });
            }
            Act::Pass | Act::Delay(_) | Act::Spoil | Act::Count(_) => {}
        }
        self.coming = None;
        if step == Step::Running {
            *self.began.lock().expect("no holder panics") = Some(Instant::now());
            self.tells = self.world.course.is_some().then(|| Instant::now() + TELLS);
        }
        *self.told.lock().expect("no holder panics") = step;
        self.note(Told::Reached(step));
        Ok(self.stage_of(step))
    }

    /// Tells what was done until now.
    fn progress(&mut self) -> Stage {
        self.tells = Some(Instant::now() + TELLS);
        let running = self.began.lock().expect("no holder panics").map(|began| began.elapsed()).unwrap_or_default();
        let done = self.world.course.as_ref().map_or(0, |course| course(running.as_secs_f64()));
        let meter = Meter { received_bytes: done, operations: done, ..Meter::default() };
        let srtt = Some(self.world.network.round_trip);
        Stage::Running(SessionProgress { running: running.into(), meter, srtt, ..SessionProgress::default() })
    }

    /// Its window is ordered open.
    fn opens(&self, delay: Nanos) {
        let Some((window, then)) = self.assignment.timing.window().zip(self.steady()) else { return };
        let opened = Instant::now() + Duration::from(delay + then);
        *self.closes.lock().expect("no holder panics") = Some(opened + Duration::from(window.measure));
        let began = self.began.lock().expect("no holder panics").unwrap_or(opened);
        self.world.windows.lock().expect("no holder panics").push(FakeWindow {
            id: self.assignment.id.0.clone(),
            warm_up: opened.duration_since(began),
            opened,
        });
    }

    fn stage_of(&self, step: Step) -> Stage {
        match step {
            Step::Preparing => Stage::Preparing { doing: Some(Preparation::MakingFiles) },
            Step::Listening => {
                let endpoint = |at: usize, address| SocketAddr::new(address, 5_000 + at as u16);
                let links = self.assignment.listens().enumerate();
                Stage::Listening {
                    endpoints: links.map(|(at, listen)| (listen.link, endpoint(at, listen.address))).collect(),
                }
            }
            Step::Ready => Stage::Ready(Ready::default()),
            Step::Running => Stage::Running(SessionProgress::default()),
            Step::Sent => Stage::Sent,
            _ => Stage::Done,
        }
    }

    /// Whether it waits for `order`, and that has all it needs.
    fn waits_for(&self, order: &Order) -> bool {
        let (told, taken) = (*self.told.lock().expect("no holder panics"), *self.taken.borrow());
        match order {
            Order::Connect(links) => {
                let complete = self.assignment.connects().all(|link| links.contains_key(&link));
                complete && (told, taken) == (Step::Listening, Step::Open)
            }
            Order::Start { .. } => (told, taken) == (Step::Ready, Step::Connect),
            Order::Open { .. } => self.steady().is_some() && (told, taken) == (Step::Running, Step::Start),
            Order::Drain => (told, taken) == (Step::Sent, Step::Start),
        }
    }
}

/// Ends at `moment`; never without one.
async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

impl Drop for FakeSession {
    fn drop(&mut self) {
        self.note(Told::Dropped);
    }
}

impl OpenSession for FakeSession {
    fn stage(&mut self) -> BoxFuture<'_, Result<Stage, AgentError>> {
        Box::pin(async move {
            tokio::select! {
                biased;
                () = until(self.breaks) => Err(self.lost("do its part of the trial", "it was reset")),
                stage = self.advance() => stage,
            }
        })
    }

    fn check(&self) -> BoxFuture<'_, Result<(), AgentError>> {
        Box::pin(async move {
            match self.act(Step::Check) {
                Act::Lose => Err(self.lost("go on with the trial", "it was reset")),
                Act::Silence => std::future::pending().await,
                _ => Ok(()),
            }
        })
    }

    fn order<'a>(&'a self, order: &'a Order) -> BoxFuture<'a, Result<(), AgentError>> {
        Box::pin(async move {
            let step = match order {
                Order::Connect(_) => Step::Connect,
                Order::Start { .. } => Step::Start,
                Order::Open { .. } => Step::Window,
                Order::Drain => Step::Drain,
            };
            if !self.waits_for(order) {
                self.note(Told::Misordered(step));
                let message = format!("the session does not wait for {step:?}");
                return Err(AgentError::Rejected { address: self.host.to_string(), message });
            }
            self.note(Told::Ordered(step));
            if let Order::Open { delay } = order {
                self.opens(*delay);
            }
            let act = self.act(step);
            sleep(ANSWER).await;
            self.answer(step, act, "go on with the trial").await?;
            self.taken.send_replace(step);
            Ok(())
        })
    }

    fn counts(&self) -> BoxFuture<'_, Result<HostCounts, AgentError>> {
        Box::pin(async move {
            let act = self.act(Step::Counts);
            let beside = self.world.beside(&self.assignment.id.0);
            let mut counts = self.world.network.counts(&self.assignment, &beside);
            match act {
                Act::Spoil => counts.observation.cores = vec![partly_stolen(counts.observation.window)],
                Act::Count(garbage) => garbage.put_in(&mut counts),
                _ => {}
            }
            // The host has them, whether its answer arrives or not.
            self.world.kept.lock().expect("no holder panics").insert(self.assignment.id.clone(), counts.clone());
            sleep(ANSWER).await;
            self.answer(Step::Counts, act, "hand over its counts").await?;
            Ok(counts)
        })
    }

    fn close(&self) -> BoxFuture<'_, Result<Vec<String>, AgentError>> {
        Box::pin(async move {
            self.note(Told::Closed);
            match self.act(Step::Close) {
                Act::Pass => Ok(Vec::new()),
                Act::Lose => Err(self.lost("end the trial", "it was reset")),
                _ => std::future::pending().await,
            }
        })
    }
}

/// A core of which a hypervisor took 50 %.
fn partly_stolen(window: Nanos) -> CoreUse {
    let stolen = Nanos::new(window.get() / 2);
    CoreUse { steal: stolen, idle: stolen, ..CoreUse::default() }
}
