//! Transactions that each connect, ask, are answered, and close. The greeting travels with the request; the answering
//! end closes first, so that the asking end's ports are free again at once.

use super::{DRAIN_NS, SILENCE_NS, SKEW_NS, Schedule, Tally, schedule};
use crate::bulk_tcp::is_timeout;
use crate::error::StreamError;
use crate::flow::{Outcome, Shared};
use crate::hello::{self, Hello};
use crate::options;
use linerate_model::{FlowCounts, TransactTask};
use linerate_sys::{clock, socket, tcp};
use socket2::SockAddr;
use std::io::{self, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::time::Duration;

/// A transaction that takes longer has failed.
const TRANSACTION_NS: u64 = 1_000_000_000;
/// An accepted connection that has not greeted by then is closed: it holds up its thread.
const HELLO_NS: u64 = 250_000_000;
/// After a failure, so as not to storm a host in trouble.
const BACK_OFF_NS: u64 = 10_000_000;
/// The answering threads look at the clock this often.
const TICK_NS: u64 = 20_000_000;
/// Read and written in one call.
const BUFFER: usize = 64 << 10;

/// Connects, asks and reads until the window closes.
pub(super) fn ask(shared: &Shared, index: usize, spec: &TransactTask) -> Result<Outcome, StreamError> {
    let timeline = &shared.timeline;
    let flow = &shared.flows[index];
    let mut schedule = schedule(spec, timeline.start(), flow.hello.flow);
    let mut tally = Tally::new(shared, index, spec);
    let mut out = flow.hello.encode(&shared.job.key).to_vec();
    out.resize(hello::BYTES + spec.request_bytes.get() as usize, 0);
    rand::fill(&mut out[hello::BYTES..]);
    let mut into = vec![0; BUFFER];
    shared.stop.sleep_until(timeline.start());
    let mut answered = clock::now();
    loop {
        let goes_on = |schedule: &Option<Schedule>| {
            let now = clock::now();
            schedule.as_ref().map_or(now < timeline.close(), |schedule| schedule.goes_on(now, timeline.close()))
        };
        if !goes_on(&schedule) {
            break;
        }
        let since = schedule.as_ref().map_or_else(clock::now, Schedule::due);
        if !shared.stop.sleep_until(since) {
            return Err(StreamError::Stopped);
        }
        if !goes_on(&schedule) {
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
                if now + SKEW_NS < timeline.close() && (refused || now > answered + SILENCE_NS) {
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

/// Why a transaction failed.
enum Failure {
    /// The peer or the network: the transaction counts as failed.
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

/// One transaction; returns when the last byte of its response had come.
fn transact(shared: &Shared, index: usize, spec: &TransactTask, out: &[u8], into: &mut [u8]) -> Result<u64, Failure> {
    let peer = shared.flows[index].peer;
    let deadline = clock::now() + TRANSACTION_NS;
    let socket = options::socket(&shared.job, shared.job.socket().bind_address, true)?;
    let limit = Duration::from_nanos(TRANSACTION_NS);
    socket
        .connect_timeout(&SockAddr::from(peer), limit)
        .map_err(|error| StreamError::connecting(peer, error).map_or_else(Failure::Peer, Failure::Own))?;
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
    // The other end closes first; whether it does so in time is no part of the transaction.
    let _ = tcp::receive(&stream, &mut into[..1], true);
    Ok(answered)
}

/// Reads at least a byte before `deadline`.
fn read(shared: &Shared, stream: &TcpStream, into: &mut [u8], spin: bool, deadline: u64) -> Result<usize, Failure> {
    loop {
        match tcp::receive(stream, into, !spin) {
            Ok(0) => return Err(Failure::Peer(io::ErrorKind::UnexpectedEof.into())),
            Ok(taken) => return Ok(taken),
            Err(error) if is_timeout(&error) && shared.stop.is_set() => return Err(StreamError::Stopped.into()),
            Err(error) if is_timeout(&error) && clock::now() < deadline => (),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Accepts and answers until the window is over.
pub(super) fn answer(
    shared: &Shared,
    index: usize,
    spec: &TransactTask,
    listener: &TcpListener,
) -> Result<Outcome, StreamError> {
    let timeline = &shared.timeline;
    let mut out = vec![0; BUFFER];
    rand::fill(&mut out[..]);
    let mut into = vec![0; BUFFER];
    // Answered within the window, and since the load began.
    let (mut answered, mut served) = (0u64, 0u64);
    loop {
        if shared.stop.is_set() {
            return Err(StreamError::Stopped);
        }
        match listener.accept() {
            Ok((stream, _)) => {
                // A connection that fails is the asking end's to count.
                if serve(shared, spec, stream, &out, &mut into).is_ok() {
                    answered += u64::from(timeline.in_window(clock::now()));
                    served += 1;
                    shared.meters[index].served(served * spec.request_bytes.get(), served * spec.response_bytes.get());
                }
            }
            Err(error) if is_timeout(&error) => {
                if clock::now() > timeline.close() + SKEW_NS.min(DRAIN_NS) {
                    break;
                }
                if !spec.busy_poll {
                    socket::wait_readable(&[listener.as_fd()], TICK_NS)?;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => (),
            Err(error) => {
                return Err(StreamError::socket(format!("accept on {}", shared.flows[index].local))(error));
            }
        }
        if clock::now() > timeline.close() + DRAIN_NS {
            break;
        }
    }
    let (sent_bytes, received_bytes) = (answered * spec.response_bytes.get(), answered * spec.request_bytes.get());
    Ok(Outcome { flow: FlowCounts { sent_bytes, received_bytes, tcp: None }, ..Outcome::default() })
}

/// Answers one connection, if it greets rightly.
fn serve(
    shared: &Shared,
    spec: &TransactTask,
    mut stream: TcpStream,
    out: &[u8],
    into: &mut [u8],
) -> Result<(), Failure> {
    stream.set_read_timeout(Some(Duration::from_nanos(HELLO_NS)))?;
    stream.set_write_timeout(Some(Duration::from_nanos(TRANSACTION_NS)))?;
    let begun = clock::now();
    let whole = hello::BYTES as u64 + spec.request_bytes.get();
    let mut greeting = [0; hello::BYTES];
    let mut taken = 0u64;
    while taken < whole {
        let greets = taken < hello::BYTES as u64;
        let deadline = begun + if greets { HELLO_NS } else { TRANSACTION_NS };
        let length = (into.len() as u64).min(whole - taken) as usize;
        let read = read(shared, &stream, &mut into[..length], spec.busy_poll, deadline)?;
        if greets {
            let part = read.min(hello::BYTES - taken as usize);
            greeting[taken as usize..][..part].copy_from_slice(&into[..part]);
            if taken as usize + part == hello::BYTES && Hello::decode(&greeting, &shared.job.key).is_none() {
                return Err(Failure::Peer(io::ErrorKind::PermissionDenied.into()));
            }
        }
        taken += read as u64;
    }
    let mut left = spec.response_bytes.get();
    while left > 0 {
        let length = (out.len() as u64).min(left) as usize;
        stream.write_all(&out[..length])?;
        left -= length as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::{Flow, Link};
    use crate::job::Job;
    use linerate_engine::testing::assignment;
    use linerate_model::{Net, SocketOptions, Task, Timing, TransactStyle, Transport};
    use linerate_units::Nanos;

    #[test]
    fn what_this_host_cannot_do_is_not_counted_as_the_peers_failure() {
        // No address of this host.
        let socket = SocketOptions { bind_address: Some([198, 18, 255, 1].into()), ..SocketOptions::default() };
        let spec = TransactTask {
            style: TransactStyle::Connect,
            net: Net { socket, ..Net::plain(Transport::Tcp) },
            ..TransactTask::plain(Transport::Tcp)
        };
        let timing = Timing::of(Nanos::new(0), Nanos::from_millis(100));
        let task = Task::Transact(spec.clone());
        let assignment = assignment(task, timing, Vec::new());
        let job = Job::check(&assignment).expect("valid");
        let timeline = job.timeline(clock::now());
        let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
        let peer = listener.local_addr().expect("listens");
        let hello = Hello { path: 0, flow: 0, backward: false };
        let flow = Flow { end: 0, hello, client: true, peer, local: peer, link: Link::Dial, round_trip_ns: 0 };
        let error = ask(&Shared::new(job, timeline, vec![flow]), 0, &spec).expect_err("cannot bind").to_string();
        assert!(error.contains("198.18.255.1") && error.contains("ip address"), "{error}");
    }
}
