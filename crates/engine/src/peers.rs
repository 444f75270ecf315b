//! Hosts that may open data connections to a session: `linerate serve --allow-peer` applies to data as well as to the
//! API.

use ipnet::IpNet;
use std::net::IpAddr;
use std::sync::Arc;

/// Hosts that may open data connections: those in every one of some lists of networks. The default has no list and
/// allows all.
#[derive(Debug, Clone, Default)]
pub struct AllowedPeers(Vec<Arc<[IpNet]>>);

impl AllowedPeers {
    /// Allows the hosts of `networks` and no others.
    pub fn only(networks: impl IntoIterator<Item = IpNet>) -> Self {
        Self(vec![networks.into_iter().collect()])
    }

    /// Allows the hosts of `networks`; all hosts if there are none.
    pub fn bounded_by(networks: &[IpNet]) -> Self {
        if networks.is_empty() { Self::default() } else { Self::only(networks.iter().copied()) }
    }

    /// Allows the hosts that both allow.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Returns whether a host at `address` may open data connections.
    pub fn allow(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().all(|networks| networks.iter().any(|network| network.contains(&address)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peer_is_allowed_by_its_network_also_when_mapped() {
        let allowed = AllowedPeers::only(["198.18.0.0/15".parse().expect("a network")]);
        for (address, expected) in [("198.19.255.1", true), ("::ffff:198.18.0.1", true), ("198.20.0.1", false)] {
            assert_eq!(allowed.allow(address.parse().expect("an address")), expected, "{address}");
        }
        assert!(AllowedPeers::default().allow([198, 20, 0, 1].into()));
        assert!(!AllowedPeers::only([]).allow([198, 20, 0, 1].into()));
        assert!(AllowedPeers::bounded_by(&[]).allow([198, 20, 0, 1].into()));
        let bounded = AllowedPeers::bounded_by(&["198.18.0.0/15".parse().expect("a network")]);
        assert!(bounded.allow([198, 18, 0, 1].into()) && !bounded.allow([198, 20, 0, 1].into()));
    }

    #[test]
    fn peer_must_be_in_both_lists() {
        let [wide, narrow] = ["198.18.0.0/15", "198.19.0.0/24"].map(|text| text.parse().expect("a network"));
        let both = AllowedPeers::only([wide]).and(AllowedPeers::only([narrow]));
        assert!(both.allow([198, 19, 0, 1].into()));
        assert!(!both.allow([198, 18, 0, 1].into()) && !both.allow([198, 20, 0, 1].into()));
        assert!(both.and(AllowedPeers::default()).allow([198, 19, 0, 1].into()));
    }
}
