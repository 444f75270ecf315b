//! The control connection, at the client's end.

use crate::error::Iperf3Error;
use crate::job::Job;
use crate::message;
use crate::reading::{self, TICK, Unread};
use crate::state::State;
use linerate_engine::{PEER_GONE, SocketError, SocketSpec, Stopped, end_if_vanished, failed};
use linerate_model::{SocketOptions, Transport};
use linerate_sys::clock;
use linerate_sys::handle::AsSocket as _;
use linerate_sys::socket::is_timeout;
use linerate_sys::socket::wait_readable;
use serde_json::Value;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Time limit for an answer.
pub(crate) const ANSWER_NS: u64 = 10_000_000_000;
/// The same after the test, because the server keeps its counts and the path may be cut for a while.
const RESULTS_NS: u64 = PEER_GONE.as_nanos() as u64;
/// iperf3's error number for a login that is missing or not accepted.
const LOGIN_FAILED: i32 = 142;
/// Timeout of a write. Texts are short, so a server that does not read them has stalled.
const WRITE: Duration = Duration::from_secs(5);

/// Name of a test: 36 letters and digits and a zero byte. Every connection of the test begins with it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cookie(pub(crate) [u8; Cookie::BYTES]);

impl Cookie {
    pub(crate) const BYTES: usize = 37;

    /// Draws a random cookie.
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

/// Control connection. Dropping it before the test is over ends the test at the server.
#[derive(Debug)]
pub(crate) struct Control<'a> {
    stream: TcpStream,
    server: SocketAddr,
    stop: &'a AtomicBool,
    /// Whether the test ends by bytes, and not by time.
    by_bytes: bool,
    /// Time limit for answers of the server.
    answer_ns: u64,
    is_over: bool,
}

impl<'a> Control<'a> {
    /// Connects to the server and names the test.
    pub(crate) fn open(job: &Job, cookie: &Cookie, stop: &'a AtomicBool) -> Result<Self, Iperf3Error> {
        let server = job.address();
        let data_options = &job.task.net.socket;
        // The other options apply to the data connections only.
        let options = SocketOptions {
            bind_address: data_options.bind_address,
            bind_device: data_options.bind_device.clone(),
            ..SocketOptions::default()
        };
        let socket = connected(job, &options, Transport::Tcp, stop)?;
        let stream = socket.into();
        let by_bytes = job.task.volume.is_some();
        let mut control = Self { stream, server, stop, by_bytes, answer_ns: ANSWER_NS, is_over: false };
        // The server is silent during the test. It may vanish while datagrams are sent, and a NAT may forget the
        // connection.
        let stream = &control.stream;
        stream
            .set_read_timeout(Some(TICK))
            .and_then(|()| stream.set_write_timeout(Some(WRITE)))
            .and_then(|()| end_if_vanished(stream))
            .map_err(failed("setting timeouts"))?;
        control.write(&cookie.0, "naming the test")?;
        Ok(control)
    }

    /// Waits for the server to announce `state`. `doing` names the step of the test for errors, as in "starting the
    /// test".
    pub(crate) fn expect(&mut self, state: State, doing: &'static str) -> Result<(), Iperf3Error> {
        let mut byte = [0];
        self.fill(&mut byte, doing)?;
        self.check_state(byte[0], Some(state), doing)
    }

    /// Returns whether the server has sent anything, or has gone.
    pub(crate) fn has_message(&self) -> Result<bool, Iperf3Error> {
        Ok(wait_readable(&[self.stream.as_socket()], 0)?)
    }

    /// Returns an error if the server has sent a message that ends the test.
    pub(crate) fn check_message(&mut self, doing: &'static str) -> Result<(), Iperf3Error> {
        let mut byte = [0];
        match self.stream.read(&mut byte) {
            Ok(0) => Err(self.closed(doing)),
            Ok(_) => self.check_state(byte[0], None, doing),
            Err(error) if is_timeout(&error) => Ok(()),
            Err(error) => Err(self.broken(error, doing)),
        }
    }

    /// Announces `state` to the server.
    pub(crate) fn send_state(&mut self, state: State, doing: &'static str) -> Result<(), Iperf3Error> {
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

    /// Creates the error for a violation of the protocol.
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

    /// Checks that the server announced the `expected` state with `byte`.
    fn check_state(&mut self, byte: u8, expected: Option<State>, doing: &'static str) -> Result<(), Iperf3Error> {
        let server = self.server;
        let reason = match State::of(byte) {
            Some(state) if Some(state) == expected => return Ok(()),
            Some(State::AccessDenied) => {
                self.is_over = true;
                return Err(Iperf3Error::Busy(server));
            }
            Some(State::ServerTerminate) => "it was ended".to_owned(),
            Some(State::ServerError) => match self.number(doing)? {
                // The number of a system call does not follow.
                LOGIN_FAILED => {
                    self.is_over = true;
                    return Err(Iperf3Error::LoginWanted(server));
                }
                number => reason(number, self.number(doing)?, self.by_bytes),
            },
            other => {
                let answer = other.map_or_else(|| format!("byte {byte}"), |state| state.name().to_owned());
                let instead = expected.map_or_else(String::new, |state| format!(" instead of {}", state.name()));
                return Err(self.foreign(format!("it said {answer}{instead}"), doing));
            }
        };
        Err(Iperf3Error::Refused { server, doing, reason })
    }

    /// Reads one of the error numbers of a failed test.
    fn number(&mut self, doing: &'static str) -> Result<i32, Iperf3Error> {
        let mut bytes = [0; 4];
        self.fill(&mut bytes, doing)?;
        Ok(i32::from_be_bytes(bytes))
    }

    /// Fills `buffer`.
    fn fill(&mut self, buffer: &mut [u8], doing: &'static str) -> Result<(), Iperf3Error> {
        let deadline = clock::now() + self.answer_ns;
        reading::fill(&self.stream, buffer, deadline, self.stop).map_err(|unread| self.unread(unread, doing))
    }

    fn unread(&self, unread: Unread, doing: &'static str) -> Iperf3Error {
        match unread {
            Unread::Stopped => Stopped.into(),
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
            // A closed connection would end the test as well, with an error at the server.
            let _ = self.stream.write_all(&[State::ClientTerminate.byte()]);
        }
    }
}

/// Returns a socket with `options` that is connected to the server.
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
        Ok(false) => Err(Stopped.into()),
        Err(error) => match SocketError::connecting(server, error) {
            Ok(local) => Err(local.into()),
            Err(error) => Err(Iperf3Error::Unreachable { server, reason: error.to_string() }),
        },
    }
}

/// Describes a server's reason from its error number and that of the system call.
fn reason(number: i32, errno: i32, by_bytes: bool) -> String {
    // Errors that depend on the request.
    let remedy = match number {
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
    let call = if errno == 0 { String::new() } else { format!(" ({})", io::Error::from_raw_os_error(errno)) };
    match remedy {
        Some(remedy) => format!("{remedy}{call}"),
        None => format!("it reported error {number}{call}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookie_is_letters_and_a_zero() {
        let first = Cookie::draw().0;
        let second = Cookie::draw().0;
        let (last, letters) = first.split_last().expect("37 bytes");
        assert!(*last == 0 && letters.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()));
        assert_ne!(first, second);
    }

    #[test]
    fn reasons_name_the_option_that_helps() {
        let congestion = reason(134, 2, false);
        assert!(congestion.contains("--congestion") && congestion.contains("No such file"), "{congestion}");
        assert!(reason(27, 0, false).ends_with("--rate") && reason(6, 0, false).ends_with("--flows"));
        for number in [5, 37] {
            assert!(reason(number, 0, false).contains("ask for a shorter --time"), "{number}");
            assert!(reason(number, 0, true).contains("instead of --bytes"), "{number}");
        }
        assert_eq!(reason(7, 0, false), "it reported error 7");
    }
}
