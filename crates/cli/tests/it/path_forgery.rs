//! Forged ICMP messages of a host that knows the addresses and ports of the probes, but not their payload.

use crate::chain_lab::ChainLab;
use crate::program::{Ran, TestFolder, counted};
use linerate_testsuite::lab_test;
use serde_json::Value;
use std::process::Command;

const ROUTERS: [&str; 3] = ["198.18.1.2", "198.18.2.2", "198.18.3.2"];
const FAR_END: &str = "198.18.4.2";
/// Least number of forged messages that a run has to reject. About 500 arrive in 5 s; the kernel drops the others.
const MIN_REJECTED: u64 = 50;
/// Runs in host b. For each flow of probes from host a that it sees, it sends 300 forged messages a second to host a, until nothing
/// has come for a second. It has a line of output for each flow.
const FORGER: &str = r#"
import itertools, os, random, socket, struct, time

PROBER, FAR_END, ROUTER, FOREIGN = "198.18.1.1", "198.18.4.2", "198.18.2.2", "198.18.99.66"
SOURCES = [FOREIGN, ROUTER, FAR_END]
# Type, code and MTU: time exceeded; fragmentation needed; port, protocol and host unreachable; prohibited; parameter problem.
KINDS = [(11, 0, 0), (3, 4, 600), (3, 3, 0), (3, 2, 0), (3, 1, 0), (3, 13, 0), (12, 0, 0)]

def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xffff) + (total >> 16)
    return ~(total + (total >> 16)) & 0xffff

# The number of a probe can be guessed; the timestamp after it cannot.
def wrong_payload(packet):
    return packet[:28] + os.urandom(64)

def right_number(packet):
    return packet[:32] + os.urandom(60)

def other_flow(packet):
    return packet[:20] + os.urandom(8) + packet[28:]

def garbage(packet):
    return os.urandom(random.randrange(100))

QUOTES = [wrong_payload, right_number, wrong_payload, other_flow, garbage]
received = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
received.settimeout(1 / 300)
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
flows = {}
forged = itertools.cycle(itertools.product(QUOTES, SOURCES, KINDS))
due = 0
while True:
    try:
        packet = received.recv(2048)
        is_probe = packet[12:20] == socket.inet_aton(PROBER) + socket.inet_aton(FAR_END) and len(packet) >= 52
        if is_probe and (packet[9] == 17 or packet[9] == 1 and packet[20] == 8):
            # The ports, or the identifier of an echo request.
            flow = packet[20:24] if packet[9] == 17 else packet[24:26]
            if flow not in flows:
                print(flow.hex(), flush=True)
            flows[flow] = (time.monotonic(), packet)
    except TimeoutError:
        pass
    if time.monotonic() < due:
        continue
    due = time.monotonic() + 1 / 300
    for seen, packet in flows.values():
        if time.monotonic() - seen < 1:
            quote, source, (kind, code, mtu) = next(forged)
            message = struct.pack("!BBHHH", kind, code, 0, 0, mtu) + quote(packet)
            message = message[:2] + struct.pack("!H", checksum(message)) + message[4:]
            header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(message), 0, 0, 64, 1, 0,
                                 socket.inet_aton(source), socket.inet_aton(PROBER))
            raw.sendto(header + message, (PROBER, 0))
"#;

/// Checks that a run saw forged messages, and shows nothing but the path.
fn check(ran: &Ran, what: &str) {
    assert_eq!(ran.code, Some(0), "{what}: {}", ran.err);
    let record = ran.json();
    let client = &counted(&record)["counts"][0]["hops"][0]["client"];
    let rejected = client["way"]["rejected"].as_u64().expect("a count");
    let way = &record["results"][0]["ways"][0];
    eprintln!("{what}: {rejected} forged messages rejected, MTU {}", way["path_mtu"]);
    assert!(rejected >= MIN_REJECTED && client["way"]["given_up"].is_null(), "{client}");
    let hops = way["hops"].as_array().expect("hops");
    let addresses: Vec<&Value> = hops.iter().map(|hop| &hop["addresses"]).collect();
    let truth: Vec<Value> = ROUTERS.iter().chain([&FAR_END]).map(|address| Value::from(vec![*address])).collect();
    assert_eq!(addresses, truth.iter().collect::<Vec<_>>(), "{what}");
    assert!(way["path_changed"].is_null() && way["sections"] == Value::Array(Vec::new()), "{what}: {way}");
    let mtu = &way["path_mtu"];
    assert_eq!((&mtu["bytes"], &mtu["link_mtu"]), (&1_400.into(), &1_500.into()), "{what}: {mtu}");
    let reports = mtu["reports"].as_array().expect("a report");
    assert!(mtu["black_hole"].is_null() && reports.len() == 1, "{what}: {mtu}");
    assert_eq!((&reports[0]["address"], &reports[0]["mtu"]), (&ROUTERS[1].into(), &1_400.into()), "{what}");
    let far_end = &hops[3]["idle"];
    let [sent, answered] = ["sent", "answered"].map(|name| far_end[name].as_u64().expect("a count"));
    assert!(sent >= 20 && sent == answered, "{what}: {far_end}");
}

/// A delay of 20 ms on the second link gives forged messages the time to arrive before the true ones.
#[lab_test(Program("python3"))]
fn forged_icmp_messages_change_nothing() {
    let place = TestFolder::new();
    let faults = ["path,at=1-2,delay=20ms", "path,at=2-3,mtu=1400"];
    let unlimited = ["router,at=1,icmp-rate=none", "router,at=2,icmp-rate=none", "router,at=3,icmp-rate=none"];
    let lab = ChainLab::up(3, &[&faults[..], &unlimited].concat());
    let set = lab.run("a", &["sh", "-c", "echo 0 2147483647 > /proc/sys/net/ipv4/ping_group_range"]);
    assert!(set.status.success(), "{set:?}");
    let mut python = Command::new("python3");
    python.args(["-c", FORGER]);
    let mut forger = lab.start("b", python);
    let options = ["--no-load", "--time", "3s", "--json"];
    let urls = ["a", "b"].map(|host| lab.url(host));
    check(&place.run(&[&["path", &urls[0], &urls[1]][..], &options].concat()), "udp");
    // By now the kernel of host a believes that the path MTU is 600 bytes. Agents give up the right to raw sockets.
    let runs = ["ping", "raw-icmp"].map(|packet| {
        let command = place.command(&[&["path", FAR_END, "--packet", packet][..], &options].concat());
        (lab.start("a", command), packet)
    });
    for (run, packet) in runs {
        check(&run.wait_with_output().expect("it ends").into(), packet);
    }
    forger.kill().expect("it runs");
    forger.wait().expect("it ends");
}
