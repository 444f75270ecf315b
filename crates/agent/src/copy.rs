//! This host's part in copies of folder trees.
//!
//! Whoever conducts a copy keeps one connection to each host open and hears on it how far the host is; when it closes, the part
//! ends, in whatever state. That all hosts are ready is told by a short request, and the result is fetched by another.

use crate::api_error::{ApiError, ErrorKind};
use crate::serve::Shared;
use crate::trial::check_name;
use futures_util::{Stream, StreamExt as _};
use linerate_copy::{Control, Counts, Ready};
use linerate_model::{CopyHalf, CopyHalfResult, CopyHalfStage, CopyRole, TrialId};
use linerate_observe::Watch;
use linerate_sys::clock;
use linerate_units::Nanos;
use std::collections::BTreeMap;
use std::future::ready;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;
use tokio::sync::watch;
use tokio_stream::wrappers::WatchStream;

/// How often progress is told.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);

/// How long an agent that ends waits for copies to let go of their files.
const LETTING_GO: Duration = Duration::from_secs(5);

/// The copies of one agent.
#[derive(Debug, Default)]
pub(crate) struct Copies(Mutex<BTreeMap<TrialId, Arc<CopyUnderWay>>>);

/// A part between its first word and its last.
#[derive(Debug)]
pub(crate) struct CopyUnderWay {
    id: TrialId,
    control: Arc<Control>,
    stage: watch::Sender<CopyHalfStage>,
    /// Takes the moment to begin, once.
    start: Mutex<Option<mpsc::Sender<u64>>>,
    result: Mutex<Option<CopyHalfResult>>,
    /// It took longer than the agent allows.
    too_long: AtomicBool,
}

/// Nothing comes after it.
pub(crate) fn is_last(stage: &CopyHalfStage) -> bool {
    matches!(stage, CopyHalfStage::Done | CopyHalfStage::Failed { .. })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Copies {
    /// The part called `id`.
    pub(crate) fn find(&self, id: &TrialId) -> Result<Arc<CopyUnderWay>, ApiError> {
        lock(&self.0).get(id).cloned().ok_or_else(|| {
            let why = format!("there is no copy `{id}` here: ask for it first, and stay connected");
            ApiError::new(ErrorKind::NotFound, why)
        })
    }

    /// Stops all of them, and waits until what was half-written is gone.
    pub(crate) async fn stop_all(&self) {
        let all: Vec<_> = lock(&self.0).values().cloned().collect();
        all.iter().for_each(|copy| copy.stop());
        let ended = all.iter().map(async |copy| {
            let mut stages = copy.stage.subscribe();
            // The sender is this very copy: it is there as long as it is waited for.
            let _ = stages.wait_for(is_last).await;
        });
        let _ = tokio::time::timeout(LETTING_GO, futures_util::future::join_all(ended)).await;
    }

    fn forget(&self, id: &TrialId) {
        lock(&self.0).remove(id);
    }
}

impl CopyUnderWay {
    /// All hosts are ready: it begins `delay` from now.
    pub(crate) fn start_after(&self, delay: Nanos) -> Result<(), ApiError> {
        let at = clock::now().saturating_add(delay.get());
        let is_ready = matches!(*self.stage.borrow(), CopyHalfStage::Ready { .. });
        let start = if is_ready { lock(&self.start).take() } else { None };
        start.and_then(|start| start.send(at).ok()).ok_or_else(|| {
            ApiError::new(ErrorKind::Conflict, format!("the copy `{}` cannot start now: follow its stages", self.id))
        })
    }

    /// What was counted, once it is done.
    pub(crate) fn finish(&self) -> Result<CopyHalfResult, ApiError> {
        lock(&self.result).take().ok_or_else(|| {
            let why = format!("the copy `{}` has no result to fetch: follow its stages until it is done", self.id);
            ApiError::new(ErrorKind::Conflict, why)
        })
    }

    fn stop(&self) {
        self.control.stop();
        // It may be waiting for the word.
        lock(&self.start).take();
    }
}

/// Ends the part when nobody follows it any more.
struct StopOnDrop(Arc<CopyUnderWay>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Begins with a part and tells its stages. It ends when nobody listens any more, and when it takes longer than allowed.
pub(crate) fn run(shared: &Arc<Shared>, half: CopyHalf) -> Result<impl Stream<Item = CopyHalfStage> + use<>, ApiError> {
    let (start, started) = mpsc::channel();
    let under_way = Arc::new(CopyUnderWay {
        id: half.id.clone(),
        control: Arc::new(Control::new(half.options.on_error)),
        stage: watch::channel(CopyHalfStage::Preparing { doing: String::new() }).0,
        start: Mutex::new(Some(start)),
        result: Mutex::default(),
        too_long: AtomicBool::new(false),
    });
    admit(shared, &half, &under_way)?;
    let stages = WatchStream::new(under_way.stage.subscribe());
    let guard = StopOnDrop(Arc::clone(&under_way));
    let work = tokio::task::spawn_blocking({
        let (under_way, shared) = (Arc::clone(&under_way), Arc::clone(shared));
        move || work(&shared, &half, &under_way, &started)
    });
    tokio::spawn(tend(Arc::clone(shared), Arc::clone(&under_way), work));
    Ok(stages.scan(false, move |ended, stage| {
        // Dropped with the stream, it ends the part.
        let _kept = &guard;
        let next = (!*ended).then_some(stage);
        *ended = next.as_ref().is_some_and(is_last);
        ready(next)
    }))
}

/// Holds a place for a part that is allowed.
fn admit(shared: &Shared, half: &CopyHalf, under_way: &Arc<CopyUnderWay>) -> Result<(), ApiError> {
    let limits = &shared.limits;
    let refuse = |why: String| Err(ApiError::new(ErrorKind::Limit, why));
    check_name(&half.id)?;
    if let Some(limit) = limits.max_rate {
        return refuse(format!(
            "a copy goes as fast as it goes, this agent allows {limit} of payload; start it without `linerate agent --max-rate`"
        ));
    }
    let others = match &half.role {
        CopyRole::Source { targets, .. } => targets.len(),
        CopyRole::Destination { sources, .. } => sources.len(),
        CopyRole::Server { sources, .. } => sources.len(),
        CopyRole::Alone { into, .. } => into.len(),
    };
    let flows = others as u64 * u64::from(half.options.lanes);
    if flows > limits.max_flows {
        return refuse(format!(
            "the copy has {flows} lanes on this host, this agent allows {}; ask for fewer with `--lanes`, or start it with \
             `linerate agent --max-flows`",
            limits.max_flows
        ));
    }
    let mut held = lock(&shared.copies.0);
    let busy = held.values().filter(|copy| !is_last(&copy.stage.borrow())).count();
    limits.check_trials(busy)?;
    if held.contains_key(&half.id) {
        return Err(ApiError::new(ErrorKind::Conflict, format!("there is a copy `{}` already", half.id)));
    }
    held.insert(half.id.clone(), Arc::clone(under_way));
    Ok(())
}

/// Prepares, waits for the word, and copies.
fn work(
    shared: &Shared,
    half: &CopyHalf,
    under_way: &CopyUnderWay,
    started: &mpsc::Receiver<u64>,
) -> Result<CopyHalfResult, String> {
    let say = |doing: &str| {
        under_way.stage.send_replace(CopyHalfStage::Preparing { doing: doing.to_owned() });
    };
    let prepared = linerate_copy::prepare(half, &shared.limits.copies, &under_way.control, &say);
    let ready: Ready = prepared.map_err(|error| error.to_string())?;
    let (files, bytes) = ready.count();
    let listening = ready.listening().to_vec();
    under_way.stage.send_replace(CopyHalfStage::Ready { listening, files, bytes });
    let at = started.recv().map_err(|_| String::from("it was stopped before it began"))?;
    let mut seen = Watch::with_disks(&[], ready.devices());
    let Counts { started_unix_ns, sides, faults, faults_total, caveats } = ready.run(at);
    seen.close();
    Ok(CopyHalfResult { started_unix_ns, sides, faults, faults_total, observation: seen.finish(), caveats })
}

/// Tells progress while the work goes on, and keeps the result until it is fetched.
async fn tend(
    shared: Arc<Shared>,
    under_way: Arc<CopyUnderWay>,
    mut work: tokio::task::JoinHandle<Result<CopyHalfResult, String>>,
) {
    let longest = shared.limits.max_time;
    let worked = loop {
        tokio::select! {
            worked = &mut work => break worked,
            () = tokio::time::sleep(PROGRESS_EVERY) => {}
        }
        if let Some(progress) = under_way.control.progress() {
            under_way.stage.send_replace(CopyHalfStage::Copying(progress));
            if progress.elapsed > longest {
                under_way.too_long.store(true, Ordering::Relaxed);
                under_way.stop();
            }
        }
    };
    let failed = |message: String| CopyHalfStage::Failed { message };
    let last = match worked {
        _ if under_way.too_long.load(Ordering::Relaxed) => failed(format!(
            "the copy took longer than the {longest} this agent allows; start it with a higher `linerate agent --max-time`"
        )),
        Ok(Ok(result)) => {
            *lock(&under_way.result) = Some(result);
            CopyHalfStage::Done
        }
        Ok(Err(message)) => failed(message),
        Err(error) => failed(format!("the copy was cut short: {error}")),
    };
    let done = matches!(last, CopyHalfStage::Done);
    under_way.stage.send_replace(last);
    if done {
        tokio::time::sleep(shared.timeouts.unfetched).await;
    }
    shared.copies.forget(&under_way.id);
}
