//! A Session-Reflector at UDP ports of this host, on a thread of its own.

use super::reflector::{Arrival, Reflector, ReflectorOptions, Refusal, ReplyTime};
use super::timestamp::{ErrorEstimate, TimestampFormat};
use linerate_engine::{SocketError, failed};
use linerate_model::Transport;
use linerate_sys::clock;
use linerate_sys::datagram_details::{SendDetails, receive_with_details, report_details, send_from};
use linerate_sys::event::Event;
use linerate_sys::handle::{AsSocket as _, BorrowedSocket};
use linerate_sys::socket::wait_for_each;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

/// Remedy for a port that is in use.
const PORT_IN_USE: &str =
    "perhaps another STAMP or TWAMP reflector, see `ss -ulnp`; stop it, or choose another port, as in --stamp=8862";
/// Remedy for a port that needs privileges.
const PRIVILEGED_PORT: &str = "ports below 1024 need root or CAP_NET_BIND_SERVICE: choose a higher port, as in --stamp=8862, and name it to the senders";
/// First port that any user may have.
const FIRST_UNPRIVILEGED_PORT: u16 = 1_024;
/// TTL and hop limit of test packets (RFC 8762, sections 4.2 and 4.3).
const TTL: u8 = 255;
/// Datagrams read from one socket before the next has its turn.
const DATAGRAMS_AT_A_TIME: usize = 64;
/// Interval at which the error of the clock is read.
const CLOCK_CHECK_NS: u64 = 10_000_000_000;
/// Longest wait for datagrams.
const WAIT_NS: u64 = 60_000_000_000;

/// Counts of a service since it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StampCounts {
    /// Datagrams that arrived.
    pub received: u64,
    /// Replies sent.
    pub answered: u64,
    /// Datagrams from sources that are not allowed.
    pub refused_source: u64,
    /// Datagrams that are too short.
    pub refused_short: u64,
    /// Packets with a wrong HMAC.
    pub refused_hmac: u64,
    /// Replies of other reflectors.
    pub refused_reflected: u64,
    /// Packets beyond the rate.
    pub refused_rate: u64,
    /// Replies that the kernel did not send.
    pub failed: u64,
}

#[derive(Debug, Default)]
struct Counters {
    received: AtomicU64,
    answered: AtomicU64,
    source: AtomicU64,
    short: AtomicU64,
    hmac: AtomicU64,
    reflected: AtomicU64,
    rate: AtomicU64,
    failed: AtomicU64,
}

impl Counters {
    fn refused(&self, refusal: Refusal) -> &AtomicU64 {
        match refusal {
            Refusal::Source => &self.source,
            Refusal::Short => &self.short,
            Refusal::Hmac => &self.hmac,
            Refusal::Reflected => &self.reflected,
            Refusal::Rate => &self.rate,
        }
    }
}

/// State shared with the thread.
#[derive(Debug)]
struct Shared {
    counters: Counters,
    is_stopped: AtomicBool,
    stop: Event,
}

/// A running Session-Reflector. Dropping it ends it.
#[derive(Debug)]
pub struct StampService {
    addresses: Vec<SocketAddr>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl StampService {
    /// Answers STAMP senders at `addresses`; port 0 lets the kernel choose. The unspecified IPv6 address includes IPv4.
    ///
    /// # Errors
    /// A port is taken or needs privileges, or there are no more sockets or threads.
    pub fn start(addresses: &[SocketAddr], options: ReflectorOptions) -> Result<Self, SocketError> {
        let sockets: Vec<UdpSocket> = addresses.iter().map(|address| open(*address)).collect::<Result<_, _>>()?;
        let addresses = sockets.iter().map(UdpSocket::local_addr).collect::<Result<_, _>>();
        let addresses = addresses.map_err(failed("getsockname"))?;
        let stop = Event::new().map_err(failed("eventfd"))?;
        let shared = Arc::new(Shared { counters: Counters::default(), is_stopped: AtomicBool::new(false), stop });
        let answering = Answering {
            sockets,
            reflector: Reflector::new(options),
            shared: Arc::clone(&shared),
            buffer: vec![0; usize::from(u16::MAX)],
            error: clock_error(),
            checked_ns: clock::now(),
        };
        let builder = thread::Builder::new().name("stamp".to_owned());
        let thread = builder.spawn(move || answering.run()).map_err(failed("starting a thread"))?;
        Ok(Self { addresses, shared, thread: Some(thread) })
    }

    /// Returns the addresses of the service, in the order of [`StampService::start`].
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns the counts since the start.
    pub fn counts(&self) -> StampCounts {
        let counters = &self.shared.counters;
        StampCounts {
            received: counters.received.load(Ordering::Relaxed),
            answered: counters.answered.load(Ordering::Relaxed),
            refused_source: counters.source.load(Ordering::Relaxed),
            refused_short: counters.short.load(Ordering::Relaxed),
            refused_hmac: counters.hmac.load(Ordering::Relaxed),
            refused_reflected: counters.reflected.load(Ordering::Relaxed),
            refused_rate: counters.rate.load(Ordering::Relaxed),
            failed: counters.failed.load(Ordering::Relaxed),
        }
    }
}

impl StampService {
    /// Ends the service. Returns its final counts.
    pub fn stop(mut self) -> StampCounts {
        self.end();
        self.counts()
    }

    fn end(&mut self) {
        self.shared.is_stopped.store(true, Ordering::Relaxed);
        self.shared.stop.add();
        // A panic has been printed by its thread; a destructor must not panic again.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Drop for StampService {
    fn drop(&mut self) {
        self.end();
    }
}

/// Opens the socket of one address.
fn open(address: SocketAddr) -> Result<UdpSocket, SocketError> {
    let socket = bind(address).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied if address.port() < FIRST_UNPRIVILEGED_PORT => {
            SocketError::InvalidRequest(format!("cannot listen on {address} (UDP): {error}; {PRIVILEGED_PORT}"))
        }
        _ => SocketError::listening(address, Transport::Udp, PORT_IN_USE)(error),
    })?;
    report_details(&socket)?;
    Ok(socket)
}

fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
        socket.set_unicast_hops_v6(TTL.into())?;
    }
    // An IPv6 socket may send IPv4 too.
    socket.set_ttl_v4(TTL.into())?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::from(address))?;
    Ok(socket.into())
}

fn clock_error() -> ErrorEstimate {
    match clock::utc_error() {
        Some(error_ns) => ErrorEstimate::new(true, TimestampFormat::Ntp, error_ns),
        None => ErrorEstimate::unsynchronised(),
    }
}

/// The thread's part of the service.
struct Answering {
    sockets: Vec<UdpSocket>,
    reflector: Reflector,
    shared: Arc<Shared>,
    buffer: Vec<u8>,
    /// Error of the clock, and the time at which it was read.
    error: ErrorEstimate,
    checked_ns: u64,
}

impl Answering {
    fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        while !shared.is_stopped.load(Ordering::Relaxed) {
            let mut waits: Vec<BorrowedSocket<'_>> = self.sockets.iter().map(|socket| socket.as_socket()).collect();
            waits.push(shared.stop.as_socket());
            let Ok(ready) = wait_for_each(&waits, WAIT_NS) else { return };
            for index in ready {
                self.answer_waiting(index);
            }
        }
    }

    /// Answers the datagrams that wait at a socket.
    fn answer_waiting(&mut self, index: usize) {
        for _ in 0..DATAGRAMS_AT_A_TIME {
            // The last number belongs to the event.
            let Some(socket) = self.sockets.get(index) else { return };
            let received = match receive_with_details(socket, &mut self.buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return,
            };
            let counters = &self.shared.counters;
            counters.received.fetch_add(1, Ordering::Relaxed);
            let monotonic_ns = clock::now();
            if monotonic_ns - self.checked_ns >= CLOCK_CHECK_NS {
                self.error = clock_error();
                self.checked_ns = monotonic_ns;
            }
            let unix_ns = clock::unix_now().cast_signed();
            let arrival = Arrival {
                from: received.from,
                at_unix_ns: received.arrived_unix_ns.map_or(unix_ns, u64::cast_signed),
                ttl: received.ttl,
                traffic_class: received.traffic_class,
            };
            let now = ReplyTime { monotonic_ns, unix_ns, error: self.error };
            let datagram = &self.buffer[..received.length.min(self.buffer.len())];
            let counter = match self.reflector.answer(datagram, &arrival, now) {
                Err(refusal) => counters.refused(refusal),
                Ok(reply) => {
                    let from = received.to.filter(|to| !IpAddr::is_multicast(to));
                    let details = SendDetails { from, traffic_class: Some(reply.traffic_class) };
                    match send_from(socket, &reply.bytes, received.from, details) {
                        Ok(_) => &counters.answered,
                        Err(_) => &counters.failed,
                    }
                }
            };
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamp::{ClassOfService, Key, Mode, Sender, Tlv, TlvValue};
    use linerate_sys::socket::set_traffic_class;
    use std::time::Duration;

    fn service(options: ReflectorOptions) -> StampService {
        let loopback = ["127.0.0.1:0", "[::1]:0"].map(|address| address.parse().expect("an address"));
        StampService::start(&loopback, options).expect("the kernel chooses free ports")
    }

    fn client(service: SocketAddr) -> UdpSocket {
        let any = if service.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" };
        let socket = UdpSocket::bind(any).expect("binds");
        socket.connect(service).expect("connects");
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("sets");
        socket
    }

    #[test]
    fn senders_of_both_families_measure_their_way() {
        for mode in [Mode::Unauthenticated, Mode::Authenticated(Key::new(b"key"))] {
            let service = service(ReflectorOptions { mode: mode.clone(), ..ReflectorOptions::default() });
            for address in service.addresses() {
                let socket = client(*address);
                report_details(&socket).expect("the system has them");
                // Some systems mark packets by policies only.
                let marks = set_traffic_class(client(*address).as_socket(), address.is_ipv6(), 34 << 2).is_ok();
                let class_of_replies = if marks { 34 << 2 } else { 0 };
                let mut sender = Sender::new(mode.clone(), 3);
                let class = ClassOfService { requested_dscp: 34, ..Default::default() };
                for sequence in 0..20 {
                    let mut packet = Vec::new();
                    let tlv = Tlv::new(TlvValue::ClassOfService(class));
                    let sent_ns = clock::unix_now().cast_signed();
                    assert_eq!(sender.next(sent_ns, ErrorEstimate::unsynchronised(), &[tlv], &mut packet), sequence);
                    socket.send(&packet).expect("sends");
                    let mut buffer = [0; 1_500];
                    let received = receive_with_details(&socket, &mut buffer).expect("a reply");
                    let now_ns = clock::unix_now().cast_signed();
                    let answer = sender.read(&buffer[..received.length], now_ns).expect("the reply belongs to it");
                    assert_eq!(answer.reflected.sequence, sequence);
                    assert!([64, 128].contains(&answer.reflected.sender_ttl), "{address}: {answer:?}");
                    let header = (received.ttl, received.traffic_class);
                    assert_eq!(header, (Some(255), Some(class_of_replies)), "{address}");
                    assert_eq!(answer.forward_ns + answer.backward_ns, answer.round_trip_ns);
                    assert!(answer.round_trip_ns <= now_ns - sent_ns);
                }
                assert_eq!(sender.losses(), crate::stamp::Losses { sent: 20, answered: 20, forward: 0, backward: 0 });
            }
            let counts = StampCounts { received: 40, answered: 40, ..StampCounts::default() };
            assert_eq!(service.stop(), counts);
        }
    }

    #[test]
    fn what_is_refused_is_counted() {
        let mode = Mode::Authenticated(Key::new(b"key"));
        let service = service(ReflectorOptions { mode: mode.clone(), ..ReflectorOptions::default() });
        let socket = client(service.addresses()[0]);
        socket.send(b"short").expect("sends");
        socket.send(&[0; 112]).expect("sends");
        // The reply to a valid packet says that the others were read.
        let mut packet = Vec::new();
        Sender::new(mode, 0).next(clock::unix_now().cast_signed(), ErrorEstimate::unsynchronised(), &[], &mut packet);
        socket.send(&packet).expect("sends");
        assert_eq!(socket.recv(&mut [0; 200]).expect("a reply"), 112);
        let StampCounts { received, refused_short, refused_hmac, .. } = service.counts();
        assert_eq!((received, refused_short, refused_hmac), (3, 1, 1));
    }

    #[test]
    fn a_port_that_is_taken_is_named() {
        let service = service(ReflectorOptions::default());
        let error = StampService::start(service.addresses(), ReflectorOptions::default()).expect_err("it is taken");
        let port = service.addresses()[0].port().to_string();
        assert!(error.to_string().contains(&port) && error.to_string().contains("ss -ulnp"), "{error}");
    }
}
