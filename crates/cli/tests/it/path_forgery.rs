//! Forged ICMP messages of a host that knows the addresses and ports of the probes, but not their payload.

use crate::chain_lab::ChainLab;
use crate::program::{Ran, TestFolder, counted};
use linerate_testsuite::lab_test;
use serde_json::Value;
use std::process::Command;

/// Least number of forged messages that a run has to reject. About 500 arrive in 5 s; the kernel drops the others.
const MIN_REJECTED: u64 = 50;
/// Addresses of the routers and of host b.
const HOPS_V4: [&str; 4] = ["198.18.1.2", "198.18.2.2", "198.18.3.2", "198.18.4.2"];
const HOPS_V6: [&str; 4] = ["2001:2:0:1::2", "2001:2:0:2::2", "2001:2:0:3::2", "2001:2:0:4::2"];
/// Answers of routers are not limited. A delay of 20 ms on the second link gives forged messages the time to arrive before the true ones.
const FAULTS: [&str; 5] = [
    "path,at=1-2,delay=20ms",
    "path,at=2-3,mtu=1400",
    "router,at=1,icmp-rate=none",
    "router,at=2,icmp-rate=none",
    "router,at=3,icmp-rate=none",
];
/// The same without a small MTU, and with a router that does not answer.
const SILENT_FAULTS: [&str; 4] =
    ["path,at=1-2,delay=20ms", "router,at=1,icmp-rate=none", "router,at=2,silent=true", "router,at=3,icmp-rate=none"];
/// Runs in host b, with `short` or `long` quotes, the address of the prober, that of the far end, and others to send from. For each flow of
/// probes that it sees, it sends 300 forged messages a second to the prober, until no probe has come for a second.
const FORGER: &str = r#"
import itertools, os, random, socket, struct, sys, time

PROBER, *SOURCES = [socket.inet_pton(socket.AF_INET6 if ":" in word else socket.AF_INET, word) for word in sys.argv[2:]]
V6 = len(PROBER) == 16
# Length of an IP header, and offsets of its protocol and addresses.
HEADER, PROTOCOL, ADDRESSES = (40, 6, 8) if V6 else (20, 9, 12)
UDP, ICMP, ECHO = (17, 58, 128) if V6 else (17, 1, 8)
# Type, code and MTU: time exceeded; packet too big; port, protocol and host unreachable; prohibited; parameter problem.
KINDS_V4 = [(11, 0, 0), (3, 4, 600), (3, 3, 0), (3, 2, 0), (3, 1, 0), (3, 13, 0), (12, 0, 0)]
KINDS_V6 = [(3, 0, 0), (2, 0, 1280), (1, 4, 0), (1, 0, 0), (1, 3, 0), (1, 1, 0), (4, 0, 0)]

def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xffff) + (total >> 16)
    return ~(total + (total >> 16)) & 0xffff

# The number of a probe can be guessed; the timestamp after it cannot.
def wrong_payload(packet):
    return packet[:HEADER + 8] + os.urandom(64)

def right_number(packet):
    return packet[:HEADER + 12] + os.urandom(60)

def other_flow(packet):
    return packet[:HEADER] + os.urandom(8) + packet[HEADER + 8:]

def garbage(packet):
    return os.urandom(random.randrange(100))

# As from a router that quotes 8 bytes after the IP header: nothing that is hard to guess.
def only_ports(packet):
    return packet[:HEADER + 8]

# A header of options before another one.
def options(protocol):
    return bytes([protocol, 0, 1, 4, 0, 0, 0, 0])

def extension_headers(packet):
    headers = bytes([60]) + packet[7:HEADER] + options(60) + options(60) + options(packet[PROTOCOL])
    return packet[:PROTOCOL] + headers + packet[HEADER:HEADER + 12] + os.urandom(60)

def ip_packet(source, message):
    if not V6:
        header = struct.pack("!BBHHHBBH", 0x45, 0, HEADER + len(message), 0, 0, 64, ICMP, 0)
        return header + source + PROBER + message
    # Half of the messages themselves have options.
    before = random.choice([b"", options(ICMP)])
    header = struct.pack("!IHBB", 6 << 28, len(before) + len(message), 60 if before else ICMP, 64)
    return header + source + PROBER + before + message

QUOTES = [wrong_payload, right_number, extension_headers if V6 else wrong_payload, other_flow, garbage]
if sys.argv[1] == "short":
    QUOTES = [only_ports]
FAMILY, ETHER = (socket.AF_INET6, 0x86dd) if V6 else (socket.AF_INET, 0x0800)
received = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETHER))
received.settimeout(1 / 300)
raw = socket.socket(FAMILY, socket.SOCK_RAW, socket.IPPROTO_RAW)
flows = {}
forged = itertools.cycle(itertools.product(QUOTES, SOURCES, KINDS_V6 if V6 else KINDS_V4))
due = 0
while True:
    try:
        packet = received.recv(2048)
        is_probe = packet[ADDRESSES:HEADER] == PROBER + SOURCES[0] and len(packet) >= HEADER + 32
        # The ports, or the identifier of an echo request.
        if is_probe and packet[PROTOCOL] == UDP:
            flows[packet[HEADER:HEADER + 4]] = (time.monotonic(), packet)
        elif is_probe and packet[PROTOCOL] == ICMP and packet[HEADER] == ECHO:
            flows[packet[HEADER + 4:HEADER + 6]] = (time.monotonic(), packet)
    except TimeoutError:
        pass
    if time.monotonic() < due:
        continue
    due = time.monotonic() + 1 / 300
    for seen, packet in flows.values():
        if time.monotonic() - seen < 1:
            quote, source, (kind, code, mtu) = next(forged)
            message = struct.pack("!BBHI", kind, code, 0, mtu) + quote(packet)[:1000]
            pseudo = source + PROBER + struct.pack("!II", len(message), ICMP) if V6 else b""
            message = message[:2] + struct.pack("!H", checksum(pseudo + message)) + message[4:]
            raw.sendto(ip_packet(source, message), (socket.inet_ntop(FAMILY, PROBER), 0))
            if sys.argv[1] == "short" and packet[PROTOCOL] == ICMP:
                # An echo reply without data.
                message = bytes([ECHO + 1 if V6 else 0, 0, 0, 0]) + packet[HEADER + 4:HEADER + 8]
                pseudo = SOURCES[0] + PROBER + struct.pack("!II", len(message), ICMP) if V6 else b""
                message = message[:2] + struct.pack("!H", checksum(pseudo + message)) + message[4:]
                raw.sendto(ip_packet(SOURCES[0], message), (socket.inet_ntop(FAMILY, PROBER), 0))
"#;

/// Runs `linerate path` with each kind of packets that have a payload, while a host forges messages. Returns the way from host a to host b
/// of each run.
fn probe_next_to_forger(faults: &[&str], quotes: &str, addresses: [&str; 4]) -> Vec<Value> {
    let [prober, far_end, ..] = addresses;
    let place = TestFolder::new();
    let lab = ChainLab::up(3, faults);
    let set = lab.run("a", &["sh", "-c", "echo 0 2147483647 > /proc/sys/net/ipv4/ping_group_range"]);
    assert!(set.status.success(), "{set:?}");
    let mut python = Command::new("python3");
    python.args(["-c", FORGER, quotes]).args(addresses);
    let mut forger = lab.start("b", python);
    let version = if prober.contains(':') { "-6" } else { "-4" };
    let options = [version, "--no-load", "--time", "3s", "--json"];
    let urls = ["a", "b"].map(|host| lab.url(host));
    let mut ends = vec![place.run(&[&["path", &urls[0], &urls[1]][..], &options].concat())];
    // By now the kernel of host a may believe in a smaller path MTU. Agents give up the right to raw sockets.
    let runs = ["ping", "raw-icmp"]
        .map(|packet| lab.start("a", place.command(&[&["path", far_end, "--packet", packet][..], &options].concat())));
    ends.extend(runs.map(|run| Ran::from(run.wait_with_output().expect("it ends"))));
    forger.kill().expect("it can be killed");
    let forger = forger.wait_with_output().expect("it ends");
    assert!(forger.stderr.is_empty(), "{}", String::from_utf8_lossy(&forger.stderr));
    let mut ways = Vec::new();
    for (ran, packet) in ends.iter().zip(["udp", "ping", "raw-icmp"]) {
        assert_eq!(ran.code, Some(0), "{packet}: {}", ran.err);
        let record = ran.json();
        let client = &counted(&record)["counts"][0]["hops"][0]["client"];
        let rejected = client["way"]["rejected"].as_u64().expect("a count");
        let way = &record["results"][0]["ways"][0];
        eprintln!("{packet}: {rejected} forged messages rejected, MTU {}", way["path_mtu"]);
        assert!(rejected >= MIN_REJECTED && client["way"]["given_up"].is_null(), "{client}");
        assert!(way["path_changed"].is_null() && way["sections"] == Value::Array(Vec::new()), "{way}");
        let far_end = &way["hops"].as_array().and_then(|hops| hops.last()).expect("hops")["idle"];
        let [sent, answered] = ["sent", "answered"].map(|name| far_end[name].as_u64().expect("a count"));
        assert!(sent >= 20 && sent == answered, "{packet}: {far_end}");
        ways.push(way.clone());
    }
    ways
}

/// Returns the addresses of each hop.
fn addresses(way: &Value) -> Vec<Vec<&str>> {
    let mut hops = Vec::new();
    for hop in way["hops"].as_array().expect("hops") {
        let addresses = hop["addresses"].as_array().expect("addresses");
        hops.push(addresses.iter().filter_map(Value::as_str).collect());
    }
    hops
}

fn wrong_quotes_change_nothing(hops: [&str; 4], prober: &str, foreign: &str) {
    for way in probe_next_to_forger(&FAULTS, "long", [prober, hops[3], hops[1], foreign]) {
        assert_eq!(addresses(&way), hops.map(|address| vec![address]));
        let mtu = &way["path_mtu"];
        assert_eq!((&mtu["bytes"], &mtu["link_mtu"]), (&1_400.into(), &1_500.into()), "{mtu}");
        let reports = mtu["reports"].as_array().expect("a report");
        assert!(mtu["black_hole"].is_null() && reports.len() == 1, "{mtu}");
        assert_eq!((&reports[0]["address"], &reports[0]["mtu"]), (&hops[1].into(), &1_400.into()));
    }
}

/// A message of the far end at the TTL of the silent router would make the path shorter.
fn short_quotes_change_nothing(hops: [&str; 4], prober: &str) {
    for way in probe_next_to_forger(&SILENT_FAULTS, "short", [prober, hops[3], hops[2], hops[0]]) {
        assert_eq!(addresses(&way), [vec![hops[0]], vec![], vec![hops[2]], vec![hops[3]]]);
        let mtu = &way["path_mtu"];
        assert!(mtu["bytes"] == 1_500 && mtu["reports"].is_null() && mtu["black_hole"].is_null(), "{mtu}");
    }
}

#[lab_test(Program("python3"))]
fn forged_icmp_messages_change_nothing() {
    wrong_quotes_change_nothing(HOPS_V4, "198.18.1.1", "198.18.99.66");
}

/// Some quoted packets, and some messages themselves, have extension headers.
#[lab_test(Program("python3"))]
fn forged_icmpv6_messages_change_nothing() {
    wrong_quotes_change_nothing(HOPS_V6, "2001:2:0:1::1", "2001:2:0:63::42");
}

/// Routers and hosts that have quoted payloads do not quote less later.
#[lab_test(Program("python3"))]
fn short_icmp_messages_in_the_name_of_known_hops_change_nothing() {
    short_quotes_change_nothing(HOPS_V4, "198.18.1.1");
}

#[lab_test(Program("python3"))]
fn short_icmpv6_messages_in_the_name_of_known_hops_change_nothing() {
    short_quotes_change_nothing(HOPS_V6, "2001:2:0:1::1");
}
