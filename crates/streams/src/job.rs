//! A half's task with its options checked: what cannot work is said before anything is opened.

use crate::error::StreamError;
use crate::hello::Hello;
use crate::window::Timeline;
use linerate_model::{
    Direction, EndSpec, HalfSpec, IpVersion, SocketOptions, StreamSpec, Timing, TransactSpec, TransactStyle, Transport,
    TrialKey, Workload,
};

/// UDP streams: between warm-up and window, for what is under way to arrive.
pub(crate) const PAUSE_NS: u64 = 100_000_000;
/// The largest UDP message over IPv6: 65,535 less the UDP header.
const UDP_MAXIMUM_V6: u64 = 65_527;
/// Requests under way that an 8-bit number can tell apart with room for late answers.
pub(crate) const NARROW_OUTSTANDING: u16 = 128;

/// What this half is to do.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) key: TrialKey,
    pub(crate) workload: Workload,
    pub(crate) timing: Timing,
    pub(crate) ends: Vec<EndSpec>,
}

impl Job {
    /// Checks everything that can be checked without a peer.
    pub(crate) fn check(spec: &HalfSpec) -> Result<Self, StreamError> {
        match &spec.workload {
            Workload::Stream(stream) => check_stream(stream)?,
            Workload::Transact(transact) => check_transact(transact)?,
            Workload::Rpc(_) | Workload::Nfs(_) => return Err(asked("RPC and NFS have an engine of their own")),
        }
        linerate_engine::check_half(spec)?;
        Ok(Self { key: spec.key, workload: spec.workload.clone(), timing: spec.timing, ends: spec.ends.clone() })
    }

    /// The sockets' options.
    pub(crate) fn socket(&self) -> &SocketOptions {
        self.workload.socket()
    }

    /// TCP or UDP.
    pub(crate) fn transport(&self) -> Transport {
        self.workload.transport()
    }

    /// IPv6.
    pub(crate) fn v6(&self) -> bool {
        self.workload.ip() == IpVersion::V6
    }

    /// Every transaction has a connection of its own.
    pub(crate) fn connects_each(&self) -> bool {
        matches!(&self.workload, Workload::Transact(spec) if spec.style == TransactStyle::Connect)
    }

    /// The flows of one path, as the opener greets for them.
    pub(crate) fn hellos(&self, path: u16) -> Vec<Hello> {
        let (flows, ways): (u16, &[bool]) = match &self.workload {
            Workload::Stream(spec) => (
                spec.flows,
                match spec.direction {
                    Direction::Send => &[false],
                    Direction::Receive => &[true],
                    Direction::Both => &[false, true],
                },
            ),
            _ => (self.workload.flows(), &[false]),
        };
        let of = |backward: bool| (0..flows).map(move |flow| Hello { path, flow, backward });
        ways.iter().flat_map(|backward| of(*backward)).collect()
    }

    /// The times of a half that starts at `start`.
    pub(crate) fn timeline(&self, start: u64) -> Timeline {
        let drains = matches!(&self.workload, Workload::Stream(spec) if spec.transport == Transport::Udp);
        let warm_until = start + self.timing.warmup.get();
        let open = warm_until + if drains { PAUSE_NS } else { 0 };
        Timeline { start, warm_until, open, close: open + self.timing.measure.get() }
    }
}

fn asked(text: impl Into<String>) -> StreamError {
    StreamError::Asked(text.into())
}

fn udp_maximum(ip: IpVersion) -> u64 {
    if ip == IpVersion::V6 { UDP_MAXIMUM_V6 } else { StreamSpec::UDP_MAXIMUM }
}

fn check_size(what: &str, bytes: u64, minimum: u64, maximum: u64) -> Result<(), StreamError> {
    if (minimum..=maximum).contains(&bytes) {
        return Ok(());
    }
    Err(asked(format!("{what} of {bytes} bytes: choose {minimum} to {maximum}")))
}

fn check_stream(spec: &StreamSpec) -> Result<(), StreamError> {
    linerate_engine::check_flows(spec.flows)?;
    let (what, minimum, maximum) = match spec.transport {
        Transport::Tcp => ("TCP messages", 1, StreamSpec::TCP_MAXIMUM),
        Transport::Udp => ("UDP messages", StreamSpec::UDP_MINIMUM, udp_maximum(spec.ip)),
    };
    check_size(what, spec.message_bytes.get(), minimum, maximum)
}

fn check_transact(spec: &TransactSpec) -> Result<(), StreamError> {
    linerate_engine::check_flows(spec.flows)?;
    let maximum = if spec.transport == Transport::Udp { udp_maximum(spec.ip) } else { StreamSpec::TCP_MAXIMUM };
    check_size("requests", spec.request_bytes.get(), 1, maximum)?;
    check_size("responses", spec.response_bytes.get(), 1, maximum)?;
    if spec.outstanding == 0 {
        return Err(asked("0 requests under way: choose 1 or more"));
    }
    linerate_engine::check_rate(spec.rate, "requests", "ask as fast as answers come")?;
    if spec.style == TransactStyle::Connect && spec.transport == Transport::Udp {
        return Err(asked("UDP has no connections to open for each transaction: use TCP or a standing socket"));
    }
    if spec.style == TransactStyle::Connect && spec.outstanding > 1 {
        return Err(asked("a connection for each transaction carries one request: use more flows instead"));
    }
    let narrow = spec.request_bytes.get().min(spec.response_bytes.get()) < StreamSpec::UDP_MINIMUM;
    if spec.transport == Transport::Udp && narrow && spec.outstanding > NARROW_OUTSTANDING {
        return Err(asked(format!(
            "{} UDP requests under way at a time cannot be told apart in messages below {} bytes: choose at most {NARROW_OUTSTANDING}, or longer messages",
            spec.outstanding,
            StreamSpec::UDP_MINIMUM,
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::TrialId;
    use linerate_units::{ByteCount, Nanos, OpRate};

    fn stream(transport: Transport) -> StreamSpec {
        let plain = StreamSpec::plain(transport, ByteCount::new(1_000));
        StreamSpec { flows: 2, direction: Direction::Both, ..plain }
    }

    fn check(workload: Workload) -> Result<Job, String> {
        let timing = Timing { warmup: Nanos::from_millis(200), measure: Nanos::from_secs(1) };
        let spec = HalfSpec { id: TrialId("t".into()), key: TrialKey([1; 16]), workload, timing, ends: Vec::new() };
        Job::check(&spec).map_err(|error| error.to_string())
    }

    #[test]
    fn what_cannot_work_is_named_with_its_remedy() {
        let udp = |bytes| StreamSpec { message_bytes: ByteCount::new(bytes), ..stream(Transport::Udp) };
        let socket = |socket| StreamSpec { socket, ..stream(Transport::Tcp) };
        let rate = |rate| TransactSpec { rate: Some(OpRate::per_second(rate)), ..TransactSpec::plain(Transport::Udp) };
        let tcp_connect = TransactSpec { style: TransactStyle::Connect, ..TransactSpec::plain(Transport::Udp) };
        for (workload, needle) in [
            (Workload::Stream(udp(15)), "16 to 65507"),
            (Workload::Stream(udp(65_508)), "16 to 65507"),
            (Workload::Stream(StreamSpec { flows: 0, ..udp(64) }), "choose 1 to"),
            (Workload::Stream(socket(SocketOptions { dscp: Some(64), ..Default::default() })), "0 to 63"),
            (Workload::Stream(socket(SocketOptions { mss: Some(40), ..Default::default() })), "88 to 32767"),
            (
                Workload::Stream(socket(SocketOptions { congestion: Some("nosuch".into()), ..Default::default() })),
                "choose one of: ",
            ),
            (Workload::Transact(tcp_connect), "use TCP"),
            (Workload::Transact(rate(0)), "choose 1 to 100000000"),
            (Workload::Transact(rate(100_000_001)), "choose 1 to 100000000"),
            (
                Workload::Transact(TransactSpec { outstanding: 129, ..TransactSpec::plain(Transport::Udp) }),
                "at most 128",
            ),
        ] {
            let error = check(workload).expect_err(needle);
            assert!(error.contains(needle), "{error}");
        }
        let v6 = StreamSpec { ip: IpVersion::V6, ..udp(65_527) };
        check(Workload::Stream(v6)).expect("IPv6 takes 20 bytes more");
        check(Workload::Transact(TransactSpec::plain(Transport::Udp))).expect("one byte is enough");
    }

    #[test]
    fn both_directions_have_flows_of_their_own() {
        let job = check(Workload::Stream(stream(Transport::Udp))).expect("valid");
        let hellos = job.hellos(4);
        assert_eq!(hellos.len(), 4);
        assert_eq!(hellos.iter().filter(|hello| hello.backward).count(), 2);
        let times = job.timeline(1_000);
        assert_eq!((times.warm_until, times.open), (200_001_000, 300_001_000));
        assert_eq!(check(Workload::Stream(stream(Transport::Tcp))).expect("valid").timeline(0).open, 200_000_000);
    }
}
