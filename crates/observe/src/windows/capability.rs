//! Capabilities of a Windows host.

use linerate_model::Capability;
use linerate_sys::processor::core_times;
use linerate_sys::protocol_statistics::protocol_statistics;
use std::net::UdpSocket;

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
        of("core-times", "CPU time of each core, with deferred procedure calls", told(core_times())),
        of("protocol-counters", "what IP, UDP and TCP counted", told(protocol_statistics(false))),
        of(
            "least-privilege",
            "agents that start no programs and have no privileges; Windows does not confine their files",
            Ok(()),
        ),
    ];
    let not_here =
        NOT_HERE.map(|(name, purpose)| of(name, purpose, Err("not known on Windows; use a Linux agent".into())));
    tried.into_iter().chain(not_here).collect()
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
