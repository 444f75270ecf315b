//! The connections of a copy between two agents: who may open one, and blocks on them.
//!
//! The source opens them. Both ends prove on each that they hold the trial's key: see [`linerate_engine::greeting`].
//! Then blocks flow one way, each after its length. One byte comes back and reports how it ended.

use crate::CopyError;
use crate::block::{BLOCK, Block};
use crate::control::Control;
use linerate_engine::greeting::{self, FIELDS, GREETING};
use linerate_engine::proof::Salt;
use linerate_engine::{
    AllowedPeers, KEEPALIVE, KEEPALIVE_RETRIES, ListenOptions, Listener, PEER_GONE, SocketSpec, StrangerLimits,
    Strangers,
};
use linerate_model::{SessionKey, SocketOptions, Transport};
use linerate_sys::handle::AsSocket as _;
use linerate_sys::{clock, socket, tcp};
use std::io::{self, IoSlice, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

/// First bytes of a connection, in both directions.
const HELLO: [u8; 8] = *b"lnrt-cp2";
const ANSWER: [u8; 8] = *b"lnrt-co2";
/// The lane of the connection on which the source asks what is there already.
pub(crate) const ASKS: u16 = u16::MAX;
/// Reply after a complete copy.
pub(crate) const DONE: u8 = b'D';
/// The destination gives up.
pub(crate) const GAVE_UP: u8 = b'S';

/// Time for connecting and greeting.
pub(crate) const CONNECT: Duration = Duration::from_secs(5);
/// Time without an answer after which a host is lost.
pub(crate) const LOST: Duration = PEER_GONE;
/// Connections that have yet to show the key. A source opens its lanes one after the other.
pub(crate) const STRANGERS: StrangerLimits =
    StrangerLimits { places: 64, places_each: 16, time_ns: CONNECT.as_nanos() as u64 };
/// Connections accepted before those that came earlier are heard: fewer than one address has places, so that none goes
/// unheard.
const ACCEPTED_AT_ONCE: usize = 8;
/// Interval at which a listener looks at its connections.
const LOOK: Duration = Duration::from_millis(2);

/// Opens the connection for `lane` and has it accepted.
pub(crate) fn open(to: SocketAddr, key: &SessionKey, lane: u16, control: &Control) -> Result<TcpStream, CopyError> {
    let failed = |error: io::Error| CopyError::NoConnection(format!("connecting to {to}: {error}"));
    let mut connection = TcpStream::connect_timeout(&to, CONNECT).map_err(failed)?;
    let salt: Salt = rand::random();
    let mut answer = [0; GREETING];
    let greeted = set_up(&connection).and_then(|()| {
        connection.set_read_timeout(Some(CONNECT))?;
        connection.write_all(&greeting::seal(key, HELLO, &salt, fields(lane)))?;
        connection.read_exact(&mut answer)?;
        connection.set_read_timeout(None)
    });
    greeted.map_err(failed)?;
    if greeting::unseal(key, ANSWER, &answer) != Some((salt, fields(lane))) {
        return Err(CopyError::NoConnection(format!("{to} answers, but not for this copy")));
    }
    control.keep(&connection).map_err(failed)?;
    if lane == ASKS {
        // The other end reads questions at once, so this one may count every second without an answer.
        tcp::set_user_timeout(connection.as_socket(), Some(LOST)).map_err(failed)?;
    }
    Ok(connection)
}

/// The fields of a greeting: which lane it is for.
fn fields(lane: u16) -> [u8; FIELDS] {
    let mut fields = [0; FIELDS];
    fields[..2].copy_from_slice(&lane.to_le_bytes());
    fields
}

/// Sets what every connection of a copy has. A host that is lost while nothing is under way to it is noticed by the
/// kernel.
pub(crate) fn set_up(connection: &TcpStream) -> io::Result<()> {
    connection.set_nodelay(true)?;
    tcp::set_keepalive(connection.as_socket(), KEEPALIVE, KEEPALIVE, KEEPALIVE_RETRIES)?;
    // It would end the connection to a live host that takes nothing for a while, as while its disk flushes: see
    // PeerSilence.
    tcp::set_user_timeout(connection.as_socket(), None)
}

/// Listener for the lanes of one source.
pub(crate) struct LaneListener {
    listener: Listener,
    key: SessionKey,
    peers: AllowedPeers,
    pub(crate) address: SocketAddr,
}

impl LaneListener {
    /// Listens at `address` as `listening` says, for a source that shows `key`.
    pub(crate) fn open(address: IpAddr, key: SessionKey, listening: &ListenOptions) -> Result<Self, CopyError> {
        let plain = SocketOptions::default();
        let v6 = address.is_ipv6();
        let spec = SocketSpec { transport: Transport::Tcp, v6, options: &plain, bind: None, device: false };
        let greets = Box::new(move |bytes: &[u8]| greeting::unseal(&key, HELLO, bytes).is_some());
        let listener = listening.connections(spec, address, greets)?;
        let peers = listening.peers.clone();
        let address = listener.address();
        Ok(Self { listener, key, peers, address })
    }

    /// Waits for a connection for each lane, and with `asks` for the one on which the source asks. Returns the lanes in
    /// order.
    ///
    /// # Errors
    /// Fails if it was stopped.
    pub(crate) fn accept(
        self,
        lanes: u16,
        asks: bool,
        control: &Control,
    ) -> Result<(Vec<TcpStream>, Option<TcpStream>), CopyError> {
        let key = &self.key;
        let mut known: Vec<Option<TcpStream>> = (0..lanes).map(|_| None).collect();
        let mut asking = None;
        let mut strangers: Strangers<Stranger> = Strangers::new(STRANGERS);
        while known.iter().any(Option::is_none) || (asks && asking.is_none()) {
            if control.is_stopped() {
                return Err(CopyError::Stopped);
            }
            let mut came = false;
            for _ in 0..ACCEPTED_AT_ONCE {
                let Ok((connection, peer)) = self.listener.accept() else { break };
                came = true;
                if self.peers.allow(peer.ip()) && connection.set_nonblocking(true).is_ok() {
                    strangers.take(peer, clock::now(), Stranger { connection, said: Vec::new() });
                }
            }
            strangers.attend(clock::now(), |mut stranger| {
                let (lane, salt) = match stranger.listen(key) {
                    Heard::Nothing => return Some(stranger),
                    Heard::Nonsense => return None,
                    Heard::Lane(lane, salt) => (lane, salt),
                };
                let place = if lane == ASKS && asks { Some(&mut asking) } else { known.get_mut(usize::from(lane)) };
                if let Some(place) = place.filter(|place| place.is_none()) {
                    *place = stranger.welcome(key, lane, &salt, control).ok();
                }
                None
            });
            if !came {
                std::thread::sleep(LOOK);
            }
        }
        Ok((known.into_iter().flatten().collect(), asking))
    }
}

/// A connection that has not shown the key.
struct Stranger {
    connection: TcpStream,
    said: Vec<u8>,
}

enum Heard {
    Nothing,
    Nonsense,
    Lane(u16, Salt),
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
        if self.said.len() < GREETING {
            return Heard::Nothing;
        }
        let greeted = greeting::unseal(key, HELLO, &self.said);
        greeted.map_or(Heard::Nonsense, |(salt, fields)| Heard::Lane(u16::from_le_bytes([fields[0], fields[1]]), salt))
    }

    fn welcome(mut self, key: &SessionKey, lane: u16, salt: &Salt, control: &Control) -> io::Result<TcpStream> {
        self.connection.set_nonblocking(false)?;
        set_up(&self.connection)?;
        self.connection.write_all(&greeting::seal(key, ANSWER, salt, fields(lane)))?;
        control.keep(&self.connection)?;
        Ok(self.connection)
    }
}

/// Sends a block after its length.
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
    while !socket::wait_readable(&[connection.as_socket()], u64::MAX).map_err(|error| error.source)? {}
    Ok(())
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
    use std::net::{Ipv4Addr, TcpListener};
    use std::sync::Arc;
    use std::thread;

    const KEY: SessionKey = SessionKey([7; 16]);

    #[test]
    fn only_the_key_opens() {
        let control = Control::new(CopyOnError::Continue, Arc::default());
        let listener = LaneListener::open(Ipv4Addr::LOCALHOST.into(), KEY, &ListenOptions::default()).expect("a port");
        let address = listener.address;
        // A system may lack the limit.
        let limited = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        tcp::set_user_timeout(limited.as_socket(), Some(LOST)).expect("set");
        let limited = tcp::user_timeout(limited.as_socket()).expect("read");
        thread::scope(|scope| {
            let accepted = scope.spawn(|| listener.accept(2, true, &control));
            assert!(open(address, &SessionKey([8; 16]), 0, &control).is_err(), "a wrong key");
            assert!(open(address, &KEY, 2, &control).is_err(), "a lane that there is none of");
            for lane in [1, ASKS, 0] {
                let lane_or_asks = open(address, &KEY, lane, &control).expect("a lane");
                // A live host may take nothing of a lane for longer.
                let timeout = tcp::user_timeout(lane_or_asks.as_socket()).expect("read");
                assert_eq!(timeout, if lane == ASKS { limited } else { None });
            }
            let (lanes, asks) = accepted.join().expect("no panic").expect("all came");
            assert!(lanes.len() == 2 && asks.is_some());
        });
    }

    /// A regression: strangers in the queue took a lane's place, since all were accepted before any of them was heard.
    #[test]
    fn strangers_behind_a_lane_in_the_queue_do_not_take_its_place() {
        let control = Control::new(CopyOnError::Continue, Arc::default());
        let listener = LaneListener::open(Ipv4Addr::LOCALHOST.into(), KEY, &ListenOptions::default()).expect("a port");
        let connect = || TcpStream::connect(listener.address).expect("connected");
        let mut lane = connect();
        lane.write_all(&greeting::seal(&KEY, HELLO, &Salt::default(), fields(0))).expect("sent");
        lane.set_read_timeout(Some(CONNECT)).expect("set");
        let strangers: Vec<_> = (0..2 * STRANGERS.places_each).map(|_| connect()).collect();
        thread::scope(|scope| {
            let accepted = scope.spawn(|| listener.accept(1, false, &control));
            let answered = lane.read_exact(&mut [0; GREETING]);
            if answered.is_err() {
                control.stop();
            }
            let (lanes, _) = accepted.join().expect("no panic").expect("the lane is accepted");
            assert_eq!(lanes.len(), 1);
        });
        drop(strangers);
    }

    /// The attack: a copy's key holds a command for a server that is no part of the copy, and its address is given as
    /// the destination's.
    #[test]
    fn requests_forged_at_third_parties_hold_no_byte_of_the_callers_choice() {
        let key = SessionKey(*b"\r\nFLUSHALL\r\nEXIT");
        let third_party = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = third_party.local_addr().expect("bound");
        let control = Control::new(CopyOnError::Continue, Arc::default());
        let sent = [(); 2].map(|()| {
            thread::scope(|scope| {
                let opening = scope.spawn(|| open(address, &key, 0, &control).map(drop));
                let mut sent = Vec::new();
                let (mut connection, _) = third_party.accept().expect("accepted");
                let mut greeting = [0; GREETING];
                connection.read_exact(&mut greeting).expect("greeted");
                connection.write_all(&[b'+'; GREETING]).expect("answered");
                assert!(opening.join().expect("no panic").is_err(), "it is not the destination");
                connection.set_read_timeout(Some(CONNECT)).expect("set");
                connection.read_to_end(&mut sent).expect("closed");
                assert!(sent.is_empty(), "nothing follows");
                greeting
            })
        });
        for part in key.0.windows(3) {
            assert!(!sent[0].windows(3).any(|sent| sent == part), "{}", sent[0].escape_ascii());
        }
        let same = sent[0][8..].iter().zip(&sent[1][8..]).filter(|(one, other)| one == other).count();
        assert!(same < 12, "{same} of 48 bytes are the same, so the caller chooses them");
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
