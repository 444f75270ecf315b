//! Ctrl-C, a closed terminal and a polite kill all ask a run to end: what was measured is kept and everything is taken
//! down. Asking a second time ends at once; what the lab started dies with the program all the same.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Turns true when the user asks to stop.
pub(crate) fn watch() -> std::io::Result<watch::Receiver<bool>> {
    let (asked, receiver) = watch::channel(false);
    let mut signals =
        [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?];
    tokio::spawn(async move {
        for already in [false, true] {
            let [interrupt, terminate, hangup] = &mut signals;
            tokio::select! {
                _ = interrupt.recv() => (),
                _ = terminate.recv() => (),
                _ = hangup.recv() => (),
            }
            if already {
                std::process::exit(3);
            }
            crate::output::say("linerate: stopping; once more to stop at once");
            let _ = asked.send(true);
        }
    });
    Ok(receiver)
}
