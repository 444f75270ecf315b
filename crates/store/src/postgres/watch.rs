//! A thread that connects again while a run is measured: nothing is written during a trial, and without a connection the run would soon
//! count as killed.

use super::Core;
use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

/// Time between two looks at the connection.
const PERIOD: Duration = Duration::from_secs(5);

/// The thread, which ends after this is dropped.
pub(super) struct Watch {
    /// Dropped to end the thread.
    _stop: Sender<()>,
}

impl Watch {
    pub(super) fn start(core: &Arc<Core>) -> io::Result<Self> {
        let (stop, stopped) = channel();
        let core: Weak<Core> = Arc::downgrade(core);
        thread::Builder::new().name("postgres-watch".into()).spawn(move || {
            while stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                let Some(core) = core.upgrade() else { return };
                core.connect_for_locks();
            }
        })?;
        Ok(Self { _stop: stop })
    }
}
