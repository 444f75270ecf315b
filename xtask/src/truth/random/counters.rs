//! Counters of a lab host's interface, read independently of linerate: the data that arrived in a window.

use super::space::{Extent, Setup, Task, Transport};
use nix::time::{ClockId, clock_gettime};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Interval between two reads of the counters.
const INTERVAL: Duration = Duration::from_millis(2);

/// Number of packets at both edges of a window that may count on either side.
const EDGE_PACKETS: f64 = 4.0;

/// Number of reassembled datagrams at both edges of a window that may count on either side.
const EDGE_DATAGRAMS: f64 = 2.0;

/// Interval between two searches for the host's agent.
const SEARCH_INTERVAL: Duration = Duration::from_millis(20);

/// Counters of the interface at one time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Sample {
    /// Time in nanoseconds of `CLOCK_MONOTONIC`, which all network namespaces share.
    at: u64,
    bytes: u64,
    packets: u64,
    /// Datagrams reassembled from fragments.
    assembled: u64,
}

/// Increase of the counters within a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Arrived {
    bytes: f64,
    packets: f64,
    assembled: f64,
    /// Length of the window in seconds.
    seconds: f64,
}

/// Thread that reads the counters of host `b` in the next lab.
pub(super) struct Counters {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Sample>>,
}

impl Counters {
    pub(super) fn start(setup: &Setup) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let fragments = setup.fragmented().map(|_| setup.ipv6);
        Self { stop, thread: thread::spawn(move || read_until(&stopped, fragments)) }
    }

    /// Stops the thread and returns its samples.
    pub(super) fn stop(self) -> Samples {
        self.stop.store(true, Ordering::Relaxed);
        Samples(self.thread.join().unwrap_or_default())
    }
}

/// Samples the counters until `stopped`.
///
/// `fragments` selects the counter of reassembled datagrams: `Some(true)` for IPv6, `Some(false)` for IPv4.
fn read_until(stopped: &AtomicBool, fragments: Option<bool>) -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut agent = None;
    while !stopped.load(Ordering::Relaxed) {
        let Some(process) = agent else {
            agent = agent_of("b");
            thread::sleep(SEARCH_INTERVAL);
            continue;
        };
        match read(process, fragments) {
            Some(sample) => samples.push(sample),
            None => agent = None,
        }
        thread::sleep(INTERVAL);
    }
    samples
}

/// Returns the process of the agent that serves `host` in a lab started by this process.
fn agent_of(host: &str) -> Option<u32> {
    let ancestor = nix::unistd::getpid();
    let processes = fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    processes.into_iter().find(|process| {
        let Ok(command) = fs::read(format!("/proc/{process}/cmdline")) else { return false };
        let arguments: Vec<&[u8]> = command.split(|byte| *byte == 0).collect();
        let serves_host = arguments.windows(2).any(|pair| pair == [b"--name".as_slice(), host.as_bytes()]);
        serves_host && arguments.get(1) == Some(&b"serve".as_slice()) && descends_from(*process, ancestor.as_raw())
    })
}

fn descends_from(process: u32, ancestor: i32) -> bool {
    let mut process = i32::try_from(process).ok();
    while let Some(current) = process.filter(|process| *process > 1) {
        if current == ancestor {
            return true;
        }
        process = parent_of(current);
    }
    false
}

fn parent_of(process: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    status.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Reads the counters of `eth0` in the network namespace of a process.
fn read(process: u32, fragments: Option<bool>) -> Option<Sample> {
    let text = fs::read_to_string(format!("/proc/{process}/net/dev")).ok()?;
    let assembled = match fragments {
        None => 0,
        Some(true) => assembled_v6(&fs::read_to_string(format!("/proc/{process}/net/snmp6")).ok()?)?,
        Some(false) => assembled_v4(&fs::read_to_string(format!("/proc/{process}/net/snmp")).ok()?)?,
    };
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).ok()?;
    let at = u64::try_from(now.tv_sec()).ok()? * 1_000_000_000 + u64::try_from(now.tv_nsec()).ok()?;
    parse(&text).map(|(bytes, packets)| Sample { at, bytes, packets, assembled })
}

/// Returns `ReasmOKs` in the text of /proc/net/snmp, which has a line of names and then a line of numbers.
fn assembled_v4(text: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Ip: "));
    let column = lines.next()?.split_whitespace().position(|name| name == "ReasmOKs")?;
    lines.next()?.split_whitespace().nth(column)?.parse().ok()
}

/// Returns `Ip6ReasmOKs` in the text of /proc/net/snmp6.
fn assembled_v6(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("Ip6ReasmOKs"))?.trim().parse().ok()
}

/// Returns the received bytes and packets of `eth0` in the text of /proc/net/dev.
fn parse(text: &str) -> Option<(u64, u64)> {
    let counters = text.lines().find_map(|line| line.trim_start().strip_prefix("eth0:"))?;
    let mut numbers = counters.split_whitespace().map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// The counters over time.
#[derive(Debug, Default)]
pub(super) struct Samples(Vec<Sample>);

impl Samples {
    /// Returns the increase of the counters within `length` nanoseconds from `opened`, or `None` if the samples do not
    /// cover that time.
    ///
    /// Values between two samples are interpolated linearly.
    pub(super) fn within(&self, opened: u64, length: u64) -> Option<Arrived> {
        let first = self.at(opened)?;
        let last = self.at(opened + length)?;
        let [bytes, packets, assembled] = std::array::from_fn(|counter| last[counter] - first[counter]);
        Some(Arrived { bytes, packets, assembled, seconds: length as f64 / 1e9 })
    }

    /// Returns bytes, packets and reassembled datagrams at a time.
    fn at(&self, at: u64) -> Option<[f64; 3]> {
        let next = self.0.partition_point(|sample| sample.at < at);
        let before = self.0.get(next.checked_sub(1)?)?;
        let after = self.0.get(next)?;
        let share = (at - before.at) as f64 / (after.at - before.at) as f64;
        let between = |before: u64, after: u64| before as f64 + (after - before) as f64 * share;
        Some([
            between(before.bytes, after.bytes),
            between(before.packets, after.packets),
            between(before.assembled, after.assembled),
        ])
    }
}

impl Arrived {
    /// Returns the tolerated difference between a result and the payload `counted`, in bit/s: the packets at the
    /// window's edges may count on either side.
    pub(super) fn at_edges(&self, counted: f64, setup: &Setup) -> f64 {
        if let Some(datagram) = setup.fragmented() {
            return EDGE_DATAGRAMS * datagram as f64 * 8.0 / self.seconds;
        }
        // The interface counts segments merged by GRO as one packet.
        EDGE_PACKETS * counted / self.packets.max(1.0)
    }

    /// Returns the payload that arrived, in bit/s: the bytes without the headers of IP and of UDP or TCP with
    /// timestamps. If datagrams are fragmented, only the reassembled ones count.
    ///
    /// Returns `None` if the task's packets have different headers, or each sender has its own window.
    pub(super) fn payload(&self, setup: &Setup) -> Option<f64> {
        let Task::Stream { transport, extent: Extent::Seconds(_), .. } = &setup.task else { return None };
        if let Some(datagram) = setup.fragmented() {
            return Some(self.assembled * datagram as f64 * 8.0 / self.seconds);
        }
        let ethernet = if setup.is_plain() { 14.0 } else { 0.0 };
        let ip = if setup.ipv6 { 40.0 } else { 20.0 };
        let transport = if *transport == Transport::Udp { 8.0 } else { 32.0 };
        Some((self.bytes - self.packets * (ethernet + ip + transport)).max(0.0) * 8.0 / self.seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_the_interface_are_read() {
        let text = "Inter-|   Receive\n face |bytes    packets\n    lo:   10  1 0\n  eth0: 123456 78 0 0 0\n";
        assert_eq!(parse(text), Some((123_456, 78)));
        assert_eq!(parse("    lo:   10  1 0\n"), None);
    }

    #[test]
    fn window_between_samples_has_its_share() {
        let sample = |at, bytes, packets| Sample { at, bytes, packets, assembled: 0 };
        let samples =
            Samples(vec![sample(0, 0, 0), sample(1_000, 1_500, 1), sample(2_000, 3_000, 2), sample(3_000, 3_000, 2)]);
        let arrived = samples.within(500, 1_500).unwrap();
        assert!((arrived.bytes - 2_250.0).abs() < 1e-6 && (arrived.packets - 1.5).abs() < 1e-6, "{arrived:?}");
        assert_eq!(samples.within(2_500, 1_000), None, "the window ends after the last sample");
    }

    #[test]
    fn reassembled_datagrams_are_read() {
        let text = "Ip: Forwarding ReasmOKs ReasmFails\nIp: 1 17 2\nIcmp: InMsgs\nIcmp: 0\n";
        assert_eq!(assembled_v4(text), Some(17));
        assert_eq!(assembled_v6("Ip6ReasmReqds   \t9\nIp6ReasmOKs                 \t3\n"), Some(3));
    }

    #[test]
    fn payload_excludes_headers() {
        let of = |size, line, packet: f64| {
            let task = Task::Stream { transport: Transport::Udp, size, rate: None, extent: Extent::Seconds(1.0) };
            let setup = Setup {
                number: 0,
                task,
                ipv6: false,
                flows: 1,
                line,
                path: None,
                plant: super::super::space::Plant::Nothing,
            };
            Arrived { bytes: 10.0 * packet, packets: 10.0, assembled: 2.0, seconds: 1.0 }.payload(&setup).unwrap()
        };
        assert!((of(1_000, Some(1e9), 1_028.0) - 80_000.0).abs() < 1e-6);
        assert!((of(1_000, None, 1_042.0) - 80_000.0).abs() < 1e-6, "veth counts the Ethernet header");
        assert!((of(2_000, None, 1_000.0) - 32_000.0).abs() < 1e-6, "two datagrams were reassembled");
    }
}
