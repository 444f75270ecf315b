//! Connections before they have shown the token: their number and their time are limited.

use crate::serve::Shared;
use axum::{Extension, Router};
use axum_server::accept::Accept;
use std::future::{Ready, ready};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;

/// The most connections without a request that carried the token. More are closed at once.
pub(crate) const UNADMITTED: usize = 64;

/// Accepts or drops connections, before any TLS.
#[derive(Clone)]
pub(crate) struct ConnectionGate {
    shared: Arc<Shared>,
    unadmitted: Arc<Semaphore>,
    timeout: Duration,
}

/// A connection's admission. It is not admitted until [`GatedConnection::admit`].
#[derive(Debug, Clone)]
pub(crate) struct GatedConnection(Arc<Admission>);

#[derive(Debug)]
struct Admission {
    admitted: AtomicBool,
    /// Freed when the connection is admitted or ends.
    permit: Mutex<Option<OwnedSemaphorePermit>>,
}

impl ConnectionGate {
    /// Closes a connection that was not admitted within `timeout`.
    pub(crate) fn new(shared: Arc<Shared>, timeout: Duration) -> Self {
        Self { shared, unadmitted: Arc::new(Semaphore::new(UNADMITTED)), timeout }
    }

    fn admission(&self, stream: &TcpStream) -> io::Result<GatedConnection> {
        let peer = stream.peer_addr()?;
        let refused = |why| io::Error::new(io::ErrorKind::PermissionDenied, why);
        if !self.shared.limits.allows(peer.ip()) {
            return Err(refused("the peer is not allowed"));
        }
        let permit = Arc::clone(&self.unadmitted).try_acquire_owned();
        let permit = permit.map_err(|_| refused("too many connections have not shown the token"))?;
        Ok(GatedConnection(Arc::new(Admission { admitted: AtomicBool::new(false), permit: Mutex::new(Some(permit)) })))
    }

    fn open(&self, stream: TcpStream, service: Router) -> io::Result<(GatedStream, Router)> {
        let admission = self.admission(&stream).inspect_err(|_| self.shared.trials.metrics.turned_away.add(1))?;
        stream.set_nodelay(true)?;
        let closing = Some(Box::pin(tokio::time::sleep(self.timeout)));
        Ok((GatedStream { stream, admission: admission.clone(), closing }, service.layer(Extension(admission))))
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
    /// Records that the connection has shown the token.
    pub(crate) fn admit(&self) {
        self.0.admitted.store(true, Ordering::Relaxed);
        self.0.permit.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// A connection's bytes. Reading fails once it has gone unadmitted for too long.
pub(crate) struct GatedStream {
    stream: TcpStream,
    admission: GatedConnection,
    /// `None` once the connection was seen to be admitted.
    closing: Option<Pin<Box<Sleep>>>,
}

impl AsyncRead for GatedStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.admission.0.admitted.load(Ordering::Relaxed) {
            self.closing = None;
        }
        if self.closing.as_mut().is_some_and(|closing| closing.as_mut().poll(context).is_ready()) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Pin::new(&mut self.stream).poll_read(context, into)
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
