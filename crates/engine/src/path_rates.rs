//! Demand of path ends on their host, from the rates of one path.

use crate::{Demand, Needs, PathEnd};
use linerate_model::{Assignment, Window};
use linerate_units::BitRate;

/// Payload bits per second of one path. `None` is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathRates {
    /// Rate from client to server.
    pub forward: Option<u64>,
    /// Rate from server to client.
    pub backward: Option<u64>,
}

/// Returns the bits per second of messages of `bytes`, saturating.
pub fn bits_per_second(messages_per_second: u64, bytes: u64) -> u64 {
    messages_per_second.saturating_mul(bytes).saturating_mul(8)
}

impl PathRates {
    /// Returns the demand of the `ends` in `assignment` on this host. Each end has `flows_each` flows; `needs` are
    /// those of all ends.
    pub fn demand(
        self,
        assignment: &Assignment,
        window: Window,
        ends: &[PathEnd],
        flows_each: u64,
        needs: Needs,
    ) -> Demand {
        let clients = ends.iter().filter(|end| end.is_client()).count() as u64;
        let servers = ends.len() as u64 - clients;
        Demand {
            sends: sum([(self.forward, clients), (self.backward, servers)]),
            receives: sum([(self.backward, clients), (self.forward, servers)]),
            time: Some(window.longest()),
            flows: flows_each.saturating_mul(ends.len() as u64),
            needs,
            exclusive: None,
            set_up: assignment.task.set_up(),
        }
    }
}

/// Returns the sum of rates times numbers of ends. Returns `None` if the rate of any end is unlimited.
fn sum(rates: [(Option<u64>, u64); 2]) -> Option<BitRate> {
    let mut sum: u64 = 0;
    for (rate, ends) in rates {
        if ends > 0 {
            sum = sum.saturating_add(rate?.saturating_mul(ends));
        }
    }
    Some(BitRate::per_second(sum))
}
