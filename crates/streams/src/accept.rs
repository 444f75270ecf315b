//! The server before the start: accepts connections and greetings of this trial only.

use crate::error::StreamError;
use crate::flow::{Flow, Link};
use crate::hello::{self, Answer, Greeted, Hello};
use crate::job::Job;
use crate::options;
use linerate_engine::{
    AllowedPeers, DatagramListener, FlowsMissing, ListenOptions, Listener, ReplyAllowance, StrangerLimits, Strangers,
    failed,
};
use linerate_model::{LinkId, SessionKey, Transport};
use linerate_sys::clock;
use linerate_sys::epoll::{Epoll, Interest};
use linerate_sys::handle::AsSocket as _;
use linerate_sys::socket::{EMFILE, ENFILE, ENOBUFS, ENOMEM, wait_readable};
use socket2::{SockRef, Socket};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

/// Limits for connections that have yet to greet. A client opens 32 flows of a path at a time.
pub(crate) const STRANGERS: StrangerLimits = StrangerLimits { places: 256, places_each: 64, time_ns: 2_000_000_000 };
/// Lifetime of a flow's own UDP socket until its client proves that it reads the answers. The client tries for the same
/// time.
const PROOF_NS: u64 = 5_000_000_000;
/// Most UDP sockets of flows whose clients have yet to prove that they read the answers.
const PENDING_MAXIMUM: usize = 256;
/// Connections accepted before the pending ones are read: a quarter of the places of one address.
const ACCEPT_BATCH: usize = 16;
/// Longest time until a stop is seen.
const TICK_NS: u64 = 20_000_000;
/// Pause after a call that failed for lack of descriptors or memory, which others may free meanwhile.
const EXHAUSTED_NS: u64 = 1_000_000;

/// Listening end and the flows that have arrived at it.
#[derive(Debug)]
pub(crate) struct Acceptor {
    path: u16,
    pub(crate) link: LinkId,
    pub(crate) address: SocketAddr,
    /// Listener for TCP connections.
    listener: Option<Listener>,
    arrived: Arc<Mutex<BTreeMap<Hello, Flow>>>,
    failure: Arc<Mutex<Option<StreamError>>>,
    /// Flag shared with the other listeners of the session, so that all end at once.
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Acceptor {
    /// Listens for the flows of end number `end`, on `link`, with the options `listening`.
    ///
    /// `stop` ends all acceptors that share it.
    pub(crate) fn listen(
        job: &Arc<Job>,
        end: usize,
        link: LinkId,
        address: IpAddr,
        listening: &ListenOptions,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, StreamError> {
        let path = job.ends[end].path;
        let spec = options::listening(job);
        let key = job.key_of(end);
        let greets = Box::new(move |bytes: &[u8]| Hello::decode(bytes, &key).is_some());
        let arrived = Arc::default();
        let failure = Arc::new(Mutex::new(None));
        let stop = Arc::clone(stop);
        let mut accept_loop = AcceptLoop {
            job: Arc::clone(job),
            key,
            end,
            path,
            peers: listening.peers.clone(),
            arrived: Arc::clone(&arrived),
            stop: Arc::clone(&stop),
        };
        let (local, listener, run): (_, _, Box<dyn FnOnce() -> Result<(), StreamError> + Send>) = match job.transport()
        {
            Transport::Tcp => {
                let listener = listening.connections(spec, address, greets)?;
                let accepting = listener.clone();
                (listener.address(), Some(listener), Box::new(move || accept_loop.connections(&accepting)))
            }
            Transport::Udp => {
                let listener = listening.datagrams(spec, address, greets)?;
                (listener.address(), None, Box::new(move || accept_loop.datagrams(&listener)))
            }
        };
        let thread_failure = Arc::clone(&failure);
        let thread = thread::Builder::new()
            .name(format!("accept {path}"))
            .spawn(move || {
                if let Err(error) = run() {
                    *thread_failure.lock().expect("no holder panics") = Some(error);
                }
            })
            .map_err(failed("starting a thread"))?;
        Ok(Self { path, link, address: local, listener, arrived, failure, stop, thread: Some(thread) })
    }

    /// Closes the listener and returns all flows.
    ///
    /// # Errors
    /// Not all flows have arrived.
    pub(crate) fn finish(mut self, job: &Job) -> Result<Vec<Flow>, StreamError> {
        self.close();
        if let Some(error) = self.failure.lock().expect("no holder panics").take() {
            return Err(error);
        }
        let arrived = std::mem::take(&mut *self.arrived.lock().expect("no holder panics"));
        let mut flows: Vec<Flow> = arrived.into_values().collect();
        let expected = job.hellos(self.path).len();
        if flows.len() != expected {
            return Err(FlowsMissing { path: self.path, arrived: flows.len(), expected }.into());
        }
        for flow in &flows {
            if let Link::Udp(socket) = &flow.link {
                options::ready(&SockRef::from(socket))?;
            }
        }
        if job.connects_each()
            && let Some(listener) = self.listener.take()
        {
            let listener = listener.for_many();
            for flow in &mut flows {
                flow.link = Link::Answer(listener.clone());
            }
        }
        Ok(flows)
    }

    fn close(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread shows as missing flows.
            let _ = thread.join();
        }
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.close();
    }
}

/// State of the accepting thread.
struct AcceptLoop {
    job: Arc<Job>,
    key: SessionKey,
    end: usize,
    path: u16,
    peers: AllowedPeers,
    arrived: Arc<Mutex<BTreeMap<Hello, Flow>>>,
    stop: Arc<AtomicBool>,
}

/// Connection that has yet to greet.
struct Pending {
    stream: TcpStream,
    peer: SocketAddr,
    local: SocketAddr,
    hello: [u8; hello::BYTES],
    filled: usize,
}

/// UDP socket of a flow. The flow has arrived once its client has proved, by the nonce, that it read the answer.
struct FlowSocket {
    hello: Hello,
    peer: SocketAddr,
    local: SocketAddr,
    nonce: u64,
    socket: UdpSocket,
    /// Time when the greeting was answered.
    answered: u64,
    /// Deadline for the confirmation.
    deadline: u64,
    confirmed: bool,
}

/// UDP sockets of flows that have greeted, with an epoll for all of them.
struct FlowSockets {
    epoll: Epoll,
    all: BTreeMap<usize, FlowSocket>,
    numbers: HashMap<(Hello, SocketAddr), usize>,
    /// Unconfirmed sockets, the oldest first.
    pending: BTreeSet<usize>,
    next: usize,
}

impl FlowSockets {
    /// Creates an empty set. Its epoll also waits for the socket of `listener`.
    fn new(listener: &DatagramListener) -> Result<Self, StreamError> {
        let epoll = Epoll::new()?;
        epoll.add(listener.socket(), Interest::Read, 0)?;
        Ok(Self { epoll, all: BTreeMap::new(), numbers: HashMap::new(), pending: BTreeSet::new(), next: 1 })
    }

    fn number_of(&self, hello: Hello, peer: SocketAddr) -> Option<usize> {
        self.numbers.get(&(hello, peer)).copied()
    }

    fn add(&mut self, flow: FlowSocket) -> Result<&FlowSocket, StreamError> {
        let number = self.next;
        self.next += 1;
        self.epoll.add(flow.socket.as_socket(), Interest::Read, number)?;
        self.insert(number, flow);
        Ok(&self.all[&number])
    }

    fn insert(&mut self, number: usize, flow: FlowSocket) {
        self.numbers.insert((flow.hello, flow.peer), number);
        if !flow.confirmed {
            self.pending.insert(number);
        }
        self.all.insert(number, flow);
    }

    fn remove(&mut self, number: usize) -> Option<FlowSocket> {
        let flow = self.all.remove(&number)?;
        self.numbers.remove(&(flow.hello, flow.peer));
        self.pending.remove(&number);
        Some(flow)
    }

    /// Closes sockets that were not confirmed in time.
    fn remove_expired(&mut self, now: u64) -> Result<(), StreamError> {
        while let Some(number) = self.pending.first().copied()
            && self.all.get(&number).is_some_and(|flow| now >= flow.deadline)
            && let Some(flow) = self.remove(number)
        {
            self.epoll.remove(flow.socket.as_socket())?;
        }
        Ok(())
    }
}

impl FlowSocket {
    fn answer(&self) -> Answer {
        Answer { port: self.local.port(), nonce: self.nonce }
    }
}

impl Pending {
    /// Reads more of the greeting. Returns whether it is complete.
    fn read(&mut self) -> io::Result<bool> {
        match self.stream.read(&mut self.hello[self.filled..]) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => {
                self.filled += bytes;
                Ok(self.filled == hello::BYTES)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl AcceptLoop {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns whether `hello` is a flow that has yet to arrive.
    fn expects(&self, hello: Hello) -> bool {
        self.job.has_flow(self.path, hello) && !self.has_arrived(hello)
    }

    fn has_arrived(&self, hello: Hello) -> bool {
        self.arrived.lock().expect("no holder panics").contains_key(&hello)
    }

    fn connections(&mut self, listener: &Listener) -> Result<(), StreamError> {
        let expected = self.job.hellos(self.path).len();
        let mut strangers: Strangers<Pending> = Strangers::new(STRANGERS);
        // Error of the last connection, if this host lacked descriptors or memory.
        let mut exhausted = None;
        while !self.is_stopped() && self.arrived.lock().expect("no holder panics").len() < expected {
            let sockets: Vec<_> =
                listener.sockets().chain(strangers.iter().map(|pending| pending.stream.as_socket())).collect();
            wait_readable(&sockets, TICK_NS)?;
            for _ in 0..ACCEPT_BATCH {
                let accepted = listener.accept();
                if accepted.is_ok() {
                    exhausted = None;
                }
                match accepted {
                    // A stray connection that cannot be served is dropped: it must not end the trial.
                    Ok((stream, peer)) if self.peers.allow(peer.ip()) && stream.set_nonblocking(true).is_ok() => {
                        let local = listener.address();
                        let pending = Pending { stream, peer, local, hello: [0; hello::BYTES], filled: 0 };
                        strangers.take(peer, clock::now(), pending);
                    }
                    Ok(_) => (),
                    // Pending connections free their descriptors when their time is over.
                    Err(error) if is_exhausted(&error) => {
                        pause();
                        exhausted = Some(error);
                        break;
                    }
                    Err(error) if is_transient(&error) => break,
                    Err(error) => return Err(failed("accept")(error).into()),
                }
            }
            let mut admitted = Ok(());
            strangers.attend(clock::now(), |mut pending| match pending.read() {
                Ok(true) => {
                    if admitted.is_ok() {
                        admitted = self.admit(pending);
                    }
                    None
                }
                Ok(false) => Some(pending),
                Err(_) => None,
            });
            admitted?;
        }
        match exhausted {
            // The error explains the missing flows, and names the remedy.
            Some(error) if self.arrived.lock().expect("no holder panics").len() < expected => {
                Err(failed("accept")(error).into())
            }
            _ => Ok(()),
        }
    }

    /// Keeps and answers a connection with a valid greeting. Closes any other connection without an answer.
    fn admit(&mut self, pending: Pending) -> Result<(), StreamError> {
        let Some(greeted) = Hello::decode(&pending.hello, &self.key) else { return Ok(()) };
        let hello = greeted.hello;
        if !self.expects(hello) {
            return Ok(());
        }
        let socket = Socket::from(pending.stream);
        options::ready(&socket)?;
        let mut stream = TcpStream::from(socket);
        if stream.write_all(&greeted.answer(&self.key, Answer::default())).is_ok() {
            self.keep(hello, pending.peer, pending.local, Link::Tcp(stream), 0);
        }
        Ok(())
    }

    fn datagrams(&mut self, listener: &DatagramListener) -> Result<(), StreamError> {
        let mut flows = FlowSockets::new(listener)?;
        let mut bytes = [0; hello::BYTES + 1];
        let mut allowance = ReplyAllowance::default();
        let mut ready = Vec::new();
        // Answers are repeated until the start, for they can be lost.
        while !self.is_stopped() {
            flows.epoll.wait(TICK_NS, &mut ready)?;
            match listener.receive(&mut bytes) {
                Ok((length, peer)) => {
                    if self.peers.allow(peer.ip())
                        && let Some(greeted) = Hello::decode(&bytes[..length], &self.key)
                        && allowance.allow(length, hello::BYTES, clock::now())
                        && let Some(flow) = self.flow_socket(&mut flows, greeted.hello, peer, listener)?
                    {
                        listener.answer(&flow.socket, &greeted.answer(&self.key, flow.answer()), peer);
                    }
                }
                Err(error) if is_exhausted(&error) => pause(),
                Err(error) if is_transient(&error) => (),
                Err(error) => return Err(failed("recvfrom")(error).into()),
            }
            for number in ready.drain(..) {
                if let Some(mut flow) = flows.remove(number) {
                    if self.read_datagram(&mut flow, listener.address(), &mut allowance)? {
                        flows.insert(number, flow);
                    } else {
                        flows.epoll.remove(flow.socket.as_socket())?;
                    }
                }
            }
            flows.remove_expired(clock::now())?;
        }
        Ok(())
    }

    /// Returns the socket of the flow that greeted, connected to `peer`.
    fn flow_socket<'a>(
        &self,
        flows: &'a mut FlowSockets,
        hello: Hello,
        peer: SocketAddr,
        listener: &DatagramListener,
    ) -> Result<Option<&'a FlowSocket>, StreamError> {
        if let Some(number) = flows.number_of(hello, peer) {
            return Ok(flows.all.get(&number));
        }
        if !self.expects(hello) || flows.pending.len() >= PENDING_MAXIMUM {
            return Ok(None);
        }
        let socket = listener.connected_to(peer)?;
        let local = socket.local_addr().map_err(failed("getsockname"))?;
        let answered = clock::now();
        let deadline = answered + PROOF_NS;
        flows
            .add(FlowSocket { hello, peer, local, nonce: rand::random(), socket, answered, deadline, confirmed: false })
            .map(Some)
    }

    /// Reads a datagram from the socket of a flow. `greeted_at` is the address for greetings.
    ///
    /// Returns false if nothing more is to be read there before the start.
    fn read_datagram(
        &mut self,
        flow: &mut FlowSocket,
        greeted_at: SocketAddr,
        allowance: &mut ReplyAllowance,
    ) -> Result<bool, StreamError> {
        let is_shared = flow.local == greeted_at;
        let mut bytes = [0; hello::BYTES + 1];
        let greeted = match flow.socket.peek(&mut bytes) {
            Ok(length) => Hello::decode(&bytes[..length], &self.key).filter(|greeted| {
                greeted.hello == flow.hello && (greeted.nonce == flow.nonce || is_shared && greeted.nonce == 0)
            }),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
            // Perhaps an ICMP error: the greeting had a forged address.
            Err(_) => return Ok(flow.confirmed),
        };
        match greeted {
            // At a shared port, repeated greetings arrive here too, because the first answer was lost.
            Some(greeted)
                if greeted.nonce != flow.nonce && allowance.allow(hello::BYTES, hello::BYTES, clock::now()) =>
            {
                let _ = flow.socket.send(&greeted.answer(&self.key, flow.answer()));
            }
            Some(greeted) => {
                if !flow.confirmed {
                    // Another address may have proved itself first.
                    if self.has_arrived(flow.hello) {
                        return Ok(false);
                    }
                    let socket = flow.socket.try_clone().map_err(failed("dup of a flow's socket"))?;
                    let round_trip_ns = clock::now() - flow.answered;
                    self.keep(flow.hello, flow.peer, flow.local, Link::Udp(socket), round_trip_ns);
                    flow.confirmed = true;
                }
                self.answer_confirmation(flow, &greeted);
            }
            // The other end has started: this datagram is left for the flow's thread.
            None if flow.confirmed => return Ok(false),
            None => (),
        }
        let _ = flow.socket.recv(&mut bytes);
        Ok(true)
    }

    /// Answers a confirmation on the socket of the flow.
    fn answer_confirmation(&self, flow: &FlowSocket, greeted: &Greeted) {
        let answer = greeted.answer(&self.key, Answer { port: 0, nonce: flow.nonce });
        let _ = flow.socket.send(&answer);
    }

    fn keep(&mut self, hello: Hello, peer: SocketAddr, local: SocketAddr, link: Link, round_trip_ns: u64) {
        let flow = Flow { end: self.end, hello, client: false, peer, local, link, round_trip_ns };
        self.arrived.lock().expect("no holder panics").insert(hello, flow);
    }
}

/// Returns whether an error concerns one connection or moment, not the listener: accept(2), "Error handling".
pub(crate) fn is_transient(error: &io::Error) -> bool {
    use io::ErrorKind::{
        ConnectionAborted, ConnectionRefused, ConnectionReset, HostUnreachable, Interrupted, NetworkUnreachable,
        WouldBlock,
    };
    matches!(
        error.kind(),
        ConnectionAborted
            | ConnectionRefused
            | ConnectionReset
            | HostUnreachable
            | Interrupted
            | NetworkUnreachable
            | WouldBlock
    )
}

/// Returns whether this process or host lacks descriptors or memory for one more connection: accept(2).
///
/// The connection stays in the queue, so callers should [`pause`] before they try again.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(EMFILE | ENFILE | ENOBUFS | ENOMEM))
}

/// Waits for others to free descriptors or memory.
pub(crate) fn pause() {
    clock::sleep_until(clock::now() + EXHAUSTED_NS);
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_engine::testing::one_path::{part, server_role};
    use linerate_model::{StreamTask, Task};
    use linerate_testsuite::wait_until;
    use linerate_units::{ByteCount, Nanos};
    use std::net::Ipv4Addr;

    /// Regression: unauthenticated peers that used up the descriptors of this process ended the trial.
    #[test]
    fn lack_of_descriptors_or_memory_is_transient_and_a_listener_fault_is_not() {
        for number in [EMFILE, ENFILE, ENOBUFS, ENOMEM] {
            assert!(is_exhausted(&io::Error::from_raw_os_error(number)), "{number}");
        }
        // EINVAL: the socket does not listen.
        let fault = io::Error::from(io::ErrorKind::InvalidInput);
        assert!(!is_exhausted(&fault) && !is_transient(&fault));
        let aborted = io::Error::from(io::ErrorKind::ConnectionAborted);
        assert!(is_transient(&aborted) && !is_exhausted(&aborted));
    }

    /// Closed one after the other, 30 listeners would take 30 times the time that one takes to see a stop.
    #[test]
    fn closing_one_listener_ends_all_that_share_its_stop() {
        for transport in [Transport::Tcp, Transport::Udp] {
            let task = Task::Stream(StreamTask::plain(transport, ByteCount::new(1_000)));
            let address = IpAddr::from(Ipv4Addr::LOCALHOST);
            let assignment = part(&task, Nanos::from_secs(1), vec![server_role(0, address)], 1);
            let job = Arc::new(Job::check(&assignment).expect("valid"));
            let stop = Arc::default();
            let [first, second] = [0, 0].map(|end| {
                Acceptor::listen(&job, end, LinkId(0), address, &ListenOptions::default(), &stop).expect("listens")
            });
            drop(first);
            let thread = second.thread.as_ref().expect("it listens");
            wait_until("the second has ended", || thread.is_finished().then_some(()));
        }
    }
}
