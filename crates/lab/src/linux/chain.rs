//! Topology of a chain of routers between two hosts: nodes, links, addresses and routes.
//!
//! Node 0 is the first host, the routers follow, and the last node is the second host. A router may have a second one in
//! parallel, which has the same number and the letter b.

use crate::linux::address::{self, prefix};
use linerate_units::ParseError;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Number of routers in a chain. The networks of its links and a small machine allow no more.
pub(crate) const ROUTERS: std::ops::RangeInclusive<u8> = 1..=12;
/// Offset of the networks of a parallel router's links.
const PARALLEL: u8 = 100;
/// Offset of the networks of routers' own addresses, which are on no link, and of those of parallel routers.
const ODD: u8 = 200;
const ODD_PARALLEL: u8 = 220;

/// A node of a chain, as in `2`, or `2b` for the second of two parallel routers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChainNode {
    /// Number of links between the first host and this node.
    pub position: u8,
    /// Whether it is the second of two parallel routers.
    pub is_second: bool,
}

/// A link of a chain, as in `2-3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChainLink {
    /// Node nearer to the first host.
    pub from: ChainNode,
    /// Node nearer to the second host.
    pub to: ChainNode,
}

/// Routers and links between two hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chain {
    routers: u8,
    /// Positions with two parallel routers.
    parallel: Vec<u8>,
}

/// Route of a router to a network, in one family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChainRoute {
    pub(crate) destination: IpAddr,
    pub(crate) prefix: u8,
    /// Several gateways share the flows.
    pub(crate) gateways: Vec<IpAddr>,
}

impl Chain {
    /// Makes a chain of `routers` routers, with two parallel ones at each position of `parallel`.
    pub(crate) fn new(routers: u8, parallel: Vec<u8>) -> Self {
        Self { routers, parallel }
    }

    /// Returns the node of the second host.
    pub(crate) fn last(&self) -> ChainNode {
        ChainNode { position: self.routers + 1, is_second: false }
    }

    /// Returns the routers, from the first host to the second.
    pub(crate) fn routers(&self) -> Vec<ChainNode> {
        (1..=self.routers).flat_map(|position| self.nodes_at(position)).collect()
    }

    /// Returns the links, from the first host to the second.
    pub(crate) fn links(&self) -> Vec<ChainLink> {
        let mut links = Vec::new();
        for position in 0..=self.routers {
            for from in self.nodes_at(position) {
                for to in self.nodes_at(position + 1) {
                    links.push(ChainLink { from, to });
                }
            }
        }
        links
    }

    /// Returns the routes of a router to all networks that it is not connected to.
    pub(crate) fn routes(&self, router: ChainNode) -> Vec<ChainRoute> {
        let links = self.links();
        let mut routes = Vec::new();
        for link in links.iter().filter(|link| !link.joins(router)) {
            for (family, destination) in link.network().into_iter().enumerate() {
                let gateways = self.gateways(router, link.from.position < router.position, family);
                routes.push(ChainRoute { destination, prefix: prefix(destination), gateways });
            }
        }
        routes
    }

    /// Returns the routes of a router to the two hosts themselves.
    pub(crate) fn routes_to_hosts(&self, router: ChainNode) -> Vec<ChainRoute> {
        let links = self.links();
        let mut routes = Vec::new();
        for (link, end, to_first) in [(links.first(), 0, true), (links.last(), 1, false)] {
            for (family, prefix) in [(0, 32), (1, 128)] {
                let Some(link) = link else { continue };
                let destination = link.addresses()[end][family];
                routes.push(ChainRoute { destination, prefix, gateways: self.gateways(router, to_first, family) });
            }
        }
        routes
    }

    /// Returns the addresses of a router's neighbours on the side of the first host, or on the other.
    fn gateways(&self, router: ChainNode, to_first: bool, family: usize) -> Vec<IpAddr> {
        let mut gateways = Vec::new();
        for link in self.links() {
            let [left, right] = link.addresses();
            if to_first && link.to == router {
                gateways.push(left[family]);
            } else if !to_first && link.from == router {
                gateways.push(right[family]);
            }
        }
        gateways
    }

    fn nodes_at(&self, position: u8) -> Vec<ChainNode> {
        let mut nodes = vec![ChainNode { position, is_second: false }];
        if self.parallel.contains(&position) {
            nodes.push(ChainNode { position, is_second: true });
        }
        nodes
    }
}

impl ChainNode {
    /// Returns an address of a router that is on none of its links; IPv4 first.
    pub(crate) fn odd_addresses(self) -> [IpAddr; 2] {
        address::on_network(self.position + if self.is_second { ODD_PARALLEL } else { ODD }, 1)
    }
}

impl ChainLink {
    /// Returns the addresses of the node nearer to the first host, and of the other; IPv4 first.
    pub(crate) fn addresses(self) -> [[IpAddr; 2]; 2] {
        [1, 2].map(|node| address::on_network(self.number(), node))
    }

    /// Returns whether the node is an end of the link.
    pub(crate) fn joins(self, node: ChainNode) -> bool {
        [self.from, self.to].contains(&node)
    }

    fn network(self) -> [IpAddr; 2] {
        address::on_network(self.number(), 0)
    }

    /// Returns the number of the link's network.
    fn number(self) -> u8 {
        let offset = if self.from.is_second || self.to.is_second { PARALLEL } else { 0 };
        self.to.position + offset
    }
}

impl FromStr for ChainNode {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let fail = |_| ParseError {
            text: text.to_owned(),
            expected: "a node of a chain",
            example: "2 for the second router, or 2b for the one in parallel to it",
        };
        let number = text.strip_suffix('b');
        let position = number.unwrap_or(text).parse().map_err(fail)?;
        Ok(Self { position, is_second: number.is_some() })
    }
}

impl fmt::Display for ChainNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.position, if self.is_second { "b" } else { "" })
    }
}

impl FromStr for ChainLink {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let nodes = text.split_once('-').and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
        let (from, to) = nodes.ok_or_else(|| ParseError {
            text: text.to_owned(),
            expected: "a link of a chain",
            example: "2-3 for the link between routers 2 and 3, or 0-1 for that of the first host",
        })?;
        Ok(Self { from, to })
    }
}

impl fmt::Display for ChainLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.from, self.to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(chain: &Chain, router: &str) -> Vec<String> {
        let routes = chain.routes(router.parse().expect("a node")).into_iter();
        routes.map(|route| format!("{}/{} via {:?}", route.destination, route.prefix, route.gateways)).collect()
    }

    fn texts(items: impl IntoIterator<Item = impl ToString>) -> Vec<String> {
        items.into_iter().map(|item| item.to_string()).collect()
    }

    #[test]
    fn each_link_is_a_network() {
        let chain = Chain::new(2, Vec::new());
        assert_eq!(texts(chain.links()), ["0-1", "1-2", "2-3"]);
        assert_eq!(texts(chain.routers()), ["1", "2"]);
        let addresses = chain.links().into_iter().map(|link| texts(link.addresses().concat()));
        assert_eq!(
            addresses.collect::<Vec<_>>(),
            [
                ["198.18.1.1", "2001:2:0:1::1", "198.18.1.2", "2001:2:0:1::2"],
                ["198.18.2.1", "2001:2:0:2::1", "198.18.2.2", "2001:2:0:2::2"],
                ["198.18.3.1", "2001:2:0:3::1", "198.18.3.2", "2001:2:0:3::2"],
            ]
        );
    }

    #[test]
    fn routes_lead_both_ways() {
        let chain = Chain::new(3, Vec::new());
        assert_eq!(
            routes(&chain, "2"),
            [
                "198.18.1.0/24 via [198.18.2.1]",
                "2001:2:0:1::/64 via [2001:2:0:2::1]",
                "198.18.4.0/24 via [198.18.3.2]",
                "2001:2:0:4::/64 via [2001:2:0:3::2]",
            ]
        );
        // The only router of a chain is connected to every network.
        assert_eq!(routes(&Chain::new(1, Vec::new()), "1"), [""; 0]);
    }

    #[test]
    fn a_neighbour_reaches_its_host_directly() {
        let chain = Chain::new(2, Vec::new());
        let routes = chain.routes_to_hosts("1".parse().expect("a node")).into_iter();
        let texts: Vec<_> =
            routes.map(|route| format!("{}/{} via {:?}", route.destination, route.prefix, route.gateways)).collect();
        assert_eq!(
            texts,
            [
                "198.18.1.1/32 via [198.18.1.1]",
                "2001:2:0:1::1/128 via [2001:2:0:1::1]",
                "198.18.3.2/32 via [198.18.2.2]",
                "2001:2:0:3::2/128 via [2001:2:0:2::2]",
            ]
        );
    }

    #[test]
    fn parallel_routers_share_the_flows() {
        let chain = Chain::new(3, vec![2]);
        assert_eq!(texts(chain.links()), ["0-1", "1-2", "1-2b", "2-3", "2b-3", "3-4"]);
        let v4 =
            |router| routes(&chain, router).into_iter().filter(|route| route.starts_with("198")).collect::<Vec<_>>();
        assert_eq!(
            v4("1"),
            [
                "198.18.3.0/24 via [198.18.2.2, 198.18.102.2]",
                "198.18.103.0/24 via [198.18.2.2, 198.18.102.2]",
                "198.18.4.0/24 via [198.18.2.2, 198.18.102.2]",
            ]
        );
        assert_eq!(
            v4("2b"),
            [
                "198.18.1.0/24 via [198.18.102.1]",
                "198.18.2.0/24 via [198.18.102.1]",
                "198.18.3.0/24 via [198.18.103.2]",
                "198.18.4.0/24 via [198.18.103.2]",
            ]
        );
        assert!(v4("3").contains(&String::from("198.18.1.0/24 via [198.18.3.1, 198.18.103.1]")));
    }

    #[test]
    fn places_are_read_and_written_alike() {
        for text in ["0-1", "2-3", "1-2b", "2b-3", "11-12"] {
            assert_eq!(text.parse::<ChainLink>().expect(text).to_string(), text);
        }
        for text in ["", "2", "2-", "a-b", "2c-3", "-1-2", "2-300"] {
            let error = text.parse::<ChainLink>().expect_err(text).to_string();
            assert!(error.contains(&format!("`{text}`")) && error.contains("2-3"), "{error}");
        }
    }
}
