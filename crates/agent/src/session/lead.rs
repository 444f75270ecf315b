//! What an engine sees of its session: it says how far it is, and waits here for orders.

use super::{Awaited, Session};
use crate::watching::{Seen, Watching};
use linerate_engine::{Conductor, ListenOptions, Stop, Stopped, Work};
use linerate_model::{Endpoints, FailureKind, Preparation, Ready, Sampling, SessionProgress, Stage};
use std::sync::{Arc, Mutex, PoisonError};

/// Leads the engine through one session.
pub(super) struct Lead<'a> {
    session: &'a Arc<Session>,
    sampling: Sampling,
    watching: Mutex<Option<Watching>>,
}

impl<'a> Lead<'a> {
    /// That of `session`, whose host is to be sampled so.
    pub(super) fn of(session: &'a Arc<Session>, sampling: Sampling) -> Self {
        Self { session, sampling, watching: Mutex::default() }
    }

    /// Ends the watch of the host, and returns what was seen.
    pub(super) fn stop_watching(&self) -> Seen {
        let watching = self.watching.lock().unwrap_or_else(PoisonError::into_inner).take();
        watching.map(Watching::end).unwrap_or_default()
    }
}

impl Conductor for Lead<'_> {
    fn preparing(&self, doing: Preparation) {
        self.session.reach(Stage::Preparing { doing: Some(doing) }, None);
    }

    fn listening(&self, here: Endpoints) -> Result<Endpoints, Stopped> {
        self.session.wait(Stage::Listening { endpoints: here }, Awaited::Connect, |state| state.endpoints.clone())
    }

    fn ready(&self, ready: Ready) -> Result<u64, Stopped> {
        self.session.wait(Stage::Ready(ready), Awaited::Start, |state| state.start)
    }

    fn runs(&self, work: Work) {
        // An engine that gives way to another begins anew. Where both have a window, both are to share its timeline, as an order
        // to open it comes once.
        self.stop_watching();
        let session = Arc::clone(self.session);
        let window = work.window.clone();
        match Watching::begin(work, self.sampling, move |progress| session.progress(progress)) {
            Ok(watching) => {
                if let Some(window) = &window {
                    let signal = watching.signal();
                    window.on_close(move || signal.window_is_set());
                }
                self.session.orders.lock().timeline = window.map(|window| (window, watching.signal()));
                *self.watching.lock().unwrap_or_else(PoisonError::into_inner) = Some(watching);
                self.session.reach(Stage::Running(SessionProgress::default()), None);
            }
            Err(error) => {
                self.session.stop(FailureKind::Task, format!("starting the thread that watches the host: {error}"))
            }
        }
    }

    fn sent(&self) -> Result<(), Stopped> {
        self.session.wait(Stage::Sent, Awaited::Drain, |state| state.all_sent.then_some(()))
    }

    fn listen_options(&self) -> ListenOptions {
        self.session.listening.clone()
    }

    fn is_rate_limited(&self) -> bool {
        self.session.opener.rate_limited
    }

    fn stop(&self) -> &Arc<Stop> {
        &self.session.stop
    }
}
