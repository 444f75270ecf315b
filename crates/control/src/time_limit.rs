//! Time limits for answers of other hosts. Only time in which this program runs counts.
//!
//! After this program or its machine was stopped (SIGSTOP, a paused virtual machine), a timer has expired although the
//! answer may be in the socket: the task that reads the connection has not run. So time is counted in short steps, and
//! a pause lasts one step.

use std::pin::pin;
use std::time::Duration;
use tokio::time::timeout;

const STEP: Duration = Duration::from_secs(1);

/// Returns the output of `future` if it completes within `longest`.
pub(crate) async fn within<T>(longest: Duration, future: impl Future<Output = T>) -> Option<T> {
    in_steps(longest, STEP, future).await
}

async fn in_steps<T>(longest: Duration, step: Duration, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut left = longest;
    while !left.is_zero() {
        let current = left.min(step);
        if let Ok(output) = timeout(current, future.as_mut()).await {
            return Some(output);
        }
        left -= current;
    }
    // The last step may have been a pause. One more step reads what is in the socket.
    timeout(step, future).await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::UnixStream;
    use tokio::sync::oneshot;

    const LONGEST: Duration = Duration::from_millis(100);
    const SHORT: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn answer_that_arrives_during_a_pause_is_received() {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let (sender, receiver) = oneshot::channel();
        tokio::spawn(async move {
            ours.readable().await.expect("readable");
            sender.send(()).expect("the receiver waits");
        });
        tokio::spawn(async move {
            // `try_write` writes only after the runtime has seen the socket writable.
            theirs.writable().await.expect("writable");
            // Stops the whole program, which has one thread.
            std::thread::sleep(3 * LONGEST);
            theirs.try_write(&[1]).expect("there is room");
            // Keeps the socket open.
            std::future::pending::<()>().await;
        });
        in_steps(LONGEST, SHORT, receiver).await.expect("in time").expect("sent");
    }

    #[tokio::test]
    async fn silence_ends() {
        assert_eq!(in_steps(LONGEST, SHORT, std::future::pending::<()>()).await, None);
    }
}
