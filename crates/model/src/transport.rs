//! Transports and versions of IP.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// TCP or UDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        })
    }
}

/// IPv4 or IPv6; serialised as the number 4 or 6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "u8", into = "u8")]
#[schemars(with = "u8")]
pub enum IpVersion {
    /// IPv4.
    #[default]
    V4,
    /// IPv6.
    V6,
}

impl From<IpVersion> for u8 {
    fn from(version: IpVersion) -> Self {
        match version {
            IpVersion::V4 => 4,
            IpVersion::V6 => 6,
        }
    }
}

impl TryFrom<u8> for IpVersion {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, String> {
        match number {
            4 => Ok(Self::V4),
            6 => Ok(Self::V6),
            other => Err(format!("IP version {other} is neither 4 nor 6")),
        }
    }
}

impl IpVersion {
    /// Header without options: RFC 791 section 3.1, RFC 8200 section 3.
    pub const fn header(self) -> u32 {
        match self {
            Self::V4 => 20,
            Self::V6 => 40,
        }
    }

    /// `IPv4` or `IPv6`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    /// What defines the header.
    pub(crate) const fn source(self) -> &'static str {
        match self {
            Self::V4 => "RFC 791 section 3.1",
            Self::V6 => "RFC 8200 section 3",
        }
    }

    /// The smallest MTU a link may have: RFC 791 section 3.2, RFC 8200 section 5.
    pub(crate) const fn smallest_mtu(self) -> u32 {
        match self {
            Self::V4 => 68,
            Self::V6 => 1_280,
        }
    }

    /// The largest UDP message that a packet can carry, whole or in fragments: the length fields of RFC 791 section 3.1 (headers
    /// counted) and RFC 8200 section 3 (not counted).
    pub const fn largest_datagram(self) -> u64 {
        match self {
            Self::V4 => 65_535 - 20 - 8,
            Self::V6 => 65_535 - 8,
        }
    }

    /// What each fragment adds to the header: IPv6 has a header for it (RFC 8200 section 4.5), IPv4 does not.
    pub(crate) const fn fragment_header(self) -> u32 {
        match self {
            Self::V4 => 0,
            Self::V6 => 8,
        }
    }
}
