//! A TCP connection for the crate `smb`, whose own has no TCP_NODELAY and sends a message in pieces: each small call then waits for the
//! other side's delayed acknowledgement, some 40 ms.
//!
//! Its loops go on after any error but one, so everything that goes wrong here is that one; the reason is kept for whoever asks.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use smb_transport::error::Result;
use smb_transport::{IoVec, SmbTransport, SmbTransportRead, SmbTransportWrite, TransportError};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// Credits (MS-SMB2 1.3) that are asked for, 64 KiB each: for all pieces that files have on their way.
pub(crate) const CREDITS: u16 = 512;
/// A small answer and its length come with one call to the system.
const READ_AHEAD: usize = 16 << 10;

/// What is known of a connection beside what passes over it.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// Why it is of no more use; empty while it is.
    pub(crate) broken: OnceLock<String>,
    sent: AtomicU64,
    received: AtomicU64,
    /// Credits that are lost, see [`Self::is_spent`].
    lost: AtomicU64,
}

/// STATUS_PENDING: the real answer comes later.
const PENDING: [u8; 4] = 0x103_u32.to_le_bytes();

impl Health {
    /// Whether a new connection should take its place while there are credits to finish what is under way.
    ///
    /// What a server cannot answer at once it answers twice: first that it is pending, with the credits (MS-SMB2 3.3.4.2), then with
    /// the result and none. The crate takes note of the second answer only; when all its credits are lost, it waits for ever.
    pub(crate) fn is_spent(&self) -> bool {
        // Of encrypted answers only the number is known.
        let more = self.received.load(Ordering::Relaxed) > self.sent.load(Ordering::Relaxed);
        more || self.lost.load(Ordering::Relaxed) > u64::from(CREDITS) / 2
    }

    fn note(&self, message: &[u8]) {
        // MS-SMB2 2.2.1.1: magic, length, charge, status.
        match (message.get(..4), message.get(6..8), message.get(8..12)) {
            (Some(b"\xfeSMB"), Some(charge), Some(status)) if status == PENDING => {
                let charge = u16::from_le_bytes([charge[0], charge[1]]).max(1);
                self.lost.fetch_add(charge.into(), Ordering::Relaxed);
            }
            _ => {
                self.received.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// A connection that stands.
pub(crate) struct Transport {
    peer: SocketAddr,
    reader: Reading,
    writer: Writing,
}

struct Reading {
    half: BufReader<OwnedReadHalf>,
    health: Arc<Health>,
}

struct Writing {
    half: OwnedWriteHalf,
    health: Arc<Health>,
}

impl Transport {
    pub(crate) fn new(connection: TcpStream, health: &Arc<Health>) -> io::Result<Self> {
        connection.set_nodelay(true)?;
        let peer = connection.peer_addr()?;
        let (read, write) = connection.into_split();
        let health = || Arc::clone(health);
        let reader = Reading { half: BufReader::with_capacity(READ_AHEAD, read), health: health() };
        Ok(Self { peer, reader, writer: Writing { half: write, health: health() } })
    }
}

fn keep(health: &Health, error: &io::Error) -> TransportError {
    health.broken.get_or_init(|| match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::WriteZero => String::from("the server closed the connection"),
        _ => error.to_string(),
    });
    TransportError::NotConnected
}

impl SmbTransportRead for Reading {
    fn receive_exact<'a>(&'a mut self, out: &'a mut [u8]) -> BoxFuture<'a, Result<()>> {
        async { self.half.read_exact(out).await.map(drop).map_err(|error| keep(&self.health, &error)) }.boxed()
    }

    fn receive<'a>(&'a mut self) -> BoxFuture<'a, Result<Vec<u8>>> {
        async {
            let mut head = [0; 4];
            self.receive_exact(&mut head).await?;
            let mut message = vec![0; (u32::from_be_bytes(head) & 0xff_ffff) as usize];
            self.receive_exact(&mut message).await?;
            self.health.note(&message);
            Ok(message)
        }
        .boxed()
    }
}

impl SmbTransportWrite for Writing {
    fn send_raw<'a>(&'a mut self, bytes: &'a [u8]) -> BoxFuture<'a, Result<()>> {
        async { self.half.write_all(bytes).await.map_err(|error| keep(&self.health, &error)) }.boxed()
    }

    fn send<'a>(&'a mut self, message: &'a IoVec) -> BoxFuture<'a, Result<()>> {
        async {
            self.health.sent.fetch_add(1, Ordering::Relaxed);
            // MS-SMB2 2.1: a zero byte, and the length in three.
            let head = (message.total_size() as u32).to_be_bytes();
            let parts = std::iter::once(&head[..]).chain(message.iter().map(|part| &part[..]));
            let mut parts: Vec<IoSlice<'_>> = parts.map(IoSlice::new).collect();
            let mut parts = &mut parts[..];
            while !parts.is_empty() {
                match self.half.write_vectored(parts).await {
                    Ok(0) => return Err(keep(&self.health, &io::ErrorKind::WriteZero.into())),
                    Ok(sent) => IoSlice::advance_slices(&mut parts, sent),
                    Err(error) => return Err(keep(&self.health, &error)),
                }
            }
            Ok(())
        }
        .boxed()
    }
}

impl SmbTransportRead for Transport {
    fn receive_exact<'a>(&'a mut self, out: &'a mut [u8]) -> BoxFuture<'a, Result<()>> {
        self.reader.receive_exact(out)
    }

    fn receive<'a>(&'a mut self) -> BoxFuture<'a, Result<Vec<u8>>> {
        self.reader.receive()
    }
}

impl SmbTransportWrite for Transport {
    fn send_raw<'a>(&'a mut self, bytes: &'a [u8]) -> BoxFuture<'a, Result<()>> {
        self.writer.send_raw(bytes)
    }

    fn send<'a>(&'a mut self, message: &'a IoVec) -> BoxFuture<'a, Result<()>> {
        self.writer.send(message)
    }
}

impl SmbTransport for Transport {
    fn connect<'a>(&'a mut self, _server: &'a str, _address: SocketAddr) -> BoxFuture<'a, Result<()>> {
        async { Err(TransportError::AlreadyConnected) }.boxed()
    }

    fn default_port(&self) -> u16 {
        self.peer.port()
    }

    fn split(self: Box<Self>) -> Result<(Box<dyn SmbTransportRead>, Box<dyn SmbTransportWrite>)> {
        Ok((Box::new(self.reader), Box::new(self.writer)))
    }

    fn remote_address(&self) -> Result<SocketAddr> {
        Ok(self.peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::net::{Ipv4Addr, TcpListener};

    #[test]
    fn a_message_goes_behind_its_length_and_a_lost_peer_is_named() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("bound");
        let health = Arc::new(Health::default());
        runtime.block_on(async {
            let connection = TcpStream::connect(address).await.expect("connected");
            assert!(!connection.nodelay().expect("asked"));
            let (mut other, _) = listener.accept().expect("accepted");
            let transport = Transport::new(connection, &health).expect("set up");
            let (mut reader, mut writer) = Box::new(transport).split().expect("split");
            let mut message = IoVec::from(vec![1, 2, 3]);
            message.add_owned(vec![4; 70_000]);
            writer.send(&message).await.expect("sent");
            let mut bytes = vec![0; 4 + 70_003];
            other.read_exact(&mut bytes).expect("came");
            assert_eq!(bytes[..8], [0, 1, 0x11, 0x73, 1, 2, 3, 4]);
            assert!(health.broken.get().is_none());
            drop(other);
            assert!(matches!(reader.receive().await, Err(TransportError::NotConnected)));
        });
        assert!(!health.is_spent());
        let mut pending = *b"\xfeSMB\x40\0\x08\0\x03\x01\0\0";
        (0..32).for_each(|_| health.note(&pending));
        assert!(!health.is_spent());
        pending[8] = 0;
        health.note(&pending);
        assert!(!health.is_spent(), "that was an answer");
        pending[8] = 3;
        health.note(&pending);
        assert!(health.is_spent(), "33 pieces of 8 credits are more than half of 512");
        assert_eq!(health.broken.get().map(String::as_str), Some("the server closed the connection"));
    }
}
