//! Options of an agent.

use crate::{EngineOptions, Identity, Invitations, Limits, SessionLog, StartError, Timeouts, Token};
use linerate_control::pairing::PairingCode;
use linerate_engine::Report;
use linerate_model::{Duplex, HostName};
use linerate_units::BitRate;
use std::collections::BTreeMap;
use std::net::{IpAddr, TcpListener};
use std::path::PathBuf;

/// Options of an agent.
#[derive(Debug)]
pub struct AgentOptions {
    /// Listener of the API.
    pub listener: TcpListener,
    /// Sessions listen at the same port, TCP and UDP, where it is one of their addresses'. Otherwise `limits` says at
    /// which.
    pub shares_port: bool,
    /// The host in its URL. None shows the listener's address; where that is all of them, the one this host sends
    /// from towards the world, or the host's name.
    pub advertise: Option<String>,
    /// Certificate of the agent.
    pub identity: Identity,
    /// The secret that admits to it with all powers that its limits allow.
    pub token: Token,
    /// A code that whoever has it turns into the agent's URL, once and soon; none pairs with nobody.
    pub pairing: Option<PairingCode>,
    /// Credentials of fewer powers. `None` for an agent that keeps no identity.
    pub invitations: Option<Invitations>,
    /// The name it goes by.
    pub name: HostName,
    /// Limits of sessions.
    pub limits: Limits,
    /// Time to wait for others.
    pub timeouts: Timeouts,
    /// Resources of the host that the engines may use.
    pub engines: EngineOptions,
    /// Line rates by interface, where the driver does not know or makes one up.
    pub link_speeds: BTreeMap<String, BitRate>,
    /// Duplex by interface, where the driver does not know it or makes one up.
    pub link_duplexes: BTreeMap<String, Duplex>,
    /// Addresses that others may send trial data to, in order of preference; empty lets the host choose.
    pub data_addresses: Vec<IpAddr>,
    /// Told of each session that has ended, in a line.
    pub report: Report,
    /// Log of sessions for the owner. `None` keeps none.
    pub session_log: Option<SessionLog>,
    /// What it keeps when it gives up all else; none for an agent that is a part of a program that needs more. The
    /// thread that starts the agent is bound too, for good.
    pub confinement: Option<Confinement>,
}

impl AgentOptions {
    /// An agent called `name` that is served on `listener`, with an identity and a token made for it, the usual limits
    /// and times, and nothing of the host but its sockets. It keeps no invitations and is not confined.
    ///
    /// # Errors
    /// The identity cannot be made.
    pub fn new(listener: TcpListener, name: HostName) -> Result<Self, StartError> {
        Ok(Self {
            listener,
            shares_port: false,
            advertise: None,
            identity: Identity::generate()?,
            token: Token::generate(),
            pairing: None,
            invitations: None,
            name,
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            engines: EngineOptions::default(),
            link_speeds: BTreeMap::new(),
            link_duplexes: BTreeMap::new(),
            data_addresses: Vec::new(),
            report: Report::default(),
            session_log: None,
            confinement: None,
        })
    }
}

/// Needs of a confined agent beyond its other options.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Folders that it reads, as that of its identity.
    pub reads: Vec<PathBuf>,
    /// Folders that it writes beside those of its engines, as that of its records.
    pub writes: Vec<PathBuf>,
    /// Binding of ports below 1024: those that many NFS servers require of their callers, or one to listen at.
    pub low_ports: bool,
    /// Keeping `CAP_NET_ADMIN`: for socket buffers beyond the system's limits, busy polling and all congestion
    /// controls.
    pub net_admin: bool,
}
