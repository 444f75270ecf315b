//! Sessions can open as many files and sockets as the agent admits.

use super::agent;
use crate::Budget;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Systems start programs with a limit far below the one that they may set, and admission counts on the latter.
#[tokio::test]
async fn the_process_may_open_the_descriptors_that_sessions_are_admitted_to() {
    let limit = || getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    let (_, hard) = limit();
    // Enough for the tests beside this one.
    setrlimit(Resource::RLIMIT_NOFILE, hard.min(1_024), hard).expect("lowered");
    let _agent = agent(|_| ()).await;
    let (soft, _) = limit();
    assert!(soft >= Budget::default().descriptors, "{soft} of {hard}");
    assert!(soft > 1_024 || soft == hard, "{soft} of {hard}");
}
