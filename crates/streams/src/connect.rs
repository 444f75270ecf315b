//! The client before the start: connects to the server and greets it for every flow.

use crate::error::StreamError;
use crate::flow::{Flow, Link};
use crate::hello::{self, Answer, Hello};
use crate::job::Job;
use crate::options;
use linerate_engine::proof::Salt;
use linerate_engine::{SocketError, Stopped, failed};
use linerate_model::{SessionKey, Transport};
use linerate_sys::clock;
use linerate_sys::handle::AsSocket as _;
use linerate_sys::socket::{is_timeout, wait_readable};
use socket2::{SockAddr, Socket};
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// Time limit for the answer of a server for a flow.
const FLOW_NS: u64 = 5_000_000_000;
/// Interval of repeating a greeting in a datagram.
const REPEAT_NS: u64 = 100_000_000;
/// Number of flows that connect at a time. One after the other, their round trips would add up.
const AT_A_TIME: usize = 32;

/// Opens every flow of one path, unless it is stopped meanwhile.
pub(crate) fn open(
    job: &Job,
    end: usize,
    path: u16,
    server: SocketAddr,
    stop: &AtomicBool,
) -> Result<Vec<Flow>, StreamError> {
    let opener = Opener {
        job,
        end,
        server,
        stop,
        hellos: job.hellos(path),
        next: AtomicUsize::new(0),
        opened: Mutex::default(),
    };
    thread::scope(|scope| {
        // This thread works too, so a failure to start others only makes it slower.
        for _ in 1..AT_A_TIME.min(opener.hellos.len()) {
            let builder = thread::Builder::new().name(format!("connect {path}"));
            if builder.spawn_scoped(scope, || opener.open_flows()).is_err() {
                break;
            }
        }
        opener.open_flows();
    });
    let Opener { hellos, opened, .. } = opener;
    let (mut flows, failure) = opened.into_inner().expect("no holder panics");
    match failure {
        Some(StreamError::NoAnswer { path, server, seconds, reason }) => {
            let reason = format!("{reason} ({} of {} flows connected)", flows.len(), hellos.len());
            Err(StreamError::NoAnswer { path, server, seconds, reason })
        }
        Some(error) => Err(error),
        None => {
            flows.sort_by_key(|flow| flow.hello);
            Ok(flows)
        }
    }
}

/// Opens the flows of one path on several threads.
struct Opener<'a> {
    job: &'a Job,
    end: usize,
    server: SocketAddr,
    stop: &'a AtomicBool,
    hellos: Vec<Hello>,
    /// Index of the next flow to be opened.
    next: AtomicUsize,
    /// Flows that are open, and the first failure.
    opened: Mutex<(Vec<Flow>, Option<StreamError>)>,
}

impl Opener<'_> {
    /// Opens flows until none is left, or one has failed.
    fn open_flows(&self) {
        while let Some(hello) = self.hellos.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let opening = Opening {
                job: self.job,
                key: self.job.key_of(self.end),
                end: self.end,
                hello: *hello,
                salt: rand::random(),
                server: self.server,
                deadline: clock::now() + FLOW_NS,
                stop: self.stop,
            };
            let flow = opening.run();
            let mut opened = self.opened.lock().expect("no holder panics");
            match flow {
                Ok(flow) => opened.0.push(flow),
                Err(error) => {
                    opened.1.get_or_insert(error);
                    self.next.store(self.hellos.len(), Ordering::Relaxed);
                }
            }
        }
    }
}

/// A flow that is being opened.
struct Opening<'a> {
    job: &'a Job,
    key: SessionKey,
    end: usize,
    hello: Hello,
    /// Number that makes the greeting differ from all others.
    salt: Salt,
    server: SocketAddr,
    deadline: u64,
    stop: &'a AtomicBool,
}

impl Opening<'_> {
    fn run(self) -> Result<Flow, StreamError> {
        let socket = options::socket(self.job, options::client_address(self.job), true)?;
        match self.job.transport() {
            Transport::Tcp => self.tcp(socket),
            Transport::Udp => self.udp(socket),
        }
    }

    fn tcp(&self, socket: Socket) -> Result<Flow, StreamError> {
        let connected = linerate_engine::connect(&socket, self.server, self.deadline, self.stop).map_err(|error| {
            SocketError::connecting(self.server, error)
                .map_or_else(|error| self.unanswered(&error), StreamError::Socket)
        })?;
        if !connected {
            return Err(Stopped.into());
        }
        options::ready(&socket)?;
        let mut stream = TcpStream::from(socket);
        stream.write_all(&self.hello.encode(&self.key, &self.salt)).map_err(|error| self.unanswered(&error))?;
        let answer = self.read_answer(&mut stream)?;
        if self.hello.decode_answer(&answer, &self.key, &self.salt).is_none() {
            return Err(self.unanswered(&"what answered is not this trial's server"));
        }
        let local = stream.local_addr().map_err(failed("getsockname"))?;
        let link = if self.job.connects_each() { Link::Dial } else { Link::Tcp(stream) };
        Ok(Flow { end: self.end, hello: self.hello, client: true, peer: self.server, local, link, round_trip_ns: 0 })
    }

    fn read_answer(&self, stream: &mut TcpStream) -> Result<[u8; hello::BYTES], StreamError> {
        let mut answer = [0; hello::BYTES];
        let mut filled = 0;
        while filled < answer.len() {
            match stream.read(&mut answer[filled..]) {
                Ok(0) => return Err(self.unanswered(&io::Error::from(io::ErrorKind::UnexpectedEof))),
                Ok(bytes) => filled += bytes,
                Err(error) if is_timeout(&error) => {
                    if self.stop.load(Ordering::Relaxed) {
                        return Err(Stopped.into());
                    }
                    if clock::now() >= self.deadline {
                        return Err(self.unanswered(&"no answer"));
                    }
                }
                Err(error) => return Err(self.unanswered(&error)),
            }
        }
        Ok(answer)
    }

    fn udp(&self, socket: Socket) -> Result<Flow, StreamError> {
        socket.connect(&SockAddr::from(self.server)).map_err(failed(format!("connecting to {}", self.server)))?;
        let socket = UdpSocket::from(socket);
        socket.set_nonblocking(true).map_err(failed("fcntl(O_NONBLOCK)"))?;
        let Answer { port, nonce } = self.repeat(&socket, &self.hello.encode(&self.key, &self.salt), |answer| {
            (answer.port != 0).then_some(answer)
        })?;
        // Keeps the zone of the address.
        let mut peer = self.server;
        peer.set_port(port);
        socket.connect(peer).map_err(failed(format!("connecting to {peer}")))?;
        // Proves that the answer was read, and opens the way back through a stateful firewall. Answers to the greeting
        // may still be in the socket buffer: they have a port.
        let expected = Answer { port: 0, nonce };
        let start = clock::now();
        self.repeat(&socket, &self.hello.confirmation(&self.key, &self.salt, nonce), |answer| {
            (answer == expected).then_some(())
        })?;
        let round_trip_ns = clock::now() - start;
        let socket = Socket::from(socket);
        options::ready(&socket)?;
        let socket = UdpSocket::from(socket);
        let local = socket.local_addr().map_err(failed("getsockname"))?;
        let link = Link::Udp(socket);
        Ok(Flow { end: self.end, hello: self.hello, client: true, peer, local, link, round_trip_ns })
    }

    /// Sends `greeting` until `accept` accepts an answer.
    fn repeat<T>(
        &self,
        socket: &UdpSocket,
        greeting: &[u8],
        accept: impl Fn(Answer) -> Option<T>,
    ) -> Result<T, StreamError> {
        let mut bytes = [0; hello::BYTES + 1];
        while clock::now() < self.deadline {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Stopped.into());
            }
            socket.send(greeting).map_err(|error| self.unanswered(&error))?;
            let repeat = clock::now() + REPEAT_NS;
            while let Some(left) = repeat.checked_sub(clock::now()) {
                wait_readable(&[socket.as_socket()], left)?;
                match socket.recv(&mut bytes) {
                    Ok(length) => {
                        let answer = self.hello.decode_answer(&bytes[..length], &self.key, &self.salt);
                        if let Some(value) = answer.and_then(&accept) {
                            return Ok(value);
                        }
                    }
                    Err(error) if is_timeout(&error) => (),
                    Err(error) => return Err(self.unanswered(&error)),
                }
            }
        }
        let port = self.server.port();
        Err(self.unanswered(&format!("no answer by UDP; a firewall may drop UDP to or from port {port}")))
    }

    fn unanswered(&self, reason: &dyn std::fmt::Display) -> StreamError {
        StreamError::NoAnswer {
            path: self.hello.path,
            server: self.server,
            seconds: FLOW_NS / 1_000_000_000,
            reason: reason.to_string(),
        }
    }
}
