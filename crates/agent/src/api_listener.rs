//! Where connections to the API come from: the agent's listener, or its port, which has sorted out those that begin as
//! TLS.

use axum_server::{AddrListener, Address};
use std::io;
use std::net::SocketAddr;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, mpsc};

/// Connections that wait to be taken; more are closed. None waits long.
const WAITING: usize = 256;

/// The address of a listener or of a peer.
#[derive(Debug, Clone)]
pub(crate) struct ApiAddress(pub(crate) SocketAddr);

/// Source of connections to the API.
pub(crate) enum ApiListener {
    /// Every connection to a listener.
    Own(TcpListener),
    /// Connections that the port at this address hands over.
    Port(SocketAddr, Mutex<mpsc::Receiver<std::net::TcpStream>>),
}

impl Address for ApiAddress {
    type Stream = TcpStream;
    type Listener = ApiListener;
}

impl ApiListener {
    /// Connections that a port at `address` hands over by calling what is returned.
    pub(crate) fn port(address: SocketAddr) -> (Self, impl FnMut(std::net::TcpStream) + Send + 'static) {
        let (sender, receiver) = mpsc::channel(WAITING);
        // Where there is no room the connection is closed.
        (Self::Port(address, Mutex::new(receiver)), move |stream| drop(sender.try_send(stream)))
    }
}

impl AddrListener<TcpStream, ApiAddress> for ApiListener {
    async fn bind_to(address: ApiAddress) -> io::Result<Self> {
        Ok(Self::Own(TcpListener::bind(address.0).await?))
    }

    async fn accept_stream(&self) -> io::Result<(TcpStream, ApiAddress)> {
        match self {
            Self::Own(listener) => listener.accept().await.map(|(stream, peer)| (stream, ApiAddress(peer))),
            Self::Port(_, handed_over) => loop {
                let Some(stream) = handed_over.lock().await.recv().await else {
                    // The port is closed, and the agent is about to end.
                    return std::future::pending().await;
                };
                // After an error the server pauses. A client that has gone meanwhile is none.
                if let Ok(taken) = taken(stream) {
                    return Ok(taken);
                }
            },
        }
    }

    fn get_local_addr(&self) -> io::Result<ApiAddress> {
        match self {
            Self::Own(listener) => listener.local_addr().map(ApiAddress),
            Self::Port(address, _) => Ok(ApiAddress(*address)),
        }
    }
}

/// A connection that the port has handed over.
fn taken(stream: std::net::TcpStream) -> io::Result<(TcpStream, ApiAddress)> {
    let peer = stream.peer_addr()?;
    stream.set_nonblocking(true)?;
    Ok((TcpStream::from_std(stream)?, ApiAddress(peer)))
}
