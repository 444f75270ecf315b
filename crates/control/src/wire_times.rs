//! Times of the last write and read of a connection, below TLS. They do not contain the time that HTTP and TLS take in
//! this program.

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use linerate_sys::clock;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use tokio::net::TcpStream;

/// The latest times of one connection, on the clock of [`clock::now`]. Every response contains those of its connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct WireTimes(Arc<Times>);

#[derive(Debug, Default)]
struct Times {
    wrote: AtomicU64,
    read: AtomicU64,
}

impl WireTimes {
    /// Returns the times of a connection that was last written and read at these times.
    pub(crate) fn at(wrote: u64, read: u64) -> Self {
        Self(Arc::new(Times { wrote: wrote.into(), read: read.into() }))
    }

    /// Returns the time at which the connection last began to write.
    pub(crate) fn wrote(&self) -> u64 {
        self.0.wrote.load(Ordering::Relaxed)
    }

    /// Returns the time at which it last finished a read.
    pub(crate) fn read(&self) -> u64 {
        self.0.read.load(Ordering::Relaxed)
    }

    fn note_write(&self) {
        self.0.wrote.store(clock::now(), Ordering::Relaxed);
    }
}

/// A TCP connection that notes its times.
#[derive(Debug)]
pub(crate) struct TimedStream {
    stream: TokioIo<TcpStream>,
    times: WireTimes,
}

impl TimedStream {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { stream: TokioIo::new(stream), times: WireTimes::default() }
    }
}

impl Connection for TimedStream {
    fn connected(&self) -> Connected {
        self.stream.connected().extra(self.times.clone())
    }
}

impl Read for TimedStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, into);
        if read.is_ready() {
            self.times.0.read.store(clock::now(), Ordering::Relaxed);
        }
        read
    }
}

impl Write for TimedStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.times.note_write();
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.times.note_write();
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
