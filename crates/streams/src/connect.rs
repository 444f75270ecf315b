//! The opening side before the start: reaches the listener and greets it for every flow.

use crate::error::StreamError;
use crate::flow::{Flow, Link};
use crate::hello::{self, Hello};
use crate::job::Job;
use crate::options;
use linerate_model::Transport;
use linerate_sys::clock;
use linerate_sys::socket::wait_readable;
use socket2::{SockAddr, Socket};
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::time::Duration;

/// All flows of a path must be connected by then.
const DEADLINE_NS: u64 = 5_000_000_000;
/// A greeting in a datagram is repeated after this.
const REPEAT_NS: u64 = 100_000_000;

/// Opens every flow of one path.
pub(crate) fn open(job: &Job, end: usize, path: u16, listener: SocketAddr) -> Result<Vec<Flow>, StreamError> {
    let deadline = clock::now() + DEADLINE_NS;
    job.hellos(path).into_iter().map(|hello| Opening { job, end, hello, listener, deadline }.run()).collect()
}

struct Opening<'a> {
    job: &'a Job,
    end: usize,
    hello: Hello,
    listener: SocketAddr,
    deadline: u64,
}

impl Opening<'_> {
    fn run(self) -> Result<Flow, StreamError> {
        let socket = options::socket(self.job, options::opener_address(self.job), true)?;
        match self.job.transport() {
            Transport::Tcp => self.tcp(socket),
            Transport::Udp => self.udp(socket),
        }
    }

    fn tcp(&self, socket: Socket) -> Result<Flow, StreamError> {
        socket
            .connect_timeout(&SockAddr::from(self.listener), self.left())
            .and_then(|()| socket.set_nonblocking(false))
            .and_then(|()| socket.set_read_timeout(Some(self.left())))
            .and_then(|()| socket.set_write_timeout(Some(self.left())))
            .map_err(|error| self.unanswered(&error))?;
        let mut stream = TcpStream::from(socket);
        let mut answer = [0; hello::BYTES];
        stream
            .write_all(&self.hello.encode(&self.job.key))
            .and_then(|()| stream.read_exact(&mut answer))
            .map_err(|error| self.unanswered(&error))?;
        if self.hello.decode_answer(&answer, &self.job.key).is_none() {
            return Err(self.unanswered(&"what answered is not this trial's listener"));
        }
        let socket = Socket::from(stream);
        options::ready(&socket)?;
        let stream = TcpStream::from(socket);
        let local = stream.local_addr().map_err(StreamError::socket("getsockname"))?;
        let link = if self.job.connects_each() { Link::Dial } else { Link::Tcp(stream) };
        Ok(Flow { end: self.end, hello: self.hello, opener: true, peer: self.listener, local, link })
    }

    fn udp(&self, socket: Socket) -> Result<Flow, StreamError> {
        let connecting = |to: SocketAddr| StreamError::socket(format!("connecting to {to}"));
        socket.connect(&SockAddr::from(self.listener)).map_err(connecting(self.listener))?;
        let socket = UdpSocket::from(socket);
        let port = self.greet(&socket)?;
        let peer = SocketAddr::new(self.listener.ip(), port);
        socket.connect(peer).map_err(connecting(peer))?;
        // Opens the way back through a stateful firewall; nobody reads it, and its loss only costs that.
        let _ = socket.send(&self.hello.encode(&self.job.key));
        let socket = Socket::from(socket);
        options::ready(&socket)?;
        let socket = UdpSocket::from(socket);
        let local = socket.local_addr().map_err(StreamError::socket("getsockname"))?;
        Ok(Flow { end: self.end, hello: self.hello, opener: true, peer, local, link: Link::Udp(socket) })
    }

    /// Greets until answered; returns the port of the flow's own socket at the listener.
    fn greet(&self, socket: &UdpSocket) -> Result<u16, StreamError> {
        let greeting = self.hello.encode(&self.job.key);
        let mut answer = [0; hello::BYTES + 1];
        socket.set_nonblocking(true).map_err(StreamError::socket("fcntl(O_NONBLOCK)"))?;
        while clock::now() < self.deadline {
            socket.send(&greeting).map_err(|error| self.unanswered(&error))?;
            let repeat = clock::now() + REPEAT_NS;
            while let Some(left) = repeat.checked_sub(clock::now()) {
                wait_readable(&[socket.as_fd()], left)?;
                match socket.recv(&mut answer) {
                    Ok(length) => {
                        if let Some(port) = self.hello.decode_answer(&answer[..length], &self.job.key) {
                            return Ok(port);
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => (),
                    Err(error) => return Err(self.unanswered(&error)),
                }
            }
        }
        Err(self.unanswered(&"no answer"))
    }

    fn left(&self) -> Duration {
        Duration::from_nanos(self.deadline.saturating_sub(clock::now()).max(1_000_000))
    }

    fn unanswered(&self, reason: &dyn std::fmt::Display) -> StreamError {
        StreamError::NoAnswer {
            path: self.hello.path,
            listener: self.listener,
            seconds: DEADLINE_NS / 1_000_000_000,
            reason: reason.to_string(),
        }
    }
}
