//! This host's half of a trial with raw frames between ports of several hosts.
//!
//! Whoever conducts the trial keeps one connection to each host open and hears on it how far the host is; when it closes, the
//! half ends, in whatever state. The hosts know nothing of each other: that all count, or that all have sent, is told
//! them by two short requests.

use crate::api_error::{ApiError, ErrorKind};
use crate::frames::{StopOnDrop, admit, longest};
use crate::serve::Shared;
use futures_util::{Stream, StreamExt as _};
use linerate_frames::Conductor;
use linerate_model::{FrameHalf, FrameHalfResult};
use linerate_observe::Watch;
use linerate_sys::clock;
use linerate_units::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::future::ready;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;
use tokio_stream::wrappers::WatchStream;

/// How far a half is, in this order; the last is `done` or `failed`. `counting` comes again where other means stand in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "stage")]
pub enum HalfStage {
    /// Its ports are being made ready.
    Preparing,
    /// Its ports count what arrives: it waits for the start.
    Counting,
    /// What it had to send is sent; its ports go on counting.
    Sent,
    /// It is over, and its result is to be fetched.
    Done,
    /// It came to nothing, and its ports are free.
    Failed(ApiError),
}

impl HalfStage {
    /// Nothing comes after it.
    pub(crate) fn is_last(&self) -> bool {
        matches!(self, Self::Done | Self::Failed(_))
    }
}

/// A half between its first word and its last.
#[derive(Debug)]
pub(crate) struct HalfUnderWay {
    tag: u16,
    stage: watch::Sender<HalfStage>,
    /// When the first frame is due; 0 as long as that is not known.
    start: AtomicU64,
    all_sent: AtomicBool,
    result: Mutex<Option<FrameHalfResult>>,
}

impl HalfUnderWay {
    pub(crate) fn tag(&self) -> u16 {
        self.tag
    }

    /// The word that all count: the first frame is due `delay` from now.
    pub(crate) fn start_after(&self, delay: Nanos) -> Result<(), ApiError> {
        let at = clock::now().saturating_add(delay.get());
        self.demand(&HalfStage::Counting, "start")?;
        match self.start.compare_exchange(0, at, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ok(()),
            Err(_) => Err(self.not_now("start")),
        }
    }

    /// The word that all have sent: waits for the result and hands it over.
    pub(crate) async fn finish(&self) -> Result<FrameHalfResult, ApiError> {
        self.demand(&HalfStage::Sent, "finish")?;
        self.all_sent.store(true, Ordering::Release);
        let mut stages = self.stage.subscribe();
        // The sender is this very half: it is there as long as it is waited for.
        let _ = stages.wait_for(HalfStage::is_last).await;
        if let HalfStage::Failed(error) = &*stages.borrow() {
            return Err(error.clone());
        }
        let result = self.result.lock().unwrap_or_else(PoisonError::into_inner).take();
        result.ok_or_else(|| self.not_now("finish"))
    }

    fn demand(&self, stage: &HalfStage, order: &str) -> Result<(), ApiError> {
        if *self.stage.borrow() == *stage { Ok(()) } else { Err(self.not_now(order)) }
    }

    fn not_now(&self, order: &str) -> ApiError {
        let why = format!("the half tagged {} cannot {order} now: follow its stages", self.tag);
        ApiError::new(ErrorKind::Conflict, why)
    }
}

impl Conductor for HalfUnderWay {
    fn counting(&self) {
        self.stage.send_replace(HalfStage::Counting);
    }

    fn start(&self) -> Option<u64> {
        Some(self.start.load(Ordering::Acquire)).filter(|start| *start > 0)
    }

    fn sent(&self) {
        self.stage.send_replace(HalfStage::Sent);
    }

    fn all_sent(&self) -> bool {
        self.all_sent.load(Ordering::Acquire)
    }
}

/// Begins with a half and tells its stages. It ends when nobody listens any more, and when it takes far longer than it can.
pub(crate) fn run(shared: &Arc<Shared>, half: FrameHalf) -> Result<impl Stream<Item = HalfStage> + use<>, ApiError> {
    let place = admit(shared, &half.trial)?;
    let bound = longest(&half.trial);
    let under_way = Arc::new(HalfUnderWay {
        tag: half.tag,
        stage: watch::channel(HalfStage::Preparing).0,
        start: AtomicU64::new(0),
        all_sent: AtomicBool::new(false),
        result: Mutex::default(),
    });
    *shared.frames.last_half() = Some(Arc::clone(&under_way));
    let stages = WatchStream::new(under_way.stage.subscribe());
    let stop = Arc::new(AtomicBool::new(false));
    let guard = StopOnDrop(Arc::clone(&stop));
    let work = tokio::task::spawn_blocking({
        let under_way = Arc::clone(&under_way);
        move || {
            let counted = count(&half, &*under_way, &stop);
            drop(place);
            counted
        }
    });
    tokio::spawn(async move {
        let failed = |why| HalfStage::Failed(ApiError::new(ErrorKind::TrialFailed, why));
        let last = match work.await {
            Ok(Ok(result)) => {
                *under_way.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
                HalfStage::Done
            }
            Ok(Err(error)) => failed(error.to_string()),
            Err(error) => failed(format!("the trial was cut short: {error}")),
        };
        under_way.stage.send_replace(last);
    });
    let until_last = stages.scan(false, move |ended, stage| {
        // Dropped with the stream, it ends the half.
        let _kept = &guard;
        let next = (!*ended).then_some(stage);
        *ended = next.as_ref().is_some_and(HalfStage::is_last);
        ready(next)
    });
    Ok(until_last.take_until(tokio::time::sleep(bound)))
}

/// Sends and counts, and watches the host meanwhile.
fn count(
    half: &FrameHalf,
    conductor: &dyn Conductor,
    stop: &AtomicBool,
) -> Result<FrameHalfResult, linerate_frames::FrameError> {
    let mut seen = Watch::open(&[]);
    let counts = linerate_frames::run_half(half, conductor, stop, &|_, _| ())?;
    seen.close();
    Ok(FrameHalfResult {
        engine: counts.engine,
        started_unix_ns: counts.started_unix_ns,
        streams: counts.streams,
        observation: seen.finish(),
        caveats: counts.caveats,
    })
}
