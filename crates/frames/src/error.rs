//! What can go wrong with ports and frames.

use linerate_engine::Stopped;
use std::net::IpAddr;
use std::time::Duration;

/// A port that cannot be used, a trial that cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// No such interface.
    #[error("there is no port {interface} here; there are: {present}")]
    NoSuchPort {
        /// What was asked for.
        interface: String,
        /// What there is.
        present: String,
    },
    /// It is down, or nothing is plugged in.
    #[error(
        "port {0} is down or has no carrier: `ip link set {0} up`, and see that its cable and its other end are there"
    )]
    Down(String),
    /// It went down while frames were sent.
    #[error(
        "port {interface} lost its link during the trial: check its cable and the device's end of it, then measure again"
    )]
    WentDown {
        /// The port.
        interface: String,
    },
    /// The session was stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// It is no Ethernet interface.
    #[error("port {0} has no Ethernet address: take an Ethernet interface")]
    NotEthernet(String),
    /// Nobody has the address, or does not say so.
    #[error(
        "nobody on port {interface} answered for {target} within {timeout:?}: is the address right, and the device up?"
    )]
    NoAnswer {
        /// Where was asked.
        interface: String,
        /// Whose Ethernet address was asked for.
        target: IpAddr,
        /// How long.
        timeout: Duration,
    },
    /// The trial contradicts itself.
    #[error("these frames cannot be sent: {0}")]
    BadTrial(String),
    /// XDP cannot carry such frames.
    #[error("a frame of {0} bytes is too large for XDP: use packet sockets")]
    TooLargeForXdp(u32),
    /// XDP fills all frames of a trial alike.
    #[error("a raw frame and others that differ behind their headers cannot share a trial by XDP: use packet sockets")]
    FillingsDiffer,
    /// The kernel does not let us load programs.
    #[error("XDP is not permitted here: {0}; run as root, or use packet sockets")]
    NoXdp(linerate_sys::Error),
    /// The frames that XDP sent went nowhere.
    #[error(
        "port {0}: the other end of this virtual link takes no frames from XDP; give it a program or let it join what it \
         receives (`ethtool -K OTHER-END gro on`, while it is up), or use packet sockets"
    )]
    NotTaken(String),
    /// Somebody else's program is there.
    #[error(
        "port {interface}: another XDP program is attached ({source}): `ip link set {interface} xdp off` takes it away"
    )]
    PortTaken {
        /// The port.
        interface: String,
        /// The kernel's word.
        source: linerate_sys::Error,
    },
    /// A call failed.
    #[error(transparent)]
    System(#[from] linerate_sys::Error),
}
