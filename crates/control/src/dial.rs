//! TCP connections to an agent's API.
//!
//! All addresses of the agent's host are tried, as RFC 8305 describes. The one that answered is used for all later
//! connections and for trial data. On a path that silently loses large packets the segments are limited.

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use linerate_sys::handle::{AsSocket as _, OwnedSocket};
use linerate_sys::tcp;
use socket2::{SockRef, TcpKeepalive};
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::{TcpSocket, TcpStream, lookup_host};
use tokio::time::{sleep, timeout};

/// Time limit for connecting to one address.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval of probing idle connections. NATs and firewalls forget idle connections, some of them within 20 s.
const KEEPALIVE: Duration = Duration::from_secs(5);
/// Time without acknowledgement that closes a connection, so that the next request opens another.
const UNACKNOWLEDGED: Duration = Duration::from_secs(5);
/// Time until the next address is tried, unless one fails sooner (RFC 8305 section 5).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
/// Segment limits that are tried in turn. With headers they fit into 1,280 bytes, which every IPv6 path carries (RFC
/// 8200), and into 576, which every IPv4 host accepts (RFC 1122).
const SEGMENT_LIMITS: [u16; 2] = [1_200, 512];

/// Route of a connection to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// Address and port of the agent.
    pub agent: SocketAddr,
    /// Local address and port.
    pub own: SocketAddr,
    /// Largest segment. `None` is the default of the system; a limit means that a connection with larger ones stalled.
    pub segment_limit: Option<u16>,
}

/// Opener of connections to one agent.
#[derive(Debug)]
pub(crate) struct Dialer {
    host: String,
    port: u16,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Address that answered.
    answered: Option<SocketAddr>,
    route: Option<Route>,
    /// Index in [`SEGMENT_LIMITS`] plus one; 0 sets no limit.
    limit: usize,
    /// Connection on which nothing was sent yet.
    unused: Option<TcpStream>,
}

impl State {
    fn segment_limit(&self) -> Option<u16> {
        self.limit.checked_sub(1).map(|index| SEGMENT_LIMITS[index])
    }
}

impl Dialer {
    /// Creates a dialer for `host`, a name or an address (RFC 4007: with its zone, as in `fe80::1%eth0`).
    pub(crate) fn new(host: String, port: u16) -> Self {
        Self { host, port, state: Mutex::default() }
    }

    /// Opens a connection for the next request, and returns a watch on it.
    ///
    /// # Errors
    /// The name has no address, or no address answers.
    pub(crate) async fn prepare(&self) -> Result<Watched, Unreached> {
        let stream = self.connect().await?;
        let watched = Watched(stream.as_socket().try_clone_to_owned().ok());
        self.state().unused = Some(stream);
        Ok(watched)
    }

    /// Returns the prepared connection, or a new one.
    ///
    /// # Errors
    /// The name has no address, or no address answers.
    pub(crate) async fn take(&self) -> Result<TcpStream, Unreached> {
        let unused = self.state().unused.take();
        match unused {
            Some(stream) => Ok(stream),
            None => self.connect().await,
        }
    }

    /// Reduces the segments of further connections by a step. Returns false if no smaller limit is left.
    pub(crate) fn limit_segments(&self) -> bool {
        let mut state = self.state();
        let more = state.limit < SEGMENT_LIMITS.len();
        state.limit += usize::from(more);
        more
    }

    /// Returns the route of the latest connection. Returns `None` before the first.
    pub(crate) fn route(&self) -> Option<Route> {
        self.state().route
    }

    async fn connect(&self) -> Result<TcpStream, Unreached> {
        let (answered, segment_limit) = {
            let state = self.state();
            (state.answered, state.segment_limit())
        };
        let addresses = match answered {
            Some(address) => vec![address],
            None => self.addresses().await?,
        };
        let stream = first_connected(&addresses, segment_limit).await.map_err(Unreached::Tried)?;
        let system = |error| Unreached::Tried(vec![(addresses[0], error)]);
        stream.set_nodelay(true).map_err(system)?;
        let agent = stream.peer_addr().map_err(system)?;
        let own = stream.local_addr().map_err(system)?;
        let mut state = self.state();
        state.answered = Some(agent);
        state.route = Some(Route { agent, own, segment_limit });
        Ok(stream)
    }

    /// Returns the addresses of the host, the families in turn.
    async fn addresses(&self) -> Result<Vec<SocketAddr>, Unreached> {
        let addresses: Vec<SocketAddr> =
            lookup_host((self.host.as_str(), self.port)).await.map_err(|_| self.unknown())?.collect();
        let preferred = addresses.first().ok_or_else(|| self.unknown())?.is_ipv6();
        let (mut first, mut second): (Vec<_>, Vec<_>) =
            addresses.into_iter().partition(|address| address.is_ipv6() == preferred);
        first.reverse();
        second.reverse();
        let mut addresses = Vec::new();
        while !first.is_empty() || !second.is_empty() {
            addresses.extend(first.pop());
            addresses.extend(second.pop());
        }
        Ok(addresses)
    }

    /// Returns the error of a host without an address.
    fn unknown(&self) -> Unreached {
        match self.host.split_once('%') {
            Some((_, zone)) => Unreached::NoInterface(zone.to_owned()),
            None => Unreached::UnknownName(self.host.clone()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Watch on the segments of a connection, which keeps the connection open.
pub(crate) struct Watched(Option<OwnedSocket>);

impl Watched {
    /// Returns whether the stalled connection shows a loss of large segments: a small one after them has arrived, or
    /// repeated retransmissions are not acknowledged. The small segments of the TCP handshake had passed.
    pub(crate) fn loses_large_segments(&self) -> bool {
        const SENT_AGAIN: u8 = 2;
        let info = self.0.as_ref().and_then(|socket| tcp::info(socket.as_socket()).ok()?);
        info.is_some_and(|info| info.rcv_ooopack > 0 || info.retransmits >= SENT_AGAIN)
    }
}

/// Returns the first connection that succeeds, or the failures of all.
async fn first_connected(
    addresses: &[SocketAddr],
    segment_limit: Option<u16>,
) -> Result<TcpStream, Vec<(SocketAddr, io::Error)>> {
    let mut waiting = addresses.iter();
    let mut attempts = FuturesUnordered::new();
    let mut failed = Vec::new();
    loop {
        attempts.extend(waiting.next().map(|address| attempt(*address, segment_limit)));
        tokio::select! {
            Some((address, outcome)) = attempts.next() => match outcome {
                Ok(stream) => return Ok(stream),
                Err(error) => failed.push((address, error)),
            },
            () = sleep(ATTEMPT_DELAY), if waiting.len() > 0 => {}
            else => return Err(failed),
        }
    }
}

async fn attempt(address: SocketAddr, segment_limit: Option<u16>) -> (SocketAddr, io::Result<TcpStream>) {
    let connecting = async {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        let options = SockRef::from(&socket);
        options.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE))?;
        tcp::set_user_timeout(socket.as_socket(), Some(UNACKNOWLEDGED))?;
        if let Some(limit) = segment_limit {
            // Before connecting, so that the SYN announces it to the other end.
            tcp::set_max_segment(socket.as_socket(), limit.into())?;
        }
        socket.connect(address).await
    };
    let outcome = timeout(CONNECT_TIMEOUT, connecting).await;
    (address, outcome.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into())))
}

/// Failure of all TCP connections, with its remedy.
#[derive(Debug)]
pub(crate) enum Unreached {
    /// The name of the host is unknown.
    UnknownName(String),
    /// The interface in the zone of the address does not exist on this host.
    NoInterface(String),
    /// Failure of each tried address.
    Tried(Vec<(SocketAddr, io::Error)>),
}

impl Unreached {
    /// Returns whether each address refused the connection.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self, Self::Tried(attempts)
            if attempts.iter().all(|(_, error)| error.kind() == ErrorKind::ConnectionRefused))
    }
}

impl std::error::Error for Unreached {}

impl fmt::Display for Unreached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownName(name) => write!(
                f,
                "no address is known for the name `{name}`; check the name, or use the address of that host instead"
            ),
            Self::NoInterface(zone) => {
                write!(f, "this host has no interface `{zone}`, which is to lead there; `ip link` lists its interfaces")
            }
            Self::Tried(attempts) => {
                for (index, (address, error)) in attempts.iter().enumerate() {
                    let separator = if index == 0 { "" } else { ", " };
                    write!(f, "{separator}TCP to {}: {}", formatted(*address), what_happened(*address, error))?;
                }
                write!(f, "; {}", remedy(attempts))
            }
        }
    }
}

/// Returns whether `address` is a link-local IPv6 address (RFC 4291 section 2.5.6).
fn is_link_local(address: SocketAddr) -> bool {
    matches!(address.ip(), IpAddr::V6(v6) if v6.is_unicast_link_local())
}

/// Formats an address without the system's number of its zone.
fn formatted(address: SocketAddr) -> String {
    match address {
        SocketAddr::V4(v4) => v4.to_string(),
        SocketAddr::V6(v6) => format!("[{}]:{}", v6.ip(), v6.port()),
    }
}

fn what_happened(address: SocketAddr, error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused => "refused".to_owned(),
        ErrorKind::TimedOut => format!("no answer within {} s", CONNECT_TIMEOUT.as_secs()),
        ErrorKind::HostUnreachable => "no such host on the way there answers".to_owned(),
        ErrorKind::NetworkUnreachable => "this host has no route there".to_owned(),
        ErrorKind::PermissionDenied => "a rule of this host forbids it".to_owned(),
        ErrorKind::ConnectionReset => "reset".to_owned(),
        ErrorKind::InvalidInput if is_link_local(address) => "a link-local address without its interface".to_owned(),
        other => other.to_string(),
    }
}

fn remedy(attempts: &[(SocketAddr, io::Error)]) -> &'static str {
    let any = |kind: ErrorKind| attempts.iter().any(|(_, error)| error.kind() == kind);
    if any(ErrorKind::ConnectionRefused) {
        "nothing listens at that port, or a firewall refuses it. Start one on that host with `linerate serve`, or check the port"
    } else if attempts.iter().any(|(address, error)| is_link_local(*address) && error.kind() == ErrorKind::InvalidInput)
    {
        "name the interface of this host that leads there, as in [fe80::1%eth0]:4747; `ip link` lists them"
    } else if any(ErrorKind::NetworkUnreachable) {
        "check the address and this host's routes (`ip route`)"
    } else {
        "the host is down, or a firewall drops what is sent to that port. Check that the host is up, that `linerate serve` runs on it, and \
         that firewalls let TCP through to that port"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};

    fn refused(address: impl Into<IpAddr>) -> SocketAddr {
        // Nobody listens at the port after its listener is gone.
        let listener = TcpListener::bind((address.into(), 0)).expect("a port");
        listener.local_addr().expect("bound")
    }

    #[tokio::test]
    async fn address_that_answers_is_kept() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let living = listener.local_addr().expect("bound");
        let dead = SocketAddr::from((Ipv6Addr::LOCALHOST, living.port()));
        let stream = first_connected(&[dead, living], None).await.expect("one answers");
        assert_eq!(stream.peer_addr().expect("connected"), living);
        let dialer = Dialer::new("127.0.0.1".to_owned(), living.port());
        assert_eq!(dialer.route(), None);
        dialer.prepare().await.expect("it answers");
        let route = dialer.route().expect("connected");
        assert_eq!((route.agent, route.segment_limit), (living, None));
        let local = dialer.take().await.expect("it was prepared").local_addr().expect("connected");
        assert_eq!(local, route.own, "the prepared connection is used");
    }

    #[tokio::test]
    async fn segments_are_limited_in_steps() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let dialer = Dialer::new("127.0.0.1".to_owned(), port);
        for limit in SEGMENT_LIMITS {
            assert!(dialer.limit_segments());
            let stream = dialer.take().await.expect("it answers");
            assert!(SockRef::from(&stream).tcp_mss().expect("TCP_MAXSEG") <= u32::from(limit));
            assert_eq!(dialer.route().and_then(|route| route.segment_limit), Some(limit));
        }
        assert!(!dialer.limit_segments(), "none is smaller");
    }

    #[tokio::test]
    async fn errors_of_addresses_name_the_remedy() {
        let address = refused(Ipv4Addr::LOCALHOST);
        let text = Dialer::new("127.0.0.1".to_owned(), address.port()).take().await.expect_err("nobody").to_string();
        assert!(text.contains(&format!("TCP to {address}: refused")) && text.contains("linerate serve"), "{text}");
        let text = Dialer::new("fe80::1".to_owned(), 4_747).take().await.expect_err("no zone").to_string();
        assert!(text.contains("TCP to [fe80::1]:4747: a link-local") && text.contains("%eth0"), "{text}");
        let text = Dialer::new("fe80::1%no-such-link".to_owned(), 4_747).take().await.expect_err("none").to_string();
        assert!(text.contains("no interface `no-such-link`"), "{text}");
        let text = Dialer::new("no-such-host.invalid".to_owned(), 1).take().await.expect_err("no name").to_string();
        assert!(text.contains("`no-such-host.invalid`"), "{text}");
        let silent = [(address, io::Error::from(ErrorKind::TimedOut))].into();
        let text = Unreached::Tried(silent).to_string();
        assert!(text.contains("no answer within 5 s") && text.contains("firewall"), "{text}");
    }
}
