//! What one trial, and all of them together, may ask of an agent.

use crate::api_error::{ApiError, ErrorKind};
use ipnet::IpNet;
use linerate_copy::AllowedFolders;
use linerate_model::{Direction, EndRole, HalfSpec, Offered, Workload};
use linerate_units::{BitRate, Nanos};
use std::net::IpAddr;

/// An agent's limits. What goes beyond is refused before anything is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The most payload this host may send, and the most it may receive, in all its trials together; none is no limit.
    /// With a limit, trials without a rate are refused. A sender keeps its rate by itself; a host that answers
    /// transactions answers what it is asked, so there the rate is only as good as the asking host's word.
    pub max_rate: Option<BitRate>,
    /// The longest trial, warm-up included.
    pub max_time: Nanos,
    /// Trials under way at once.
    pub max_trials: usize,
    /// Connections or sockets of one trial on this host.
    pub max_flows: u64,
    /// Ends of one trial on this host.
    pub max_ends: usize,
    /// Raw frames may be sent from this host's interfaces: they reach whatever is behind them.
    pub frames: bool,
    /// Folders of this host that copies may read and write.
    pub copies: AllowedFolders,
    /// Bytes of one request's body.
    pub max_body: usize,
    /// Networks whose hosts may use the API; empty allows all that have the token.
    pub allowed_peers: Vec<IpNet>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_rate: None,
            max_time: Nanos::from_secs(600),
            max_trials: 4,
            max_flows: 128,
            max_ends: 64,
            frames: false,
            copies: AllowedFolders::default(),
            max_body: 256 << 10,
            allowed_peers: Vec::new(),
        }
    }
}

/// The payload rates a trial's half asks for, over all its ends; none is as fast as it goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Load {
    sends: Option<u64>,
    receives: Option<u64>,
}

impl Load {
    /// The load of `spec` on the host that holds its ends.
    fn of(spec: &HalfSpec) -> Self {
        let openers = spec.ends.iter().filter(|end| end.role == EndRole::Opener).count() as u64;
        let listeners = spec.ends.len() as u64 - openers;
        let (forward, backward) = path_rates(&spec.workload);
        let sum = |of_openers: Option<u64>, of_listeners: Option<u64>| {
            let times =
                |rate: Option<u64>, ends: u64| if ends == 0 { Some(0) } else { Some(rate?.saturating_mul(ends)) };
            Some(times(of_openers, openers)?.saturating_add(times(of_listeners, listeners)?))
        };
        Self { sends: sum(forward, backward), receives: sum(backward, forward) }
    }

    /// Both loads at once.
    pub(crate) fn and(self, other: Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        Self { sends: sum(self.sends, other.sends), receives: sum(self.receives, other.receives) }
    }
}

/// No schedule can be kept beyond these, and nothing is sent at a rate of zero.
const MAX_PER_SECOND: u64 = 100_000_000;
const MAX_BITS_PER_SECOND: u64 = 100_000_000_000_000;

/// The rate that `workload` asks for, if any, is one that can be meant.
fn check_rate(workload: &Workload) -> Result<(), ApiError> {
    let (rate, most, unit) = match workload {
        Workload::Stream(stream) => match stream.offered {
            Some(Offered::PayloadBps(rate)) => (rate.get(), MAX_BITS_PER_SECOND, "bits per second"),
            Some(Offered::MessagesPerS(rate)) => (rate.get(), MAX_PER_SECOND, "messages per second"),
            None => return Ok(()),
        },
        requests => match requests.requests_per_s() {
            Some(rate) => (rate.get(), MAX_PER_SECOND, "requests per second"),
            None => return Ok(()),
        },
    };
    if (1..=most).contains(&rate) {
        return Ok(());
    }
    Err(ApiError::new(
        ErrorKind::BadRequest,
        format!("a rate of {rate} {unit} cannot be kept; choose 1 to {most}, or no rate to go as fast as it goes"),
    ))
}

/// Payload bits per second of one path, from its opener to its listener and back.
fn path_rates(workload: &Workload) -> (Option<u64>, Option<u64>) {
    match workload {
        Workload::Stream(stream) => {
            let rate = stream.offered.map(|offered| match offered {
                Offered::PayloadBps(rate) => rate.get(),
                Offered::MessagesPerS(rate) => bits(rate.get(), stream.message_bytes.get()),
            });
            match stream.direction {
                Direction::Send => (rate, Some(0)),
                Direction::Receive => (Some(0), rate),
                Direction::Both => (rate, rate),
            }
        }
        Workload::Rpc(rpc) => {
            let rate = rpc.rate.map(|rate| bits(rate.get(), rpc.unit_bytes.get()));
            let way = |carries| if carries { rate } else { Some(0) };
            (way(rpc.call.carries_there()), way(rpc.call.carries_back()))
        }
        Workload::Nfs(nfs) => {
            // Any operation may be a transfer, either way.
            let rate = nfs.rate.map(|rate| bits(rate.get(), nfs.transfer_bytes.get()));
            (rate, rate)
        }
        Workload::Transact(transact) => {
            // The larger of the two counts both ways: an answering end is not paced, it does what it is asked.
            let bytes = transact.request_bytes.max(transact.response_bytes).get();
            let rate = transact.rate.map(|rate| bits(rate.get(), bytes));
            (rate, rate)
        }
    }
}

fn bits(per_second: u64, bytes: u64) -> u64 {
    per_second.saturating_mul(bytes).saturating_mul(8)
}

impl Limits {
    /// The load of `spec`, if a trial of its own may be like that.
    pub(crate) fn check(&self, spec: &HalfSpec) -> Result<Load, ApiError> {
        check_rate(&spec.workload)?;
        let time = spec.timing.warmup + spec.timing.measure;
        if time > self.max_time {
            return Err(refuse(format!(
                "the trial takes {time}, this agent allows {}; ask for less, or start it with `linerate agent --max-time`",
                self.max_time
            )));
        }
        if spec.ends.len() > self.max_ends {
            return Err(refuse(format!(
                "the trial has {} ends on this host, this agent allows {}; use fewer paths",
                spec.ends.len(),
                self.max_ends
            )));
        }
        let ways = match &spec.workload {
            Workload::Stream(stream) if stream.direction == Direction::Both => 2,
            _ => 1,
        };
        let flows = u64::from(spec.workload.flows()) * ways * spec.ends.len() as u64;
        if flows > self.max_flows {
            return Err(refuse(format!(
                "the trial has {flows} flows on this host, this agent allows {}; ask for fewer, or start it with \
                 `linerate agent --max-flows`",
                self.max_flows
            )));
        }
        let load = Load::of(spec);
        self.check_load(load)?;
        Ok(load)
    }

    /// All trials together may ask for `load`.
    pub(crate) fn check_load(&self, load: Load) -> Result<(), ApiError> {
        let Some(limit) = self.max_rate else { return Ok(()) };
        for (rate, verb) in [(load.sends, "send"), (load.receives, "receive")] {
            match rate {
                None => {
                    return Err(refuse(format!(
                        "the trial asks this host to {verb} as fast as it goes, this agent allows {limit} of payload; \
                         set a rate with `--rate`, or start it with a higher or no `linerate agent --max-rate`"
                    )));
                }
                Some(rate) if rate > limit.get() => {
                    return Err(refuse(format!(
                        "with this trial the host is to {verb} {}, this agent allows {limit} of payload; ask for a lower \
                         `--rate`, or start it with a higher `linerate agent --max-rate`",
                        BitRate::per_second(rate)
                    )));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// One more trial may begin while `under_way` are.
    pub(crate) fn check_trials(&self, under_way: usize) -> Result<(), ApiError> {
        if under_way < self.max_trials {
            return Ok(());
        }
        Err(refuse(format!(
            "{under_way} trials are under way, this agent allows {}; wait for them, or start it with `linerate agent \
             --max-trials`",
            self.max_trials
        )))
    }

    /// A host at `address` may use the API.
    pub(crate) fn allows(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.allowed_peers.is_empty() || self.allowed_peers.iter().any(|network| network.contains(&address))
    }
}

fn refuse(message: String) -> ApiError {
    ApiError::new(ErrorKind::Limit, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{LOOPBACK, half, stream};
    use linerate_model::{
        Arrivals, EndSpec, IpVersion, SocketOptions, StreamSpec, TransactSpec, TransactStyle, Transport,
    };
    use linerate_units::{ByteCount, FrameRate, OpRate};

    const LISTENER: EndRole = EndRole::Listener { address: LOOPBACK };

    fn loads(spec: &HalfSpec) -> (Option<u64>, Option<u64>) {
        let load = Load::of(spec);
        (load.sends, load.receives)
    }

    #[test]
    fn a_streams_load_goes_its_direction() {
        let eight = Some(8_000_000);
        for (role, direction, expected) in [
            (EndRole::Opener, Direction::Send, (eight, Some(0))),
            (EndRole::Opener, Direction::Receive, (Some(0), eight)),
            (EndRole::Opener, Direction::Both, (eight, eight)),
            (LISTENER, Direction::Send, (Some(0), eight)),
            (LISTENER, Direction::Receive, (eight, Some(0))),
        ] {
            let spec = half("t", role, StreamSpec { direction, ..stream(Transport::Udp) });
            assert_eq!(loads(&spec), expected, "{role:?} {direction:?}");
        }
        let offered = Some(Offered::MessagesPerS(FrameRate::per_second(1_000)));
        let mut sink = half("t", LISTENER, StreamSpec { offered, ..stream(Transport::Udp) });
        sink.ends = (0..3).map(|path| EndSpec { path, role: LISTENER }).collect();
        assert_eq!(loads(&sink), (Some(0), Some(3 * 1_000 * 1_000 * 8)));
        // A listener that only receives at full speed sends nothing all the same.
        let full = half("t", LISTENER, StreamSpec { offered: None, ..stream(Transport::Udp) });
        assert_eq!(loads(&full), (Some(0), None));
        // Hostile numbers do not wrap around the limit.
        let offered = Some(Offered::MessagesPerS(FrameRate::per_second(u64::MAX / 2)));
        assert_eq!(
            loads(&half("t", EndRole::Opener, StreamSpec { offered, ..stream(Transport::Udp) })).0,
            Some(u64::MAX)
        );
    }

    fn transact(rate: Option<OpRate>) -> Workload {
        Workload::Transact(TransactSpec {
            transport: Transport::Tcp,
            ip: IpVersion::V4,
            style: TransactStyle::Persistent,
            request_bytes: ByteCount::new(100),
            response_bytes: ByteCount::new(1_000),
            flows: 2,
            outstanding: 1,
            rate,
            arrivals: Arrivals::Even,
            busy_poll: false,
            socket: SocketOptions::default(),
        })
    }

    #[test]
    fn transactions_load_both_ways() {
        let mut spec = half("t", EndRole::Opener, stream(Transport::Tcp));
        spec.workload = transact(Some(OpRate::per_second(10)));
        assert_eq!(loads(&spec), (Some(80_000), Some(80_000)), "whatever the answering end is asked");
        spec.workload = transact(None);
        assert_eq!(loads(&spec), (None, None));
        let limits = Limits { max_rate: Some(BitRate::per_second(1 << 40)), ..Limits::default() };
        for role in [EndRole::Opener, LISTENER] {
            spec.ends[0].role = role;
            assert!(limits.check(&spec).is_err(), "a closed loop has no rate: {role:?}");
        }
        assert!(Limits::default().check(&spec).is_ok(), "without a limit none is needed");
    }

    #[test]
    fn rates_that_cannot_be_meant_are_refused() {
        let with = |offered| half("t", LISTENER, StreamSpec { offered: Some(offered), ..stream(Transport::Udp) });
        let bits = |rate| with(Offered::PayloadBps(BitRate::per_second(rate)));
        let messages = |rate| with(Offered::MessagesPerS(FrameRate::per_second(rate)));
        let transactions = |rate| HalfSpec { workload: transact(Some(OpRate::per_second(rate))), ..bits(1) };
        for (within, beyond, most) in [
            (bits(MAX_BITS_PER_SECOND), bits(MAX_BITS_PER_SECOND + 1), "1 to 100000000000000,"),
            (messages(MAX_PER_SECOND), messages(MAX_PER_SECOND + 1), "1 to 100000000,"),
            (transactions(MAX_PER_SECOND), transactions(MAX_PER_SECOND + 1), "1 to 100000000,"),
        ] {
            assert!(Limits::default().check(&within).is_ok(), "{within:?}");
            let error = Limits::default().check(&beyond).expect_err("beyond");
            assert_eq!(error.error, ErrorKind::BadRequest);
            assert!(error.message.contains(most), "{}", error.message);
        }
        // Zero is no load by the sums, and one a second to the engine.
        let limits = Limits { max_rate: Some(BitRate::per_second(1)), ..Limits::default() };
        for zero in [bits(0), messages(0), transactions(0)] {
            let error = limits.check(&zero).expect_err("zero");
            assert!(error.message.contains("a rate of 0 "), "{}", error.message);
        }
    }

    #[test]
    fn peers_are_known_by_network_also_when_mapped() {
        let allowed_peers = ["198.18.0.0/15", "2001:2::/48"].map(|network| network.parse().expect("a network")).into();
        let limits = Limits { allowed_peers, ..Limits::default() };
        for (address, allowed) in [
            ("198.19.255.1", true),
            ("198.20.0.1", false),
            ("::ffff:198.18.0.1", true),
            ("2001:2::1", true),
            ("::1", false),
        ] {
            assert_eq!(limits.allows(address.parse().expect("an address")), allowed, "{address}");
        }
        assert!(Limits::default().allows(LOOPBACK));
    }
}
