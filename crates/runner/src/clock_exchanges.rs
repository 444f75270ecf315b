//! Exchanges of times with the hosts of a trial, before its sessions are opened and after their counts were fetched.

use crate::Agents;
use futures_util::future::join_all;
use linerate_method::clock_offset;
use linerate_model::{ClockExchange, ClockOffset, HostName, Trial};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// Exchanges with a host on either side of a trial, at most.
const MOST: usize = 16;
/// Where they take long, so many are enough.
const FEWEST: usize = 2;
/// After this time no further exchange is begun, once there are [`FEWEST`].
const TIME: Duration = Duration::from_millis(200);
/// A host that does not answer is given up after this.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Exchanges after one trial serve as those before the next if they are no older.
const FRESH: Duration = Duration::from_secs(2);

/// The exchanges of a run. A host that does not tell its clock is left out: the trial is measured all the same.
#[derive(Debug, Default)]
pub(crate) struct ClockExchanges {
    latest: BTreeMap<HostName, Exchanged>,
}

/// Exchanges with one host.
#[derive(Debug)]
struct Exchanged {
    exchanges: Vec<ClockExchange>,
    ended: Instant,
}

impl ClockExchanges {
    /// Makes exchanges with the hosts of `trial`, where the latest are not fresh.
    pub(crate) async fn before(&mut self, trial: &Trial, agents: &dyn Agents) {
        self.latest.retain(|_, latest| !latest.exchanges.is_empty() && latest.ended.elapsed() <= FRESH);
        let hosts = trial.hosts().into_iter().filter(|host| !self.latest.contains_key(*host)).collect();
        self.latest.extend(exchange_with(hosts, agents).await);
    }

    /// Makes exchanges with the hosts of `trial`, and returns the offsets of their clocks in it.
    pub(crate) async fn after(&mut self, trial: &Trial, agents: &dyn Agents) -> BTreeMap<HostName, ClockOffset> {
        let before = std::mem::take(&mut self.latest);
        self.latest = exchange_with(trial.hosts(), agents).await;
        let offset = |(host, after): (&HostName, &Exchanged)| {
            let offset = clock_offset(&before.get(host)?.exchanges, &after.exchanges)?;
            Some((host.clone(), offset))
        };
        self.latest.iter().filter_map(offset).collect()
    }
}

/// Makes exchanges with all hosts side by side.
async fn exchange_with(hosts: Vec<&HostName>, agents: &dyn Agents) -> BTreeMap<HostName, Exchanged> {
    let all = hosts.into_iter().map(async |host| {
        let mut exchanges = Vec::new();
        let began = Instant::now();
        // What came until then counts.
        let _ = timeout(TIMEOUT, async {
            while exchanges.len() < FEWEST || (exchanges.len() < MOST && began.elapsed() < TIME) {
                let Ok(exchange) = agents.clock(host).await else { break };
                exchanges.push(exchange);
            }
        })
        .await;
        (host.clone(), Exchanged { exchanges, ended: Instant::now() })
    });
    join_all(all).await.into_iter().collect()
}
