//! Origin of a request, on any transport.

use std::net::IpAddr;

/// Properties of the connection that a request came by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Host at the other end. `None` for a request by NATS, which comes from the fleet's server.
    pub(crate) peer: Option<IpAddr>,
    /// Interface of this host that leads to the peer, if the peer has a link-local address.
    pub(crate) zone: Option<u32>,
    /// Time at which the request arrived, in nanoseconds on the clock of [`linerate_sys::clock::now`].
    pub(crate) received_ns: u64,
}
