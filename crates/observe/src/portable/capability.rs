//! Capabilities of a host that does not run Linux.

use linerate_model::Capability;
use linerate_sys::affinity;
use linerate_sys::confinement::CONFINES;
use linerate_sys::processor::core_times;
use linerate_sys::protocol_statistics::protocol_statistics;
use std::env::consts::OS;
use std::net::UdpSocket;
use std::thread;

/// Capabilities of Linux only: name, purpose.
const NOT_HERE: [(&str, &str); 8] = [
    ("queue-counters", "drops in the host's own queues"),
    ("pressure-information", "stall times of CPU, storage and memory"),
    ("thread-waiting-times", "how long threads waited for a core"),
    ("cpu-quota", "what a quota did to the agent"),
    ("disk-counters", "what the disks of a copy did"),
    ("congestion-control", "a congestion control for each connection (--congestion)"),
    ("packet-sockets", "raw frames from and to an interface"),
    ("network-namespaces", "hosts of a lab on this machine"),
];

/// Tries each thing that linerate can use.
pub fn capabilities() -> Vec<Capability> {
    let tried = [
        of("ipv6", "trials over IPv6", UdpSocket::bind("[::1]:0").map(drop).map_err(|error| error.to_string())),
        of("core-times", "CPU time of each core", told(core_times())),
        of("protocol-counters", "what IP, UDP and TCP counted", told(protocol_statistics(false))),
        of(
            "least-privilege",
            "agents that start no programs and have no privileges; their files are not confined",
            if CONFINES { Ok(()) } else { Err("an agent is not confined here".to_owned()) },
        ),
        of(
            "pinned-threads",
            "threads kept on cores of one's choice (--cpus-sender, --cpus-receiver)",
            pinned_threads(),
        ),
    ];
    let not_here =
        NOT_HERE.map(|(name, purpose)| of(name, purpose, Err(format!("not known on {OS}; use a Linux agent"))));
    tried.into_iter().chain(not_here).collect()
}

/// Pins a thread that ends at once.
fn pinned_threads() -> Result<(), String> {
    let core = affinity::allowed()[0];
    thread::spawn(move || told(affinity::pin(core)))
        .join()
        .unwrap_or_else(|_| Err(String::from("the thread ended early")))
}

fn told<T>(result: Result<T, linerate_sys::Error>) -> Result<(), String> {
    result.map(drop).map_err(|error| error.to_string())
}

fn of(name: &str, purpose: &str, tried: Result<(), String>) -> Capability {
    let (available, text) = match tried {
        Ok(()) => (true, purpose.to_owned()),
        Err(why) => (false, format!("{purpose}: {why}")),
    };
    Capability { name: name.to_owned(), available, text }
}
