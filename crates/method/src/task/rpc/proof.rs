//! Counterproofs of the verdict on RPC calls.

use crate::counterproof::{FLOWS, OUTSTANDING, RISEN, Test};
use linerate_model::{Expects, Limit, Message, PathLimit, RpcTask, Task, message};

/// A result that should rise to this share of its line may be held back by the line.
const ROOM: f64 = 0.95;

/// Returns the test of a verdict that names `limit`. Returns `None` if changing one thing is inconclusive.
pub(crate) fn test(rpc: &RpcTask, limit: Limit, line: Option<&PathLimit>) -> Option<Test> {
    // On a line that is nearly full, more calls have no room to show that they were what was missing.
    let has_room = line.is_none_or(|line| line.share * RISEN < ROOM);
    let with = |change: Message, expects, changed: RpcTask| Some(Test::new(Task::Rpc(changed), change, expects));
    let more = |times, expects| {
        let outstanding = rpc.outstanding.checked_mul(times)?;
        with(
            message!("change-calls", "{outstanding} calls at a time", outstanding),
            expects,
            RpcTask { outstanding, ..rpc.clone() },
        )
    };
    match limit {
        Limit::OfferedLoad => with(
            message!("change-one-call", "one call after the other"),
            Expects::Rise,
            RpcTask { rate: None, ..rpc.clone() },
        ),
        Limit::Latency if has_room => more(OUTSTANDING, Expects::Rise),
        Limit::Wire => more(FLOWS, Expects::Same),
        _ => None,
    }
}
