//! Ctrl-C, a closed terminal (unless nohup(1) started the program) and a polite kill all ask a run to end: what was measured is
//! kept and everything is taken down. Asking a second time ends at once; what the lab started dies with the program all the same.

use crate::exit::Failure;
use crate::output::say;
use linerate_sys::interrupt::StopRequests;
use std::io;
use tokio::sync::{Notify, watch};
use tokio::task;

/// Asked without a signal, by [`ask`].
static ASKED: Notify = Notify::const_new();

/// Asks the run to end, as Ctrl-C does: for a terminal that sends no signals.
#[cfg(feature = "tui")]
pub(crate) fn ask() {
    ASKED.notify_one();
}

/// Returns a channel that turns true when the user asks to stop.
///
/// `is_taken` returns whether a display has the terminal, and `give_back` gives the terminal back.
pub(crate) fn watch(is_taken: fn() -> bool, give_back: fn()) -> io::Result<watch::Receiver<bool>> {
    let (asked, receiver) = watch::channel(false);
    let mut requests = StopRequests::new()?;
    tokio::spawn(async move {
        for already in [false, true] {
            tokio::select! {
                () = requests.next() => (),
                () = ASKED.notified() => (),
            }
            if already {
                give_back();
                std::process::exit(3);
            }
            // A display says so itself.
            if !is_taken() {
                say("linerate: stopping; once more to stop at once");
            }
            let _ = asked.send(true);
        }
    });
    Ok(receiver)
}

/// Returns what `work`, which blocks, comes to. It has a thread of its own, which ends with the program if the user asks to stop first.
///
/// # Errors
/// The user asked to stop.
pub(crate) async fn unless_asked<T: Send + 'static>(
    asked: &mut watch::Receiver<bool>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    tokio::select! {
        done = task::spawn_blocking(work) => done.map_err(|error| Failure::measure(io::Error::from(error))),
        Ok(_) = asked.wait_for(|asked| *asked) => Err(Failure::measure("interrupted")),
    }
}

/// Turns true with `asked`, or when the program itself asks to stop by what is returned beside it.
pub(crate) fn or_stopped(mut asked: watch::Receiver<bool>) -> (watch::Sender<bool>, watch::Receiver<bool>) {
    let (stop, stopped) = watch::channel(*asked.borrow());
    let forward = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            Ok(_) = asked.wait_for(|asked| *asked) => { forward.send_replace(true); }
            () = forward.closed() => (),
        }
    });
    (stop, stopped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_run_stops_for_the_user_and_for_the_program() {
        let (user, asked) = watch::channel(false);
        let (stop, mut stopped) = or_stopped(asked.clone());
        assert!(!*stopped.borrow_and_update());
        user.send_replace(true);
        stopped.changed().await.expect("it can still be stopped");
        assert!(*stopped.borrow());
        drop(stop);

        let (_user, asked) = watch::channel(false);
        let (stop, stopped) = or_stopped(asked);
        stop.send_replace(true);
        assert!(*stopped.borrow());
    }
}
