//! Connections before they have shown the token: few may be open at a time, and not for long.

use crate::serve::Shared;
use axum::{Extension, Router};
use axum_server::accept::Accept;
use linerate_sys::clock;
use std::future::{Ready, ready};
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;

/// Most connections that have not yet carried a request with the token; further ones are closed at once.
pub(crate) const UNADMITTED: usize = 64;

/// Accepts connections, before any TLS.
#[derive(Clone)]
pub(crate) struct ConnectionGate {
    shared: Arc<Shared>,
    slots: Arc<Semaphore>,
    timeout: Duration,
}

/// A connection that is not admitted until [`GatedConnection::admit`].
#[derive(Debug, Clone)]
pub(crate) struct GatedConnection(Arc<Admission>);

#[derive(Debug)]
struct Admission {
    peer: IpAddr,
    admitted: AtomicBool,
    /// Held until the connection is admitted or ends.
    slot: Mutex<Option<OwnedSemaphorePermit>>,
    /// When it last had read, below TLS, on the clock of [`clock::now`].
    read: AtomicU64,
}

impl ConnectionGate {
    /// A gate that closes connections not admitted within `timeout`.
    pub(crate) fn new(shared: Arc<Shared>, timeout: Duration) -> Self {
        Self { shared, slots: Arc::new(Semaphore::new(UNADMITTED)), timeout }
    }

    fn take(&self, stream: &TcpStream) -> io::Result<GatedConnection> {
        let peer = stream.peer_addr()?;
        let refused = |why| io::Error::new(io::ErrorKind::PermissionDenied, why);
        if !self.shared.limits.allows(peer.ip()) {
            return Err(refused("the peer is not allowed"));
        }
        let slot = Arc::clone(&self.slots)
            .try_acquire_owned()
            .map_err(|_| refused("too many connections are not admitted yet"))?;
        Ok(GatedConnection(Arc::new(Admission {
            peer: peer.ip(),
            admitted: AtomicBool::new(false),
            slot: Mutex::new(Some(slot)),
            read: AtomicU64::new(0),
        })))
    }

    fn open(&self, stream: TcpStream, service: Router) -> io::Result<(GatedStream, Router)> {
        let connection = self.take(&stream).inspect_err(|_| self.shared.sessions.metrics.turned_away.add(1))?;
        stream.set_nodelay(true)?;
        let closing = Some(Box::pin(tokio::time::sleep(self.timeout)));
        Ok((GatedStream { stream, connection: connection.clone(), closing }, service.layer(Extension(connection))))
    }
}

impl Accept<TcpStream, Router> for ConnectionGate {
    type Stream = GatedStream;
    type Service = Router;
    type Future = Ready<io::Result<(GatedStream, Router)>>;

    /// An error drops the connection; nobody reads it.
    fn accept(&self, stream: TcpStream, service: Router) -> Self::Future {
        ready(self.open(stream, service))
    }
}

impl GatedConnection {
    /// The connection has shown the token.
    pub(crate) fn admit(&self) {
        self.0.admitted.store(true, Ordering::Relaxed);
        self.0.slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// The host at its other end.
    pub(crate) fn peer(&self) -> IpAddr {
        self.0.peer
    }

    /// When it last read something: the request that is being answered. Nanoseconds on the clock of [`clock::now`].
    pub(crate) fn last_read(&self) -> u64 {
        self.0.read.load(Ordering::Relaxed)
    }
}

/// A TCP stream that fails if its connection is not admitted in time.
pub(crate) struct GatedStream {
    stream: TcpStream,
    connection: GatedConnection,
    /// None once the connection was seen to be admitted.
    closing: Option<Pin<Box<Sleep>>>,
}

impl AsyncRead for GatedStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.connection.0.admitted.load(Ordering::Relaxed) {
            self.closing = None;
        }
        if self.closing.as_mut().is_some_and(|closing| closing.as_mut().poll(context).is_ready()) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let read = Pin::new(&mut self.stream).poll_read(context, into);
        if read.is_ready() {
            self.connection.0.read.store(clock::now(), Ordering::Relaxed);
        }
        read
    }
}

impl AsyncWrite for GatedStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
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
