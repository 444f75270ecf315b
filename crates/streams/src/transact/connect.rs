//! Transactions with a connection each: connect, request, response, close. The greeting travels with the request. The
//! server closes first, so that the client's ports are free again at once.

use super::{DRAIN_NS, SILENCE_NS, Schedule, Tally, quiet_ns, schedule};
use crate::accept::{is_exhausted, is_transient, pause};
use crate::error::StreamError;
use crate::flow::{Link, Outcome, Shared};
use crate::hello::{self, Hello};
use crate::options;
use linerate_engine::{Listener, SocketError, Stopped, StrangerLimits, Strangers, failed};
use linerate_model::{FlowCounts, SessionKey, TransactTask};
use linerate_sys::handle::AsSocket as _;
use linerate_sys::socket::is_timeout;
use linerate_sys::{clock, socket, tcp};
use socket2::SockAddr;
use std::io::{self, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// Time limit of a transaction.
const TRANSACTION_NS: u64 = 1_000_000_000;
/// Pause after a failure, so as not to flood a host in trouble.
const BACK_OFF_NS: u64 = 10_000_000;
/// Interval in which the answering threads look at the clock.
const TICK_NS: u64 = 20_000_000;
/// Fewest places for unauthenticated peers of an answering thread, however many threads share its listener.
const PLACES_MINIMUM: usize = 4;
/// Fewest places for one address, which cannot take all.
const PLACES_EACH_MINIMUM: usize = 3;
/// Bytes read and written in one call.
const BUFFER: usize = 64 << 10;

/// Connects, asks and reads until the window closes.
pub(super) fn ask(shared: &Shared, index: usize, spec: &TransactTask) -> Result<Outcome, StreamError> {
    let timeline = &shared.timeline;
    let flow = &shared.flows[index];
    let mut schedule = schedule(spec, shared, index);
    let mut tally = Tally::new(shared, index, spec);
    let mut out = flow.hello.encode(&shared.job.key_of(flow.end), &rand::random()).to_vec();
    out.resize(hello::BYTES + spec.request_bytes.get() as usize, 0);
    rand::fill(&mut out[hello::BYTES..]);
    let mut into = vec![0; BUFFER];
    shared.stop.sleep_until(timeline.start());
    let mut answered = clock::now();
    while goes_on(schedule.as_ref(), clock::now(), timeline.close()) {
        let since = schedule.as_ref().map_or_else(clock::now, Schedule::due);
        if !shared.stop.sleep_until(since) {
            return Err(Stopped.into());
        }
        if !goes_on(schedule.as_ref(), clock::now(), timeline.close()) {
            break;
        }
        if let Some(schedule) = &mut schedule {
            tally.late(schedule, clock::now());
            schedule.advance();
        }
        match transact(shared, index, spec, &out, &mut into) {
            Ok(now) => {
                tally.answered(since, now);
                answered = now;
            }
            Err(Failure::Peer(source)) => {
                let now = clock::now();
                let refused = source.kind() == io::ErrorKind::ConnectionRefused;
                if !shared.may_end(now) && (refused || now > answered + SILENCE_NS) {
                    let completed = tally.transactions.completed;
                    return Err(shared.gone(index, format!("{source}, after {completed} transactions")));
                }
                tally.failed(since);
                shared.stop.sleep_until(now + BACK_OFF_NS);
            }
            Err(Failure::Own(error)) => return Err(error),
        }
    }
    tally.not_sent(schedule.as_ref());
    let (sent_bytes, received_bytes) = tally.bytes();
    Ok(Outcome {
        transactions: Some(tally.transactions),
        flow: FlowCounts { sent_bytes, received_bytes, tcp: None },
        ..Outcome::default()
    })
}

/// Cause of a failed transaction.
enum Failure {
    /// Peer or network: the transaction counts as failed.
    Peer(io::Error),
    /// This host, or a stop: the trial ends.
    Own(StreamError),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Peer(error)
    }
}

impl From<StreamError> for Failure {
    fn from(error: StreamError) -> Self {
        Self::Own(error)
    }
}

/// Carries out one transaction. Returns the time when the last byte of its response had arrived.
fn transact(shared: &Shared, index: usize, spec: &TransactTask, out: &[u8], into: &mut [u8]) -> Result<u64, Failure> {
    let peer = shared.flows[index].peer;
    let deadline = clock::now() + TRANSACTION_NS;
    let socket = options::socket(&shared.job, shared.job.socket().bind_address, true)?;
    let limit = Duration::from_nanos(TRANSACTION_NS);
    socket.connect_timeout(&SockAddr::from(peer), limit).map_err(|error| {
        SocketError::connecting(peer, error).map_or_else(Failure::Peer, |error| Failure::Own(error.into()))
    })?;
    socket.set_nonblocking(false)?;
    socket.set_read_timeout(Some(limit))?;
    socket.set_write_timeout(Some(limit))?;
    let mut stream = TcpStream::from(socket);
    stream.write_all(out)?;
    let mut left = spec.response_bytes.get();
    while left > 0 {
        let length = (into.len() as u64).min(left) as usize;
        left -= read(shared, &stream, &mut into[..length], spec.busy_poll, deadline)? as u64;
    }
    let answered = clock::now();
    // The server closes first; whether it does so in time is no part of the transaction.
    let _ = tcp::receive(&stream, &mut into[..1], true);
    Ok(answered)
}

/// Reads at least a byte before `deadline`.
fn read(shared: &Shared, stream: &TcpStream, into: &mut [u8], spin: bool, deadline: u64) -> Result<usize, Failure> {
    loop {
        match tcp::receive(stream, into, !spin) {
            Ok(0) => return Err(Failure::Peer(io::ErrorKind::UnexpectedEof.into())),
            Ok(bytes) => return Ok(bytes),
            Err(error) if is_timeout(&error) && shared.stop.is_set() => return Err(StreamError::from(Stopped).into()),
            Err(error) if is_timeout(&error) && clock::now() < deadline => (),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Accepts and answers until the window is over. Connections that have yet to greet are served side by side, so that
/// none delays the others.
pub(super) fn answer(
    shared: &Shared,
    index: usize,
    spec: &TransactTask,
    listener: &Listener,
) -> Result<Outcome, StreamError> {
    let timeline = &shared.timeline;
    let mut out = vec![0; BUFFER];
    rand::fill(&mut out[..]);
    let mut into = vec![0; BUFFER];
    let mut strangers: Strangers<Arriving> = Strangers::new(stranger_limits(spec, answering_threads(shared, index)));
    let key = shared.job.key_of(shared.flows[index].end);
    // Requests answered within the window.
    let mut answered = 0u64;
    // Requests answered since the load began.
    let mut served = 0u64;
    loop {
        if shared.stop.is_set() {
            return Err(Stopped.into());
        }
        let accepted = match listener.accept() {
            Ok((stream, peer)) => {
                if shared.peers.allow(peer.ip()) {
                    strangers.take(peer, clock::now(), Arriving { stream, greeting: [0; hello::BYTES], filled: 0 });
                }
                true
            }
            Err(error) if is_timeout(&error) => false,
            // A waiting connection is accepted as soon as others have freed descriptors or memory.
            Err(error) if is_exhausted(&error) => {
                pause();
                true
            }
            Err(error) if is_transient(&error) => true,
            Err(error) => {
                return Err(failed(format!("accept on {}", shared.flows[index].local))(error).into());
            }
        };
        let before = served;
        strangers.attend(clock::now(), |mut arriving| {
            match arriving.read(&key, whole_bytes(spec), &mut into) {
                Ok(false) => return Some(arriving),
                // The client counts connections that fail.
                Ok(true) if serve(shared, spec, arriving, &out, &mut into).is_ok() => {
                    answered += u64::from(timeline.in_window(clock::now()));
                    served += 1;
                }
                Ok(true) | Err(_) => {}
            }
            None
        });
        if served > before {
            shared.meters[index].served(served * spec.request_bytes.get(), served * spec.response_bytes.get());
        }
        let now = clock::now();
        let is_over = !accepted && now > timeline.close() + quiet_ns(spec);
        if is_over || now > timeline.close() + DRAIN_NS {
            break;
        }
        // While connections queue, the next one is already there.
        let is_busy = accepted && served > before;
        if !is_busy && !spec.busy_poll {
            let arriving = strangers.iter().map(|arriving| arriving.stream.as_socket());
            let sockets: Vec<_> = listener.sockets().chain(arriving).collect();
            socket::wait_readable(&sockets, TICK_NS)?;
        }
    }
    let sent_bytes = answered * spec.response_bytes.get();
    let received_bytes = answered * spec.request_bytes.get();
    Ok(Outcome { flow: FlowCounts { sent_bytes, received_bytes, tcp: None }, ..Outcome::default() })
}

/// Returns whether more requests are to be sent: to the end of `schedule`, or to the window's close in a closed loop.
fn goes_on(schedule: Option<&Schedule>, now: u64, close: u64) -> bool {
    schedule.map_or(now < close, |schedule| schedule.goes_on(now, close))
}

/// Returns the number of threads that accept from the listener of flow `index`, its own included.
fn answering_threads(shared: &Shared, index: usize) -> usize {
    let end = shared.flows[index].end;
    shared.flows.iter().filter(|flow| flow.end == end && matches!(flow.link, Link::Answer(_))).count()
}

/// Returns the most unauthenticated peers of an end that answers the flows of a path, each on a thread of its own.
pub(crate) fn strangers(spec: &TransactTask) -> usize {
    let threads = usize::from(spec.net.flows).max(1);
    threads * stranger_limits(spec, threads).places
}

/// Returns the limits for unauthenticated peers of one thread. The `threads` of a listener share its places, which
/// suffice for all flows of the path and as many other peers.
fn stranger_limits(spec: &TransactTask, threads: usize) -> StrangerLimits {
    let flows = usize::from(spec.net.flows);
    let threads = threads.max(1);
    StrangerLimits {
        places: ((2 * flows + 256) / threads).max(PLACES_MINIMUM),
        places_each: ((flows + 64) / threads).max(PLACES_EACH_MINIMUM),
        time_ns: TRANSACTION_NS,
    }
}

/// Returns the bytes of a greeting and the request that follows it.
fn whole_bytes(spec: &TransactTask) -> u64 {
    hello::BYTES as u64 + spec.request_bytes.get()
}

/// Connection that has yet to greet.
struct Arriving {
    stream: TcpStream,
    greeting: [u8; hello::BYTES],
    /// Bytes read, including those of the request.
    filled: usize,
}

impl Arriving {
    /// Reads from the `whole` bytes of greeting and request. Returns whether the greeting is complete and proves the
    /// key.
    fn read(&mut self, key: &SessionKey, whole: u64, into: &mut [u8]) -> io::Result<bool> {
        let length = (into.len() as u64).min(whole - self.filled as u64) as usize;
        let bytes = match tcp::receive(&self.stream, &mut into[..length], false) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => bytes,
            Err(error) if is_timeout(&error) => return Ok(false),
            Err(error) => return Err(error),
        };
        let part = bytes.min(hello::BYTES - self.filled);
        self.greeting[self.filled..][..part].copy_from_slice(&into[..part]);
        self.filled += bytes;
        if self.filled < hello::BYTES {
            Ok(false)
        } else if Hello::decode(&self.greeting, key).is_some() {
            Ok(true)
        } else {
            Err(io::ErrorKind::PermissionDenied.into())
        }
    }
}

/// Answers a connection that has greeted.
fn serve(shared: &Shared, spec: &TransactTask, arriving: Arriving, out: &[u8], into: &mut [u8]) -> Result<(), Failure> {
    let Arriving { mut stream, filled, .. } = arriving;
    let mut left = whole_bytes(spec) - filled as u64;
    if left > 0 {
        let deadline = clock::now() + TRANSACTION_NS;
        stream.set_read_timeout(Some(Duration::from_nanos(TRANSACTION_NS)))?;
        while left > 0 {
            let length = (into.len() as u64).min(left) as usize;
            left -= read(shared, &stream, &mut into[..length], spec.busy_poll, deadline)? as u64;
        }
    }
    let mut left = spec.response_bytes.get();
    let mut waits = false;
    while left > 0 {
        let length = (out.len() as u64).min(left) as usize;
        let sent = match tcp::send_now(&stream, &out[..length]) {
            Ok(sent) => sent,
            Err(error) if is_timeout(&error) => {
                if !waits {
                    stream.set_write_timeout(Some(Duration::from_nanos(TRANSACTION_NS)))?;
                    waits = true;
                }
                stream.write(&out[..length])?
            }
            Err(error) => return Err(error.into()),
        };
        left -= sent as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::Flow;
    use crate::job::Job;
    use linerate_engine::AllowedPeers;
    use linerate_engine::testing::one_path;
    use linerate_model::{Net, SocketOptions, Task, TransactStyle, Transport};
    use linerate_units::Nanos;

    /// Regression: each of 128 threads had places of its own, 65,536 together.
    #[test]
    fn threads_of_a_listener_share_its_places() {
        for flows in [1, 7, 64, 128, 1_000] {
            let net = Net { flows, ..Net::plain(Transport::Tcp) };
            let spec = TransactTask { net, ..TransactTask::plain(Transport::Tcp) };
            let threads = usize::from(flows);
            let limits = stranger_limits(&spec, threads);
            assert!(limits.places_each >= 3 && limits.places_each < limits.places, "{flows} flows: {limits:?}");
            let places = threads * limits.places;
            assert!(places <= (2 * threads + 256).max(4 * threads), "{flows} flows: {places} places");
        }
    }

    #[test]
    fn failure_of_this_host_ends_the_trial() {
        // The address does not belong to this host.
        let socket = SocketOptions { bind_address: Some([198, 18, 255, 1].into()), ..SocketOptions::default() };
        let spec = TransactTask {
            style: TransactStyle::Connect,
            net: Net { socket, ..Net::plain(Transport::Tcp) },
            ..TransactTask::plain(Transport::Tcp)
        };
        let task = Task::Transact(spec.clone());
        let assignment = one_path::part(&task, Nanos::from_millis(100), vec![one_path::client_role()], 1);
        let job = Job::check(&assignment).expect("valid");
        let timeline = job.timeline(clock::now());
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("listens");
        let peer = listener.local_addr().expect("listens");
        let hello = Hello { path: 0, flow: 0, backward: false };
        let flow = Flow { end: 0, hello, client: true, peer, local: peer, link: Link::Dial, round_trip_ns: 0 };
        let error = ask(&Shared::new(job, timeline, vec![flow], AllowedPeers::default()), 0, &spec)
            .expect_err("cannot bind")
            .to_string();
        assert!(error.contains("198.18.255.1") && error.contains("ip address"), "{error}");
    }
}
