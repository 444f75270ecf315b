//! The control connection, at the client's end.

use crate::error::Iperf3Error;
use crate::job::Job;
use crate::message;
use crate::reading::{self, TICK, Unread, is_timeout};
use crate::state::State;
use linerate_engine::{PEER_GONE, SocketSpec, end_if_vanished};
use linerate_model::{SocketOptions, Transport};
use linerate_sys::clock;
use linerate_sys::socket::wait_readable;
use serde_json::Value;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Who has not answered after this does not answer.
pub(crate) const ANSWER_NS: u64 = 10_000_000_000;
/// The same once the test has run: its counts wait at the server, and the path may be cut for a while.
const RESULTS_NS: u64 = PEER_GONE.as_nanos() as u64;
/// iperf3's number of a login that is missing, or that it does not accept.
const LOGIN_FAILED: i32 = 142;
/// A write gives up after this: texts are short, and a server that takes none has stalled.
const WRITE: Duration = Duration::from_secs(5);

/// Names a test: 36 letters and digits and a zero byte. Every connection of the test begins with it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cookie(pub(crate) [u8; Cookie::BYTES]);

impl Cookie {
    pub(crate) const BYTES: usize = 37;

    /// A new one.
    pub(crate) fn draw() -> Self {
        const LETTERS: [u8; 32] = *b"abcdefghijklmnopqrstuvwxyz234567";
        let mut bytes: [u8; Self::BYTES] = rand::random();
        for byte in &mut bytes {
            *byte = LETTERS[usize::from(*byte % 32)];
        }
        bytes[Self::BYTES - 1] = 0;
        Self(bytes)
    }
}

/// The control connection. Dropping it before the test is over tells the server so.
#[derive(Debug)]
pub(crate) struct Control<'a> {
    stream: TcpStream,
    server: SocketAddr,
    stop: &'a AtomicBool,
    /// The test ends by bytes, and not by time.
    by_bytes: bool,
    /// How long the server may take to answer.
    answer_ns: u64,
    is_over: bool,
}

impl<'a> Control<'a> {
    /// Connects to the server and names the test.
    pub(crate) fn open(job: &Job, cookie: &Cookie, stop: &'a AtomicBool) -> Result<Self, Iperf3Error> {
        let (server, wanted) = (job.address(), &job.task.net.socket);
        // The options of a test are for its data.
        let options = SocketOptions {
            bind_address: wanted.bind_address,
            bind_device: wanted.bind_device.clone(),
            ..SocketOptions::default()
        };
        let socket = connected(job, &options, Transport::Tcp, stop)?;
        let stream = socket.into();
        let by_bytes = job.task.volume.is_some();
        let mut control = Self { stream, server, stop, by_bytes, answer_ns: ANSWER_NS, is_over: false };
        let timeouts = |stream: &TcpStream| {
            stream.set_read_timeout(Some(TICK)).and_then(|()| stream.set_write_timeout(Some(WRITE)))
        };
        // The server says nothing during the test. It may vanish while it is sent datagrams, and a NAT may forget the connection.
        timeouts(&control.stream)
            .and_then(|()| end_if_vanished(&control.stream))
            .map_err(Iperf3Error::socket("setting timeouts"))?;
        control.write(&cookie.0, "naming the test")?;
        Ok(control)
    }

    /// Waits for the server to say that `wanted` comes next. `doing` says what is being done, as in "starting the test".
    pub(crate) fn expect(&mut self, wanted: State, doing: &'static str) -> Result<(), Iperf3Error> {
        let mut byte = [0];
        self.fill(&mut byte, doing)?;
        self.judge(byte[0], Some(wanted), doing)
    }

    /// Whether the server has said anything, or has gone.
    pub(crate) fn has_said(&self) -> Result<bool, Iperf3Error> {
        Ok(wait_readable(&[self.stream.as_fd()], 0)?)
    }

    /// Looks whether the server has said anything that ends the test.
    pub(crate) fn look(&mut self, doing: &'static str) -> Result<(), Iperf3Error> {
        let mut byte = [0];
        match self.stream.read(&mut byte) {
            Ok(0) => Err(self.closed(doing)),
            Ok(_) => self.judge(byte[0], None, doing),
            Err(error) if is_timeout(&error) => Ok(()),
            Err(error) => Err(self.broken(error, doing)),
        }
    }

    /// Says that `state` comes next.
    pub(crate) fn tell(&mut self, state: State, doing: &'static str) -> Result<(), Iperf3Error> {
        self.write(&[state.byte()], doing)?;
        self.is_over = state == State::Done;
        if state == State::TestEnd {
            self.answer_ns = RESULTS_NS;
        }
        Ok(())
    }

    /// Sends a JSON text.
    pub(crate) fn send(&mut self, text: &Value, doing: &'static str) -> Result<(), Iperf3Error> {
        self.write(&message::encode(text), doing)
    }

    /// Waits for a JSON text.
    pub(crate) fn receive(&mut self, doing: &'static str) -> Result<Value, Iperf3Error> {
        let mut head = [0; 4];
        self.fill(&mut head, doing)?;
        let length = message::length(head, message::LONGEST).map_err(|reason| self.foreign(reason, doing))?;
        let deadline = clock::now() + self.answer_ns;
        let text =
            reading::text(&self.stream, length, deadline, self.stop).map_err(|unread| self.unread(unread, doing))?;
        message::decode(&text).map_err(|reason| self.foreign(reason, doing))
    }

    /// What does not speak the protocol, or breaks it.
    pub(crate) fn foreign(&self, reason: impl Into<String>, doing: &'static str) -> Iperf3Error {
        Iperf3Error::Foreign { server: self.server, doing, reason: reason.into() }
    }

    fn gone(&self, reason: impl Into<String>, doing: &'static str) -> Iperf3Error {
        Iperf3Error::Gone { server: self.server, doing, reason: reason.into() }
    }

    fn closed(&self, doing: &'static str) -> Iperf3Error {
        Iperf3Error::Closed { server: self.server, doing }
    }

    fn broken(&self, source: io::Error, doing: &'static str) -> Iperf3Error {
        Iperf3Error::Broken { server: self.server, doing, source }
    }

    /// Whether what the server said is what is `wanted`.
    fn judge(&mut self, byte: u8, wanted: Option<State>, doing: &'static str) -> Result<(), Iperf3Error> {
        let server = self.server;
        let refused = |reason: String| Err(Iperf3Error::Refused { server, doing, reason });
        match State::of(byte) {
            Some(state) if Some(state) == wanted => Ok(()),
            Some(State::AccessDenied) => {
                self.is_over = true;
                Err(Iperf3Error::Busy(self.server))
            }
            Some(State::ServerTerminate) => refused("it was ended".to_owned()),
            Some(State::ServerError) => match self.number(doing)? {
                // No number of a system call follows.
                LOGIN_FAILED => {
                    self.is_over = true;
                    Err(Iperf3Error::LoginWanted(server))
                }
                own => refused(why(own, self.number(doing)?, self.by_bytes)),
            },
            other => {
                let said = other.map_or_else(|| format!("byte {byte}"), |state| state.name().to_owned());
                let instead = wanted.map_or_else(String::new, |wanted| format!(" instead of {}", wanted.name()));
                Err(self.foreign(format!("it said {said}{instead}"), doing))
            }
        }
    }

    /// Reads one of the numbers that say why a test failed.
    fn number(&mut self, doing: &'static str) -> Result<i32, Iperf3Error> {
        let mut bytes = [0; 4];
        self.fill(&mut bytes, doing)?;
        Ok(i32::from_be_bytes(bytes))
    }

    /// Reads as many bytes as `buffer` has.
    fn fill(&mut self, buffer: &mut [u8], doing: &'static str) -> Result<(), Iperf3Error> {
        let deadline = clock::now() + self.answer_ns;
        reading::fill(&self.stream, buffer, deadline, self.stop).map_err(|unread| self.unread(unread, doing))
    }

    fn unread(&self, unread: Unread, doing: &'static str) -> Iperf3Error {
        match unread {
            Unread::Stopped => Iperf3Error::Stopped,
            Unread::Silent => self.gone(format!("said nothing for {} s", self.answer_ns / 1_000_000_000), doing),
            Unread::Closed => self.closed(doing),
            Unread::Broken(error) => self.broken(error, doing),
        }
    }

    fn write(&mut self, bytes: &[u8], doing: &'static str) -> Result<(), Iperf3Error> {
        self.stream.write_all(bytes).map_err(|error| self.broken(error, doing))
    }
}

impl Drop for Control<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            // It says the same to itself when the connection closes, only less politely.
            let _ = self.stream.write_all(&[State::ClientTerminate.byte()]);
        }
    }
}

/// A socket with `options` that is connected to the server.
pub(crate) fn connected(
    job: &Job,
    options: &SocketOptions,
    transport: Transport,
    stop: &AtomicBool,
) -> Result<socket2::Socket, Iperf3Error> {
    let server = job.address();
    let bind = options.bind_address.map(|address| SocketAddr::new(address, 0));
    let spec = SocketSpec { transport, v6: server.is_ipv6(), options, bind, device: true };
    let socket = linerate_engine::socket(spec)?;
    match linerate_engine::connect(&socket, server, clock::now() + ANSWER_NS / 2, stop) {
        Ok(true) => Ok(socket),
        Ok(false) => Err(Iperf3Error::Stopped),
        Err(error) => match linerate_engine::SocketError::connecting(server, error) {
            Ok(own) => Err(own.into()),
            Err(error) => Err(Iperf3Error::Unreachable { server, reason: error.to_string() }),
        },
    }
}

/// A server's reason in words: its own number, and that of the system call.
fn why(own: i32, system: i32, by_bytes: bool) -> String {
    // Those that depend on what was asked for.
    let known = match own {
        5 | 37 if by_bytes => Some("it limits the time of a test: measure by --time instead of --bytes"),
        5 => Some("it allows only shorter tests: ask for a shorter --time"),
        6 => Some("it allows fewer flows: ask for fewer with --flows"),
        27 => Some("the rate is beyond its limit: ask for a lower --rate"),
        37 => Some("it allows only shorter tests: ask for a shorter --time, or less of it as --warmup"),
        123 => Some("it cannot set the segment size: choose another --mss"),
        124 | 130 | 141 => {
            Some("it cannot set such socket buffers: choose smaller ones, or raise its net.core.rmem_max and wmem_max")
        }
        125 => Some("it cannot set the DSCP"),
        134 => Some("it does not have the congestion control asked for: choose another --congestion"),
        _ => None,
    };
    let call = || format!(" ({})", io::Error::from_raw_os_error(system));
    let call = if system == 0 { String::new() } else { call() };
    known.map_or_else(|| format!("it reported error {own}{call}"), |known| format!("{known}{call}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_letters_and_a_zero() {
        let (first, second) = (Cookie::draw().0, Cookie::draw().0);
        let (last, letters) = first.split_last().expect("37 bytes");
        assert!(*last == 0 && letters.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()));
        assert_ne!(first, second);
    }

    #[test]
    fn reasons_name_the_option_that_helps() {
        let of_time = |own, system| why(own, system, false);
        assert!(of_time(134, 2).contains("--congestion") && of_time(134, 2).contains("No such file"));
        assert!(of_time(27, 0).ends_with("--rate") && of_time(6, 0).ends_with("--flows"));
        assert!([5, 37].into_iter().all(|longest| of_time(longest, 0).contains("ask for a shorter --time")));
        assert!([5, 37].into_iter().all(|longest| why(longest, 0, true).contains("instead of --bytes")));
        assert_eq!(of_time(7, 0), "it reported error 7");
    }
}
