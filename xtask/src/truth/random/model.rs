//! Computes which limits bind a set-up. Nothing is taken from linerate: header sizes follow RFC 791, 8200, 768, 9293
//! and IEEE 802.3, and a value that depends on the machine is a range.

use super::space::{Extent, MTU, PATH_RATE_MAXIMUM, Path, Plant, Setup, Task, Transport};

/// Bytes of a frame on the wire around its IP packet: Ethernet header, FCS, preamble and gap.
const AROUND_PACKET: u64 = 14 + 4 + 8 + 12;

/// Shortest IP packet of a frame. Shorter packets are padded.
const SHORTEST_PACKET: u64 = 46;

/// TCP's header with timestamps (RFC 7323).
const TCP_HEADER: u64 = 32;

/// Number of segments that TCP sends before the first acknowledgement (RFC 6928).
const INITIAL_WINDOW: f64 = 10.0;

/// Messages per second that one core sends or receives, over all machines.
const MESSAGES_PER_CORE: Range = Range { low: 15e3, high: 4e6 };

/// TCP payload that one core sends or receives, over all machines, in bit/s.
const TCP_PER_CORE: Range = Range { low: 0.5e9, high: 120e9 };

/// Rate at which a file system reads or writes, over all machines, in bit/s.
const STORAGE: Range = Range { low: 50e6, high: 40e9 };

/// Files created or opened per second, over all machines.
const FILES: Range = Range { low: 50.0, high: 50e3 };

/// Size in bytes of the default file set, which linerate writes before it measures NFS.
const FILE_SET: f64 = 200.0 * 144.0 * 1024.0;

/// Number of files in the default file set.
const FILE_SET_FILES: f64 = 200.0;

/// Size in bytes below which a queue loses packets of each burst of TCP.
const SHORT_QUEUE: u64 = 100_000;

/// Number of frames that a shaper of Linux or of the lab sends at once after a pause. They shorten a small volume.
const FRAMES_AT_ONCE: f64 = 2.0;

/// Multiple of the lowest bound up to which the lowest estimate of a limit may be, so that the limit may be named.
const MARGIN: f64 = 2.0;

/// Range of a number that is not known exactly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Range {
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Range {
    fn exactly(value: f64) -> Self {
        Self { low: value, high: value }
    }

    fn times(self, factor: f64) -> Self {
        Self { low: self.low * factor, high: self.high * factor }
    }

    fn widened(self, down: f64, up: f64) -> Self {
        Self { low: self.low * down, high: self.high * up }
    }
}

/// Upper bound of the figure, set by one limit, in the unit of the figure.
#[derive(Debug, Clone)]
pub(super) struct Bound {
    /// Right names of the limit, as in records. Several if one bottleneck has several names.
    limits: &'static [&'static str],
    /// Right places. Empty if every place is right.
    places: &'static [&'static str],
    pub(super) range: Range,
}

/// Bounds of a set-up.
#[derive(Debug)]
pub(super) struct Expected {
    bounds: Vec<Bound>,
}

impl Expected {
    /// Computes the bounds.
    pub(super) fn of(setup: &Setup) -> Self {
        let mut expected = Self { bounds: Vec::new() };
        match &setup.task {
            Task::Stream { transport, size, rate, extent } => expected.stream(setup, transport, *size, *rate, *extent),
            Task::Transact { transport, request, response, .. } => {
                expected.requests(setup, transport, 1, *request, *response, *request + *response);
            }
            Task::Rpc { transport, size, outstanding, .. } => {
                // A call has at least 40 bytes of header, a reply 24 (RFC 5531 sections 9 and 8.2).
                expected.requests(setup, transport, *outstanding, *size + 40, 24, *size);
            }
            Task::Copy { files, size } => expected.copy(setup, *files, *size),
            Task::Nfs { .. } => expected.nfs(),
        }
        expected
    }

    /// Returns the highest possible figure, in its own unit.
    pub(super) fn highest(&self) -> f64 {
        self.bounds.iter().map(|bound| bound.range.high).fold(f64::INFINITY, f64::min)
    }

    /// Returns how far a result may exceed the bound, in bit/s: data in flight when the window opened may count in it.
    pub(super) fn in_flight(setup: &Setup) -> f64 {
        match setup.task {
            Task::Transact { request, response, time, .. } => {
                8.0 * setup.flows as f64 * (request + response) as f64 / time
            }
            Task::Rpc { size, outstanding, time, .. } => 8.0 * setup.flows as f64 * (outstanding * size) as f64 / time,
            _ => 0.0,
        }
    }

    /// Returns whether a verdict with high confidence may name `limit` at `place`. A verdict without a place is not
    /// wrong about the place.
    pub(super) fn allows(&self, limit: &str, place: Option<&str>) -> bool {
        let highest = self.highest();
        self.bounds.iter().any(|bound| {
            bound.range.low <= MARGIN * highest
                && bound.limits.contains(&limit)
                && (bound.places.is_empty() || place.is_none_or(|place| bound.places.contains(&place)))
        })
    }

    /// Describes the limits that may bind for a reader.
    pub(super) fn limits(&self) -> String {
        let highest = self.highest();
        let mut texts = Vec::new();
        for bound in self.bounds.iter().filter(|bound| bound.range.low <= MARGIN * highest) {
            let places =
                if bound.places.is_empty() { String::new() } else { format!(" at {}", bound.places.join("/")) };
            texts.push(format!("{}{places} {:.4e}", bound.limits.join("/"), bound.range.high));
        }
        texts.join(", ")
    }

    fn add(&mut self, limits: &'static [&'static str], places: &'static [&'static str], range: Range) {
        self.bounds.push(Bound { limits, places, range });
    }

    /// Adds the bounds of links, path and queues.
    ///
    /// `share` is payload over bytes on the wire, `frame` the payload of one frame in bytes.
    fn links(&mut self, setup: &Setup, share: f64, frame: f64) {
        if let Some(line) = setup.line {
            self.add(&["wire"], &[], Range::exactly(line * share));
        }
        if let Plant::SenderQueue { rate, .. } = setup.plant {
            // tbf counts the bytes of a packet before segmentation: one header, no preamble, FCS or gap.
            self.add(&["shaper"], &["sender-queue"], Range { low: rate * share, high: rate });
        }
        if let Some(path) = setup.path {
            let rate = path.rate.unwrap_or(PATH_RATE_MAXIMUM).min(300e3 * 8.0 * frame / share);
            // A path near the lab's highest rate may carry less, since its program needs a core.
            let low = if path.rate.is_some_and(|rate| rate <= 300e6) && rate * share / frame / 8.0 < 30e3 {
                1.0
            } else {
                0.05
            };
            self.add(&["shaper"], &["forward-path"], Range::exactly(rate * share).widened(low, 1.0));
        }
    }

    fn processors(&mut self, setup: &Setup, per_core: Range) {
        let mut sender_share = 1.0;
        let mut receiver_share = 1.0;
        match setup.plant {
            Plant::Quota { at_sender: true, share } => sender_share = share,
            Plant::Quota { at_sender: false, share } => receiver_share = share,
            _ => {}
        }
        let busy = if setup.busy_loops() > 0 { 0.2 } else { 1.0 };
        // Both hosts, the path and the program that runs the measurement share the cores of this machine.
        let cores = per_core.widened(0.1 * busy, 2.0);
        self.add(&["sender-cpu", "softirq-cpu"], &[], cores.times(sender_share));
        self.add(&["receiver-cpu", "receiver-buffer", "softirq-cpu"], &[], cores.times(receiver_share));
    }

    fn stream(&mut self, setup: &Setup, transport: &Transport, size: u64, rate: Option<f64>, extent: Extent) {
        if let Some(rate) = rate {
            self.add(&["offered-load"], &[], Range::exactly(rate));
        }
        match transport {
            Transport::Udp => {
                self.links(setup, udp_share(size, setup.ipv6), (size as f64).min(MTU as f64));
                let per_core = MESSAGES_PER_CORE.times(8.0 * size as f64);
                self.processors(setup, Range { high: per_core.high.min(TCP_PER_CORE.high), ..per_core });
                if setup.loss() > 0.0 {
                    // Loss reduces the offered load by its share. It is the limit if nothing else binds.
                    let highest = self.highest();
                    self.add(
                        &["path-loss"],
                        &["forward-path"],
                        Range::exactly(highest).widened(1.0 - setup.loss(), 1.0),
                    );
                }
            }
            Transport::Tcp(congestion) => {
                let segment = segment(setup.ipv6) as f64;
                self.links(setup, tcp_share(setup.ipv6), segment);
                let calls = MESSAGES_PER_CORE.times(8.0 * size as f64);
                self.processors(
                    setup,
                    Range { low: TCP_PER_CORE.low.min(calls.low), high: TCP_PER_CORE.high.min(calls.high) },
                );
                self.tcp(setup, congestion, segment, extent);
            }
        }
        if let Extent::Bytes(_) = extent {
            // The time of a volume includes the start and the last round trip.
            let highest = self.highest();
            self.add(&["start-up"], &[], Range::exactly(highest).widened(0.1, 1.0));
        }
    }

    /// Adds the bounds of TCP's windows, its start and its response to loss.
    fn tcp(&mut self, setup: &Setup, congestion: &str, segment: f64, extent: Extent) {
        let round_trip = (2.0 * setup.delay()).max(100e-6);
        let flows = setup.flows as f64;
        let buffer = socket_buffers();
        self.add(&["window", "send-buffer"], &[], buffer.times(8.0 * flows / round_trip));
        if setup.delay() > 1e-3 {
            let highest = self.highest();
            let window = (highest * round_trip / (8.0 * segment * INITIAL_WINDOW * flows)).max(1.0);
            let start = round_trip * (window.log2() + 1.0);
            let whole = match extent {
                Extent::Seconds(time) => time + (10.0 * round_trip).max(0.5),
                Extent::Bytes(bytes) => 8.0 * bytes as f64 / highest,
            };
            if start > whole / 8.0 {
                self.add(&["start-up"], &[], Range::exactly(highest).widened(0.02, 1.0));
            }
        }
        let loss = setup.loss();
        if loss > 0.0 {
            // Mathis et al. 1997, "The macroscopic behavior of the TCP congestion avoidance algorithm": segment / RTT x
            // 1.22 / sqrt(loss).
            let square_root = 8.0 * segment * flows / round_trip.max(1e-3) * 1.22 / loss.sqrt();
            let range = match congestion {
                // Only some versions of BBR respond to loss above 2 %.
                "bbr" => Range { low: square_root * 0.05, high: f64::INFINITY },
                _ => Range { low: square_root * 0.05, high: f64::INFINITY.min(square_root * 30.0) },
            };
            self.add(&["path-loss"], &["forward-path"], range);
        }
    }

    /// Adds the bounds of requests and their replies. The figure is payload in bit/s; each request counts `payload`
    /// bytes.
    fn requests(
        &mut self,
        setup: &Setup,
        transport: &Transport,
        outstanding: u64,
        request: u64,
        response: u64,
        payload: u64,
    ) {
        let (wire, frame) = match transport {
            Transport::Udp => (udp_wire(request, setup.ipv6), (request as f64).min(MTU as f64)),
            Transport::Tcp(_) => (tcp_wire(request, setup.ipv6), (request as f64).min(segment(setup.ipv6) as f64)),
        };
        let bits = 8.0 * payload as f64;
        self.links(setup, payload as f64 / wire as f64, frame * payload as f64 / request as f64);
        let response_wire = match transport {
            Transport::Udp => udp_wire(response, setup.ipv6),
            Transport::Tcp(_) => tcp_wire(response, setup.ipv6),
        };
        let in_flight = (setup.flows as u64 * outstanding) as f64;
        let slowest = [setup.line, setup.path.and_then(|path| path.rate)].into_iter().flatten().fold(10e9, f64::min);
        let serial = 8.0 * (wire + response_wire) as f64 / slowest;
        let round_trip = 2.0 * setup.delay() + serial;
        let fastest = in_flight / (round_trip + 1e-6) * bits;
        // A lost packet waits for a timeout of TCP or of the requests.
        let packets = (wire + response_wire) as f64 / frame.max(64.0);
        let repeats = setup.loss() * packets.max(2.0) * TIMEOUT;
        self.add(
            &["latency"],
            &[],
            Range { low: in_flight / (2.0 * (round_trip + repeats) + 2e-3) * bits, high: fastest },
        );
        let calls = Range { low: 2e3, high: 2e6 };
        self.processors(setup, calls.times(bits));
        self.add(&["server", "receiver-buffer"], &[], calls.widened(0.1, 4.0).times(bits));
        if request > 20_000 || outstanding > 1 {
            let buffer = socket_buffers();
            let window = Range { low: 0.1 * buffer.low, high: buffer.high };
            self.add(
                &["window", "send-buffer", "start-up"],
                &[],
                window.times(8.0 * setup.flows as f64 / round_trip.max(1e-4)),
            );
        }
        if setup.loss() > 0.0 || setup.path.is_some_and(|path| in_flight * wire as f64 > path.queue as f64) {
            // A lost request waits for a timeout, so every rate below the other bounds is possible.
            let highest = self.highest();
            self.add(&["path-loss"], &[], Range { low: 0.0, high: highest });
        }
    }

    fn copy(&mut self, setup: &Setup, files: u64, size: u64) {
        let volume = (files * size) as f64;
        let at_once = FRAMES_AT_ONCE * segment(setup.ipv6) as f64;
        let short = if volume > at_once { volume / (volume - at_once) } else { f64::INFINITY };
        self.links(setup, tcp_share(setup.ipv6) * short.min(1e6), segment(setup.ipv6) as f64);
        let bits = 8.0 * size as f64;
        self.processors(setup, Range { low: 50e6_f64.min(500.0 * bits), high: 40e9 });
        let storage = Range { low: STORAGE.low.min(FILES.low * bits), high: STORAGE.high.min(FILES.high * bits) };
        self.add(&["storage-read", "storage-write", "server"], &[], storage);
        self.tcp(setup, "any", segment(setup.ipv6) as f64, Extent::Bytes(files * size));
        let highest = self.highest();
        let latency = bits / (2.0 * setup.delay()).max(1e-5);
        self.add(
            &["latency", "window", "start-up", "send-buffer"],
            &[],
            Range { low: (0.1 * latency).min(highest), high: highest },
        );
    }

    /// Adds the bounds of NFS operations. Almost every limit may bind, since nothing is planted in the server.
    fn nfs(&mut self) {
        let any = Range { low: 0.0, high: f64::INFINITY };
        self.add(&["server", "latency", "storage-read", "storage-write", "offered-load", "wire"], &[], any);
        self.add(&["sender-cpu", "receiver-cpu", "softirq-cpu", "window", "send-buffer", "path-loss"], &[], any);
        self.add(&["shaper"], &["forward-path", "return-path", "sender-queue"], any);
    }
}

/// Returns the range of the buffers of a TCP socket on this machine, in bytes.
fn socket_buffers() -> Range {
    let receive = largest_buffer("tcp_rmem").unwrap_or(4e6);
    let send = largest_buffer("tcp_wmem").unwrap_or(4e6);
    Range { low: 0.2 * receive.min(send), high: receive.max(send) }
}

fn largest_buffer(setting: &str) -> Option<f64> {
    let text = std::fs::read_to_string(format!("/proc/sys/net/ipv4/{setting}")).ok()?;
    text.split_whitespace().nth(2)?.parse().ok()
}

fn ip_header(ipv6: bool) -> u64 {
    if ipv6 { 40 } else { 20 }
}

/// Returns the payload of a full TCP segment in bytes.
pub(super) fn segment(ipv6: bool) -> u64 {
    MTU - ip_header(ipv6) - TCP_HEADER
}

/// Shortest retransmission timeout of TCP on Linux and of requests over UDP, in seconds.
const TIMEOUT: f64 = 0.2;

fn frame(packet: u64) -> u64 {
    packet.max(SHORTEST_PACKET) + AROUND_PACKET
}

/// Returns whether a datagram of `size` bytes is fragmented.
pub(super) fn has_fragments(size: u64, ipv6: bool) -> bool {
    size + 8 + ip_header(ipv6) > MTU
}

/// Returns the bytes on the wire of a datagram of `size` bytes, with its fragments.
pub(super) fn udp_wire(size: u64, ipv6: bool) -> u64 {
    let header = ip_header(ipv6);
    let data = size + 8;
    if !has_fragments(size, ipv6) {
        return frame(data + header);
    }
    let fragment_header = if ipv6 { header + 8 } else { header };
    let fragment = (MTU - fragment_header) / 8 * 8;
    let last = data % fragment;
    data / fragment * frame(fragment + fragment_header) + if last > 0 { frame(last + fragment_header) } else { 0 }
}

/// Returns the bytes on the wire of a message over TCP that starts a segment.
fn tcp_wire(size: u64, ipv6: bool) -> u64 {
    let last = size % segment(ipv6);
    let headers = ip_header(ipv6) + TCP_HEADER;
    size / segment(ipv6) * frame(MTU) + if last > 0 { frame(last + headers) } else { 0 }
}

fn udp_share(size: u64, ipv6: bool) -> f64 {
    size as f64 / udp_wire(size, ipv6) as f64
}

fn tcp_share(ipv6: bool) -> f64 {
    segment(ipv6) as f64 / frame(MTU) as f64
}

/// Estimates the time that a set-up takes to measure, in seconds.
pub(super) fn duration(setup: &Setup) -> f64 {
    let round_trip = 2.0 * setup.delay();
    let queue =
        setup.path.map_or(0.0, |Path { rate, queue, .. }| 8.0 * queue as f64 / rate.unwrap_or(PATH_RATE_MAXIMUM));
    let warm_up = (10.0 * (round_trip + queue)).max(0.5);
    let (sender_rate, sender_queue) = match setup.plant {
        Plant::SenderQueue { rate, bytes } => (Some(rate), 8.0 * bytes as f64 / rate),
        _ => (None, 0.0),
    };
    let settle = 4.0 * round_trip + queue + sender_queue + 1.0;
    let highest = Expected::of(setup).highest();
    let slowest = [setup.line, setup.path.map(|path| path.rate.unwrap_or(PATH_RATE_MAXIMUM)), sender_rate]
        .into_iter()
        .flatten()
        .fold(PATH_RATE_MAXIMUM, f64::min);
    settle
        + match &setup.task {
            Task::Stream { extent: Extent::Seconds(time), .. } => warm_up + time,
            Task::Stream { extent: Extent::Bytes(bytes), .. } => {
                // With loss and a long start, a volume takes several times as long as its bound implies.
                let slow = if setup.loss() > 0.0 { 10.0 } else { 2.0 };
                slow * 8.0 * *bytes as f64 / highest + 10.0 * round_trip
            }
            Task::Transact { time, .. } | Task::Rpc { time, .. } => warm_up + time,
            Task::Nfs { time } => {
                // A short queue drops packets of TCP's bursts.
                let loses = setup.loss() > 0.0 || setup.path.is_some_and(|path| path.queue < SHORT_QUEUE);
                let slow = if loses { 20.0 } else { 2.0 };
                warm_up + time + slow * 8.0 * FILE_SET / slowest + FILE_SET_FILES * round_trip
            }
            Task::Copy { files, size } => {
                let slow = if setup.loss() > 0.0 { 10.0 } else { 2.0 };
                slow * 8.0 * (files * size) as f64 / highest + *files as f64 * (round_trip + 0.01)
            }
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(task: Task, line: Option<f64>, path: Option<Path>) -> Setup {
        Setup { number: 0, task, ipv6: false, flows: 1, line, path, plant: Plant::Nothing }
    }

    fn stream(transport: Transport, size: u64, rate: Option<f64>) -> Task {
        Task::Stream { transport, size, rate, extent: Extent::Seconds(3.0) }
    }

    const PATH: Path = Path { delay: 1e-3, rate: Some(10e6), queue: 64_000, loss: 0.0, burst: 1, chain: None };

    /// docs/bench-files.md: at 100 Mbit/s 95.7 Mbit/s in datagrams of 1,472 bytes, 49.2 Mbit/s in datagrams of 64.
    #[test]
    fn full_line_carries_the_payload_of_ethernet() {
        let payload = |size| Expected::of(&setup(stream(Transport::Udp, size, None), Some(100e6), None)).highest();
        assert!((payload(1_472) / 95.7e6 - 1.0).abs() < 0.001);
        assert!((payload(64) / 49.2e6 - 1.0).abs() < 0.001);
    }

    #[test]
    fn fragments_carry_multiples_of_eight_bytes() {
        // RFC 791: 8,000 bytes and the header of UDP are 5 fragments of 1,480 bytes and one of 608.
        assert_eq!(udp_wire(8_000, false), 5 * (1_500 + 38) + (608 + 20 + 38));
        // RFC 8200 section 4.5: the fragment header leaves 1,448 bytes.
        assert_eq!(udp_wire(2_000, true), (1_448 + 48 + 38) + (560 + 48 + 38));
    }

    #[test]
    fn only_the_slower_link_may_be_named() {
        let expected = Expected::of(&setup(stream(Transport::Udp, 1_472, None), Some(100e6), Some(PATH)));
        assert!(expected.allows("shaper", Some("forward-path")));
        assert!(!expected.allows("shaper", Some("sender-queue")));
        assert!(!expected.allows("wire", None));
        let near = Path { rate: Some(60e6), ..PATH };
        assert!(
            Expected::of(&setup(stream(Transport::Udp, 1_472, None), Some(100e6), Some(near))).allows("wire", None)
        );
    }

    #[test]
    fn offered_load_below_the_path_rate_is_the_limit() {
        let expected = Expected::of(&setup(stream(Transport::Udp, 1_472, Some(2e6)), None, Some(PATH)));
        assert!(expected.allows("offered-load", None) && !expected.allows("shaper", Some("forward-path")));
        let lossy = Path { loss: 0.1, ..PATH };
        let expected = Expected::of(&setup(stream(Transport::Udp, 1_472, Some(2e6)), None, Some(lossy)));
        assert!(expected.allows("path-loss", Some("forward-path")) && !expected.allows("shaper", Some("forward-path")));
    }

    #[test]
    fn single_request_in_flight_is_limited_by_latency() {
        let task = Task::Transact { transport: Transport::Udp, request: 100, response: 100, time: 2.0 };
        let long = Path { delay: 20e-3, rate: None, ..PATH };
        let expected = Expected::of(&setup(task, None, Some(long)));
        assert!(expected.allows("latency", None) && !expected.allows("server", None), "{}", expected.limits());
    }
}
