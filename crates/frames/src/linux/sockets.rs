//! UDP sockets that receive the frames of a trial, as an application does.
//!
//! The engine counts the frames at the port all the same, so that the loss within the receiving host is known apart.

use super::account::Account;
use super::attempt::{Counts, FCS};
use super::plan::{Plan, Stream};
use super::signature::Signature;
use crate::FrameError;
use linerate_engine::{SocketSpec, WakeBatching, failed, socket};
use linerate_model::{FramePayload, FramesArrived, Histogram, SocketOptions, ToSocket, Transport, VaryField};
use linerate_sys::handle::AsSocket as _;
use linerate_sys::socket::{drops, is_timeout};
use linerate_sys::udp::{Incoming, RECEIVE};
use linerate_sys::{Error, clock};
use linerate_units::Nanos;
use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Datagrams of one call.
const BATCH: usize = 64;
/// Longest wait of a call.
const WAIT: Duration = Duration::from_millis(10);
/// Longest time of emptying a socket after the trial. Frames that circulate would keep it full.
const EMPTYING_NS: u64 = 1_000_000_000;

/// Sockets of a trial by their addresses. Streams to one address share a socket.
pub(crate) struct Sockets(BTreeMap<SocketAddr, UdpSocket>);

impl Sockets {
    /// Opens the sockets of the streams that arrive at this host.
    ///
    /// # Errors
    /// A stream has frames that no UDP socket receives, or its address is not one of this host, or is in use.
    pub(crate) fn open(plan: &Plan) -> Result<Self, FrameError> {
        let mut sockets = BTreeMap::new();
        for (index, stream) in plan.streams.iter().enumerate().filter(|(_, stream)| stream.to.is_some()) {
            let address = address(stream).map_err(|why| FrameError::BadTrial(format!("stream {index}: {why}")))?;
            if sockets.contains_key(&address) {
                continue;
            }
            let spec = SocketSpec {
                transport: Transport::Udp,
                v6: address.is_ipv6(),
                options: &SocketOptions::default(),
                bind: Some(address),
                device: false,
            };
            let socket = UdpSocket::from(socket(spec)?);
            socket.set_read_timeout(Some(WAIT)).map_err(failed("setsockopt(SO_RCVTIMEO)"))?;
            sockets.insert(address, socket);
        }
        Ok(Self(sockets))
    }

    /// Reads the sockets while `trial` runs, and replaces the arrivals at the port by those at the sockets.
    pub(crate) fn count(
        &self,
        plan: &Plan,
        trial: impl FnOnce() -> Result<Counts, FrameError>,
    ) -> Result<Counts, FrameError> {
        let is_over = AtomicBool::new(false);
        let (mut counts, accounts) = thread::scope(|scope| -> Result<_, FrameError> {
            let mut threads = Vec::new();
            for (address, socket) in &self.0 {
                let is_over = &is_over;
                let thread = thread::Builder::new()
                    .name(format!("socket {}", address.port()))
                    .spawn_scoped(scope, move || receive(plan, *address, socket, is_over))
                    .map_err(|error| Error::new("pthread_create", "a thread of the trial", error));
                match thread {
                    Ok(thread) => threads.push(thread),
                    Err(error) => {
                        is_over.store(true, Ordering::Relaxed);
                        return Err(error.into());
                    }
                }
            }
            let counts = trial();
            is_over.store(true, Ordering::Relaxed);
            let mut results = Vec::new();
            for thread in threads {
                results.push(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            // An error of the trial goes before those of the sockets.
            Ok((counts?, results.into_iter().collect::<Result<Vec<_>, FrameError>>()?))
        })?;
        for (index, account) in accounts.into_iter().flatten() {
            let stream = &plan.streams[index];
            let part = &mut counts.streams[index];
            let Some(socket) = address(stream).ok().and_then(|address| self.0.get(&address)) else { continue };
            let at_port = part.arrived.as_ref().map_or(0, |arrived| arrived.received);
            let dropped = drops(socket.as_socket())?.map(u64::from);
            part.arrived = Some(arrived(&account, stream, ToSocket { at_port, dropped }));
        }
        Ok(counts)
    }
}

/// Returns the address to which the frames of `stream` go. The error says why no socket receives all of them.
fn address(stream: &Stream) -> Result<SocketAddr, String> {
    let form = &stream.wish.form;
    let headers = &stream.wish.headers;
    let FramePayload::Udp { destination_port, .. } = headers.payload else {
        return Err("a socket receives UDP only: leave --template out, or count at the port".to_owned());
    };
    if !headers.vlans.is_empty() {
        return Err("no socket of the port receives frames with VLAN tags: count them at the port".to_owned());
    }
    if form.raw.is_some() || form.bad_fcs {
        return Err("a raw frame has addresses of its own: count it at the port".to_owned());
    }
    if !stream.copies.is_empty() {
        return Err("frames for several ports are counted at the ports".to_owned());
    }
    let leads_away = [VaryField::DestinationIp, VaryField::DestinationPort];
    if let Some(vary) = form.vary.iter().find(|vary| leads_away.contains(&vary.field)) {
        return Err(format!("with {} varied, one socket does not receive all frames", vary.field));
    }
    Ok(SocketAddr::new(headers.destination, destination_port))
}

/// Returns what arrived of `stream` by the `account` of its socket.
fn arrived(account: &Account, stream: &Stream, to_socket: ToSocket) -> FramesArrived {
    FramesArrived {
        received: account.received,
        to_socket: Some(to_socket),
        bytes: account.bytes + FCS * account.received,
        duplicates: account.duplicates,
        reordered: account.reordered,
        expected: account.expected,
        last_gap: account.last_gap,
        by_port_counters: false,
        time: Nanos::new(account.last.saturating_sub(account.first)),
        // Two hosts have two clocks.
        latency: if stream.from.is_some() { account.latency.clone() } else { Histogram::default() },
    }
}

/// Counts the datagrams of the `socket` at `own` by stream until the trial is over and the socket is empty.
fn receive(
    plan: &Plan,
    own: SocketAddr,
    socket: &UdpSocket,
    is_over: &AtomicBool,
) -> Result<BTreeMap<usize, Account>, FrameError> {
    let mut accounts = BTreeMap::new();
    let mut largest = 0;
    for (index, stream) in plan.streams.iter().enumerate() {
        if stream.to.is_some() && address(stream) == Ok(own) {
            accounts.insert(index, Account::new());
            largest = stream.frames.iter().map(Vec::len).fold(largest, usize::max);
        }
    }
    let mut incoming = Incoming::new(BATCH, largest);
    let mut batching = WakeBatching::default();
    let mut end = None;
    loop {
        let is_emptying = is_over.load(Ordering::Relaxed);
        let taken = match incoming.receive(socket, is_emptying) {
            Ok(taken) => taken,
            Err(error) if is_timeout(&error) => 0,
            Err(error) => return Err(failed(RECEIVE)(error).into()),
        };
        let now = clock::now();
        if is_emptying && (taken == 0 || now > *end.get_or_insert(now) + EMPTYING_NS) {
            return Ok(accounts);
        }
        for datagram in incoming.arrived() {
            let Some(signature) = Signature::read(datagram.payload).filter(|signature| signature.tag == plan.tag)
            else {
                continue;
            };
            let index = usize::from(signature.stream);
            let Some(account) = accounts.get_mut(&index) else { continue };
            let stream = &plan.streams[index];
            let bytes = stream.frames[stream.frame_of(signature.number)].len();
            account.arrived(signature.number, signature.time, now, bytes as u64);
        }
        if taken > 0 && taken < BATCH && !is_emptying {
            batching.emptied(taken, now);
        }
    }
}
