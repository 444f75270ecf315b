//! Counterproofs of the verdict on transactions.

use crate::counterproof::{FLOWS, OUTSTANDING, Test};
use linerate_model::{Expects, Limit, Message, Net, Task, TransactStyle, TransactTask, message};

/// Returns the test of a verdict that names `limit`. Returns `None` if changing one thing is inconclusive.
pub(crate) fn test(transact: &TransactTask, limit: Limit) -> Option<Test> {
    let with = |change: Message, changed: TransactTask| Some(Test::new(Task::Transact(changed), change, Expects::Rise));
    match limit {
        Limit::OfferedLoad => with(
            message!("change-one-request", "one request after the other"),
            TransactTask { rate: None, ..transact.clone() },
        ),
        Limit::Latency if transact.style == TransactStyle::Persistent => {
            let outstanding = transact.outstanding.checked_mul(OUTSTANDING)?;
            with(
                message!("change-requests", "{outstanding} requests at a time", outstanding),
                TransactTask { outstanding, ..transact.clone() },
            )
        }
        Limit::Latency => {
            let flows = transact.net.flows.checked_mul(FLOWS);
            let flows = flows.filter(|flows| *flows <= Net::MOST_FLOWS_WITH_THREADS)?;
            let net = Net { flows, ..transact.net.clone() };
            with(message!("change-all-flows", "{flows} flows", flows), TransactTask { net, ..transact.clone() })
        }
        _ => None,
    }
}
