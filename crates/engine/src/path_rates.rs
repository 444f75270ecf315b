//! What ends of paths ask of their host, from the rates of one path.

use crate::{Demand, Needs, PathEnd};
use linerate_model::{Assignment, Window};
use linerate_units::BitRate;

/// Payload bits per second of one path; none has no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathRates {
    /// From client to server.
    pub forward: Option<u64>,
    /// From server to client.
    pub backward: Option<u64>,
}

/// Returns the bits per second of messages of `bytes`; the largest number there is if it is larger.
pub fn bits_per_second(messages_per_second: u64, bytes: u64) -> u64 {
    messages_per_second.saturating_mul(bytes).saturating_mul(8)
}

impl PathRates {
    /// Returns what the `ends` of paths ask of this host in `assignment`, each with so many flows, beside their `needs`.
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
        let sum = |of_clients: Option<u64>, of_servers: Option<u64>| {
            let times =
                |rate: Option<u64>, ends: u64| if ends == 0 { Some(0) } else { Some(rate?.saturating_mul(ends)) };
            Some(BitRate::per_second(times(of_clients, clients)?.saturating_add(times(of_servers, servers)?)))
        };
        Demand {
            sends: sum(self.forward, self.backward),
            receives: sum(self.backward, self.forward),
            time: Some(window.longest()),
            flows: flows_each.saturating_mul(ends.len() as u64),
            needs,
            exclusive: None,
            set_up: assignment.task.set_up(),
        }
    }
}
