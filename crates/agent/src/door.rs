//! Who may knock: what strangers can hold of the agent before they have shown the token is little, and not for long.

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

/// Connections that have not yet carried a request with the token; more are closed at once.
pub(crate) const STRANGERS: usize = 64;

/// Takes connections, before any TLS.
#[derive(Clone)]
pub(crate) struct Door {
    shared: Arc<Shared>,
    places: Arc<Semaphore>,
    patience: Duration,
}

/// The standing of a connection: a stranger's, until [`Visitor::admit`].
#[derive(Debug, Clone)]
pub(crate) struct Visitor(Arc<Standing>);

#[derive(Debug)]
struct Standing {
    admitted: AtomicBool,
    /// Held by strangers; it is free again when the connection ends or is admitted.
    place: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Door {
    /// A door that closes on strangers after `patience`.
    pub(crate) fn new(shared: Arc<Shared>, patience: Duration) -> Self {
        Self { shared, places: Arc::new(Semaphore::new(STRANGERS)), patience }
    }

    fn visitor(&self, stream: &TcpStream) -> io::Result<Visitor> {
        let peer = stream.peer_addr()?;
        let refused = |why| io::Error::new(io::ErrorKind::PermissionDenied, why);
        if !self.shared.limits.allows(peer.ip()) {
            return Err(refused("the peer is not allowed"));
        }
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| refused("too many strangers"))?;
        Ok(Visitor(Arc::new(Standing { admitted: AtomicBool::new(false), place: Mutex::new(Some(place)) })))
    }

    fn open(&self, stream: TcpStream, service: Router) -> io::Result<(Visited, Router)> {
        let visitor = self.visitor(&stream).inspect_err(|_| self.shared.trials.metrics.turned_away.add(1))?;
        stream.set_nodelay(true)?;
        let closing = Some(Box::pin(tokio::time::sleep(self.patience)));
        Ok((Visited { stream, visitor: visitor.clone(), closing }, service.layer(Extension(visitor))))
    }
}

impl Accept<TcpStream, Router> for Door {
    type Stream = Visited;
    type Service = Router;
    type Future = Ready<io::Result<(Visited, Router)>>;

    /// An error drops the connection; nobody reads it.
    fn accept(&self, stream: TcpStream, service: Router) -> Self::Future {
        ready(self.open(stream, service))
    }
}

impl Visitor {
    /// The connection has shown the token.
    pub(crate) fn admit(&self) {
        self.0.admitted.store(true, Ordering::Relaxed);
        self.0.place.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// A connection that ends if its visitor is a stranger for too long.
pub(crate) struct Visited {
    stream: TcpStream,
    visitor: Visitor,
    /// None once the visitor was seen to be admitted.
    closing: Option<Pin<Box<Sleep>>>,
}

impl AsyncRead for Visited {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.visitor.0.admitted.load(Ordering::Relaxed) {
            self.closing = None;
        }
        if self.closing.as_mut().is_some_and(|closing| closing.as_mut().poll(context).is_ready()) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Visited {
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
