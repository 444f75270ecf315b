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
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// Credits (MS-SMB2 1.3) that are asked for, 64 KiB each: for all pieces that files have on their way.
pub(crate) const CREDITS: u16 = 512;
/// A small answer and its length come with one call to the system.
const READ_AHEAD: usize = 16 << 10;

/// A server that owes an answer, and from or to which nothing passes for so long, is taken for lost. How long one answer takes says
/// nothing: behind others on a slow line it may be minutes.
pub(crate) const SILENCE: Duration = Duration::from_secs(20);

/// What is known of a connection beside what passes over it.
#[derive(Debug)]
pub(crate) struct Health {
    /// For how long the server may be silent: [`SILENCE`], but in tests.
    silence: Duration,
    since: Instant,
    /// When bytes last passed, either way: milliseconds from `since` on.
    stirred: AtomicU64,
    /// Why it is of no more use; empty while it is.
    pub(crate) broken: OnceLock<String>,
    sent: AtomicU64,
    received: AtomicU64,
    /// Credits that the crate has or has spent on calls under way, and the most that it ever had; see [`Self::is_spent`].
    pool: AtomicI64,
    most: AtomicI64,
}

/// STATUS_PENDING: the real answer comes later.
const PENDING: u32 = 0x103;

impl Health {
    pub(crate) fn new(silence: Duration) -> Self {
        let none = AtomicU64::default;
        Self {
            silence,
            since: Instant::now(),
            stirred: none(),
            broken: OnceLock::new(),
            sent: none(),
            received: none(),
            pool: AtomicI64::default(),
            most: AtomicI64::default(),
        }
    }

    /// For how long nothing has passed, either way.
    pub(crate) fn quiet(&self) -> Duration {
        self.since.elapsed().saturating_sub(Duration::from_millis(self.stirred.load(Ordering::Relaxed)))
    }

    fn stir(&self) {
        self.stirred.store(self.since.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    /// The server owes an answer, and has been silent for too long.
    fn is_silent(&self) -> bool {
        self.sent.load(Ordering::Relaxed) > self.received.load(Ordering::Relaxed) && self.quiet() >= self.silence
    }

    /// Whether a new connection should take its place while there are credits to finish what is under way.
    ///
    /// What a server cannot answer at once it answers twice: first that it is pending, with the credits (MS-SMB2 3.3.4.2), then with
    /// the result and none. The crate takes note of the second answer only. Answers that come at once bring more credits, as it asks for
    /// what it lacks; but a server has so many to give, and to it those that were lost are given. When all are, the crate waits for ever.
    pub(crate) fn is_spent(&self) -> bool {
        // Of encrypted answers only the number is known.
        let more = self.received.load(Ordering::Relaxed) > self.sent.load(Ordering::Relaxed);
        more || self.pool.load(Ordering::Relaxed) < self.most.load(Ordering::Relaxed) / 2
    }

    fn note(&self, message: &[u8]) {
        if message.starts_with(b"\xfeSMB") && message.len() >= 16 {
            // MS-SMB2 2.2.1.1: magic, length, charge, status, command, credits.
            let number = |at: usize| i64::from(u16::from_le_bytes([message[at], message[at + 1]]));
            let status = u32::from_le_bytes([message[8], message[9], message[10], message[11]]);
            if status == PENDING {
                return;
            }
            let change = number(14) - number(6);
            self.most.fetch_max(self.pool.fetch_add(change, Ordering::Relaxed) + change, Ordering::Relaxed);
        }
        self.received.fetch_add(1, Ordering::Relaxed);
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
        io::ErrorKind::TimedOut => format!("the server was silent for {:?}", health.silence),
        _ => error.to_string(),
    });
    TransportError::NotConnected
}

impl Reading {
    /// The next bytes, so many, however long that takes as long as something passes.
    async fn next(&mut self, bytes: usize) -> Result<Vec<u8>> {
        // Its memory is not cleared before it is filled.
        let mut out = Vec::with_capacity(bytes);
        while out.len() < bytes {
            let mut rest = (&mut self.half).take((bytes - out.len()) as u64);
            let error = match tokio::time::timeout(self.health.silence / 4, rest.read_buf(&mut out)).await {
                Ok(Ok(0)) => io::ErrorKind::UnexpectedEof.into(),
                Ok(Ok(_)) => {
                    self.health.stir();
                    continue;
                }
                Ok(Err(error)) => error,
                Err(_) if self.health.is_silent() => io::ErrorKind::TimedOut.into(),
                Err(_) => continue,
            };
            return Err(keep(&self.health, &error));
        }
        Ok(out)
    }
}

impl SmbTransportRead for Reading {
    fn receive_exact<'a>(&'a mut self, out: &'a mut [u8]) -> BoxFuture<'a, Result<()>> {
        async {
            out.copy_from_slice(&self.next(out.len()).await?);
            Ok(())
        }
        .boxed()
    }

    fn receive<'a>(&'a mut self) -> BoxFuture<'a, Result<Vec<u8>>> {
        async {
            // MS-SMB2 2.1: a zero byte, and the length in three.
            let head = self.next(4).await?;
            let length = head.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
            let message = self.next(length & 0xff_ffff).await?;
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
            // What it owes, it owes from now on.
            self.health.stir();
            self.health.sent.fetch_add(1, Ordering::Relaxed);
            let head = (message.total_size() as u32).to_be_bytes();
            let parts = std::iter::once(&head[..]).chain(message.iter().map(|part| &part[..]));
            let mut parts: Vec<IoSlice<'_>> = parts.map(IoSlice::new).collect();
            let mut parts = &mut parts[..];
            while !parts.is_empty() {
                match self.half.write_vectored(parts).await {
                    Ok(0) => return Err(keep(&self.health, &io::ErrorKind::WriteZero.into())),
                    Ok(sent) => {
                        self.health.stir();
                        IoSlice::advance_slices(&mut parts, sent);
                    }
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

    /// What comes of an answer that takes `pieces` quarters of the time for which a server may be silent, and then no more.
    fn answered_in(pieces: usize, owed: u64) -> (Option<Result<Vec<u8>>>, Arc<Health>) {
        let silence = Duration::from_secs(2);
        let health = Arc::new(Health::new(silence));
        health.sent.store(owed, Ordering::Relaxed);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let answer = runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
            let connection = TcpStream::connect(listener.local_addr().expect("bound")).await.expect("connected");
            let (mut other, _) = listener.accept().await.expect("accepted");
            let transport = Transport::new(connection, &health).expect("set up");
            let (mut reader, _writer) = Box::new(transport).split().expect("split");
            let _server = tokio::spawn(async move {
                for byte in [0, 0, 0, 5, 1, 2, 3, 4, 5].iter().take(pieces) {
                    tokio::time::sleep(silence / 4).await;
                    other.write_all(&[*byte]).await.expect("sent");
                }
                std::future::pending::<()>().await;
            });
            tokio::time::timeout(silence * 4, reader.receive()).await.ok()
        });
        (answer, health)
    }

    #[test]
    fn an_answer_may_take_long_as_long_as_it_comes() {
        let (answer, health) = answered_in(9, 1);
        assert_eq!(answer.expect("in time").expect("whole"), [1, 2, 3, 4, 5]);
        assert!(health.broken.get().is_none());
    }

    #[test]
    fn a_server_that_owes_an_answer_is_not_silent_for_long() {
        let (answer, health) = answered_in(5, 1);
        assert!(matches!(answer, Some(Err(TransportError::NotConnected))), "{answer:?}");
        assert_eq!(health.broken.get().map(String::as_str), Some("the server was silent for 2s"));
        let (nothing, health) = answered_in(0, 0);
        assert!(nothing.is_none() && health.broken.get().is_none(), "one that owes nothing may be");
    }

    #[test]
    fn a_message_goes_behind_its_length_and_a_lost_peer_is_named() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("bound");
        let health = Arc::new(Health::new(SILENCE));
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
        assert_eq!(health.broken.get().map(String::as_str), Some("the server closed the connection"));
    }

    /// An answer: what it cost, its status, and the credits that come with it.
    fn answer(charge: u8, status: u16, credits: u16) -> Vec<u8> {
        let mut message = b"\xfeSMB\x40\0".to_vec();
        message.extend([charge, 0]);
        message.extend(u32::from(status).to_le_bytes());
        message.extend([9, 0]);
        message.extend(credits.to_le_bytes());
        message
    }

    /// The numbers are those of Samba 4.17 on a share with `sync always`, whose pending answers tell no charge.
    #[test]
    fn a_connection_is_spent_when_half_its_credits_are_lost() {
        let health = Health::new(SILENCE);
        assert!(!health.is_spent(), "it has only begun");
        health.sent.store(38, Ordering::Relaxed);
        for (charge, credits) in [(0, 1), (1, 1), (1, 512)] {
            health.note(&answer(charge, 0, credits));
        }
        let slow = || {
            health.note(&answer(0, PENDING as u16, 15));
            health.note(&answer(8, 0, 0));
        };
        (0..32).for_each(|_| slow());
        assert!(!health.is_spent(), "32 calls of 8 credits took half of 512");
        slow();
        assert!(health.is_spent());
        health.note(&answer(8, 0, 8 + 264));
        assert!(!health.is_spent(), "an answer at once brought what was lacking");
        health.note(b"\xfdSMB of which no more is known");
        assert!(!health.is_spent());
        health.note(b"\xfdSMB one more than was asked for");
        assert!(health.is_spent(), "one of them is pending");
    }
}
