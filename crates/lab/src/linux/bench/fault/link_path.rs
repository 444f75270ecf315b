//! Limits of a link in a chain of routers: a path in the middle of the link, or a smaller MTU.

use super::{Fault, Kind};
use crate::linux::bench::device::WrittenLimits;
use crate::linux::bench::{Bench, DeviceKind, MTU};
use crate::linux::chain::{Chain, ChainLink};
use crate::linux::path::PathLimits;
use crate::linux::written;
use linerate_model::HostName;
use serde::{Deserialize, de};

/// Limits of a link in a chain, as a [`PathLimits`] has them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "WrittenLinkPath")]
pub struct LinkPath {
    /// The link.
    pub at: ChainLink,
    /// Direction that has the limits; `None` if both have them.
    pub way: Option<ChainWay>,
    /// The limits.
    pub limits: PathLimits,
}

/// Direction in a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChainWay {
    /// From the first host to the second.
    Forward,
    /// From the second host to the first.
    Return,
}

/// The table of a bench file.
#[derive(Debug, Deserialize)]
struct WrittenLinkPath {
    #[serde(deserialize_with = "written::text")]
    at: ChainLink,
    way: Option<ChainWay>,
    #[serde(flatten)]
    limits: WrittenLimits,
}

impl TryFrom<WrittenLinkPath> for LinkPath {
    type Error = de::value::Error;

    fn try_from(written: WrittenLinkPath) -> Result<Self, Self::Error> {
        let WrittenLinkPath { at, way, limits } = written;
        let limits = limits.line().parse().map_err(de::Error::custom)?;
        Ok(Self { at, way, limits })
    }
}

impl ChainWay {
    fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Return => "return",
        }
    }
}

impl LinkPath {
    /// Returns the MTU of the interfaces at the link, or `None` if the limits leave it.
    fn interface_mtu(&self) -> Option<u32> {
        self.limits.mtu.filter(|_| !self.limits.mtu_silent)
    }
}

impl Kind for LinkPath {
    fn name(&self) -> &'static str {
        "path"
    }

    fn host(&self) -> Option<&HostName> {
        None
    }

    fn at(&self) -> String {
        self.at.to_string()
    }

    fn variant(&self) -> &'static str {
        self.way.map(ChainWay::name).unwrap_or_default()
    }

    fn check(&self, bench: &Bench) -> Result<(), String> {
        let links = bench.chain().ok_or(NO_CHAIN)?.links();
        if !links.contains(&self.at) {
            let known: Vec<_> = links.iter().map(ToString::to_string).collect();
            return Err(format!("there is no such link (links: {})", known.join(", ")));
        }
        if self.limits == PathLimits::default() {
            return Err(String::from("it has no limit; give one, as in rate=20Mbit/s or delay=5ms"));
        }
        self.limits.check()?;
        if self.interface_mtu().is_some() && self.way.is_some() {
            return Err(String::from(
                "mtu: an interface has one MTU for both ways; leave way out, or add mtu-silent=true",
            ));
        }
        let both_and_one = bench.faults.iter().any(|fault| match fault {
            Fault::Path(other) => other.at == self.at && other.way.is_none() && self.way.is_some(),
            _ => false,
        });
        if both_and_one {
            return Err(String::from(
                "way: another fault limits both ways of this link; give each way a fault of its own",
            ));
        }
        Ok(())
    }
}

/// Problem of a fault that needs a chain.
pub(super) const NO_CHAIN: &str = "this bench has no chain of routers; add --routers 4 (in a file: [device] with kind = \
                                   \"chain\" and routers = 4)";

impl Bench {
    /// Returns the chain of routers, or `None` if the device is another.
    pub(crate) fn chain(&self) -> Option<Chain> {
        let DeviceKind::Chain { routers } = self.device.kind else { return None };
        Some(Chain::new(routers, self.parallel_routers()))
    }

    /// Returns the limits of one direction of a chain's link. The MTU of its interfaces is no part of them.
    pub(crate) fn link_limits(&self, link: ChainLink, way: ChainWay) -> PathLimits {
        for fault in &self.faults {
            if let Fault::Path(path) = fault
                && path.at == link
                && path.way.is_none_or(|of| of == way)
            {
                return PathLimits { mtu: path.limits.mtu.filter(|_| path.limits.mtu_silent), ..path.limits };
            }
        }
        PathLimits::default()
    }

    /// Returns the MTU of the interfaces at a chain's link, if a fault sets it.
    pub(crate) fn planted_mtu(&self, link: ChainLink) -> Option<u32> {
        self.faults.iter().find_map(|fault| match fault {
            Fault::Path(path) if path.at == link => path.interface_mtu(),
            _ => None,
        })
    }

    /// Returns the MTU of a chain's link.
    pub(crate) fn chain_mtu(&self, link: ChainLink) -> u32 {
        let of_host = self.host_at(link).map(|host| self.link_of(host)).and_then(|of_host| of_host.mtu);
        self.planted_mtu(link).or(of_host).or(self.link.mtu).unwrap_or(MTU)
    }

    /// Returns the host at a chain's link, or `None` between routers.
    pub(crate) fn host_at(&self, link: ChainLink) -> Option<&HostName> {
        let last = self.chain()?.last();
        if link.from.position == 0 {
            self.hosts.first()
        } else if link.to == last {
            self.hosts.get(1)
        } else {
            None
        }
    }
}
