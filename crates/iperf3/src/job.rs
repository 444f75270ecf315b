//! An assignment with its options checked against what iperf3's servers take, before anything is opened.

use crate::error::Iperf3Error;
use crate::login::Login;
use linerate_engine::{check_assignment, path_ends};
use linerate_model::{
    Assignment, Direction, IpVersion, Iperf3End, Iperf3Server, StreamTask, Task, Transport, Warmup, Window,
};
use linerate_units::Nanos;
use std::net::SocketAddr;

/// The largest segment that iperf3 takes, bytes.
const MOST_MSS: u16 = 9 * 1_024;
/// The longest window that iperf3 takes, seconds.
const MOST_TIME_S: u64 = 86_400;

/// A test of one server.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) task: StreamTask,
    pub(crate) server: Iperf3Server,
    pub(crate) window: Window,
    /// The path's index.
    pub(crate) path: u16,
    /// Warm-up: iperf3 counts it in whole seconds, and leaves it out of its figures.
    pub(crate) omit_s: u64,
    /// Who logs in, for a server that asks for it.
    pub(crate) login: Option<Login>,
}

impl Job {
    /// Checks everything that can be checked without the server.
    pub(crate) fn check(assignment: &Assignment) -> Result<Self, Iperf3Error> {
        let Task::Stream(task) = &assignment.task else {
            return Err(asked(format!("iperf3 knows streams only, not {}", assignment.task.kind())));
        };
        let server = match task.iperf3.clone() {
            Some(Iperf3End::Server(server)) => server,
            Some(Iperf3End::Client(_)) => {
                return Err(asked("an iperf3 client begins its test by itself: run iperf3 there"));
            }
            None => return Err(asked("the stream names no iperf3 server")),
        };
        let window = check_assignment(assignment)?;
        let path = match &path_ends(assignment)?[..] {
            [end] if end.is_client() => end.path,
            _ => return Err(asked("an iperf3 server serves one client at a time: name one sender")),
        };
        check_server(&server, task)?;
        let seconds = |time: Nanos| time.get() / 1_000_000_000;
        let omit_s = match window.warmup {
            Warmup::Fixed(warmup)
                if Nanos::from_secs(seconds(warmup)) == warmup && seconds(warmup) <= Iperf3Server::MOST_WARMUP_S =>
            {
                seconds(warmup)
            }
            _ => {
                return Err(asked(format!(
                    "an iperf3 server leaves out whole seconds at the beginning, which it must know beforehand: give --warmup in seconds, \
                     0s to {}s",
                    Iperf3Server::MOST_WARMUP_S
                )));
            }
        };
        if window.measure > Nanos::from_secs(MOST_TIME_S) {
            return Err(asked(format!("iperf3 measures for {MOST_TIME_S} s at the most: give a shorter --time")));
        }
        let login = server.login.as_ref().map(|login| Login::check(login, assignment.password.as_ref()));
        let login = login.transpose().map_err(asked)?;
        Ok(Self { task: task.clone(), server, window, path, omit_s, login })
    }

    /// Where the server is.
    pub(crate) fn address(&self) -> SocketAddr {
        SocketAddr::new(self.server.address, self.server.port)
    }

    /// The window in whole seconds, rounded up: the server only ends a test by it whose client has gone.
    pub(crate) fn time_s(&self) -> u64 {
        self.window.measure.get().div_ceil(1_000_000_000)
    }

    /// Whether each flow sends data back, in the order in which iperf3 wants them opened: those of the client first.
    pub(crate) fn flows(&self) -> Vec<(u16, bool)> {
        let ways: &[bool] = match self.task.direction {
            Direction::Send => &[false],
            Direction::Receive => &[true],
            Direction::Both => &[false, true],
        };
        ways.iter().flat_map(|backward| (0..self.task.net.flows).map(|number| (number, *backward))).collect()
    }
}

fn asked(text: impl Into<String>) -> Iperf3Error {
    Iperf3Error::InvalidRequest(text.into())
}

fn check_server(server: &Iperf3Server, task: &StreamTask) -> Result<(), Iperf3Error> {
    if server.port == 0 {
        return Err(asked(format!("port 0: iperf3 listens on {} unless told otherwise", Iperf3Server::PORT)));
    }
    if server.address.is_ipv6() != (task.net.ip == IpVersion::V6) {
        return Err(asked(format!("{} is not of the IP version asked for", server.address)));
    }
    let most = Iperf3Server::MOST_FLOWS;
    if task.net.flows > most {
        return Err(asked(format!("{} flows: iperf3 takes {most} each way at the most", task.net.flows)));
    }
    let (bytes, most) = (task.message_bytes.get(), Iperf3Server::MOST_TCP_BYTES);
    if task.net.transport == Transport::Tcp && bytes > most {
        return Err(asked(format!("--size {bytes}: iperf3 takes messages of {most} bytes at the most")));
    }
    match task.net.socket.mss.filter(|mss| *mss > MOST_MSS) {
        Some(mss) => Err(asked(format!("--mss {mss}: iperf3 takes {MOST_MSS} bytes at the most"))),
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

    /// A stream to a server on loopback.
    pub(crate) fn stream(transport: Transport) -> StreamTask {
        let bytes = if transport == Transport::Tcp { 128 << 10 } else { 1_472 };
        let iperf3 = Iperf3Server { address: Ipv4Addr::LOCALHOST.into(), port: 5_201, report: false, login: None };
        StreamTask {
            paths: vec![Path { client: "a".into(), server: Server::Foreign("iperf3".into()) }],
            iperf3: Some(Iperf3End::Server(iperf3)),
            ..StreamTask::plain(transport, ByteCount::new(bytes))
        }
    }

    fn of(task: StreamTask, timing: Timing, clients: usize) -> Result<Job, String> {
        let role = Role { kind: RoleKind::Client { path: 0 }, listens: Vec::new(), connects: Vec::new() };
        let assignment = assignment(Task::Stream(task), timing, vec![role; clients]);
        Job::check(&assignment).map_err(|error| error.to_string())
    }

    /// A job with a warm-up in seconds and a window in milliseconds.
    pub(crate) fn job(task: StreamTask, warmup_s: u64, measure_ms: u64) -> Result<Job, String> {
        of(task, Timing::of(Nanos::from_secs(warmup_s), Nanos::from_millis(measure_ms)), 1)
    }

    #[test]
    fn what_iperf3_does_not_take_is_named_with_its_remedy() {
        let tcp = || stream(Transport::Tcp);
        let end = |end| StreamTask { iperf3: Some(end), ..tcp() };
        let server = |server| end(Iperf3End::Server(server));
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
            (server(Iperf3Server { port: 0, ..iperf3.clone() }), usual, 1, "5201"),
            (server(Iperf3Server { address: [0; 16].into(), ..iperf3 }), usual, 1, "IP version"),
            (StreamTask { iperf3: None, ..tcp() }, usual, 1, "no iperf3 server"),
            (end(Iperf3End::Client(client)), usual, 1, "run iperf3 there"),
        ] {
            let error = of(task, timing, clients).expect_err(needle);
            assert!(error.contains(needle), "{error}");
        }
        let job = job(StreamTask { direction: Direction::Both, ..tcp() }, 2, 1_001).expect("valid");
        assert_eq!((job.omit_s, job.time_s(), job.flows()), (2, 2, vec![(0, false), (0, true)]));
    }
}
