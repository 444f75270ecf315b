//! Connections before they have shown a token: few may be open at a time, and not for long. After that, each credential
//! has a share.

use crate::grant::CredentialId;
use crate::origin::Origin;
use crate::shared::Shared;
use crate::slots::{Slot, Slots};
use axum::{Extension, Router};
use axum_server::accept::Accept;
use linerate_control::{ApiError, ErrorKind};
use linerate_engine::end_if_vanished;
use linerate_sys::clock;
use std::collections::BTreeMap;
use std::future::{Ready, ready};
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

/// Most connections of one credential. A runner has one for each session that it leads, and a few for its requests.
pub(crate) const PER_CREDENTIAL: usize = 256;

/// Accepts connections, before any TLS.
#[derive(Clone)]
pub(crate) struct ConnectionGate {
    shared: Arc<Shared>,
    slots: Arc<Slots>,
    admitted: Arc<AdmittedConnections>,
    timeout: Duration,
}

/// A connection that is not admitted until [`GatedConnection::admit`].
#[derive(Debug, Clone)]
pub(crate) struct GatedConnection(Arc<Admission>);

#[derive(Debug)]
struct Admission {
    peer: SocketAddr,
    /// The credential that it has shown first.
    credential: OnceLock<CredentialId>,
    slots: Arc<Slots>,
    all_admitted: Arc<AdmittedConnections>,
    /// Held until the connection is admitted or ends.
    slot: Arc<Slot>,
    /// Time of the last read, below TLS, on the clock of [`clock::now`].
    read: AtomicU64,
}

/// Number of connections of each credential; zero if it is missing.
#[derive(Debug, Default)]
struct AdmittedConnections(Mutex<BTreeMap<CredentialId, usize>>);

impl AdmittedConnections {
    /// Counts one more connection of `credential`; false if it has as many as it may.
    fn take(&self, credential: &CredentialId) -> bool {
        let mut counts = self.counts();
        let count = counts.entry(credential.clone()).or_default();
        let room = *count < PER_CREDENTIAL;
        *count += usize::from(room);
        room
    }

    /// A connection of `credential` has ended.
    fn give_back(&self, credential: &CredentialId) {
        let mut counts = self.counts();
        if let Some(count) = counts.get_mut(credential) {
            *count -= 1;
            if *count == 0 {
                counts.remove(credential);
            }
        }
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<CredentialId, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionGate {
    /// A gate that closes connections not admitted within `timeout`.
    pub(crate) fn new(shared: Arc<Shared>, timeout: Duration) -> Self {
        Self { shared, slots: Arc::default(), admitted: Arc::default(), timeout }
    }

    fn take(&self, stream: &TcpStream) -> io::Result<GatedConnection> {
        let peer = stream.peer_addr()?;
        let turned_away = &self.shared.sessions.metrics.turned_away;
        if !self.shared.limits.allows(peer.ip()) {
            turned_away.add(1);
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the peer is not allowed"));
        }
        let (slot, dropped) = self.slots.take(peer.ip());
        turned_away.add(dropped);
        Ok(GatedConnection(Arc::new(Admission {
            peer,
            credential: OnceLock::new(),
            slots: Arc::clone(&self.slots),
            all_admitted: Arc::clone(&self.admitted),
            slot,
            read: AtomicU64::new(0),
        })))
    }

    fn open(&self, stream: TcpStream, service: Router) -> io::Result<(GatedStream, Router)> {
        let connection = self.take(&stream)?;
        stream.set_nodelay(true)?;
        // Also where the connection did not come by the shared port.
        end_if_vanished(&stream)?;
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
    /// The connection has shown the token of `credential`. It counts to the first that it shows.
    ///
    /// # Errors
    /// That has as many connections as it may.
    pub(crate) fn admit(&self, credential: &CredentialId) -> Result<(), ApiError> {
        if self.0.credential.get().is_some() {
            return Ok(());
        }
        if !self.0.all_admitted.take(credential) {
            let message = format!(
                "{PER_CREDENTIAL} connections with this agent URL are open, which is the most; close some, or end programs \
                 that use it"
            );
            return Err(ApiError::new(ErrorKind::Limit, message));
        }
        // A connection carries one request at a time.
        if self.0.credential.set(credential.clone()).is_err() {
            self.0.all_admitted.give_back(credential);
        }
        self.0.slots.admit(self.0.peer.ip(), &self.0.slot);
        Ok(())
    }

    /// The host at its other end.
    pub(crate) fn peer(&self) -> IpAddr {
        self.0.peer.ip()
    }

    /// Returns the origin of the current request.
    pub(crate) fn origin(&self) -> Origin {
        let received_ns = self.0.read.load(Ordering::Relaxed);
        Origin { peer: Some(self.peer()), zone: self.zone(), received_ns }
    }

    /// The interface of this host that leads to the host at the other end, if that has a link-local address.
    fn zone(&self) -> Option<u32> {
        match self.0.peer {
            SocketAddr::V6(v6) if v6.scope_id() != 0 => Some(v6.scope_id()),
            _ => None,
        }
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.slots.release(&self.slot);
        if let Some(credential) = self.credential.get() {
            self.all_admitted.give_back(credential);
        }
    }
}

/// A TCP stream that fails if its connection is not admitted in time, or has lost its slot.
pub(crate) struct GatedStream {
    stream: TcpStream,
    connection: GatedConnection,
    /// `None` once the connection was seen to be admitted.
    closing: Option<Pin<Box<Sleep>>>,
}

impl GatedStream {
    /// Fails once the connection is not admitted in time, or has lost its slot. Reads and writes both ask: who sends
    /// requests and reads no answer keeps the server from reading.
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if self.connection.0.credential.get().is_some() {
            self.closing = None;
        }
        let Some(closing) = &mut self.closing else { return Ok(()) };
        if closing.as_mut().poll(context).is_ready() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if self.connection.0.slot.is_dropped(context.waker()) {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Ok(())
    }
}

impl AsyncRead for GatedStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        let read = Pin::new(&mut self.stream).poll_read(context, into);
        if read.is_ready() {
            self.connection.0.read.store(clock::now(), Ordering::Relaxed);
        }
        read
    }
}

impl AsyncWrite for GatedStream {
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
