//! An assignment with its options checked, so that a request that cannot work fails before anything is opened.

use crate::error::StreamError;
use crate::hello::Hello;
use crate::window::Timeline;
use linerate_engine::{
    MOST_BITS_PER_SECOND, MOST_PER_SECOND, PathEnd, SocketError, check_assignment, check_rate, path_ends,
};
use linerate_model::{
    Assignment, Direction, IpVersion, Net, Offered, SessionKey, SocketOptions, StreamTask, Task, TransactStyle,
    TransactTask, Transport, Window,
};
use linerate_units::OpRate;

/// The largest UDP message over IPv6: 65,535 less the UDP header.
const UDP_MAXIMUM_V6: u64 = 65_527;
/// Outstanding requests that an 8-bit number distinguishes with room for late answers.
pub(crate) const NARROW_OUTSTANDING: u16 = 128;

/// This host's part in a session.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) key: SessionKey,
    pub(crate) load: Load,
    pub(crate) window: Window,
    /// This host's ends of paths, in the order of the assignment's roles.
    pub(crate) ends: Vec<PathEnd>,
}

/// Tasks of this engine.
#[derive(Debug)]
pub(crate) enum Load {
    Stream(StreamTask),
    Transact(TransactTask),
}

impl Job {
    /// Checks everything that can be checked without a peer.
    pub(crate) fn check(assignment: &Assignment) -> Result<Self, StreamError> {
        let load = match &assignment.task {
            Task::Stream(stream) => {
                check_stream(stream)?;
                Load::Stream(stream.clone())
            }
            Task::Transact(transact) => {
                check_transact(transact)?;
                Load::Transact(transact.clone())
            }
            other => return Err(invalid(format!("task {} has an engine of its own", other.kind()))),
        };
        let window = check_assignment(assignment)?;
        let ends = path_ends(assignment)?;
        Ok(Self { key: assignment.key, load, window, ends })
    }

    /// Returns the key that greetings of end number `end` prove.
    pub(crate) fn key_of(&self, end: usize) -> SessionKey {
        self.ends[end].key(&self.key)
    }

    /// Returns transport, flows and sockets.
    pub(crate) fn net(&self) -> &Net {
        match &self.load {
            Load::Stream(stream) => &stream.net,
            Load::Transact(transact) => &transact.net,
        }
    }

    /// Returns the volume that each end sends in the window, in bytes (UDP: datagrams).
    ///
    /// Returns `None` if the window ends by time.
    pub(crate) fn volume(&self) -> Option<u64> {
        let Load::Stream(stream) = &self.load else { return None };
        let bytes = stream.whole_volume()?.get();
        Some(match stream.net.transport {
            Transport::Tcp => bytes,
            Transport::Udp => bytes / stream.message_bytes.get(),
        })
    }

    pub(crate) fn socket(&self) -> &SocketOptions {
        &self.net().socket
    }

    pub(crate) fn transport(&self) -> Transport {
        self.net().transport
    }

    /// Returns whether the flows use IPv6.
    pub(crate) fn v6(&self) -> bool {
        self.net().ip == IpVersion::V6
    }

    /// Returns whether each transaction opens a connection of its own.
    pub(crate) fn connects_each(&self) -> bool {
        matches!(&self.load, Load::Transact(spec) if spec.style == TransactStyle::Connect)
    }

    /// Returns whether the flows carry transactions.
    pub(crate) fn transacts(&self) -> bool {
        matches!(self.load, Load::Transact(_))
    }

    /// Returns the greetings for all flows of one path.
    pub(crate) fn hellos(&self, path: u16) -> Vec<Hello> {
        let mut hellos = Vec::new();
        for &backward in self.backward_flags() {
            hellos.extend((0..self.net().flows).map(|flow| Hello { path, flow, backward }));
        }
        hellos
    }

    /// Returns whether `hello` is a flow of `path`.
    pub(crate) fn has_flow(&self, path: u16, hello: Hello) -> bool {
        hello.path == path && hello.flow < self.net().flows && self.backward_flags().contains(&hello.backward)
    }

    /// Returns the number of flows that this host sends (in transactions: whose requests it sends), or receives.
    pub(crate) fn flows(&self, sends: bool) -> u64 {
        let mut directions = 0;
        for end in &self.ends {
            for &backward in self.backward_flags() {
                directions += u64::from((end.is_client() != backward) == sends);
            }
        }
        directions * u64::from(self.net().flows)
    }

    /// Returns for each direction of the load whether data flow from the server to the client.
    fn backward_flags(&self) -> &'static [bool] {
        match &self.load {
            Load::Stream(StreamTask { direction: Direction::Receive, .. }) => &[true],
            Load::Stream(StreamTask { direction: Direction::Both, .. }) => &[false, true],
            Load::Stream(StreamTask { direction: Direction::Send, .. }) | Load::Transact(_) => &[false],
        }
    }

    /// Returns the times of a load that starts at `start`.
    pub(crate) fn timeline(&self, start: u64) -> Timeline {
        Timeline::new(start, self.window)
    }
}

fn invalid(text: impl Into<String>) -> StreamError {
    SocketError::InvalidRequest(text.into()).into()
}

fn udp_maximum(ip: IpVersion) -> u64 {
    if ip == IpVersion::V6 { UDP_MAXIMUM_V6 } else { StreamTask::UDP_MAXIMUM }
}

fn check_size(name: &str, bytes: u64, minimum: u64, maximum: u64) -> Result<(), StreamError> {
    if (minimum..=maximum).contains(&bytes) {
        return Ok(());
    }
    Err(invalid(format!("{name} of {bytes} bytes: choose {minimum} to {maximum}")))
}

fn check_stream(spec: &StreamTask) -> Result<(), StreamError> {
    check_offered(spec.offered)?;
    let (name, minimum, maximum) = match spec.net.transport {
        Transport::Tcp => ("TCP messages", 1, StreamTask::TCP_MAXIMUM),
        Transport::Udp => ("UDP messages", StreamTask::UDP_MINIMUM, udp_maximum(spec.net.ip)),
    };
    check_size(name, spec.message_bytes.get(), minimum, maximum)
}

fn check_offered(offered: Option<Offered>) -> Result<(), StreamError> {
    let (rate, maximum, unit) = match offered {
        None => return Ok(()),
        Some(Offered::PayloadBps(rate)) => (rate.get(), MOST_BITS_PER_SECOND, "bits"),
        Some(Offered::MessagesPerS(rate)) => (rate.get(), MOST_PER_SECOND, "messages"),
    };
    Ok(check_rate(Some(rate), maximum, unit, "send without a limit")?)
}

fn check_transact(spec: &TransactTask) -> Result<(), StreamError> {
    let maximum = if spec.net.transport == Transport::Udp { udp_maximum(spec.net.ip) } else { StreamTask::TCP_MAXIMUM };
    check_size("requests", spec.request_bytes.get(), 1, maximum)?;
    check_size("responses", spec.response_bytes.get(), 1, maximum)?;
    if spec.outstanding == 0 {
        return Err(invalid("0 requests under way: choose 1 or more"));
    }
    check_rate(spec.rate.map(OpRate::get), MOST_PER_SECOND, "requests", "ask as fast as answers come")?;
    if spec.style == TransactStyle::Connect && spec.net.transport == Transport::Udp {
        return Err(invalid("UDP has no connections to open for each transaction: use TCP or a standing socket"));
    }
    if spec.style == TransactStyle::Connect && spec.outstanding > 1 {
        return Err(invalid("a connection for each transaction carries one request: use more flows instead"));
    }
    let narrow = spec.request_bytes.get().min(spec.response_bytes.get()) < StreamTask::UDP_MINIMUM;
    if spec.net.transport == Transport::Udp && narrow && spec.outstanding > NARROW_OUTSTANDING {
        return Err(invalid(format!(
            "{} UDP requests under way at a time cannot be told apart in messages below {} bytes: choose at most {NARROW_OUTSTANDING}, or longer messages",
            spec.outstanding,
            StreamTask::UDP_MINIMUM,
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_engine::testing::assignment;
    use linerate_model::Timing;
    use linerate_units::{BitRate, ByteCount, FrameRate, Nanos};

    fn stream(transport: Transport) -> StreamTask {
        let plain = StreamTask::plain(transport, ByteCount::new(1_000));
        StreamTask { net: Net { flows: 2, ..Net::plain(transport) }, direction: Direction::Both, ..plain }
    }

    fn check(task: Task) -> Result<Job, String> {
        let timing = Timing::of(Nanos::from_millis(200), Nanos::from_secs(1));
        let assignment = assignment(task, timing, Vec::new());
        Job::check(&assignment).map_err(|error| error.to_string())
    }

    fn udp(bytes: u64) -> StreamTask {
        StreamTask { message_bytes: ByteCount::new(bytes), ..stream(Transport::Udp) }
    }

    fn tcp_with(socket: SocketOptions) -> Task {
        let net = Net { socket, ..Net::plain(Transport::Tcp) };
        Task::Stream(StreamTask { net, ..stream(Transport::Tcp) })
    }

    fn offered_bits(rate: u64) -> Task {
        let offered = Some(Offered::PayloadBps(BitRate::per_second(rate)));
        Task::Stream(StreamTask { offered, ..udp(64) })
    }

    fn offered_messages(rate: u64) -> Task {
        let offered = Some(Offered::MessagesPerS(FrameRate::per_second(rate)));
        Task::Stream(StreamTask { offered, ..udp(64) })
    }

    fn offered_requests(rate: u64) -> Task {
        let rate = Some(OpRate::per_second(rate));
        Task::Transact(TransactTask { rate, ..TransactTask::plain(Transport::Udp) })
    }

    #[test]
    fn invalid_requests_name_the_remedy() {
        let no_flows = StreamTask { net: Net { flows: 0, ..Net::plain(Transport::Udp) }, ..udp(64) };
        let udp_connect = TransactTask { style: TransactStyle::Connect, ..TransactTask::plain(Transport::Udp) };
        for (task, needle) in [
            (Task::Stream(udp(15)), "16 to 65507"),
            (Task::Stream(udp(65_508)), "16 to 65507"),
            (Task::Stream(no_flows), "choose 1 to"),
            (tcp_with(SocketOptions { dscp: Some(64), ..Default::default() }), "0 to 63"),
            (tcp_with(SocketOptions { mss: Some(40), ..Default::default() }), "88 to 32767"),
            (tcp_with(SocketOptions { congestion: Some("nosuch".into()), ..Default::default() }), "choose one of: "),
            (offered_bits(0), "a rate of 0 bits per second: choose 1 to 100000000000000,"),
            (offered_bits(MOST_BITS_PER_SECOND + 1), "choose 1 to 100000000000000,"),
            (offered_messages(0), "a rate of 0 messages per second: choose 1 to 100000000,"),
            (offered_messages(MOST_PER_SECOND + 1), "choose 1 to 100000000,"),
            (offered_requests(0), "a rate of 0 requests per second: choose 1 to 100000000,"),
            (offered_requests(MOST_PER_SECOND + 1), "choose 1 to 100000000,"),
            (Task::Transact(udp_connect), "use TCP"),
            (Task::Transact(TransactTask { outstanding: 129, ..TransactTask::plain(Transport::Udp) }), "at most 128"),
        ] {
            let error = check(task).expect_err(needle);
            assert!(error.contains(needle), "{error}");
        }
        for task in
            [offered_bits(MOST_BITS_PER_SECOND), offered_messages(MOST_PER_SECOND), offered_requests(MOST_PER_SECOND)]
        {
            check(task).expect("the highest rate that can be kept");
        }
        let v6 = Net { ip: IpVersion::V6, ..Net::plain(Transport::Udp) };
        check(Task::Stream(StreamTask { net: v6, ..udp(65_527) })).expect("IPv6 takes 20 bytes more");
        check(Task::Transact(TransactTask::plain(Transport::Udp))).expect("one byte is enough");
    }

    #[test]
    fn each_direction_has_its_own_flows() {
        let job = check(Task::Stream(stream(Transport::Udp))).expect("valid");
        let hellos = job.hellos(4);
        assert_eq!(hellos.len(), 4);
        assert_eq!(hellos.iter().filter(|hello| hello.backward).count(), 2);
        assert!(hellos.iter().all(|hello| job.has_flow(4, *hello) && !job.has_flow(5, *hello)));
        assert!(!job.has_flow(4, Hello { flow: 2, ..hellos[0] }));
        let one_way = check(Task::Stream(StreamTask { direction: Direction::Receive, ..stream(Transport::Udp) }));
        assert!(!one_way.expect("valid").has_flow(4, hellos[0]));
    }
}
