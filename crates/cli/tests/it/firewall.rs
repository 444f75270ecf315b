//! Trials through a firewall that lets one port or two ranges through, and from behind a router that hides addresses.

use crate::program::{Running, TestFolder, words};
use linerate_sys::namespace::NetNamespace;
use linerate_testsuite::{lab_test, program};
use std::process::{Child, Command, Stdio};

/// A host: a network namespace, and a process in it by which others name it.
pub(crate) struct Host {
    pub(crate) network: NetNamespace,
    process: Child,
}

/// The process ends; the kernel removes the namespace with it.
impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Host {
    pub(crate) fn new() -> Self {
        let network = NetNamespace::new().expect("a network namespace");
        // It lives no longer than this process, which holds the other end of its input.
        let start = || Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        let process = network.enter(start).expect("entered").expect("cat starts");
        let host = Self { network, process };
        host.does("ip link set lo up");
        host
    }

    /// Runs a command, which must succeed.
    pub(crate) fn does(&self, line: &str) {
        let [name, arguments @ ..] = &words(line)[..] else { panic!("a command") };
        let path = program(name).unwrap_or_else(|| panic!("{name} is not installed"));
        let done = self.network.enter(|| Command::new(path).args(arguments).output());
        let done = done.expect("entered").expect("it starts");
        assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
    }

    /// A link to `other`, with an address at each end.
    pub(crate) fn link(&self, own: (&str, &str), other: &Self, its: (&str, &str)) {
        let process = other.process.id();
        self.does(&format!("ip link add {} type veth peer name {} netns {process}", own.0, its.0));
        for (host, (name, address)) in [(self, own), (other, its)] {
            host.does(&format!("ip address add {address}/24 dev {name}"));
            host.does(&format!("ip link set {name} up"));
        }
    }

    /// Packets that an interface has sent.
    pub(crate) fn packets_sent(&self, interface: &str) -> u64 {
        let counters = std::fs::read_to_string(format!("/proc/{}/net/dev", self.process.id())).expect("counters");
        let counts = counters.lines().find_map(|line| line.trim_start().strip_prefix(interface)?.strip_prefix(':'));
        let counts = counts.unwrap_or_else(|| panic!("there is no {interface}"));
        counts.split_whitespace().nth(9).and_then(|packets| packets.parse().ok()).expect("a count of packets")
    }

    pub(crate) fn serves(&self, place: &TestFolder, options: &str) -> (Running, String) {
        let copies = place.path("copies");
        std::fs::create_dir_all(&copies).expect("a directory");
        let line = format!("serve --ephemeral --copy-directory {} {options}", copies.display());
        let mut agent = self.network.enter(|| place.start(&words(&line))).expect("entered");
        let url = agent.line();
        (agent, url)
    }

    /// Runs the program, which must measure. Returns how many of its results have nothing: an end that is held up for all of a short
    /// window moves nothing in it.
    #[must_use]
    fn measures(&self, place: &TestFolder, line: &str) -> usize {
        let ran = self.network.enter(|| place.run(&words(line))).expect("entered");
        assert_eq!(ran.code, Some(0), "{line}: {}", ran.err);
        let record = ran.json();
        let results = record["results"].as_array().expect("results");
        assert!(!results.is_empty(), "{line}");
        results.iter().filter(|result| result["main"]["median"].as_f64().is_none_or(|median| median <= 0.0)).count()
    }
}

const SHORT: &str = "--time 500ms --warmup 100ms --repeats 1 --json";
/// Every kind of trial in which hosts open connections to each other, both ways where it has a direction.
const TRIALS: [&str; 12] = [
    "stream URL --direction send,receive,both",
    "stream URL --udp --rate 10Mbit/s -P 3 --direction send,receive,both",
    "stream URL --loaded-latency=udp --direction send,receive --time 1s",
    "transact URL -P 2",
    "transact URL --udp -P 2",
    "transact URL --connect",
    "rpc URL --call read,write --sizes 8K",
    "rpc URL --udp -P 3 --call read,write --sizes 8K",
    "nfs URL",
    "nfs URL --udp -P 2",
    "copy --from memory --to discard --tree files=10,bytes=1M local URL --over linerate",
    "copy --from memory --tree files=10,bytes=1M local URL --over nfs",
];

/// One result of them all may have nothing.
pub(crate) fn all_measure(client: &Host, place: &TestFolder, url: &str) {
    let mut empty = 0;
    for trial in TRIALS {
        let short = match (trial.starts_with("copy"), trial.contains("--time")) {
            (true, _) => "--repeats 1 --json",
            (_, true) => "--warmup 100ms --repeats 1 --json",
            _ => SHORT,
        };
        empty += client.measures(place, &format!("{} {short}", trial.replace("URL", url)));
    }
    assert!(empty <= 1, "{empty} results have nothing");
}

/// Lets nothing in or out of `host` but what `rule` says of `dport` and of `sport`.
fn wall(host: &Host, rule: &str) {
    for (hook, device) in [("input", "iif"), ("output", "oif")] {
        let rules = ["dport", "sport"].map(|port| rule.replace("PORT", port)).concat();
        host.does(&format!(
            "nft table inet wall {{ chain {hook} {{ type filter hook {hook} priority 0; policy drop; {device} lo accept; {rules} }}; }}"
        ));
    }
}

#[lab_test(Program("nft"))]
fn every_trial_runs_through_a_firewall_that_lets_one_port_through() {
    let (place, client, server) = (TestFolder::new(), Host::new(), Host::new());
    client.link(("eth0", "10.9.0.1"), &server, ("eth0", "10.9.0.2"));
    for host in [&client, &server] {
        wall(host, "tcp PORT 4747 accept; udp PORT 4747 accept; ");
    }
    let (_there, there) = server.serves(&place, "--advertise 10.9.0.2");
    let (_here, here) = client.serves(&place, "--listen 10.9.0.1:4747");
    all_measure(&client, &place, &there);
    all_measure(&server, &place, &here);
    // Between two agents, led from elsewhere, in both directions.
    let copies = ["--over linerate", "--over nfs"]
        .map(|way| format!("copy --from memory --tree files=10,bytes=1M FROM TO {way} --repeats 1"));
    let stream = "stream FROM TO --direction both --time 500ms --warmup 100ms --repeats 1".to_owned();
    let mut empty = 0;
    for trial in copies.into_iter().chain([stream]) {
        for (from, to) in [(&here, &there), (&there, &here)] {
            empty += client.measures(&place, &format!("{} --json", trial.replace("FROM", from).replace("TO", to)));
        }
    }
    assert!(empty <= 1, "{empty} results have nothing");
}

#[lab_test(Program("nft"))]
fn every_trial_runs_through_a_firewall_that_lets_two_ranges_through() {
    let (place, client, server) = (TestFolder::new(), Host::new(), Host::new());
    client.link(("eth0", "10.9.0.1"), &server, ("eth0", "10.9.0.2"));
    wall(&server, "tcp PORT { 4747, 5000-5019 } accept; udp PORT 5000-5019 accept; ");
    let (agent, url) = server.serves(&place, "--listen 10.9.0.2:4747 --data-ports 5000-5019");
    all_measure(&client, &place, &url);
    // The destination of a copy listens: both hosts have an agent then.
    let (_here, here) = client.serves(&place, "--listen 10.9.0.1:4747 --data-ports 5000-5019");
    for way in ["--over linerate", "--over nfs"] {
        let copy = format!("copy --from memory --tree files=10,bytes=1M {url} {here} {way} --repeats 1 --json");
        assert_eq!(client.measures(&place, &copy), 0, "{copy}");
    }
    let flows = format!("stream {url} --udp --rate 10Mbit/s -P 20 {SHORT}");
    let refused = client.network.enter(|| place.run(&words(&flows))).expect("entered");
    refused.says(3, &["takes 21 UDP ports", "--data-ports 5000-5019 has 20"]);
    drop(agent);
    // The firewall stops data at others.
    let (_agent, url) = server.serves(&place, "--listen 10.9.0.2:4747 --data-ports 6000-6009");
    let stopped = client.network.enter(|| place.run(&words(&format!("stream {url} {SHORT}")))).expect("entered");
    stopped.says(3, &["10.9.0.2"]);
    let dropped = client.network.enter(|| place.run(&words(&format!("stream {url} --udp --rate 1Mbit/s {SHORT}"))));
    dropped.expect("entered").says(3, &["no answer by UDP", "a firewall may drop UDP"]);
}

#[lab_test]
fn hosts_that_are_reached_by_ipv6_measure_over_it() {
    let (place, client, server) = (TestFolder::new(), Host::new(), Host::new());
    client.link(("eth0", "10.9.0.1"), &server, ("eth0", "10.9.0.2"));
    for (host, address) in [(&client, "fd00:9::1"), (&server, "fd00:9::2")] {
        host.does(&format!("ip address add {address}/64 dev eth0 nodad"));
    }
    let (_agent, url) = server.serves(&place, "--listen [fd00:9::2]:4747");
    all_measure(&client, &place, &url);
    for (option, version) in [("", 6), ("-6", 6), ("-4", 4)] {
        let line = format!("stream {url} {option} {SHORT}");
        let ran = client.network.enter(|| place.run(&words(&line))).expect("entered");
        if version == 4 {
            ran.says(3, &["has no IPv4 address"]);
            continue;
        }
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        assert_eq!(ran.json()["results"][0]["ip"], version, "{option}");
    }
}

/// A client, the router that hides its address, and a server at 10.9.0.2.
pub(crate) fn behind_nat() -> [Host; 3] {
    let hosts = [Host::new(), Host::new(), Host::new()];
    let [client, router, server] = &hosts;
    client.link(("eth0", "192.168.7.2"), router, ("inside", "192.168.7.1"));
    router.link(("outside", "10.9.0.1"), server, ("eth0", "10.9.0.2"));
    client.does("ip route add default via 192.168.7.1");
    router.does("sysctl -qw net.ipv4.ip_forward=1");
    router.does("nft table ip nat { chain out { type nat hook postrouting priority 100; oif outside masquerade; }; }");
    hosts
}

#[lab_test(Program("nft"))]
fn every_trial_runs_from_behind_address_translation() {
    let place = TestFolder::new();
    let [client, _router, server] = behind_nat();
    // The server has no route to the client's own address.
    let (_agent, url) = server.serves(&place, "--listen 10.9.0.2:4747");
    all_measure(&client, &place, &url);
    // Nor can it reach the client, so that the destination connects to the source.
    let back = format!("copy --from memory --to discard --tree files=10,bytes=1M {url} local --over linerate");
    assert_eq!(client.measures(&place, &format!("{back} --repeats 1 --json")), 0, "{back}");
}
