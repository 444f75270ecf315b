//! An agent with every option sends addresses that have not proved themselves no more than came from them.
//!
//! A relay between client and server sees all their datagrams, and sends each once more from an address that takes no part in any trial.

use crate::firewall::Host;
use crate::program::{TestFolder, words};
use linerate_testsuite::lab_test;
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const SERVER: &str = "10.9.0.2";
const RELAY: &str = "10.9.1.2";
/// The server's side of the relay.
const RELAY_TO_SERVER: &str = "10.9.0.1";
const BYSTANDER: &str = "10.9.0.77";
const AGENT: u16 = 4747;
const IPERF3: u16 = 5201;
const MDNS: u16 = 5353;

/// Datagrams of one flow that the relay repeats: enough for its greetings and first requests.
const REPEATED: u64 = 500;

const SHORT: &str = "-t 500ms -O 100ms";

/// An address to which the server owes nothing.
struct Bystander {
    socket: UdpSocket,
    sent: AtomicU64,
    received: AtomicU64,
}

impl Bystander {
    fn new() -> io::Result<Self> {
        let socket = UdpSocket::bind((BYSTANDER, 0))?;
        socket.set_read_timeout(Some(Duration::from_millis(50)))?;
        Ok(Self { socket, sent: AtomicU64::new(0), received: AtomicU64::new(0) })
    }

    fn send(&self, bytes: &[u8], port: u16) {
        // The server's host may answer by ICMP that a port is closed.
        if self.socket.send_to(bytes, (SERVER, port)).is_ok() {
            self.sent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        }
    }

    fn receive_until(&self, stopped: &AtomicBool) {
        let mut buffer = vec![0; 65_536];
        while !stopped.load(Ordering::Relaxed) {
            if let Ok(length) = self.socket.recv(&mut buffer) {
                self.received.fetch_add(length as u64, Ordering::Relaxed);
            }
        }
    }
}

/// A relay of one port, TCP and UDP.
struct Relay {
    tcp: TcpListener,
    udp: UdpSocket,
    port: u16,
}

impl Relay {
    fn new(port: u16) -> io::Result<Self> {
        Ok(Self { tcp: TcpListener::bind((RELAY, port))?, udp: UdpSocket::bind((RELAY, port))?, port })
    }

    fn start(self, relay: &Arc<Host>, bystander: &Arc<Bystander>) {
        let (inside, port) = (Arc::clone(relay), self.port);
        thread::spawn(move || {
            for client in self.tcp.incoming().flatten() {
                let server = inside.network.enter(|| TcpStream::connect((SERVER, port)));
                if let Ok(Ok(server)) = server {
                    pipe(&client, &server);
                    pipe(&server, &client);
                }
            }
        });
        let (inside, bystander) = (Arc::clone(relay), Arc::clone(bystander));
        thread::spawn(move || relay_datagrams(&self.udp, port, &inside, &bystander));
    }
}

/// Copies what one end sends to the other, in a thread.
fn pipe(from: &TcpStream, to: &TcpStream) {
    let (mut from, mut to) = (from.try_clone().expect("a copy"), to.try_clone().expect("a copy"));
    thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Write);
    });
}

fn relay_datagrams(socket: &UdpSocket, port: u16, relay: &Host, bystander: &Bystander) {
    let towards_client = Arc::new(socket.try_clone().expect("a copy"));
    let mut servers: BTreeMap<SocketAddr, (UdpSocket, u64)> = BTreeMap::new();
    let mut buffer = vec![0; 65_536];
    while let Ok((length, client)) = socket.recv_from(&mut buffer) {
        let (server, count) = servers.entry(client).or_insert_with(|| {
            let server = relay.network.enter(|| UdpSocket::bind((RELAY_TO_SERVER, 0)));
            let server = server.expect("entered").expect("a socket");
            server.connect((SERVER, port)).expect("a route");
            let (answers, towards_client) = (server.try_clone().expect("a copy"), Arc::clone(&towards_client));
            thread::spawn(move || {
                let mut buffer = vec![0; 65_536];
                loop {
                    // A closed port answers by ICMP, once for each datagram.
                    if let Ok(length) = answers.recv(&mut buffer) {
                        let _ = towards_client.send_to(&buffer[..length], client);
                    }
                }
            });
            (server, 0)
        });
        *count += 1;
        let is_repeated = *count <= REPEATED;
        // The address that takes no part comes first with every second datagram.
        let is_first = *count % 2 == 0;
        if is_repeated && is_first {
            bystander.send(&buffer[..length], port);
        }
        let _ = server.send(&buffer[..length]);
        if is_repeated && !is_first {
            bystander.send(&buffer[..length], port);
        }
    }
}

/// A question for the services of a network that asks for an answer to its own address (RFC 6762 section 5.4).
fn question() -> Vec<u8> {
    let mut bytes = vec![0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in ["_linerate", "_tcp", "local"] {
        bytes.push(label.len() as u8);
        bytes.extend_from_slice(label.as_bytes());
    }
    bytes.extend_from_slice(&[0, 0, 12, 0x80, 1]);
    bytes
}

#[lab_test]
fn nothing_is_amplified_towards_addresses_that_have_not_proved_themselves() {
    let (place, client, server) = (TestFolder::new(), Host::new(), Host::new());
    let relay = Arc::new(Host::new());
    client.link(("eth0", "10.9.1.1"), &relay, ("client", RELAY));
    relay.link(("server", RELAY_TO_SERVER), &server, ("eth0", SERVER));
    relay.does(&format!("ip address add {BYSTANDER}/24 dev server"));
    let options = format!("--listen {SERVER}:{AGENT} --announce --name far --pair --iperf3 {IPERF3}");
    let (_agent, url) = server.serves(&place, &options);
    let bystander = Arc::new(relay.network.enter(Bystander::new).expect("entered").expect("a socket"));
    for port in [AGENT, IPERF3] {
        relay.network.enter(|| Relay::new(port)).expect("entered").expect("free ports").start(&relay, &bystander);
    }
    let is_over = Arc::new(AtomicBool::new(false));
    let receives = {
        let bystander = Arc::clone(&bystander);
        let is_over = Arc::clone(&is_over);
        thread::spawn(move || bystander.receive_until(&is_over))
    };
    let secrets = url.split_once('#').expect("an agent URL").1;
    let (to_agent, to_iperf3) = (format!("linerate://{RELAY}:{AGENT}#{secrets}"), format!("iperf3://{RELAY}"));
    let ratios = Mutex::new(Vec::new());
    let trial = |line: &str| {
        let before = [&bystander.sent, &bystander.received].map(|count| count.load(Ordering::Relaxed));
        let line = format!("{line} -r 1 --json");
        let ran = client.network.enter(|| place.run(&words(&line))).expect("entered");
        assert_eq!(ran.code, Some(0), "{line}: {}", ran.err);
        let after = [&bystander.sent, &bystander.received].map(|count| count.load(Ordering::Relaxed));
        assert!(after[0] > before[0], "{line}: no datagram passed the relay");
        ratios.lock().expect("no panic").push((line, after[0] - before[0], after[1] - before[1]));
    };
    for line in [
        format!("stream {to_agent} --udp --rate 2Mbit/s --direction send,receive {SHORT}"),
        format!("transact {to_agent} --udp --request 16 --response 8000 -P 2 {SHORT}"),
        format!("rpc {to_agent} --udp --call read --sizes 8K {SHORT}"),
        format!("nfs {to_agent} --udp {SHORT}"),
        format!("stream {to_iperf3} --udp --rate 2Mbit/s --direction send,receive -t 1s -O 0s"),
    ] {
        trial(&line);
    }
    // What anybody can make up, at every port.
    for port in [AGENT, IPERF3, MDNS] {
        for bytes in [&question()[..], b"9876", &0x3637_3839_u32.to_le_bytes(), &[0; 56], b"GET / HTTP/1.1\r\n\r\n"] {
            for _ in 0..50 {
                bystander.send(bytes, port);
            }
        }
    }
    thread::sleep(Duration::from_millis(500));
    is_over.store(true, Ordering::Relaxed);
    receives.join().expect("the receiver ends");
    let [sent, received] = [&bystander.sent, &bystander.received].map(|count| count.load(Ordering::Relaxed));
    let ratios = ratios.into_inner().expect("no panic");
    for (line, sent, received) in &ratios {
        assert!(received <= sent, "{line}: {received} bytes for {sent}");
    }
    assert!(received <= sent, "{received} bytes for {sent}");
}
