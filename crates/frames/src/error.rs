//! Errors of ports and frames.

use linerate_engine::{SocketError, Stopped};
use std::net::IpAddr;
use std::time::Duration;

/// Port that cannot be used, or trial that cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The system has no packet sockets that this crate uses.
    #[error("raw frames need Linux: start an agent on a Linux host that has the ports, and name that host")]
    NeedsLinux,
    /// The interface does not exist.
    #[error("there is no port {interface} here; there are: {present}")]
    NoSuchPort {
        /// Requested interface.
        interface: String,
        /// Existing interfaces.
        present: String,
    },
    /// The port is down, or nothing is plugged in.
    #[error(
        "port {0} is down or has no carrier: `ip link set {0} up`, and see that its cable and its other end are there"
    )]
    Down(String),
    /// The port went down while frames were sent.
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
    /// The port is not an Ethernet interface.
    #[error("port {0} has no Ethernet address: take an Ethernet interface")]
    NotEthernet(String),
    /// No host answered for the address.
    #[error(
        "nobody on port {interface} answered for {target} within {timeout:?}: is the address right, and the device up?"
    )]
    NoAnswer {
        /// Interface of the requests.
        interface: String,
        /// Address in the requests.
        target: IpAddr,
        /// Time limit for the answer.
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
    /// The kernel computes the FCS of frames that XDP sends.
    #[error("XDP cannot send frames with a wrong FCS: use packet sockets")]
    NoBadFcsByXdp,
    /// The driver of the port appends the FCS itself.
    #[error(
        "port {0} cannot send frames with a wrong FCS: its driver does not offer it; use a NIC with the drivers e1000, \
         e1000e, igb or ixgbe, or leave these frames out"
    )]
    NoBadFcs(String),
    /// Frames exceed the MTU of the port.
    #[error("port {interface} does not send frames of {size} bytes with its MTU: `ip link set {interface} mtu {mtu}`")]
    TooLargeForPort {
        /// The port.
        interface: String,
        /// Size of the frames, with FCS.
        size: u32,
        /// MTU that permits such frames.
        mtu: u32,
    },
    /// The kernel does not let this process load programs.
    #[error("XDP is not permitted here: {0}; run as root, or use packet sockets")]
    NoXdp(linerate_sys::Error),
    /// The other end of the link dropped the frames of XDP.
    #[error(
        "port {0}: the other end of this virtual link takes no frames from XDP; give it a program or let it join what it \
         receives (`ethtool -K OTHER-END gro on`, while it is up), or use packet sockets"
    )]
    NotTaken(String),
    /// Another program is attached to the port.
    #[error(
        "port {interface}: another XDP program is attached ({source}): `ip link set {interface} xdp off` takes it away"
    )]
    PortTaken {
        /// The port.
        interface: String,
        /// Error of the kernel.
        source: linerate_sys::Error,
    },
    /// The receiving socket cannot be opened.
    #[error("the receiving socket: {0}")]
    Socket(#[from] SocketError),
    /// A system call failed.
    #[error(transparent)]
    System(#[from] linerate_sys::Error),
}
