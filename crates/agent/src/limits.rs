//! What an agent's owner allows.

use crate::{AllowedHours, AllowedInterfaces, AllowedServers, Budget};
use ipnet::IpNet;
use linerate_engine::{AllowedPeers, DataPorts};
use linerate_model::{Net, Power, Powers};
use linerate_units::{BitRate, Nanos};
use std::net::IpAddr;

/// An agent's limits. They bind sessions of every task; `admission` weighs what a session asks for against them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The most payload (raw frames: bits of frames) this host may send per second, and the most it may receive, in all
    /// its sessions together; none is no limit. With a limit, sessions without a rate are refused. A sender keeps its
    /// rate by itself; a host that answers transactions answers what it is asked, so there the rate is only as good as
    /// the asking host's word.
    pub max_rate: Option<BitRate>,
    /// The longest session, from its start to its end, warm-up included, and the longest preparation of one. A task
    /// that has no length of its own is ended there.
    pub max_time: Nanos,
    /// Hours of the day at which sessions are allowed. `None` allows all.
    pub hours: Option<AllowedHours>,
    /// Sessions under way at once. A trial has one for each of its loads.
    pub max_trials: usize,
    /// Connections or sockets of one session on this host.
    pub max_flows: u64,
    /// Share of the host that all sessions may take together.
    pub budget: Budget,
    /// Interfaces that raw frames may be sent from: they reach whatever is behind them.
    pub frames: AllowedInterfaces,
    /// File servers of others that sessions may reach.
    pub servers: AllowedServers,
    /// Copies may empty the caches of this host, which slows all its programs.
    pub cold_cache: bool,
    /// Bytes of one request's body.
    pub max_body: usize,
    /// The ports that sessions listen at, unless they share that of the API.
    pub data_ports: DataPorts,
    /// Networks whose hosts may use the API and open data connections; empty allows all that have the token, or the
    /// session's key.
    pub allowed_peers: Vec<IpNet>,
    /// Networks that sessions may connect to, beside those of `allowed_peers`, and whose hosts may open data connections where
    /// `allowed_peers` bounds these. If both are empty, sessions may connect to all addresses but the host's own, link-local
    /// ones, and those of groups and metadata services.
    pub allowed_targets: Vec<IpNet>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_rate: None,
            max_time: Nanos::from_secs(600),
            hours: None,
            max_trials: 4,
            max_flows: 2 * Net::MOST_FLOWS as u64,
            budget: Budget::default(),
            frames: AllowedInterfaces::default(),
            servers: AllowedServers::default(),
            cold_cache: false,
            max_body: 256 << 10,
            data_ports: DataPorts::default(),
            allowed_peers: Vec::new(),
            allowed_targets: Vec::new(),
        }
    }
}

impl Limits {
    /// Returns the powers of the holder of the agent's own URL.
    pub(crate) fn powers(&self) -> Powers {
        let allowed = |power: &Power| match power {
            Power::Frames => !self.frames.is_none(),
            Power::Servers => !self.servers.is_none(),
            Power::Stream | Power::Transact | Power::Rpc | Power::Files => true,
        };
        Power::ALL.into_iter().filter(allowed).collect()
    }

    /// Returns whether a host at `address` may use the API.
    pub(crate) fn allows(&self, address: IpAddr) -> bool {
        AllowedPeers::bounded_by(&self.allowed_peers).allow(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn peers_are_known_by_network_also_when_mapped() {
        let allowed_peers = ["198.18.0.0/15", "2001:2::/48"].map(|network| network.parse().expect("a network")).into();
        let limits = Limits { allowed_peers, ..Limits::default() };
        for (address, allowed) in [
            ("198.19.255.1", true),
            ("198.20.0.1", false),
            ("::ffff:198.18.0.1", true),
            ("2001:2::1", true),
            ("::1", false),
        ] {
            assert_eq!(limits.allows(address.parse().expect("an address")), allowed, "{address}");
        }
        assert!(Limits::default().allows(Ipv4Addr::LOCALHOST.into()));
    }
}
