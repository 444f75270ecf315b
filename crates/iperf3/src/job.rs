//! An assignment with its options checked against the limits of iperf3 servers, before anything is opened.

use crate::error::Iperf3Error;
use crate::login::Login;
use linerate_engine::{SocketError, check_assignment, path_ends};
use linerate_model::{
    Assignment, Direction, IpVersion, Iperf3End, Iperf3Server, StreamTask, Task, Transport, Warmup, Window,
};
use linerate_units::Nanos;
use std::net::SocketAddr;

/// The largest segment that iperf3 takes, bytes.
const MAX_MSS: u16 = 9 * 1_024;
/// The longest window that iperf3 takes, seconds.
const MAX_TIME_S: u64 = 86_400;
const SECOND_NS: u64 = 1_000_000_000;

/// Test with one server.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) task: StreamTask,
    pub(crate) server: Iperf3Server,
    pub(crate) window: Window,
    /// Index of the path.
    pub(crate) path: u16,
    /// Warm-up in whole seconds, which iperf3 leaves out of its figures.
    pub(crate) omit_s: u64,
    /// Login, for a server that requires it.
    pub(crate) login: Option<Login>,
}

impl Job {
    /// Checks everything that can be checked without the server.
    pub(crate) fn check(assignment: &Assignment) -> Result<Self, Iperf3Error> {
        let Task::Stream(task) = &assignment.task else {
            return Err(invalid(format!("iperf3 knows streams only, not {}", assignment.task.kind())));
        };
        let server = match task.iperf3.clone() {
            Some(Iperf3End::Server(server)) => server,
            Some(Iperf3End::Client(_)) => {
                return Err(invalid("an iperf3 client begins its test by itself: run iperf3 there"));
            }
            None => return Err(invalid("the stream names no iperf3 server")),
        };
        let window = check_assignment(assignment)?;
        let path = match &path_ends(assignment)?[..] {
            [end] if end.is_client() => end.path,
            _ => return Err(invalid("an iperf3 server serves one client at a time: name one sender")),
        };
        check_server(&server, task)?;
        let omit_s = match window.warmup {
            Warmup::Fixed(warmup)
                if warmup.get().is_multiple_of(SECOND_NS)
                    && warmup.get() / SECOND_NS <= Iperf3Server::MOST_WARMUP_S =>
            {
                warmup.get() / SECOND_NS
            }
            _ => {
                return Err(invalid(format!(
                    "an iperf3 server leaves out whole seconds at the beginning, which it must know beforehand: give --warmup in seconds, \
                     0s to {}s",
                    Iperf3Server::MOST_WARMUP_S
                )));
            }
        };
        if window.measure > Nanos::from_secs(MAX_TIME_S) {
            return Err(invalid(format!("iperf3 measures for {MAX_TIME_S} s at the most: give a shorter --time")));
        }
        let login = server.login.as_ref().map(|login| Login::check(login, assignment.password.as_ref()));
        let login = login.transpose().map_err(invalid)?;
        Ok(Self { task: task.clone(), server, window, path, omit_s, login })
    }

    /// Returns the address of the server.
    pub(crate) fn address(&self) -> SocketAddr {
        SocketAddr::new(self.server.address, self.server.port)
    }

    /// Returns the window in whole seconds, rounded up. The server uses it only if the client has gone.
    pub(crate) fn time_s(&self) -> u64 {
        self.window.measure.get().div_ceil(SECOND_NS)
    }

    /// Returns number and direction of each flow, in iperf3's order of opening: flows from the client first. True is
    /// backward.
    pub(crate) fn flows(&self) -> Vec<(u16, bool)> {
        let directions: &[bool] = match self.task.direction {
            Direction::Send => &[false],
            Direction::Receive => &[true],
            Direction::Both => &[false, true],
        };
        directions.iter().flat_map(|backward| (0..self.task.net.flows).map(|number| (number, *backward))).collect()
    }
}

fn invalid(text: impl Into<String>) -> Iperf3Error {
    SocketError::InvalidRequest(text.into()).into()
}

fn check_server(server: &Iperf3Server, task: &StreamTask) -> Result<(), Iperf3Error> {
    if server.port == 0 {
        return Err(invalid(format!("port 0: iperf3 listens on {} unless told otherwise", Iperf3Server::PORT)));
    }
    if server.address.is_ipv6() != (task.net.ip == IpVersion::V6) {
        return Err(invalid(format!("{} is not of the IP version asked for", server.address)));
    }
    let max_flows = Iperf3Server::MOST_FLOWS;
    if task.net.flows > max_flows {
        return Err(invalid(format!("{} flows: iperf3 takes {max_flows} each way at the most", task.net.flows)));
    }
    let bytes = task.message_bytes.get();
    let max_bytes = Iperf3Server::MOST_TCP_BYTES;
    if task.net.transport == Transport::Tcp && bytes > max_bytes {
        return Err(invalid(format!("--size {bytes}: iperf3 takes messages of {max_bytes} bytes at the most")));
    }
    match task.net.socket.mss.filter(|mss| *mss > MAX_MSS) {
        Some(mss) => Err(invalid(format!("--mss {mss}: iperf3 takes {MAX_MSS} bytes at the most"))),
        None => Ok(()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use linerate_engine::testing::assignment;
    use linerate_model::{Iperf3Client, Net, Path, Role, RoleKind, Server, SocketOptions, Timing};
    use linerate_units::ByteCount;
    use std::net::Ipv4Addr;

    /// Returns a stream to a server on loopback.
    pub(crate) fn stream(transport: Transport) -> StreamTask {
        let bytes = if transport == Transport::Tcp { 128 << 10 } else { 1_472 };
        let iperf3 = Iperf3Server { address: Ipv4Addr::LOCALHOST.into(), port: 5_201, report: false, login: None };
        StreamTask {
            paths: vec![Path { client: "a".into(), server: Server::Foreign("iperf3".into()) }],
            iperf3: Some(Iperf3End::Server(iperf3)),
            ..StreamTask::plain(transport, ByteCount::new(bytes))
        }
    }

    fn check(task: StreamTask, timing: Timing, clients: usize) -> Result<Job, String> {
        let role = Role { kind: RoleKind::Client { path: 0 }, listens: Vec::new(), connects: Vec::new() };
        let assignment = assignment(Task::Stream(task), timing, vec![role; clients]);
        Job::check(&assignment).map_err(|error| error.to_string())
    }

    /// Returns a job with a warm-up in seconds and a window in milliseconds.
    pub(crate) fn job(task: StreamTask, warmup_s: u64, measure_ms: u64) -> Result<Job, String> {
        check(task, Timing::of(Nanos::from_secs(warmup_s), Nanos::from_millis(measure_ms)), 1)
    }

    #[test]
    fn options_beyond_iperf3s_limits_are_refused_with_a_remedy() {
        let tcp = || stream(Transport::Tcp);
        let end = |end| StreamTask { iperf3: Some(end), ..tcp() };
        let iperf3 = Iperf3Server { address: Ipv4Addr::LOCALHOST.into(), port: 5_201, report: false, login: None };
        let client = Iperf3Client { address: Ipv4Addr::LOCALHOST.into() };
        let second = Nanos::from_secs(1);
        let usual = Timing::of(second, second);
        let mss = SocketOptions { mss: Some(9_300), ..SocketOptions::default() };
        for (task, timing, clients, needle) in [
            (tcp(), usual, 2, "one sender"),
            (tcp(), Timing::when_steady(second), 1, "--warmup in seconds"),
            (tcp(), Timing::of(Nanos::from_millis(500), second), 1, "--warmup in seconds"),
            (tcp(), Timing::of(Nanos::from_secs(601), second), 1, "0s to 600s"),
            (tcp(), Timing::of(second, Nanos::from_secs(90_000)), 1, "86400 s"),
            (StreamTask { net: Net { flows: 129, ..tcp().net }, ..tcp() }, usual, 1, "128 each way"),
            (StreamTask { message_bytes: ByteCount::new(2 << 20), ..tcp() }, usual, 1, "1048576 bytes"),
            (StreamTask { net: Net { socket: mss, ..tcp().net }, ..tcp() }, usual, 1, "9216"),
            (end(Iperf3End::Server(Iperf3Server { port: 0, ..iperf3.clone() })), usual, 1, "5201"),
            (end(Iperf3End::Server(Iperf3Server { address: [0; 16].into(), ..iperf3 })), usual, 1, "IP version"),
            (StreamTask { iperf3: None, ..tcp() }, usual, 1, "no iperf3 server"),
            (end(Iperf3End::Client(client)), usual, 1, "run iperf3 there"),
        ] {
            let error = check(task, timing, clients).expect_err(needle);
            assert!(error.contains(needle), "{error}");
        }
        let job = job(StreamTask { direction: Direction::Both, ..tcp() }, 2, 1_001).expect("valid");
        assert_eq!((job.omit_s, job.time_s(), job.flows()), (2, 2, vec![(0, false), (0, true)]));
    }
}
