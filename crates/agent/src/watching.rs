//! The host watched and progress told while an engine is at work.

use linerate_engine::Work;
use linerate_model::{Meter, Observation};
use linerate_observe::Watch;
use linerate_sys::clock;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Progress is told this often: often enough for a person, too rare to cost anything.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);

/// A thread that watches the host from the opening of the window to its end.
pub(crate) struct Watching {
    returned: Arc<Returned>,
    thread: JoinHandle<Option<Watch>>,
}

/// Whether the engine has returned.
#[derive(Default)]
struct Returned {
    is: Mutex<bool>,
    changed: Condvar,
}

impl Watching {
    /// Watches `work`, and calls `tell` with what its meters read. The thread begins in the caller's network namespace.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn begin(work: Work, tell: impl Fn(Meter) + Send + 'static) -> io::Result<Self> {
        let returned = Arc::<Returned>::default();
        let thread = Builder::new().name("watch".into()).spawn({
            let returned = Arc::clone(&returned);
            move || watch(&work, &returned, &tell)
        })?;
        Ok(Self { returned, thread })
    }

    /// Ends the watch after the engine has returned and its stragglers have arrived. None if no window had opened.
    pub(crate) fn end(self) -> Option<Observation> {
        *self.returned.is.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.returned.changed.notify_all();
        self.thread.join().ok().flatten().map(Watch::finish)
    }
}

fn watch(work: &Work, returned: &Returned, tell: &dyn Fn(Meter)) -> Option<Watch> {
    let (opens, closes) = work.window.unwrap_or((0, u64::MAX));
    if !follow(work, opens, returned, tell) {
        return None;
    }
    let mut seen = Watch::with_disks(&work.threads, &work.disks);
    follow(work, closes, returned, tell);
    seen.close();
    Some(seen)
}

/// Tells progress until `until`, or until the engine's threads have ended before their time, as they do when a peer goes away.
/// Returns false if the engine has returned.
fn follow(work: &Work, until: u64, returned: &Returned, tell: &dyn Fn(Meter)) -> bool {
    let mut is_returned = returned.is.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let left = until.saturating_sub(clock::now());
        if *is_returned {
            return false;
        }
        if left == 0 || work.meters.has_ended() {
            return true;
        }
        tell(work.meters.read());
        let pause = PROGRESS_EVERY.min(Duration::from_nanos(left));
        let waited = returned.changed.wait_timeout_while(is_returned, pause, |is| !*is);
        is_returned = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
}
