//! linerate's RPC program at a port of its own, outside any trial. It answers null calls of anyone and carries no data.

use crate::error::RpcError;
use crate::greeting::{PROGRAM, VERSION};
use crate::portmap::{self, Mapping};
use crate::program::TestProgram;
use crate::server::{Program, Server, ServerOptions};
use linerate_engine::{StrangerReplies, at_one_port};
use linerate_model::Transport;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// A stranger's calls need no more room than a call with the largest credential and verifier.
const CALL_MAXIMUM: usize = 1_024;
/// Memory of replies that strangers do not read.
const MEMORY: u64 = 8 << 20;
/// Strangers' connections at a time, and how long one may say nothing.
const CONNECTIONS: usize = 64;
/// Connections of one address.
const CONNECTIONS_EACH: usize = 8;
const IDLE_NS: u64 = 10_000_000_000;

/// linerate's RPC program over TCP and UDP. Dropping it ends it and unregisters it.
#[derive(Debug)]
pub struct RpcService {
    address: SocketAddr,
    registered: Vec<Mapping>,
    _servers: [Server; 2],
}

impl RpcService {
    /// Listens at `address` over both transports; port 0 lets the system choose. Calls over UDP get as many replies as
    /// `replies` allows.
    ///
    /// # Errors
    /// Fails if the port is taken or cannot be bound.
    pub fn start(address: SocketAddr, replies: &Arc<StrangerReplies>) -> Result<Self, RpcError> {
        let program: Arc<dyn Program> = Arc::new(TestProgram::without_data());
        // The same port for both, as with other services.
        let over = |transport| {
            let program = &program;
            move |address| listen(transport, address, Arc::clone(program), replies)
        };
        let datagrams = |tcp: &Server| over(Transport::Udp)(tcp.address());
        let (tcp, udp) = at_one_port(address, over(Transport::Tcp), datagrams)?;
        let address = tcp.address();
        Ok(Self { address, registered: Vec::new(), _servers: [tcp, udp] })
    }

    /// Returns where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Registers it with this host's portmapper, so that callers find it by its program number.
    ///
    /// # Errors
    /// Fails if no portmapper answers or it refuses.
    pub fn register(&mut self) -> Result<(), RpcError> {
        if self.address.is_ipv6() {
            return Err(RpcError::InvalidRequest(
                "programs are registered for IPv4 only: listen at an IPv4 address, or leave --portmap out".to_owned(),
            ));
        }
        let mapping = |transport| Mapping { program: PROGRAM, version: VERSION, transport, port: self.address.port() };
        let mappings = [Transport::Tcp, Transport::Udp].map(mapping);
        // What an earlier program left behind goes first, of both transports at once.
        portmap::unregister(portmapper(), mappings[0])?;
        for mapping in mappings {
            portmap::register(portmapper(), mapping)?;
            self.registered.push(mapping);
        }
        Ok(())
    }
}

impl Drop for RpcService {
    fn drop(&mut self) {
        // A portmapper that has gone knows nothing of it any more.
        if let Some(mapping) = self.registered.first() {
            let _ = portmap::unregister(portmapper(), *mapping);
        }
    }
}

fn portmapper() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, portmap::PORT))
}

fn listen(
    transport: Transport,
    address: SocketAddr,
    program: Arc<dyn Program>,
    replies: &Arc<StrangerReplies>,
) -> Result<Server, RpcError> {
    let options = ServerOptions {
        replies: Arc::clone(replies),
        connections: CONNECTIONS,
        connections_each: CONNECTIONS_EACH,
        idle_ns: Some(IDLE_NS),
        call_maximum: CALL_MAXIMUM,
        memory: MEMORY,
        ..ServerOptions::default()
    };
    Server::at(transport, address, vec![program], options)
}
