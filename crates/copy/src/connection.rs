//! The connections of a copy between two agents: who may open one, and blocks on them.
//!
//! The source opens them and shows the trial's key on each. Then blocks flow one way, each behind its length; the other way a
//! single byte says how it ended.

use crate::CopyError;
use crate::block::{BLOCK, Block};
use crate::control::Control;
use linerate_model::SessionKey;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::{SockRef, TcpKeepalive};
use std::io::{self, IoSlice, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

/// What a connection begins with, and what answers it.
const HELLO: [u8; 8] = *b"lnrt-cp1";
const ANSWER: [u8; 8] = *b"lnrt-cpk";
/// Hello, key, lane.
const GREETING: usize = 8 + 16 + 2;
/// The lane of the connection on which the source asks what is there already.
pub(crate) const ASKS: u16 = u16::MAX;
/// All is in place.
pub(crate) const DONE: u8 = b'D';
/// The destination gives up.
pub(crate) const GAVE_UP: u8 = b'S';

/// How long connecting and greeting may take.
pub(crate) const CONNECT: Duration = Duration::from_secs(5);
/// A host that does not answer for so long is lost.
const LOST: Duration = Duration::from_secs(20);
/// Strangers that may be waited for at a time.
const STRANGERS: usize = 16;
/// How often a listener looks around.
const LOOK: Duration = Duration::from_millis(2);

/// Opens the connection for `lane` and has it accepted.
pub(crate) fn open(to: SocketAddr, key: &SessionKey, lane: u16, control: &Control) -> Result<TcpStream, CopyError> {
    let failed = |error: io::Error| CopyError::NoConnection(format!("connecting to {to}: {error}"));
    let mut connection = TcpStream::connect_timeout(&to, CONNECT).map_err(failed)?;
    let mut answer = [0; ANSWER.len()];
    let greeted = set_up(&connection).and_then(|()| {
        connection.set_read_timeout(Some(CONNECT))?;
        connection.write_all(&greeting(key, lane))?;
        connection.read_exact(&mut answer)?;
        connection.set_read_timeout(None)?;
        control.keep(&connection)
    });
    greeted.map_err(failed)?;
    if answer != ANSWER {
        return Err(CopyError::NoConnection(format!("{to} answers, but not for this copy")));
    }
    Ok(connection)
}

fn greeting(key: &SessionKey, lane: u16) -> [u8; GREETING] {
    let mut bytes = [0; GREETING];
    bytes[..8].copy_from_slice(&HELLO);
    bytes[8..24].copy_from_slice(&key.0);
    bytes[24..].copy_from_slice(&lane.to_le_bytes());
    bytes
}

/// The lane that a greeting with this key is for. All of it is looked at, however wrong it is.
fn lane_of(bytes: &[u8; GREETING], key: &SessionKey) -> Option<u16> {
    let lane = u16::from_le_bytes([bytes[24], bytes[25]]);
    let expected = greeting(key, lane);
    let differences = bytes.iter().zip(expected).fold(0, |all, (a, b)| all | (a ^ b));
    (differences == 0).then_some(lane)
}

pub(crate) fn set_up(connection: &TcpStream) -> io::Result<()> {
    let socket = SockRef::from(connection);
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(LOST / 4).with_interval(LOST / 4))?;
    socket.set_tcp_user_timeout(Some(LOST))
}

/// Listener for the lanes of one source.
pub(crate) struct LaneListener {
    listener: TcpListener,
    pub(crate) address: SocketAddr,
}

impl LaneListener {
    pub(crate) fn open(address: IpAddr) -> Result<Self, CopyError> {
        let failed = |source| CopyError::System { call: "bind", object: address.to_string(), source };
        let listener = TcpListener::bind((address, 0)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address })
    }

    /// Waits for a connection for each lane, and with `asks` for the one on which the source asks. Returns the lanes in order.
    ///
    /// # Errors
    /// It was stopped.
    pub(crate) fn accept(
        self,
        key: &SessionKey,
        lanes: u16,
        asks: bool,
        control: &Control,
    ) -> Result<(Vec<TcpStream>, Option<TcpStream>), CopyError> {
        let mut known: Vec<Option<TcpStream>> = (0..lanes).map(|_| None).collect();
        let mut asking = None;
        let mut strangers: Vec<Stranger> = Vec::new();
        while known.iter().any(Option::is_none) || (asks && asking.is_none()) {
            if control.is_stopped() {
                return Err(CopyError::Stopped);
            }
            while let Ok((connection, _)) = self.listener.accept() {
                if strangers.len() < STRANGERS && connection.set_nonblocking(true).is_ok() {
                    strangers.push(Stranger { connection, said: Vec::new(), since: Instant::now() });
                }
            }
            let mut left = Vec::new();
            for mut stranger in strangers {
                let place = match stranger.listen(key) {
                    Heard::Nothing => {
                        left.push(stranger);
                        continue;
                    }
                    Heard::Nonsense => continue,
                    Heard::Lane(ASKS) if asks => &mut asking,
                    Heard::Lane(lane) => match known.get_mut(usize::from(lane)) {
                        Some(place) => place,
                        None => continue,
                    },
                };
                if place.is_none() {
                    *place = stranger.welcome(control).ok();
                }
            }
            strangers = left;
            std::thread::sleep(LOOK);
        }
        Ok((known.into_iter().flatten().collect(), asking))
    }
}

/// A connection that has not shown the key.
struct Stranger {
    connection: TcpStream,
    said: Vec<u8>,
    since: Instant,
}

enum Heard {
    Nothing,
    Nonsense,
    Lane(u16),
}

impl Stranger {
    fn listen(&mut self, key: &SessionKey) -> Heard {
        let mut bytes = [0; GREETING];
        let wanted = &mut bytes[self.said.len()..];
        match self.connection.read(wanted) {
            Ok(0) => return Heard::Nonsense,
            Ok(read) => {
                let read = wanted[..read].to_vec();
                self.said.extend(read);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return Heard::Nonsense,
        }
        match <[u8; GREETING]>::try_from(self.said.as_slice()) {
            Ok(greeting) => lane_of(&greeting, key).map_or(Heard::Nonsense, Heard::Lane),
            Err(_) if self.since.elapsed() > CONNECT => Heard::Nonsense,
            Err(_) => Heard::Nothing,
        }
    }

    fn welcome(mut self, control: &Control) -> io::Result<TcpStream> {
        self.connection.set_nonblocking(false)?;
        set_up(&self.connection)?;
        self.connection.write_all(&ANSWER)?;
        control.keep(&self.connection)?;
        Ok(self.connection)
    }
}

/// Sends a block behind its length.
pub(crate) fn send(connection: &mut TcpStream, block: &Block) -> io::Result<()> {
    let bytes = block.bytes();
    let length = (bytes.len() as u32).to_le_bytes();
    let mut sent = 0;
    while sent < length.len() {
        match connection.write_vectored(&[IoSlice::new(&length[sent..]), IoSlice::new(bytes)])? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            // The rest of the length goes by itself.
            more if sent + more <= length.len() => sent += more,
            more => return connection.write_all(&bytes[sent + more - length.len()..]),
        }
    }
    connection.write_all(bytes)
}

/// Waits until there is something to read.
pub(crate) fn wait(connection: &TcpStream) -> io::Result<()> {
    loop {
        match poll(&mut [PollFd::new(connection.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE) {
            Err(nix::Error::EINTR) => {}
            polled => return Ok(polled.map(drop)?),
        }
    }
}

/// The length of the next block; none at the end.
pub(crate) fn next_length(connection: &mut TcpStream) -> io::Result<Option<usize>> {
    let mut bytes = [0; 4];
    let first = connection.read(&mut bytes)?;
    if first == 0 {
        return Ok(None);
    }
    connection.read_exact(&mut bytes[first..])?;
    let length = u32::from_le_bytes(bytes) as usize;
    if length > BLOCK {
        return Err(io::Error::new(io::ErrorKind::InvalidData, crate::block::Malformed));
    }
    Ok(Some(length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Blocks;
    use linerate_model::CopyOnError;
    use std::net::Ipv4Addr;
    use std::sync::Arc;
    use std::thread;

    const KEY: SessionKey = SessionKey([7; 16]);

    #[test]
    fn only_the_key_opens() {
        let control = Control::new(CopyOnError::Continue, Arc::default());
        let listener = LaneListener::open(Ipv4Addr::LOCALHOST.into()).expect("a port");
        let address = listener.address;
        thread::scope(|scope| {
            let accepted = scope.spawn(|| listener.accept(&KEY, 2, true, &control));
            assert!(open(address, &SessionKey([8; 16]), 0, &control).is_err(), "a wrong key");
            assert!(open(address, &KEY, 2, &control).is_err(), "a lane that there is none of");
            for lane in [1, ASKS, 0] {
                open(address, &KEY, lane, &control).expect("a lane");
            }
            let (lanes, asks) = accepted.join().expect("no panic").expect("all came");
            assert!(lanes.len() == 2 && asks.is_some());
        });
    }

    #[test]
    fn blocks_arrive_as_they_were_and_long_ones_are_refused() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let mut from = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        let (mut to, _) = listener.accept().expect("accepted");
        let blocks = Blocks::new(1);
        let mut block = blocks.take();
        block.folder(b"a", 1, 2);
        send(&mut from, &block).expect("sent");
        from.write_all(&(BLOCK as u32 + 1).to_le_bytes()).expect("sent");
        wait(&to).expect("something is there");
        let length = next_length(&mut to).expect("read").expect("a block");
        let mut bytes = vec![0; length];
        to.read_exact(&mut bytes).expect("read");
        assert_eq!(bytes, block.bytes());
        assert!(next_length(&mut to).is_err(), "longer than any block");
    }
}
