//! Which addresses sessions may exchange data with: the one place that says so, for every engine.
//!
//! Whoever leads a session says where its peers listen. Without a check an agent could be aimed at services that trust
//! its host: those on its loopback and its own addresses, those of its link, and metadata services of clouds.

use crate::Limits;
use ipnet::IpNet;
use linerate_control::{ApiError, ErrorKind};
use linerate_engine::AllowedPeers;
use linerate_model::Endpoints;
use linerate_observe::interface_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses at which clouds tell a host's secrets to the host. The first is a link-local one as well.
const METADATA: [IpAddr; 6] = [
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

/// Kinds of addresses that need leave of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// An address of this host.
    Own,
    LinkLocal,
    Metadata,
    /// Multicast, broadcast and unspecified addresses: none of a single host.
    Group,
}

impl Kind {
    /// The kind of `address`; `None` if it is an ordinary one of another host.
    fn of(address: IpAddr) -> Option<Self> {
        let is_group = match address {
            IpAddr::V4(v4) => v4.is_multicast() || v4.is_broadcast() || v4.octets()[0] == 0,
            IpAddr::V6(v6) => v6.is_multicast() || v6.is_unspecified(),
        };
        let is_link_local = match address {
            IpAddr::V4(v4) => v4.is_link_local(),
            IpAddr::V6(v6) => v6.is_unicast_link_local(),
        };
        match address {
            _ if is_group => Some(Self::Group),
            _ if METADATA.contains(&address) => Some(Self::Metadata),
            _ if address.is_loopback() || interface_of(address).is_some() => Some(Self::Own),
            _ if is_link_local => Some(Self::LinkLocal),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Own => "an address of the agent's own host",
            Self::LinkLocal => "a link-local address",
            Self::Metadata => "the address of a metadata service",
            Self::Group => "no address of a single host",
        }
    }
}

impl Limits {
    /// Checks that a session may connect to `endpoints`, as a host at `requester` asks. It is
    /// unknown of a request by NATS.
    ///
    /// # Errors
    /// One is outside of what `--allow-peer` and `--allow-target` allow, or needs leave of its own. The message is the same
    /// whatever listens there.
    pub(crate) fn check_targets(&self, endpoints: &Endpoints, requester: Option<IpAddr>) -> Result<(), ApiError> {
        endpoints.values().try_for_each(|endpoint| self.check_target(endpoint.ip(), requester))
    }

    /// Returns the peers that may open data connections to sessions.
    pub(crate) fn data_peers(&self) -> AllowedPeers {
        if self.allowed_peers.is_empty() {
            return AllowedPeers::default();
        }
        AllowedPeers::only(self.allowed_peers.iter().chain(&self.allowed_targets).copied())
    }

    fn check_target(&self, address: IpAddr, requester: Option<IpAddr>) -> Result<(), ApiError> {
        let address = address.to_canonical();
        let within = |networks: &[IpNet]| networks.iter().any(|network| network.contains(&address));
        if within(&self.allowed_targets) {
            return Ok(());
        }
        let remedy = format!("start it with `linerate serve --allow-target {address}`");
        let refuse = |message: String| Err(ApiError::new(ErrorKind::Limit, message));
        match Kind::of(address) {
            // Whoever asks from this host, or from its link, reaches these without the agent.
            Some(kind @ (Kind::Own | Kind::LinkLocal))
                if requester.and_then(|requester| Kind::of(requester.to_canonical())) == Some(kind) => {}
            Some(kind) => {
                return refuse(format!(
                    "the session is to connect to {address}, {}, and this agent does not allow that; {remedy}",
                    kind.name()
                ));
            }
            None => {}
        }
        let is_bounded = !self.allowed_peers.is_empty() || !self.allowed_targets.is_empty();
        if is_bounded && !within(&self.allowed_peers) {
            return refuse(format!(
                "the session is to connect to {address}, which is in none of the networks that this agent allows; {remedy}"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REMOTE: &str = "198.18.0.9";

    fn networks(networks: &[&str]) -> Vec<IpNet> {
        networks.iter().map(|network| network.parse().expect("a network")).collect()
    }

    fn check(limits: &Limits, address: &str, requester: &str) -> Result<(), String> {
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        limits.check_target(ip(address), Some(ip(requester))).map_err(|error| error.message)
    }

    #[test]
    fn addresses_that_trust_this_host_need_leave_of_their_own() {
        let open = Limits::default();
        let named = Limits { allowed_targets: networks(&["0.0.0.0/0", "::/0"]), ..Limits::default() };
        for (address, part) in [
            ("127.0.0.1", "of the agent's own host"),
            ("127.9.9.9", "of the agent's own host"),
            ("::1", "of the agent's own host"),
            ("::ffff:127.0.0.1", "of the agent's own host"),
            ("169.254.169.254", "metadata"),
            ("100.100.100.200", "metadata"),
            ("168.63.129.16", "metadata"),
            ("fd00:ec2::254", "metadata"),
            ("169.254.7.7", "link-local"),
            ("fe80::1", "link-local"),
            ("224.0.0.1", "no address of a single host"),
            ("ff02::1", "no address of a single host"),
            ("255.255.255.255", "no address of a single host"),
            ("0.0.0.0", "no address of a single host"),
            ("0.0.0.1", "no address of a single host"),
            ("::", "no address of a single host"),
        ] {
            let error = check(&open, address, REMOTE).expect_err(address);
            assert!(error.contains(part) && error.contains("--allow-target"), "{address}: {error}");
            assert_eq!(check(&named, address, REMOTE), Ok(()), "{address}");
        }
        assert_eq!(check(&open, "198.18.0.1", REMOTE), Ok(()));
    }

    #[test]
    fn whoever_asks_from_this_host_may_use_its_own_addresses() {
        let open = Limits::default();
        for address in ["127.0.0.1", "::1"] {
            assert_eq!(check(&open, address, "127.0.0.1"), Ok(()), "{address}");
            assert_eq!(check(&open, address, "::1"), Ok(()), "{address}");
        }
        for address in ["169.254.169.254", "169.254.7.7", "255.255.255.255"] {
            check(&open, address, "127.0.0.1").expect_err(address);
        }
        assert_eq!(check(&open, "169.254.7.7", "169.254.7.8"), Ok(()), "from the same link");
        check(&open, "169.254.169.254", "169.254.7.8").expect_err("that is for the host alone");
    }

    #[test]
    fn allowed_peers_and_targets_bind_data_both_ways() {
        let peers = Limits { allowed_peers: networks(&["198.18.0.0/24"]), ..Limits::default() };
        let both = Limits { allowed_targets: networks(&["198.19.0.0/24"]), ..peers.clone() };
        for (limits, allowed, refused) in [
            (&peers, &["198.18.0.1"][..], &["198.18.1.1", "198.19.0.1"][..]),
            (&both, &["198.18.0.1", "198.19.0.1"], &["198.18.1.1"]),
        ] {
            for address in allowed {
                assert_eq!(check(limits, address, REMOTE), Ok(()), "{address}");
                assert!(limits.data_peers().allow(address.parse().expect("an address")), "{address}");
            }
            for address in refused {
                let error = check(limits, address, REMOTE).expect_err(address);
                assert!(error.contains("none of the networks"), "{address}: {error}");
                assert!(!limits.data_peers().allow(address.parse().expect("an address")), "{address}");
            }
        }
        let targets = Limits { allowed_targets: networks(&["198.19.0.0/24"]), ..Limits::default() };
        check(&targets, "198.18.0.1", REMOTE).expect_err("targets alone are a bound as well");
        assert!(targets.data_peers().allow([198, 18, 0, 1].into()), "who may connect, only peers bound");
    }
}
