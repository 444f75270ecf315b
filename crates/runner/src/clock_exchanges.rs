//! Exchanges of times with the hosts of a trial, before its sessions are opened and after their counts were fetched.

use crate::Agents;
use futures_util::future::join_all;
use linerate_method::clock_offset;
use linerate_model::{ClockExchange, ClockOffset, HostName, Trial};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// Most exchanges with a host before or after a trial.
const MAX_EXCHANGES: usize = 16;
/// Number of exchanges that suffices if they take long.
const MIN_EXCHANGES: usize = 2;
/// Time after which no further exchange begins, once there are [`MIN_EXCHANGES`].
const TIME: Duration = Duration::from_millis(200);
/// Time after which an unresponsive host is given up.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Greatest age at which the exchanges after one trial serve as the exchanges before the next.
const FRESH: Duration = Duration::from_secs(2);

/// Clock exchanges of a run. A host that does not report its clock is left out, and the trial is measured all the same.
#[derive(Debug, Default)]
pub(crate) struct ClockExchanges {
    latest: BTreeMap<HostName, HostExchanges>,
}

/// Exchanges with one host.
#[derive(Debug)]
struct HostExchanges {
    exchanges: Vec<ClockExchange>,
    ended: Instant,
}

impl ClockExchanges {
    /// Exchanges times with the hosts of `trial` whose latest exchanges are not fresh.
    pub(crate) async fn before(&mut self, trial: &Trial, agents: &dyn Agents) {
        self.latest.retain(|_, latest| !latest.exchanges.is_empty() && latest.ended.elapsed() <= FRESH);
        let hosts = trial.hosts().into_iter().filter(|host| !self.latest.contains_key(*host)).collect();
        self.latest.extend(exchange_with(hosts, agents).await);
    }

    /// Exchanges times with the hosts of `trial`, and returns the offsets of their clocks in it.
    pub(crate) async fn after(&mut self, trial: &Trial, agents: &dyn Agents) -> BTreeMap<HostName, ClockOffset> {
        let before = std::mem::take(&mut self.latest);
        self.latest = exchange_with(trial.hosts(), agents).await;
        let mut offsets = BTreeMap::new();
        for (host, after) in &self.latest {
            let before = before.get(host);
            if let Some(offset) = before.and_then(|before| clock_offset(&before.exchanges, &after.exchanges)) {
                offsets.insert(host.clone(), offset);
            }
        }
        offsets
    }
}

/// Exchanges times with all hosts concurrently.
async fn exchange_with(hosts: Vec<&HostName>, agents: &dyn Agents) -> BTreeMap<HostName, HostExchanges> {
    let all = hosts.into_iter().map(async |host| {
        let mut exchanges = Vec::new();
        let began = Instant::now();
        // The exchanges completed before the timeout count.
        let _ = timeout(TIMEOUT, async {
            while exchanges.len() < MIN_EXCHANGES || (exchanges.len() < MAX_EXCHANGES && began.elapsed() < TIME) {
                let Ok(exchange) = agents.clock(host).await else { break };
                exchanges.push(exchange);
            }
        })
        .await;
        (host.clone(), HostExchanges { exchanges, ended: Instant::now() })
    });
    join_all(all).await.into_iter().collect()
}
