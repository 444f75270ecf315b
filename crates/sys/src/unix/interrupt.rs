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
    // SAFETY: `sigaction` is made of integers and of a pointer to a function that may be null, for which all zeroes is a value.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: with a null pointer for the new action the call only writes the present one, to a live structure.
    let result = unsafe { libc::sigaction(kind.as_raw_value(), std::ptr::null(), &raw mut action) };
    result == 0 && action.sa_sigaction == libc::SIG_IGN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signal_is_ignored_only_while_its_action_says_so() {
        let signal = SignalKind::from_raw(libc::SIGTTOU);
        // SAFETY: the action is one of the system's own, and no other test uses the signal.
        unsafe { libc::signal(libc::SIGTTOU, libc::SIG_IGN) };
        assert!(is_ignored(signal));
        // SAFETY: as above.
        unsafe { libc::signal(libc::SIGTTOU, libc::SIG_DFL) };
        assert!(!is_ignored(signal));
    }
}
