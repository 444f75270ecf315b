//! A directory that is served to whoever holds a key, for as long as something lasts that is no trial.

use crate::NfsService;
use linerate_model::{SessionKey, Transport};
use linerate_oncrpc::server::Server;
use linerate_oncrpc::{ProgramSource as _, RpcError};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

/// The server at work. Dropping it ends it.
#[derive(Debug)]
pub struct NfsShare(Server);

impl NfsShare {
    /// Serves `directory` over TCP at `address`, at a port of the system's choice, to those that show `key`.
    pub fn start(directory: &Path, key: SessionKey, address: IpAddr) -> Result<Self, RpcError> {
        let service = NfsService { directory: Some(directory.to_owned()), ..NfsService::default() };
        let address = SocketAddr::new(address, 0);
        Server::start(Transport::Tcp, address, service.programs(key, 1)?).map(Self)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }

    /// Somebody is connected.
    pub fn is_in_use(&self) -> bool {
        self.0.connections() > 0
    }
}
