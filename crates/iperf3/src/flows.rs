//! The data flows, at the client's end.

use crate::control::{ANSWER_NS, Control, Cookie, connected};
use crate::error::Iperf3Error;
use crate::job::Job;
use linerate_engine::{Stopped, failed};
use linerate_model::Transport;
use linerate_streams::{BulkFlow, BulkSocket};
use linerate_sys::clock;
use linerate_sys::handle::AsSocket as _;
use linerate_sys::socket::is_timeout;
use linerate_sys::socket::wait_readable;
use std::io::Write as _;
use std::net::{TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};

/// First datagram of a flow, from the client. iperf3 sends it as a number in the byte order of its host; any datagram
/// will do.
pub(crate) const GREETING: [u8; 4] = *b"9876";
/// Answer of a server on a little-endian host.
pub(crate) const ANSWER: [u8; 4] = *b"6789";
/// Answers from hosts of either byte order, and from versions before 3.9 (987654321).
const ANSWERS: [[u8; 4]; 4] = [ANSWER, *b"9876", 987_654_321_u32.to_le_bytes(), 987_654_321_u32.to_be_bytes()];
/// Longest time until a stop is seen.
const TICK_NS: u64 = 20_000_000;

/// Opens the flow with this number and direction. The server derives the direction from the order of opening alone.
pub(crate) fn open(
    job: &Job,
    cookie: &Cookie,
    (number, backward): (u16, bool),
    control: &Control<'_>,
    stop: &AtomicBool,
) -> Result<BulkFlow, Iperf3Error> {
    let transport = job.task.net.transport;
    let socket = connected(job, &job.task.net.socket, transport, stop)?;
    let socket = match transport {
        Transport::Tcp => {
            let mut stream = TcpStream::from(socket);
            stream.write_all(&cookie.0).map_err(|error| Iperf3Error::Gone {
                server: job.address(),
                doing: OPENING,
                reason: format!("broke a data connection ({error})"),
            })?;
            BulkSocket::Tcp(stream)
        }
        Transport::Udp => {
            let socket = UdpSocket::from(socket);
            greet(job, &socket, control, stop)?;
            BulkSocket::Udp(socket)
        }
    };
    Ok(BulkFlow { number, backward, client: true, socket })
}

/// Step of the test, for errors.
pub(crate) const OPENING: &str = "opening the flows of data";

/// Greets the server, and waits for its answer. A second greeting would count as data, so it is not repeated.
fn greet(job: &Job, socket: &UdpSocket, control: &Control<'_>, stop: &AtomicBool) -> Result<(), Iperf3Error> {
    let server = job.address();
    let gone = |reason: String| Iperf3Error::Gone { server, doing: OPENING, reason };
    socket.send(&GREETING).map_err(|error| gone(format!("took no datagram ({error})")))?;
    socket.set_nonblocking(true).map_err(failed("fcntl(O_NONBLOCK)"))?;
    let deadline = clock::now() + ANSWER_NS / 2;
    let mut answer = [0; 64];
    while clock::now() < deadline {
        if stop.load(Ordering::Relaxed) {
            return Err(Stopped.into());
        }
        wait_readable(&[socket.as_socket()], TICK_NS)?;
        match socket.recv(&mut answer) {
            Ok(length) if ANSWERS.iter().any(|valid| answer[..length] == *valid) => return Ok(()),
            // The server sends data already.
            Ok(length) if length > GREETING.len() => (),
            Ok(_) => return Err(control.foreign("it answered a flow's first datagram with something else", OPENING)),
            Err(error) if is_timeout(&error) => (),
            Err(error) => return Err(gone(format!("refused a flow's first datagram ({error})"))),
        }
    }
    Err(gone(format!("did not answer a flow's first datagram: is UDP port {} open on the way?", server.port())))
}
