//! Why a device could not be read.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// A device could not be read by SNMP.
#[derive(Debug, thiserror::Error)]
pub enum SnmpError {
    /// This build has no SNMP.
    #[error("this linerate was built without SNMP: build it with `--features snmp`")]
    NotBuilt,
    /// The host's name has no address.
    #[error("cannot read the device by SNMP: resolve {host}: {source}; give an address")]
    Resolve {
        /// The name.
        host: String,
        /// Why.
        source: io::Error,
    },
    /// No socket towards the device.
    #[error("cannot read the device by SNMP: connect a UDP socket to {address}: {source}; is there a route?")]
    Socket {
        /// The device.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// It did not answer.
    #[error(
        "the device at {address} did not answer SNMP: no answer within {} s, asked {times} times; check {}",
        waited.as_secs_f64(),
        if *user {
            "the address, that SNMP version 3 is on there, that it lets this host in, and protocol and password of \
             priv= (what a device cannot decrypt it may not answer)"
        } else {
            "the address, that its SNMP service lets this host in, and the community (a wrong one is not answered)"
        }
    )]
    Silent {
        /// The device.
        address: SocketAddr,
        /// How long each question waited.
        waited: Duration,
        /// How often it was asked.
        times: u32,
        /// Whether a user (version 3) asked, not a community.
        user: bool,
    },
    /// Its host said that nothing listens there.
    #[error(
        "the device at {address} does not take SNMP: nothing listens on that UDP port; check address and port, and \
         that its SNMP service runs"
    )]
    Closed {
        /// The device.
        address: SocketAddr,
    },
    /// It answered, but not to this user.
    #[error(
        "the device at {address} refuses SNMP user {user}: {reason}; check the user, the protocols of auth= and \
         priv=, and both passwords"
    )]
    Refused {
        /// The device.
        address: SocketAddr,
        /// The user.
        user: String,
        /// What gave it away.
        reason: String,
    },
    /// It shows nothing.
    #[error(
        "the device at {address} answers SNMP but shows nothing, not even sysUpTime; widen what this community or \
         user may view there"
    )]
    Hidden {
        /// The device.
        address: SocketAddr,
    },
    /// It answered something unexpected.
    #[error(
        "the device at {address} gave an SNMP answer that cannot be used: {reason}; is it an SNMP service, of the \
         given version?"
    )]
    Answer {
        /// The device.
        address: SocketAddr,
        /// What was wrong.
        reason: String,
    },
}
