//! Connections of browsers: how many are open at a time.
//!
//! Other users of the machine reach the port as well. They must not use up the program's descriptors, nor keep its owner out. So a new
//! connection takes the place of the oldest one that has not shown the key.

use axum::{Extension, Router};
use axum_server::accept::Accept;
use futures_util::task::AtomicWaker;
use std::future::{Ready, ready};
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Most connections at a time. A browser opens six.
pub(crate) const MOST_CONNECTIONS: usize = 128;

/// The connections that are open, the oldest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connections(Arc<Mutex<Vec<Arc<Connection>>>>);

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    peer: IpAddr,
    /// It has shown the key.
    admitted: AtomicBool,
    /// Another has its place.
    displaced: AtomicBool,
    waker: AtomicWaker,
}

impl Connection {
    /// Notes that it has shown the key.
    pub(crate) fn admit(&self) {
        self.admitted.store(true, Ordering::Relaxed);
    }

    /// Returns the address of the other end.
    pub(crate) fn peer(&self) -> IpAddr {
        self.peer
    }
}

impl Connections {
    /// Takes a place for a new connection. Returns `None` if all that are open have shown the key.
    fn take(&self, peer: IpAddr) -> Option<Arc<Connection>> {
        let mut open = self.open();
        if open.len() >= MOST_CONNECTIONS {
            let oldest = open.iter().position(|other| !other.admitted.load(Ordering::Relaxed))?;
            let displaced = open.remove(oldest);
            displaced.displaced.store(true, Ordering::Release);
            displaced.waker.wake();
        }
        let connection = Arc::new(Connection {
            peer,
            admitted: AtomicBool::new(false),
            displaced: AtomicBool::new(false),
            waker: AtomicWaker::new(),
        });
        open.push(Arc::clone(&connection));
        Some(connection)
    }

    fn release(&self, connection: &Arc<Connection>) {
        self.open().retain(|other| !Arc::ptr_eq(other, connection));
    }

    fn open(&self) -> MutexGuard<'_, Vec<Arc<Connection>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Accept<TcpStream, Router> for Connections {
    type Stream = CountedStream;
    type Service = Router;
    type Future = Ready<io::Result<(CountedStream, Router)>>;

    /// An error drops the connection; nobody reads it.
    fn accept(&self, stream: TcpStream, service: Router) -> Self::Future {
        let peer = match stream.peer_addr() {
            Ok(peer) => peer.ip(),
            Err(error) => return ready(Err(error)),
        };
        let Some(connection) = self.take(peer) else {
            return ready(Err(io::Error::new(io::ErrorKind::QuotaExceeded, "too many connections")));
        };
        let service = service.layer(Extension(Arc::clone(&connection)));
        ready(Ok((CountedStream { stream, connection, connections: self.clone() }, service)))
    }
}

/// A TCP stream that fails once its place was given to another connection.
pub(crate) struct CountedStream {
    stream: TcpStream,
    connection: Arc<Connection>,
    connections: Connections,
}

impl CountedStream {
    fn check(&self, context: &Context<'_>) -> io::Result<()> {
        self.connection.waker.register(context.waker());
        match self.connection.displaced.load(Ordering::Acquire) {
            true => Err(io::ErrorKind::ConnectionAborted.into()),
            false => Ok(()),
        }
    }
}

impl Drop for CountedStream {
    fn drop(&mut self) {
        self.connections.release(&self.connection);
    }
}

impl AsyncRead for CountedStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for CountedStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn a_new_connection_takes_the_place_of_the_oldest_without_the_key() {
        let connections = Connections::default();
        let open: Vec<_> = (0..MOST_CONNECTIONS).map(|_| connections.take(PEER).expect("room")).collect();
        open[0].admit();
        let new = connections.take(PEER).expect("a place");
        let displaced = |connection: &Connection| connection.displaced.load(Ordering::Relaxed);
        assert!(!displaced(&open[0]) && displaced(&open[1]) && !displaced(&open[2]) && !displaced(&new));
        connections.open().iter().for_each(|connection| connection.admit());
        assert!(connections.take(PEER).is_none());
        connections.release(&new);
        assert!(connections.take(PEER).is_some());
        assert_eq!(connections.open().len(), MOST_CONNECTIONS);
    }
}
