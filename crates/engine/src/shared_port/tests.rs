//! Connections and datagrams of all kinds at one port of loopback.

use super::*;
use crate::greeting::{seal, unseal};
use crate::listening::{DatagramListener, ListenOptions, Listener, at_one_port};
use crate::socket::SocketSpec;
use linerate_model::{SessionKey, SocketOptions, Transport};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const KIND: [u8; 8] = *b"lnrttest";
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A port, the connections that it hands to the API, and where it is.
struct Port {
    server: PortServer,
    api: Receiver<TcpStream>,
    address: SocketAddr,
}

impl Port {
    fn start() -> Self {
        Self::start_at(HERE)
    }

    fn start_at(address: IpAddr) -> Self {
        let any = SocketAddr::new(address, 0);
        let opened = at_one_port(any, TcpListener::bind, PortServer::keep_datagram_port);
        let (listener, _kept) = opened.expect("a port");
        let address = listener.local_addr().expect("it listens");
        let (send, api) = channel();
        let hand_over = Box::new(move |stream| drop(send.send(stream)));
        Self { server: PortServer::start(listener, hand_over).expect("served"), api, address }
    }

    fn options(&self) -> ListenOptions {
        ListenOptions { shared: Some(self.server.port().clone()), ..ListenOptions::default() }
    }

    fn listens(&self, key: u8) -> Listener {
        let options = SocketOptions::default();
        let listener =
            self.options().connections(spec(Transport::Tcp, &options), HERE, greets(key)).expect("it listens");
        assert_eq!(listener.address(), self.address);
        listener
    }

    fn hears(&self, key: u8) -> DatagramListener {
        let options = SocketOptions::default();
        self.options().datagrams(spec(Transport::Udp, &options), HERE, greets(key)).expect("it listens")
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("connected");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
        stream
    }

    fn says(&self, bytes: &[u8]) -> TcpStream {
        let mut stream = self.connect();
        stream.write_all(bytes).expect("sent");
        stream
    }

    fn client(&self) -> UdpSocket {
        let socket = UdpSocket::bind((HERE, 0)).expect("a socket");
        socket.connect(self.address).expect("connected");
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
        socket
    }
}

fn spec(transport: Transport, options: &SocketOptions) -> SocketSpec<'_> {
    SocketSpec { transport, v6: false, options, bind: None, device: false }
}

fn key(key: u8) -> SessionKey {
    SessionKey([key; 16])
}

fn greets(own: u8) -> crate::Greets {
    Box::new(move |bytes| unseal(&key(own), KIND, bytes).is_some())
}

fn greeting(of: u8) -> [u8; GREETING] {
    seal(&key(of), KIND, &[3; 16], *b"sixteen bytes...")
}

fn accepted(listener: &Listener) -> TcpStream {
    loop {
        let sockets: Vec<_> = listener.sockets().collect();
        assert!(wait_readable(&sockets, 60_000_000_000).expect("polls"), "nothing came");
        match listener.accept() {
            Ok((stream, _)) => return stream,
            Err(error) => {
                assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionAborted), "{error}")
            }
        }
    }
}

fn heard(listener: &DatagramListener) -> SocketAddr {
    assert!(wait_readable(&[listener.socket()], 20_000_000_000).expect("polls"), "nothing came");
    let (length, peer) = listener.receive(&mut [0; 100]).expect("a datagram");
    assert_eq!(length, GREETING);
    peer
}

fn closed(mut stream: TcpStream) {
    match stream.read(&mut [0; 1]) {
        Ok(0) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_connection_goes_where_its_first_bytes_say_and_all_of_them_are_left_to_be_read() {
    let port = Port::start();
    let one = port.listens(1);
    let two = port.listens(2);
    let hello = b"\x16\x03\x01\x02\x00\x01\x00";
    let _clients = [&greeting(2)[..], hello, &greeting(1)].map(|bytes| port.says(bytes));
    for (mut stream, said) in [
        (accepted(&one), &greeting(1)[..]),
        (accepted(&two), &greeting(2)),
        (port.api.recv().expect("the port lives"), hello),
    ] {
        let mut read = vec![0; said.len()];
        stream.read_exact(&mut read).expect("read");
        assert_eq!(read, said);
    }
}

#[test]
fn whoever_is_for_nobody_is_closed_without_a_word() {
    let port = Port::start();
    let _listener = port.listens(1);
    let call = [0x8000_0048_u32, 7, 0, 2, 0x2000_4c52, 1, 4].map(u32::to_be_bytes).concat();
    let call = [&call[..], &[0; 48]].concat();
    let nonsense = [&greeting(9)[..], b"GET / HTTP/1.1\r\n\r\n", &[0; 200], &call, b"\x80\xff\xff\xff garbage"];
    // And half of a greeting, or not even that.
    let begun = [0, 1, 3, 4, GREETING - 1].map(|length| greeting(1)[..length].to_vec());
    let said = nonsense.into_iter().chain(begun.iter().map(|begun| &begun[..]));
    let strangers: Vec<_> = said.map(|said| port.says(said)).collect();
    strangers.into_iter().for_each(closed);
}

/// The attack: strangers connect and say nothing, or little.
#[test]
fn strangers_that_wait_keep_nobody_out() {
    let port = Port::start();
    let listener = port.listens(1);
    let _strangers: Vec<_> = (0..2 * STRANGERS.places)
        .map(|number| if number % 2 == 0 { port.connect() } else { port.says(b"lnrt") })
        .collect();
    let mut slow = port.connect();
    for byte in greeting(1) {
        slow.write_all(&[byte]).expect("sent");
    }
    accepted(&listener);
}

#[test]
fn a_listener_that_accepts_by_itself_leaves_what_is_not_its_own_to_the_port() {
    let port = Port::start();
    let many = port.listens(1).for_many();
    let other = port.listens(2);
    let _clients = [b"\x16\x03\x01\x02\x00", &greeting(2)[..], &greeting(1)].map(|bytes| port.says(bytes));
    accepted(&many);
    accepted(&other);
    port.api.recv().expect("handed over");
    drop(many);
    // The thread of the port accepts again.
    let _client = port.says(&greeting(2));
    accepted(&other);
}

#[test]
fn each_peer_has_a_socket_of_its_own_at_the_port() {
    let port = Port::start();
    let listener = port.hears(1);
    let clients: Vec<_> = (0..20).map(|_| port.client()).collect();
    for client in &clients {
        client.send(&greeting(1)).expect("sent");
    }
    let mut sockets = Vec::new();
    while sockets.len() < clients.len() {
        let socket = listener.connected_to(heard(&listener)).expect("a socket");
        assert_eq!(socket.local_addr().expect("bound"), port.address);
        sockets.push(socket);
    }
    for (number, client) in clients.iter().enumerate() {
        client.send(&[number as u8]).expect("sent");
    }
    for (number, client) in clients.iter().enumerate() {
        let own = client.local_addr().expect("bound");
        let socket = sockets.iter().find(|socket| socket.peer_addr().ok() == Some(own)).expect("made");
        wait_readable(&[socket.as_socket()], 60_000_000_000).expect("polls");
        let mut bytes = [0; 100];
        assert_eq!((socket.recv(&mut bytes).expect("received"), bytes[0]), (1, number as u8));
        assert_eq!(socket.recv(&mut bytes).map_err(|error| error.kind()), Err(ErrorKind::WouldBlock));
        listener.answer(socket, b"answer", own);
        assert_eq!(client.recv(&mut bytes).expect("answered"), 6);
    }
}

/// Clients know this host by an address that another device translates.
#[test]
fn an_address_that_this_host_does_not_have_is_reached_at_one_of_its_own() {
    for own in [Ipv4Addr::UNSPECIFIED.into(), HERE] {
        let port = Port::start_at(own);
        let named = IpAddr::from(Ipv4Addr::new(198, 18, 0, 9));
        let options = SocketOptions::default();
        let listener = port.options().datagrams(spec(Transport::Udp, &options), named, greets(1)).expect("it listens");
        let client = UdpSocket::bind((HERE, 0)).expect("bound");
        client.connect((HERE, port.address.port())).expect("connected");
        client.send(&greeting(1)).expect("sent");
        let socket = listener.connected_to(heard(&listener)).expect("a socket");
        assert_eq!(socket.local_addr().expect("bound"), SocketAddr::new(HERE, port.address.port()));
        client.send(b"more").expect("sent");
        wait_readable(&[socket.as_socket()], 60_000_000_000).expect("polls");
        assert_eq!(socket.recv(&mut [0; 100]).expect("received"), 4);
    }
}

#[test]
fn authenticated_stamp_packet_reaches_the_listener_that_accepts_it() {
    let port = Port::start();
    let options = SocketOptions::default();
    let listen = |first: u8| {
        let accepts = Box::new(move |bytes: &[u8]| bytes[0] == first);
        port.options().datagrams(spec(Transport::Udp, &options), HERE, accepts).expect("it listens")
    };
    let [one, two] = [1, 2].map(listen);
    let client = port.client();
    for packet in [&[2; STAMP - 1][..], &[2; STAMP + 1], &[3; STAMP], &[2; STAMP]] {
        client.send(packet).expect("sent");
    }
    assert!(wait_readable(&[two.socket()], 20_000_000_000).expect("polls"), "nothing came");
    let (length, peer) = two.receive(&mut [0; 200]).expect("a datagram");
    assert_eq!((length, peer), (STAMP, client.local_addr().expect("bound")));
    for listener in [one, two] {
        assert_eq!(listener.receive(&mut [0; 200]).expect_err("no other").kind(), ErrorKind::WouldBlock);
    }
}

#[test]
fn datagrams_without_the_key_are_for_nobody() {
    let port = Port::start();
    let listener = port.hears(1);
    let client = port.client();
    for stranger in [&greeting(2)[..], &greeting(1)[..GREETING - 1], &[0; 72], &[7; 1_000], b""] {
        client.send(stranger).expect("sent");
    }
    client.send(&greeting(1)).expect("sent");
    // They came first, and only this one got through.
    assert_eq!(heard(&listener), client.local_addr().expect("bound"));
    assert_eq!(listener.receive(&mut [0; 100]).map_err(|error| error.kind()), Err(ErrorKind::WouldBlock));
}

/// The race: a socket for one peer is bound, and not connected yet, when others greet. The kernel gives it about half
/// of them.
#[test]
fn what_a_new_socket_is_given_of_others_reaches_their_listener() {
    let port = Port::start();
    let first = port.hears(1);
    let other = port.hears(2);
    let client = port.client();
    let strays: Vec<_> = (0..32).map(|_| port.client()).collect();
    client.send(&greeting(1)).expect("sent");
    let peer = heard(&first);
    let socket = socket2::Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).expect("a socket");
    socket.set_nonblocking(true).expect("set");
    share(&socket, port.address).expect("bound");
    for stray in &strays {
        stray.send(&greeting(2)).expect("sent");
    }
    port.server.port().connect(&socket.into(), peer).expect("connected");
    let mut missing: Vec<_> = strays.iter().map(|stray| stray.local_addr().expect("bound")).collect();
    while !missing.is_empty() {
        let peer = heard(&other);
        missing.retain(|stray| *stray != peer);
    }
}

#[test]
fn a_session_shares_the_port_at_its_addresses_only() {
    let port = |address: &str, takes_v4| {
        let listener = TcpListener::bind((HERE, 0)).expect("a port");
        let datagrams = UdpSocket::bind((HERE, 0)).expect("a port");
        SharedPort(Arc::new(Inner {
            address: address.parse().expect("an address"),
            takes_v4,
            listener,
            congestion: DefaultCongestion::default(),
            datagrams: Some(datagrams),
            connection_inboxes: Inboxes(Mutex::default()),
            datagram_inboxes: Inboxes(Mutex::default()),
            passed_on: Mutex::default(),
            accepting: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            event: Event::new().expect("a counter"),
        }))
    };
    let v6 = IpAddr::V6(Ipv6Addr::LOCALHOST);
    for (address, takes_v4, at_v4, at_v6) in [
        ("127.0.0.1:7", false, true, false),
        ("127.0.0.2:7", false, false, false),
        ("0.0.0.0:7", false, true, false),
        ("[::1]:7", false, false, true),
        ("[::]:7", false, false, true),
        ("[::]:7", true, true, true),
    ] {
        let port = port(address, takes_v4);
        let at = |ip: IpAddr| port.at(ip).map(|at| (at.ip(), at.port()));
        assert_eq!(at(HERE), at_v4.then_some((HERE, 7)), "{address}");
        assert_eq!(at(v6), at_v6.then_some((v6, 7)), "{address}");
    }
}

/// A listener with a port of its own passes these options on to its connections.
#[test]
fn connections_have_the_options_of_their_session() {
    let port = Port::start();
    let options = SocketOptions { dscp: Some(46), ..SocketOptions::default() };
    let listener = port.options().connections(spec(Transport::Tcp, &options), HERE, greets(1)).expect("it listens");
    let _client = port.says(&greeting(1));
    let stream = accepted(&listener);
    let socket = SockRef::from(&stream);
    assert_eq!((socket.tos_v4().expect("read"), socket.tcp_nodelay().expect("read")), (46 << 2, true));
    // The scale of the window was sent before the session's options were known.
    let huge = SocketOptions { receive_buffer: Some(linerate_units::ByteCount::new(1 << 40)), ..options };
    crate::socket::check_receive_buffer(&huge).expect_err("more than any host has");
}

/// A request may wait for the load of a trial, but not for ever: the session of a client that has vanished goes on
/// sending datagrams meanwhile.
#[test]
fn requests_and_data_end_when_their_peer_has_vanished() {
    let port = Port::start();
    let one = port.listens(1);
    let _clients = [&greeting(1)[..], b"\x16\x03\x01\x02\x00\x01\x00"].map(|bytes| port.says(bytes));
    let session = accepted(&one);
    let api = port.api.recv().expect("the port lives");
    assert!(SockRef::from(&api).keepalive().expect("getsockopt"), "idle connections end too");
    for stream in [&session, &api] {
        let socket = SockRef::from(stream);
        assert_eq!(socket.tcp_user_timeout().expect("getsockopt"), Some(crate::PEER_GONE));
        assert!(socket.tcp_nodelay().expect("getsockopt"));
    }
}
