//! Answers of one router in a chain: how often ICMP errors leave, and from which address.

use super::link_path::NO_CHAIN;
use super::{Fault, Kind};
use crate::linux::bench::Bench;
use crate::linux::chain::ChainNode;
use crate::linux::written;
use linerate_model::HostName;
use linerate_units::{Nanos, ParseError};
use serde::Deserialize;
use std::fmt;
use std::str::FromStr;

/// Answers per second that the kernel's setting in milliseconds can express well.
const RATE: std::ops::RangeInclusive<u32> = 1..=100;

/// A sender of probes waits no longer for an answer.
const DELAY_MAXIMUM: Nanos = Nanos::from_secs(2);

/// Answers of a router.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RouterAnswers {
    /// The router.
    #[serde(deserialize_with = "written::number")]
    pub at: ChainNode,
    /// Whether it sends no ICMP at all.
    #[serde(default, deserialize_with = "written::flag")]
    pub silent: bool,
    /// Source address of its ICMP errors.
    #[serde(default)]
    pub address: AnswerAddress,
    /// Limit of its ICMP errors to each host.
    #[serde(default, deserialize_with = "written::text")]
    pub icmp_rate: IcmpRate,
    /// Delay of its answers to expired packets, as of a busy CPU.
    #[serde(default, deserialize_with = "written::optional")]
    pub reply_delay: Option<Nanos>,
    /// Largest change of this delay, up and down.
    #[serde(default, deserialize_with = "written::optional")]
    pub reply_jitter: Option<Nanos>,
}

/// Source address of a router's ICMP errors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerAddress {
    /// The address on the link by which the error leaves.
    #[default]
    Link,
    /// An address on the loopback interface, of a network that no link has.
    Odd,
}

/// Limit of ICMP errors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IcmpRate {
    /// The kernel's own.
    #[default]
    Kernel,
    /// No limit.
    Unlimited,
    /// Errors per second.
    PerSecond(u32),
}

impl FromStr for IcmpRate {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let rate = || text.strip_suffix("/s")?.parse().ok().filter(|rate| RATE.contains(rate));
        match text {
            "default" => Ok(Self::Kernel),
            "none" => Ok(Self::Unlimited),
            _ => rate().map(Self::PerSecond).ok_or_else(|| ParseError {
                text: text.to_owned(),
                expected: "a limit of ICMP errors: default (the kernel's), none (no limit), or 1/s to 100/s",
                example: "icmp-rate=5/s",
            }),
        }
    }
}

impl fmt::Display for IcmpRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kernel => f.write_str("default"),
            Self::Unlimited => f.write_str("none"),
            Self::PerSecond(rate) => write!(f, "{rate}/s"),
        }
    }
}

impl Kind for RouterAnswers {
    fn name(&self) -> &'static str {
        "router"
    }

    fn host(&self) -> Option<&HostName> {
        None
    }

    fn at(&self) -> String {
        self.at.to_string()
    }

    fn check(&self, bench: &Bench) -> Result<(), String> {
        check_router(bench, self.at)?;
        let plain = Self { silent: self.silent, ..Self::plain(self.at) };
        if self.silent && *self != plain {
            return Err(String::from("silent: a silent router sends no ICMP; leave the other fields out"));
        }
        if *self == Self::plain(self.at) {
            return Err(String::from(
                "it changes nothing; give silent=true, address=odd, icmp-rate=none or reply-delay=20ms",
            ));
        }
        if self.reply_delay.is_some_and(|delay| delay > DELAY_MAXIMUM) {
            return Err(format!("reply-delay: it is at most {DELAY_MAXIMUM}"));
        }
        if self.reply_jitter.is_some_and(|jitter| jitter > self.reply_delay.unwrap_or_default()) {
            return Err(String::from(
                "reply-jitter: it is at most reply-delay, as in reply-delay=20ms,reply-jitter=5ms",
            ));
        }
        Ok(())
    }
}

impl RouterAnswers {
    /// Returns the answers of an ordinary router.
    fn plain(at: ChainNode) -> Self {
        Self {
            at,
            silent: false,
            address: AnswerAddress::Link,
            icmp_rate: IcmpRate::Kernel,
            reply_delay: None,
            reply_jitter: None,
        }
    }
}

/// Checks that a chain has this router; says what is wrong.
pub(super) fn check_router(bench: &Bench, at: ChainNode) -> Result<(), String> {
    let routers = bench.chain().ok_or(NO_CHAIN)?.routers();
    if routers.contains(&at) {
        return Ok(());
    }
    let names: Vec<_> = routers.iter().map(ToString::to_string).collect();
    Err(format!("there is no such router (routers: {})", names.join(", ")))
}

impl Bench {
    /// Returns the answers of a router in a chain.
    pub(crate) fn router_answers(&self, at: ChainNode) -> RouterAnswers {
        let planted = self.faults.iter().find_map(|fault| match fault {
            Fault::Router(answers) if answers.at == at => Some(answers.clone()),
            _ => None,
        });
        planted.unwrap_or_else(|| RouterAnswers::plain(at))
    }
}
