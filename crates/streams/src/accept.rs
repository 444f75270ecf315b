//! The server before the start: takes connections and greetings, and nothing that is not of this trial.

use crate::error::StreamError;
use crate::flow::{Flow, Link};
use crate::hello::{self, Answer, Greeted, Hello};
use crate::job::Job;
use crate::options;
use linerate_engine::{
    AllowedPeers, DatagramListener, ListenOptions, Listener, ReplyAllowance, StrangerLimits, Strangers,
};
use linerate_model::{LinkId, SessionKey, Transport};
use linerate_sys::clock;
use linerate_sys::epoll::{Epoll, Interest};
use linerate_sys::socket::{EMFILE, ENFILE, ENOBUFS, ENOMEM, wait_readable};
use socket2::{SockRef, Socket};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

/// Connections that have yet to greet. A client opens 32 flows of a path at a time.
pub(crate) const STRANGERS: StrangerLimits = StrangerLimits { places: 256, places_each: 64, time_ns: 2_000_000_000 };
/// A flow's own UDP socket is kept for so long until its client has proved that it reads the answers: as long as that tries.
const PROOF_NS: u64 = 5_000_000_000;
/// Flows' own UDP sockets whose clients have yet to prove that they read the answers; more are not made.
const PENDING_MAXIMUM: usize = 256;
/// Connections accepted before the others are looked at: a quarter of the places of one address.
const AT_ONCE: usize = 16;
/// How soon a stop is seen.
const TICK_NS: u64 = 20_000_000;
/// After a call that failed for want of descriptors or memory: others may give some back.
const EXHAUSTED_NS: u64 = 1_000_000;

/// A listening end and the flows that have arrived at it.
#[derive(Debug)]
pub(crate) struct Acceptor {
    path: u16,
    pub(crate) link: LinkId,
    pub(crate) address: SocketAddr,
    /// Of connections.
    listener: Option<Listener>,
    arrived: Arc<Mutex<BTreeMap<Hello, Flow>>>,
    failure: Arc<Mutex<Option<StreamError>>>,
    /// Shared with the other listeners of the session, so that all end at once.
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Acceptor {
    /// Listens for the flows of end number `end`, on `link` as `listening` says.
    ///
    /// `stop` ends it, together with all others that share it.
    pub(crate) fn listen(
        job: &Arc<Job>,
        end: usize,
        link: LinkId,
        address: IpAddr,
        listening: &ListenOptions,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, StreamError> {
        let path = job.ends[end].path;
        let (spec, key) = (options::listening(job), job.key_of(end));
        let greets = Box::new(move |bytes: &[u8]| Hello::decode(bytes, &key).is_some());
        let (arrived, failure) = (Arc::default(), Arc::new(Mutex::new(None)));
        let stop = Arc::clone(stop);
        let mut desk = Desk {
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
                let own = listener.clone();
                (listener.address(), Some(listener), Box::new(move || desk.connections(&own)))
            }
            Transport::Udp => {
                let listener = listening.datagrams(spec, address, greets)?;
                (listener.address(), None, Box::new(move || desk.datagrams(&listener)))
            }
        };
        let failed = Arc::clone(&failure);
        let thread = thread::Builder::new()
            .name(format!("accept {path}"))
            .spawn(move || {
                if let Err(error) = run() {
                    *failed.lock().expect("no holder panics") = Some(error);
                }
            })
            .map_err(StreamError::socket("starting a thread"))?;
        Ok(Self { path, link, address: local, listener, arrived, failure, stop, thread: Some(thread) })
    }

    /// All flows, once they have arrived; the listener is closed.
    pub(crate) fn finish(mut self, job: &Job) -> Result<Vec<Flow>, StreamError> {
        self.close();
        if let Some(error) = self.failure.lock().expect("no holder panics").take() {
            return Err(error);
        }
        let arrived = std::mem::take(&mut *self.arrived.lock().expect("no holder panics"));
        let mut flows: Vec<Flow> = arrived.into_values().collect();
        let expected = job.hellos(self.path).len();
        if flows.len() != expected {
            return Err(linerate_engine::FlowsMissing { path: self.path, arrived: flows.len(), expected }.into());
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
            // Its own panic is reported by its missing flows.
            let _ = thread.join();
        }
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.close();
    }
}

/// What the accepting thread knows.
struct Desk {
    job: Arc<Job>,
    key: SessionKey,
    end: usize,
    path: u16,
    peers: AllowedPeers,
    arrived: Arc<Mutex<BTreeMap<Hello, Flow>>>,
    stop: Arc<AtomicBool>,
}

/// A connection that has yet to greet.
struct Pending {
    stream: TcpStream,
    peer: SocketAddr,
    local: SocketAddr,
    hello: [u8; hello::BYTES],
    filled: usize,
}

/// A flow's own UDP socket. The flow counts as arrived once its client has proved, by the nonce, that it read the answer.
struct Post {
    hello: Hello,
    peer: SocketAddr,
    local: SocketAddr,
    nonce: u64,
    socket: UdpSocket,
    /// When the greeting was answered.
    answered: u64,
    until: u64,
    confirmed: bool,
}

/// The sockets of flows, each of which is waited for.
struct Posts {
    epoll: Epoll,
    all: BTreeMap<usize, Post>,
    numbers: HashMap<(Hello, SocketAddr), usize>,
    /// Those that are not confirmed, the oldest first.
    pending: BTreeSet<usize>,
    next: usize,
}

impl Posts {
    /// None yet, beside the socket of `listener`.
    fn new(listener: &DatagramListener) -> Result<Self, StreamError> {
        let epoll = Epoll::new()?;
        epoll.add(listener.socket(), Interest::Read, 0)?;
        Ok(Self { epoll, all: BTreeMap::new(), numbers: HashMap::new(), pending: BTreeSet::new(), next: 1 })
    }

    fn number_of(&self, hello: Hello, peer: SocketAddr) -> Option<usize> {
        self.numbers.get(&(hello, peer)).copied()
    }

    fn add(&mut self, post: Post) -> Result<&Post, StreamError> {
        let number = self.next;
        self.next += 1;
        self.epoll.add(post.socket.as_fd(), Interest::Read, number)?;
        self.put(number, post);
        Ok(&self.all[&number])
    }

    fn put(&mut self, number: usize, post: Post) {
        self.numbers.insert((post.hello, post.peer), number);
        if !post.confirmed {
            self.pending.insert(number);
        }
        self.all.insert(number, post);
    }

    fn take(&mut self, number: usize) -> Option<Post> {
        let post = self.all.remove(&number)?;
        self.numbers.remove(&(post.hello, post.peer));
        self.pending.remove(&number);
        Some(post)
    }

    /// Closes those that nobody has confirmed in time.
    fn give_up(&mut self, now: u64) -> Result<(), StreamError> {
        while let Some(number) = self.pending.first().copied()
            && self.all.get(&number).is_some_and(|post| now >= post.until)
            && let Some(post) = self.take(number)
        {
            self.epoll.remove(post.socket.as_fd())?;
        }
        Ok(())
    }
}

impl Post {
    fn answer(&self) -> Answer {
        Answer { port: self.local.port(), nonce: self.nonce }
    }
}

impl Pending {
    /// Reads on; true once the greeting is complete.
    fn read(&mut self) -> io::Result<bool> {
        match self.stream.read(&mut self.hello[self.filled..]) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                self.filled += read;
                Ok(self.filled == hello::BYTES)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Desk {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether `hello` is a flow that has yet to arrive.
    fn expects(&self, hello: Hello) -> bool {
        self.job.has_flow(self.path, hello) && !self.has(hello)
    }

    fn has(&self, hello: Hello) -> bool {
        self.arrived.lock().expect("no holder panics").contains_key(&hello)
    }

    fn connections(&mut self, listener: &Listener) -> Result<(), StreamError> {
        let expected = self.job.hellos(self.path).len();
        let mut strangers: Strangers<Pending> = Strangers::new(STRANGERS);
        // Why the last connection could not be accepted, if this host lacked something.
        let mut exhausted = None;
        while !self.is_stopped() && self.arrived.lock().expect("no holder panics").len() < expected {
            let sockets: Vec<_> =
                listener.sockets().chain(strangers.iter().map(|pending| pending.stream.as_fd())).collect();
            wait_readable(&sockets, TICK_NS)?;
            for _ in 0..AT_ONCE {
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
                    // Strangers that have had their time give their descriptors back.
                    Err(error) if is_exhausted(&error) => {
                        pause();
                        exhausted = Some(error);
                        break;
                    }
                    Err(error) if is_transient(&error) => break,
                    Err(error) => return Err(StreamError::socket("accept")(error)),
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
            // It says why flows are missing, and the remedy.
            Some(error) if self.arrived.lock().expect("no holder panics").len() < expected => {
                Err(StreamError::socket("accept")(error))
            }
            _ => Ok(()),
        }
    }

    /// Keeps a connection that greeted rightly, and answers it; closes any other without a word.
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
        let mut posts = Posts::new(listener)?;
        let mut bytes = [0; hello::BYTES + 1];
        let mut allowance = ReplyAllowance::default();
        let mut ready = Vec::new();
        // Answers are repeated until the start, for they can be lost.
        while !self.is_stopped() {
            posts.epoll.wait(TICK_NS, &mut ready)?;
            match listener.receive(&mut bytes) {
                Ok((length, peer)) => {
                    if self.peers.allow(peer.ip())
                        && let Some(greeted) = Hello::decode(&bytes[..length], &self.key)
                        && allowance.allow(length, hello::BYTES, clock::now())
                        && let Some(post) = self.post_for(&mut posts, greeted.hello, peer, listener)?
                    {
                        listener.answer(&post.socket, &greeted.answer(&self.key, post.answer()), peer);
                    }
                }
                Err(error) if is_exhausted(&error) => pause(),
                Err(error) if is_transient(&error) => (),
                Err(error) => return Err(StreamError::socket("recvfrom")(error)),
            }
            for number in ready.drain(..) {
                if let Some(mut post) = posts.take(number) {
                    if self.attend(&mut post, listener.address(), &mut allowance)? {
                        posts.put(number, post);
                    } else {
                        posts.epoll.remove(post.socket.as_fd())?;
                    }
                }
            }
            posts.give_up(clock::now())?;
        }
        Ok(())
    }

    /// The flow's own socket for a greeting, connected to who greeted.
    fn post_for<'a>(
        &self,
        posts: &'a mut Posts,
        hello: Hello,
        peer: SocketAddr,
        listener: &DatagramListener,
    ) -> Result<Option<&'a Post>, StreamError> {
        if let Some(number) = posts.number_of(hello, peer) {
            return Ok(posts.all.get(&number));
        }
        if !self.expects(hello) || posts.pending.len() >= PENDING_MAXIMUM {
            return Ok(None);
        }
        let socket = listener.connected_to(peer)?;
        let local = socket.local_addr().map_err(StreamError::socket("getsockname"))?;
        let answered = clock::now();
        let until = answered + PROOF_NS;
        let post = Post { hello, peer, local, nonce: rand::random(), socket, answered, until, confirmed: false };
        posts.add(post).map(Some)
    }

    /// Reads what came to a flow's own socket, where greetings go to `greeted_at`; false if nothing more is to be read there before the start.
    fn attend(
        &mut self,
        post: &mut Post,
        greeted_at: SocketAddr,
        allowance: &mut ReplyAllowance,
    ) -> Result<bool, StreamError> {
        let is_shared = post.local == greeted_at;
        let mut bytes = [0; hello::BYTES + 1];
        let greeted = |bytes: &[u8]| {
            let greeted = Hello::decode(bytes, &self.key);
            greeted.filter(|greeted| {
                greeted.hello == post.hello && (greeted.nonce == post.nonce || is_shared && greeted.nonce == 0)
            })
        };
        match post.socket.peek(&mut bytes).map(|length| greeted(&bytes[..length])) {
            // At a port that is shared the greeting comes here too, when its answer was lost.
            Ok(Some(again)) if again.nonce != post.nonce => {
                if allowance.allow(hello::BYTES, hello::BYTES, clock::now()) {
                    let _ = post.socket.send(&again.answer(&self.key, post.answer()));
                }
            }
            Ok(Some(greeted)) => {
                if !post.confirmed {
                    // Another address may have proved itself first.
                    if self.has(post.hello) {
                        return Ok(false);
                    }
                    let socket = post.socket.try_clone().map_err(StreamError::socket("dup of a flow's socket"))?;
                    let round_trip_ns = clock::now() - post.answered;
                    self.keep(post.hello, post.peer, post.local, Link::Udp(socket), round_trip_ns);
                    post.confirmed = true;
                }
                self.tell(post, &greeted);
            }
            // The other end has started: this is left for the flow's thread.
            Ok(_) if post.confirmed => return Ok(false),
            Ok(_) => (),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
            // Told by ICMP that nobody is there, perhaps: the address greeted for was not its own.
            Err(_) => return Ok(post.confirmed),
        }
        let _ = post.socket.recv(&mut bytes);
        Ok(true)
    }

    /// Answers a confirmation on the flow's own socket.
    fn tell(&self, post: &Post, greeted: &Greeted) {
        let told = greeted.answer(&self.key, Answer { port: 0, nonce: post.nonce });
        let _ = post.socket.send(&told);
    }

    fn keep(&mut self, hello: Hello, peer: SocketAddr, local: SocketAddr, link: Link, round_trip_ns: u64) {
        let flow = Flow { end: self.end, hello, client: false, peer, local, link, round_trip_ns };
        self.arrived.lock().expect("no holder panics").insert(hello, flow);
    }
}

/// Errors that concern one connection or moment, not the listener: accept(2), "Error handling".
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

/// This process or host has no descriptor or memory for one more connection: accept(2). The connection stays in the queue, so
/// whoever tries again is to [`pause`] first.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(EMFILE | ENFILE | ENOBUFS | ENOMEM))
}

/// Gives others time to give something back.
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

    /// Strangers that used up the descriptors of this process once ended the trial.
    #[test]
    fn want_of_descriptors_or_memory_passes_and_a_fault_of_the_listener_does_not() {
        for number in [EMFILE, ENFILE, ENOBUFS, ENOMEM] {
            assert!(is_exhausted(&io::Error::from_raw_os_error(number)), "{number}");
        }
        // EINVAL: the socket does not listen.
        let fault = io::Error::from(io::ErrorKind::InvalidInput);
        assert!(!is_exhausted(&fault) && !is_transient(&fault));
        let aborted = io::Error::from(io::ErrorKind::ConnectionAborted);
        assert!(is_transient(&aborted) && !is_exhausted(&aborted));
    }

    /// One after the other, 30 listeners would end after 30 times the time that one takes to see a stop.
    #[test]
    fn who_closes_one_listener_ends_all_that_share_its_stop() {
        for transport in [Transport::Tcp, Transport::Udp] {
            let task = Task::Stream(StreamTask::plain(transport, ByteCount::new(1_000)));
            let address = IpAddr::from(Ipv4Addr::LOCALHOST);
            let assignment = part(&task, Nanos::from_secs(1), vec![server_role(0, address)], 1);
            let (job, stop) = (Arc::new(Job::check(&assignment).expect("valid")), Arc::default());
            let listen =
                || Acceptor::listen(&job, 0, LinkId(0), address, &ListenOptions::default(), &stop).expect("listens");
            let (first, second) = (listen(), listen());
            drop(first);
            let thread = second.thread.as_ref().expect("it listens");
            wait_until("the second has ended", || thread.is_finished().then_some(()));
        }
    }
}
