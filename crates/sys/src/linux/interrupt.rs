//! Requests to end the program: Ctrl-C, a closed terminal, and a polite kill.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The requests to end this program. From the first call of [`StopRequests::new`] on, none of them ends it by itself.
#[derive(Debug)]
pub struct StopRequests {
    interrupt: Signal,
    terminate: Signal,
    /// The terminal was closed. `None` if nohup(1) started the program: a handler would undo that.
    hangup: Option<Signal>,
}

impl StopRequests {
    /// Receives the requests from now on. It needs a runtime of tokio.
    ///
    /// # Errors
    /// A signal cannot be handled.
    pub fn new() -> io::Result<Self> {
        let hangup = SignalKind::hangup();
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: if is_ignored(hangup) { None } else { Some(signal(hangup)?) },
        })
    }

    /// Waits for the next request.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => (),
            _ = self.terminate.recv() => (),
            () = received(&mut self.hangup) => (),
        }
    }
}

/// Waits for the signal. Never returns if there is none.
async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => _ = signal.recv().await,
        None => std::future::pending().await,
    }
}

/// Returns whether the program was started with this signal ignored, as nohup(1) does.
fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (kind.as_raw_value() - 1) & 1 == 1
}
