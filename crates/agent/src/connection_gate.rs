//! Connections before they have shown a token: few may be open at a time, and not for long.

use crate::serve::Shared;
use crate::slots::{Slot, Slots};
use axum::{Extension, Router};
use axum_server::accept::Accept;
use linerate_sys::clock;
use std::future::{Ready, ready};
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

/// Accepts connections, before any TLS.
#[derive(Clone)]
pub(crate) struct ConnectionGate {
    shared: Arc<Shared>,
    slots: Arc<Slots>,
    timeout: Duration,
}

/// A connection that is not admitted until [`GatedConnection::admit`].
#[derive(Debug, Clone)]
pub(crate) struct GatedConnection(Arc<Admission>);

#[derive(Debug)]
struct Admission {
    peer: IpAddr,
    admitted: AtomicBool,
    slots: Arc<Slots>,
    /// Held until the connection is admitted or ends.
    slot: Arc<Slot>,
    /// When it last had read, below TLS, on the clock of [`clock::now`].
    read: AtomicU64,
}

impl ConnectionGate {
    /// A gate that closes connections not admitted within `timeout`.
    pub(crate) fn new(shared: Arc<Shared>, timeout: Duration) -> Self {
        Self { shared, slots: Arc::default(), timeout }
    }

    fn take(&self, stream: &TcpStream) -> io::Result<GatedConnection> {
        let peer = stream.peer_addr()?;
        let turned_away = &self.shared.sessions.metrics.turned_away;
        if !self.shared.limits.allows(peer.ip()) {
            turned_away.add(1);
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the peer is not allowed"));
        }
        let (slot, dropped) = self.slots.take(peer.ip().into());
        turned_away.add(dropped);
        Ok(GatedConnection(Arc::new(Admission {
            peer: peer.ip(),
            admitted: AtomicBool::new(false),
            slots: Arc::clone(&self.slots),
            slot,
            read: AtomicU64::new(0),
        })))
    }

    fn open(&self, stream: TcpStream, service: Router) -> io::Result<(GatedStream, Router)> {
        let connection = self.take(&stream)?;
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
        if !self.0.admitted.swap(true, Ordering::Relaxed) {
            self.0.slots.admit(self.0.peer.into(), &self.0.slot);
        }
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

impl Drop for Admission {
    fn drop(&mut self) {
        self.slots.release(&self.slot);
    }
}

/// A TCP stream that fails if its connection is not admitted in time, or has lost its slot.
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
        if self.closing.is_some() && self.connection.0.slot.is_dropped(context.waker()) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
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
