//! A directory that is served to whoever holds a key, for as long as something lasts that is no trial.

use crate::directory;
use crate::{ServiceTime, cannot_serve, programs};
use linerate_engine::{ListenOptions, SocketSpec};
use linerate_model::{SessionKey, SocketOptions, Transport};
use linerate_oncrpc::RpcError;
use linerate_oncrpc::server::{Server, ServerOptions};
use linerate_sys::folder::Folder;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Memory of what callers learn of the directory, and of their calls and replies under way.
const KNOWN: u64 = 8 << 20;
const CALLS: u64 = 8 << 20;
/// Memory of a caller's connection at rest.
const CONNECTION: u64 = 192 << 10;

/// The server at work. Dropping it ends it.
#[derive(Debug)]
pub struct NfsShare(Server);

impl NfsShare {
    /// Returns its memory for `callers` callers at a time.
    pub fn memory(callers: usize) -> u64 {
        (callers as u64).saturating_mul(CONNECTION).saturating_add(KNOWN + CALLS)
    }

    /// Serves the open `folder` over TCP at `address` as `listening` says, to as many `callers` at a time that hold
    /// `key`. It takes no path: whoever may write around the directory could make a path lead elsewhere.
    ///
    /// # Errors
    /// Fails if this system serves no folders (Linux before 5.6, and other systems), or `address` cannot be listened on.
    pub fn start(
        folder: &Folder,
        key: SessionKey,
        address: IpAddr,
        listening: &ListenOptions,
        callers: usize,
    ) -> Result<Self, RpcError> {
        let store = directory::of_folder(folder, KNOWN).map_err(|error| cannot_serve("the folder", &error))?;
        let plain = SocketOptions::default();
        let v6 = address.is_ipv6();
        let spec = SocketSpec { transport: Transport::Tcp, v6, options: &plain, bind: None, device: false };
        let peers = listening.peers.clone();
        let replies = Arc::clone(&listening.replies);
        let options = ServerOptions {
            key: Some(key),
            peers,
            replies,
            connections: callers,
            connections_each: callers,
            memory: CALLS,
            ..ServerOptions::default()
        };
        let programs = programs(store, ServiceTime::default());
        Server::in_session(spec, address, listening, programs, options).map(Self)
    }

    /// Returns the listening address.
    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }

    /// Somebody is connected.
    pub fn is_in_use(&self) -> bool {
        self.0.connections() > 0
    }
}
