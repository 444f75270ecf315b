//! How long another host is waited for: only time in which this program runs counts.
//!
//! After a pause of this program or of its machine (SIGSTOP, a virtual machine that is held) a timer has run out, although the answer
//! may wait in its socket: the task that reads the connection had no turn. So time is counted in short steps, and a pause is one.

use std::pin::pin;
use std::time::Duration;
use tokio::time::timeout;

const STEP: Duration = Duration::from_secs(1);

/// Returns what comes of `awaited` within `longest`; none if nothing does.
pub(crate) async fn within<T>(longest: Duration, awaited: impl Future<Output = T>) -> Option<T> {
    in_steps(longest, STEP, awaited).await
}

async fn in_steps<T>(longest: Duration, step: Duration, awaited: impl Future<Output = T>) -> Option<T> {
    let mut awaited = pin!(awaited);
    let mut left = longest;
    while !left.is_zero() {
        let now = left.min(step);
        if let Ok(came) = timeout(now, awaited.as_mut()).await {
            return Some(came);
        }
        left -= now;
    }
    // A pause may have been the last step: what it left in the socket is heard in one more.
    timeout(step, awaited).await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::UnixStream;
    use tokio::sync::oneshot;

    const LONGEST: Duration = Duration::from_millis(100);
    const SHORT: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn what_came_while_this_program_was_held_is_heard() {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let (heard, hears) = oneshot::channel();
        tokio::spawn(async move {
            ours.readable().await.expect("readable");
            heard.send(()).expect("somebody waits");
        });
        tokio::spawn(async move {
            // Only what the runtime has found writable is written to.
            theirs.writable().await.expect("writable");
            // The whole program has one thread, and sleeps.
            std::thread::sleep(3 * LONGEST);
            theirs.try_write(&[1]).expect("there is room");
            // It stays open.
            std::future::pending::<()>().await;
        });
        in_steps(LONGEST, SHORT, hears).await.expect("heard").expect("sent");
    }

    #[tokio::test]
    async fn silence_ends() {
        assert_eq!(in_steps(LONGEST, SHORT, std::future::pending::<()>()).await, None);
    }
}
