//! The transport, the number of connections, and how requests follow each other.

use clap::Args;
use linerate_model::{Arrivals, Net, Transport};
use linerate_units::OpRate;

/// TCP or UDP.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Over {
    /// Use TCP
    ///
    /// It is the default; `rpc` without either measures both.
    #[arg(long, conflicts_with = "udp", hide_short_help = true)]
    tcp: bool,

    /// Use UDP
    #[arg(long, short = 'u')]
    udp: bool,
}

impl Over {
    /// The one that was asked for.
    pub(crate) fn given(self) -> Option<Transport> {
        match (self.tcp, self.udp) {
            (true, _) => Some(Transport::Tcp),
            (_, true) => Some(Transport::Udp),
            _ => None,
        }
    }

    /// The one that was asked for, else TCP.
    pub(crate) fn transport(self) -> Transport {
        self.given().unwrap_or(Transport::Tcp)
    }
}

/// Connections, `MOST` at the most.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Flows<const MOST: u16 = { Net::MOST_FLOWS_WITH_THREADS }> {
    /// Connections (UDP: sockets)
    ///
    /// Each client has as many in each direction.
    #[arg(long, short = 'P', value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=i64::from(MOST)))]
    pub(crate) flows: u16,
}

/// How requests follow each other.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Requests {
    /// Requests in flight on each flow
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=4096), conflicts_with = "rate")]
    pub(crate) outstanding: u16,

    #[command(flatten)]
    flows: Flows,

    /// Requests per second, answered or not
    ///
    /// Each client sends as many (open loop). Latency counts from when a request was due. The default is a closed loop, in
    /// which each response triggers the next request.
    #[arg(long, short = 'b', value_name = "RATE")]
    rate: Option<OpRate>,

    /// With --rate: random intervals (a Poisson process, as of many independent users) instead of equal ones
    #[arg(long, requires = "rate", hide_short_help = true)]
    poisson: bool,
}

impl Requests {
    pub(crate) fn flows(self) -> u16 {
        self.flows.flows
    }

    /// Requests a second; none is a closed loop.
    pub(crate) fn rate(self) -> Result<Option<OpRate>, String> {
        match self.rate {
            Some(rate) if rate.get() == 0 => Err("--rate 0 asks nothing; give requests a second, as in 20k".to_owned()),
            rate => Ok(rate),
        }
    }

    pub(crate) fn arrivals(self) -> Arrivals {
        if self.poisson { Arrivals::Poisson } else { Arrivals::Even }
    }
}
