//! The life of a trial's half on this host.
//!
//! Prepared, connected, running, done; or aborted at any moment. Whoever started it may vanish at any moment too: a
//! trial nobody starts and a result nobody fetches are dropped in time, and a running one ends by its own duration.

use crate::api_error::{ApiError, ErrorKind};
use crate::engine::{self, EngineError, Half, Running};
use crate::limits::{Limits, Load};
use crate::metrics::Metrics;
use crate::timeouts::Timeouts;
use linerate_model::{Connect, EndResult, HalfResult, HalfSpec, Prepared, Progress, TrialId};
use linerate_nfs::NfsTrial;
use linerate_nfsd::NfsService;
use linerate_observe::Watch;
use linerate_sys::clock;
use linerate_units::Nanos;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{oneshot, watch};

/// Progress is told this often: often enough for a person, too rare to cost anything.
const PROGRESS_EVERY: Nanos = Nanos::from_millis(200);

/// Results kept for clients that have not fetched them; the oldest makes room.
const RESULTS_KEPT: usize = 16;

/// How long an abort waits until the engine has let go of its ports.
const LETTING_GO: Duration = Duration::from_secs(2);

const PANICKED: &str = "the engine panicked; this is a bug in linerate";

/// The trials of one agent.
pub(crate) struct Trials {
    held: Mutex<BTreeMap<TrialId, Arc<Trial>>>,
    /// Those that may still have threads and sockets: an aborted trial lets go of its name at once, but counts towards
    /// the limits until its engine has ended. Locked after `held`.
    under_way: Mutex<Vec<Arc<Trial>>>,
    limits: Limits,
    timeouts: Timeouts,
    nfs: NfsTrial,
    pub(crate) metrics: Metrics,
}

/// One trial's half.
struct Trial {
    id: TrialId,
    load: Load,
    /// How long it may stay unstarted, and take to let go, beyond what is usual.
    set_up: Duration,
    /// Ends connecting early; set once the half is prepared, if its engine can.
    canceller: OnceLock<Arc<AtomicBool>>,
    phase: Mutex<Phase>,
    /// `done` is set when the trial's threads and sockets are gone.
    progress: watch::Sender<Progress>,
}

enum Phase {
    /// A blocking call has the half; it will look here before it puts it back.
    Busy,
    Prepared(Half),
    Connected(Half),
    /// The engine is at work; a word through here stops it.
    Running(mpsc::Sender<()>),
    Done(Box<Result<HalfResult, ApiError>>, Instant),
    /// Its result was handed over.
    Fetched,
    Aborted,
}

/// How far a trial has come, for those who need not know more.
#[derive(PartialEq, Eq)]
enum Stage {
    Unstarted,
    /// Running, or done with its result at hand.
    Started,
    Over,
}

impl Trials {
    pub(crate) fn new(limits: Limits, timeouts: Timeouts, service: NfsService) -> Self {
        let (held, under_way) = (Mutex::default(), Mutex::default());
        let nfs = NfsTrial { server: Arc::new(service), paced: limits.max_rate.is_some() };
        Self { held, under_way, limits, timeouts, nfs, metrics: Metrics::default() }
    }

    /// Binds the half's listeners, if the limits allow the trial.
    pub(crate) async fn prepare(self: &Arc<Self>, spec: HalfSpec) -> Result<Prepared, ApiError> {
        let trial = self.admit(&spec).inspect_err(|_| self.metrics.refused.add(1))?;
        tokio::spawn(Arc::clone(self).tend(Arc::clone(&trial)));
        // Everything after a blocking call happens on its thread: the caller may vanish meanwhile.
        let trials = Arc::clone(self);
        blocking(move || {
            let half = guarded(|| engine::prepare(&spec, &trials.nfs)).map_err(|error| trials.fail(&trial, &error))?;
            let prepared = half.prepared();
            if let Some(canceller) = half.canceller() {
                trial.canceller.get_or_init(|| canceller);
            }
            trial.put(Phase::Prepared(half))?;
            Ok(prepared)
        })
        .await
    }

    /// Connects the half's openers to their listeners.
    pub(crate) async fn connect(self: &Arc<Self>, id: &TrialId, connect: Connect) -> Result<(), ApiError> {
        let trial = self.get(id)?;
        let mut half = trial.take("connected", Phase::Busy, |phase| match phase {
            Phase::Prepared(half) => Ok(half),
            other => Err(other),
        })?;
        let trials = Arc::clone(self);
        blocking(move || match guarded(|| half.connect(&connect)) {
            Ok(()) => trial.put(Phase::Connected(half)),
            Err(error) => {
                drop(half);
                Err(trials.fail(&trial, &error))
            }
        })
        .await
    }

    /// Starts the half `delay` from now; answers when its engine has its orders.
    pub(crate) async fn start(self: &Arc<Self>, id: &TrialId, delay: Nanos) -> Result<(), ApiError> {
        let at_ns = clock::now().saturating_add(delay.get());
        if Duration::from(delay) > self.timeouts.unstarted {
            let longest = Nanos::from(self.timeouts.unstarted);
            return Err(ApiError::new(
                ErrorKind::BadRequest,
                format!("a start can be delayed by {longest} at most, not by {delay}"),
            ));
        }
        let trial = self.get(id)?;
        let half = trial.take("started", Phase::Busy, |phase| match phase {
            Phase::Connected(half) => Ok(half),
            other => Err(other),
        })?;
        let trials = Arc::clone(self);
        let (answer, answered) = oneshot::channel();
        let spawned = std::thread::Builder::new().name("trial".into()).spawn({
            let trial = Arc::clone(&trial);
            move || trials.run(&trial, half, at_ns, answer)
        });
        if let Err(error) = spawned {
            return Err(self.fail(&trial, &format!("starting a thread for the trial: {error}")));
        }
        answered.await.unwrap_or_else(|_| Err(self.fail(&trial, &"the trial's thread ended unexpectedly")))
    }

    /// Progress from now on; the last one is `done`.
    pub(crate) fn progress(&self, id: &TrialId) -> Result<watch::Receiver<Progress>, ApiError> {
        Ok(self.get(id)?.progress.subscribe())
    }

    /// Waits for the result and hands it over.
    pub(crate) async fn finish(&self, id: &TrialId) -> Result<HalfResult, ApiError> {
        let trial = self.get(id)?;
        if trial.stage() == Stage::Unstarted {
            return Err(conflict(&trial, "has not been started"));
        }
        trial.ended().await;
        let outcome = trial.take("fetched", Phase::Fetched, |phase| match phase {
            Phase::Done(outcome, _) => Ok(*outcome),
            other => Err(other),
        })?;
        self.forget(&trial);
        outcome
    }

    /// Ends the trial, whatever its state, and waits until its ports are free. Fine if there is no such trial.
    pub(crate) async fn abort(&self, id: &TrialId) {
        if let Ok(trial) = self.get(id) {
            self.drop_trial(&trial);
            let _ = tokio::time::timeout(LETTING_GO + trial.set_up, trial.ended()).await;
        }
    }

    /// Ends all trials, and waits until their ports are free.
    pub(crate) async fn abort_all(&self) {
        let trials: Vec<_> = self.held().values().cloned().collect();
        trials.iter().for_each(|trial| self.drop_trial(trial));
        let all = futures_util::future::join_all(trials.iter().map(|trial| trial.ended()));
        let _ = tokio::time::timeout(LETTING_GO / 4, all).await;
    }

    /// Tells all trials to end, without waiting.
    pub(crate) fn let_go(&self) {
        let trials: Vec<_> = self.held().values().cloned().collect();
        trials.iter().for_each(|trial| self.drop_trial(trial));
    }

    /// Trials whose engine is at work.
    pub(crate) fn running(&self) -> usize {
        self.held().values().filter(|trial| matches!(*trial.phase(), Phase::Running(_))).count()
    }

    /// Checks the trial against the limits and the others, and holds a place for it.
    fn admit(&self, spec: &HalfSpec) -> Result<Arc<Trial>, ApiError> {
        check_name(&spec.id)?;
        let load = self.limits.check(spec)?;
        let mut held = self.held();
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.retain(|trial| !trial.has_ended());
        self.limits.check_trials(under_way.len())?;
        self.limits.check_load(under_way.iter().fold(load, |sum, trial| sum.and(trial.load)))?;
        match held.entry(spec.id.clone()) {
            Entry::Occupied(_) => Err(ApiError::new(
                ErrorKind::Conflict,
                format!("there is a trial `{}` already; abort it first, or use another name", spec.id),
            )),
            Entry::Vacant(place) => {
                let nothing = Progress {
                    elapsed: Nanos::default(),
                    received_bytes: 0,
                    sent_bytes: 0,
                    transactions: 0,
                    done: false,
                };
                let trial = Arc::new(Trial {
                    id: spec.id.clone(),
                    load,
                    set_up: spec.workload.set_up().into(),
                    canceller: OnceLock::new(),
                    phase: Mutex::new(Phase::Busy),
                    progress: watch::channel(nothing).0,
                });
                under_way.push(Arc::clone(&trial));
                Ok(Arc::clone(place.insert(trial)))
            }
        }
    }

    /// Drops the trial when nobody tends it.
    async fn tend(self: Arc<Self>, trial: Arc<Trial>) {
        tokio::time::sleep(self.timeouts.unstarted + trial.set_up).await;
        match trial.stage() {
            Stage::Unstarted => self.drop_trial(&trial),
            Stage::Started => {
                trial.ended().await;
                tokio::time::sleep(self.timeouts.unfetched).await;
                self.forget(&trial);
            }
            Stage::Over => {}
        }
    }

    /// Runs the engine and watches the host. Runs on a thread of its own.
    fn run(&self, trial: &Trial, half: Half, at_ns: u64, answer: oneshot::Sender<Result<(), ApiError>>) {
        // Nobody may be waiting for the answer any more: the trial goes on, and ends by its own duration.
        let running = match guarded(|| half.start(at_ns)) {
            Ok(running) => running,
            Err(error) => {
                let _ = answer.send(Err(self.fail(trial, &error)));
                return;
            }
        };
        let (stop, stopped) = mpsc::channel();
        let begun = trial.begin(stop);
        let aborted = begun.is_err();
        if !aborted {
            self.metrics.started.add(1);
        }
        let _ = answer.send(begun);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            if aborted { give_up(running) } else { conduct(running, &trial.progress, &stopped) }
        }))
        .unwrap_or_else(|_| Err(ApiError::new(ErrorKind::TrialFailed, PANICKED)));
        if trial.settle(&self.metrics, outcome) {
            self.make_room();
        }
    }

    /// Forgets the oldest results beyond those that are kept.
    fn make_room(&self) {
        let mut held = self.held();
        let mut done: Vec<_> = held
            .values()
            .filter_map(|trial| match *trial.phase() {
                Phase::Done(_, since) => Some((since, trial.id.clone())),
                _ => None,
            })
            .collect();
        done.sort();
        for (_, id) in done.iter().rev().skip(RESULTS_KEPT) {
            held.remove(id);
        }
    }

    /// Ends a trial that failed before it ran, and whose half is gone. Aborted meanwhile, it has been counted as that.
    fn fail(&self, trial: &Trial, error: &dyn std::fmt::Display) -> ApiError {
        self.forget(trial);
        let failed = trial.abort();
        trial.end();
        if !failed {
            return aborted(&trial.id);
        }
        self.metrics.failed.add(1);
        ApiError::new(ErrorKind::TrialFailed, error.to_string())
    }

    fn drop_trial(&self, trial: &Trial) {
        self.forget(trial);
        if trial.abort() {
            self.metrics.aborted.add(1);
        }
    }

    /// Takes the trial out; another of the same name stays.
    fn forget(&self, trial: &Trial) {
        let mut held = self.held();
        if held.get(&trial.id).is_some_and(|other| std::ptr::eq(Arc::as_ptr(other), trial)) {
            held.remove(&trial.id);
        }
    }

    fn get(&self, id: &TrialId) -> Result<Arc<Trial>, ApiError> {
        self.held().get(id).cloned().ok_or_else(|| {
            ApiError::new(
                ErrorKind::NotFound,
                format!("there is no trial `{id}` here; it was never prepared, or it was fetched, aborted or dropped"),
            )
        })
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<TrialId, Arc<Trial>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Trial {
    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stage(&self) -> Stage {
        match *self.phase() {
            Phase::Busy | Phase::Prepared(_) | Phase::Connected(_) => Stage::Unstarted,
            Phase::Running(_) | Phase::Done(..) => Stage::Started,
            Phase::Fetched | Phase::Aborted => Stage::Over,
        }
    }

    /// Takes what `wanted` picks out of the phase, and leaves the trial in `next`; `done` is what cannot be done
    /// otherwise.
    fn take<T>(&self, done: &str, next: Phase, wanted: impl FnOnce(Phase) -> Result<T, Phase>) -> Result<T, ApiError> {
        let mut phase = self.phase();
        wanted(std::mem::replace(&mut *phase, next)).map_err(|other| {
            let state = match &other {
                Phase::Busy => "is being prepared, connected or started right now",
                Phase::Prepared(_) => "has not been connected",
                Phase::Connected(_) => "is connected already",
                Phase::Running(_) => "is running",
                Phase::Done(..) => "is done",
                Phase::Fetched => "was fetched",
                Phase::Aborted => "was aborted",
            };
            let kind = if matches!(other, Phase::Aborted) { ErrorKind::Aborted } else { ErrorKind::Conflict };
            *phase = other;
            ApiError::new(kind, format!("the trial `{}` {state}, so it cannot be {done}", self.id))
        })
    }

    /// Ends a blocking call: the trial is in `next`, unless it was aborted meanwhile.
    fn put(&self, next: Phase) -> Result<(), ApiError> {
        let mut phase = self.phase();
        if matches!(*phase, Phase::Aborted) {
            drop(phase);
            drop(next);
            self.end();
            return Err(aborted(&self.id));
        }
        *phase = next;
        Ok(())
    }

    /// Like `put` for a started engine, which its own thread ends if the trial was aborted.
    fn begin(&self, stop: mpsc::Sender<()>) -> Result<(), ApiError> {
        let mut phase = self.phase();
        if matches!(*phase, Phase::Aborted) {
            return Err(aborted(&self.id));
        }
        *phase = Phase::Running(stop);
        Ok(())
    }

    /// The engine has ended. True if its outcome is now kept.
    fn settle(&self, metrics: &Metrics, outcome: Result<HalfResult, ApiError>) -> bool {
        let mut phase = self.phase();
        let kept = !matches!(*phase, Phase::Aborted);
        if kept {
            match &outcome {
                Ok(result) => metrics.finish(result),
                Err(_) => metrics.failed.add(1),
            }
            *phase = Phase::Done(Box::new(outcome), Instant::now());
        }
        drop(phase);
        self.end();
        kept
    }

    /// Ends the trial in whatever phase; false if it had ended before. Whoever holds its half lets go of it.
    fn abort(&self) -> bool {
        let mut phase = self.phase();
        if matches!(*phase, Phase::Fetched) {
            return false;
        }
        let old = std::mem::replace(&mut *phase, Phase::Aborted);
        drop(phase);
        match old {
            Phase::Prepared(half) | Phase::Connected(half) => {
                // Closing sockets and joining threads may block, and this may be an event loop.
                let progress = self.progress.clone();
                let spawned = std::thread::Builder::new().name("let go".into()).spawn(move || {
                    drop(half);
                    progress.send_modify(|progress| progress.done = true);
                });
                if spawned.is_err() {
                    // The half went with the thread that could not be.
                    self.end();
                }
            }
            Phase::Running(stop) => {
                // If the trial's thread is past listening, it is ending anyway.
                let _ = stop.send(());
            }
            Phase::Busy => {
                if let Some(canceller) = self.canceller.get() {
                    canceller.store(true, Ordering::Relaxed);
                }
            }
            Phase::Done(..) | Phase::Fetched | Phase::Aborted => return false,
        }
        true
    }

    /// Says that the trial's threads and sockets are gone.
    fn end(&self) {
        self.progress.send_modify(|progress| progress.done = true);
    }

    async fn ended(&self) {
        // It fails only if the sender is gone, and that is part of self.
        let _ = self.progress.subscribe().wait_for(|progress| progress.done).await;
    }

    fn has_ended(&self) -> bool {
        self.progress.borrow().done
    }
}

/// Follows a running engine through its window and gathers what it and the host counted.
fn conduct(
    running: Running,
    progress: &watch::Sender<Progress>,
    stopped: &mpsc::Receiver<()>,
) -> Result<HalfResult, ApiError> {
    if !follow(&running, running.opens_at(), progress, stopped) {
        return give_up(running);
    }
    let mut seen = Watch::open(&running.threads());
    let started_unix_ns = clock::unix_now() - clock::now().saturating_sub(running.opens_at());
    if !follow(&running, running.closes_at(), progress, stopped) {
        return give_up(running);
    }
    seen.close();
    let addresses = running.local_addresses();
    let mut ends = running.join().map_err(|error| ApiError::new(ErrorKind::TrialFailed, error.to_string()))?;
    let observation = seen.finish();
    name_interfaces(&mut ends, &addresses);
    Ok(HalfResult { ends, observation, started_unix_ns })
}

/// Tells progress until `until_ns`, or until the engine has ended before its time, as it does when a peer goes away;
/// false if the trial is to stop.
fn follow(running: &Running, until_ns: u64, progress: &watch::Sender<Progress>, stopped: &mpsc::Receiver<()>) -> bool {
    loop {
        let left = until_ns.saturating_sub(clock::now());
        let now = running.progress();
        if left == 0 || now.done {
            return true;
        }
        progress.send_replace(now);
        match stopped.recv_timeout(Duration::from_nanos(left.min(PROGRESS_EVERY.get()))) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
}

fn give_up(running: Running) -> Result<HalfResult, ApiError> {
    running.stop();
    let _ = running.join();
    Err(ApiError::new(ErrorKind::Aborted, "the trial was aborted"))
}

/// Notes at each end which interface has its address.
fn name_interfaces(ends: &mut [EndResult], addresses: &[(u16, IpAddr)]) {
    for end in ends {
        let address = addresses.iter().find(|(path, _)| *path == end.path);
        end.interface = address.and_then(|(_, address)| linerate_observe::interface_of(*address));
    }
}

/// A name stands in paths and messages, so it is kept plain.
pub(crate) fn check_name(id: &TrialId) -> Result<(), ApiError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if (1..=64).contains(&id.0.len()) && id.0.bytes().all(plain) {
        return Ok(());
    }
    Err(ApiError::new(ErrorKind::BadRequest, "a trial's id is 1 to 64 letters, digits, dashes, dots or underscores"))
}

fn aborted(id: &TrialId) -> ApiError {
    ApiError::new(ErrorKind::Aborted, format!("the trial `{id}` was aborted"))
}

fn conflict(trial: &Trial, state: &str) -> ApiError {
    ApiError::new(ErrorKind::Conflict, format!("the trial `{}` {state}", trial.id))
}

/// Runs what blocks on a thread that may.
async fn blocking<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(call)
        .await
        .unwrap_or_else(|error| Err(ApiError::new(ErrorKind::TrialFailed, format!("the trial was cut short: {error}"))))
}

/// Calls the engine. A panic is an error like others: it must not leave a trial that never ends.
fn guarded<T>(call: impl FnOnce() -> Result<T, EngineError>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(outcome) => outcome.map_err(|error| error.to_string()),
        Err(_) => Err(PANICKED.to_owned()),
    }
}
