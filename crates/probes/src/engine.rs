//! The engine of probes along a path.

use crate::error::ProbeError;
use crate::fall_back::FallBack;
use crate::packets::{self, Client, Packets, RouterProbes, UdpPackets};
use crate::prober::{Counters, ProbedEnd, Prober, Settings, StampClock, Ways, random_key};
use crate::stamp::{Key, Mode};
use linerate_engine::proof::proof;
use linerate_engine::{
    Conductor, Counted, Demand, Engine, EngineError, EngineFailure, ForeignServer, ListenOptions, Meters, Needs,
    PathEnd, PathRates, Side, SocketError, SocketSpec, Stopped, Timeline, Work, Worker, Workers, check_assignment,
    check_rate, failed, path_ends,
};
use linerate_model::{
    Assignment, Caveat, CaveatKind, Direction, Endpoints, FarEnd, HopsTask, IpVersion, Meter, Power, ProbePacket,
    Ready, RoleCounts, SessionKey, Task, Transport, Window, message,
};
use linerate_sys::clock;
use linerate_units::Nanos;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Time between the order to start and the start.
const LEAD: Nanos = Nanos::from_millis(20);
/// Highest rate of probes, bit/s: more would be a load.
const MAX_RATE: u64 = 100_000_000;
/// Rate of the probes of a path MTU, bit/s: a packet of 9,000 bytes each 50 ms.
const MTU_RATE: u64 = 9_000 * 8 * 20;
/// Memory of an end: probes that wait for answers, samples and a buffer.
const MEMORY: u64 = 4 << 20;
/// Purposes of the proofs that are the keys of the two ways.
const FORWARD: [u8; 8] = *b"lnrthop>";
const BACKWARD: [u8; 8] = *b"lnrthop<";
/// Service that is used of a host without an agent, for an agent's list of hosts that may be reached.
const EXPORT: &str = "probes";

/// The engine of probes along a path.
#[derive(Debug, Clone, Copy, Default)]
pub struct Probes;

impl Engine for Probes {
    fn name(&self) -> &'static str {
        "probes"
    }

    fn takes(&self, task: &Task) -> bool {
        matches!(task, Task::Hops(_))
    }

    fn demand(&self, assignment: &Assignment) -> Result<Demand, EngineError> {
        let job = Job::check(assignment)?;
        // Each end sends its own probes, and replies to those of the other end.
        let mtu = if job.task.path_mtu { MTU_RATE } else { 0 };
        let rate = Some(job.task.rate.get().saturating_add(mtu).saturating_mul(2));
        let ends = job.ends.len() as u64;
        let servers = match job.task.far_end {
            FarEnd::Agent => Vec::new(),
            FarEnd::Host { address, .. } | FarEnd::Stamp { address, .. } => {
                vec![ForeignServer { address, export: EXPORT.to_owned(), user: None }]
            }
        };
        let mut powers = vec![Power::Transact];
        if !servers.is_empty() {
            powers.push(Power::Servers);
        }
        let needs = Needs {
            powers: powers.into_iter().collect(),
            servers,
            memory: ends * (MEMORY + Needs::THREAD),
            threads: ends,
            descriptors: (3 + packets::MAX_DESCRIPTORS) * ends,
            ..Needs::default()
        };
        let rates = PathRates { forward: rate, backward: rate };
        Ok(rates.demand(assignment, job.window, &job.ends, 1, needs))
    }

    fn run(&self, assignment: &Assignment, host: &dyn Conductor) -> Result<Counted, EngineFailure> {
        Ok(run(assignment, host)?)
    }
}

/// A checked assignment.
struct Job {
    task: HopsTask,
    window: Window,
    ends: Vec<PathEnd>,
    key: SessionKey,
    /// Key of a STAMP reflector. `None` in unauthenticated mode.
    stamp_key: Option<Key>,
}

impl Job {
    fn check(assignment: &Assignment) -> Result<Self, ProbeError> {
        let Task::Hops(task) = &assignment.task else {
            return Err(invalid(format!("task {} probes no path", assignment.task.kind())));
        };
        let window = check_assignment(assignment)?;
        check_rate(Some(task.rate.get()), MAX_RATE, "bits", "probe at the usual 20 kbit/s")?;
        let ends = path_ends(assignment)?;
        let stamp_key = match (&task.far_end, &assignment.password) {
            (FarEnd::Stamp { authenticated: true, .. }, Some(digits)) => {
                Some(Key::from_hex(&digits.0).map_err(|error| invalid(error.to_string()))?)
            }
            (FarEnd::Stamp { authenticated: true, .. }, None) => {
                return Err(invalid("authenticated mode needs a key: give --key-file"));
            }
            _ => None,
        };
        if let (FarEnd::Agent | FarEnd::Stamp { .. }, Some(packet)) = (&task.far_end, task.packet)
            && packet != ProbePacket::Udp
        {
            return Err(invalid(format!(
                "agents and STAMP reflectors answer UDP only, not {packet}: leave the packets to linerate, or probe the host \
                 without its agent"
            )));
        }
        Ok(Self { task: task.clone(), window, ends, key: assignment.key, stamp_key })
    }

    fn v6(&self) -> bool {
        self.task.net.ip == IpVersion::V6
    }

    fn settings(&self, end: &PathEnd) -> Settings {
        // The client's probes open the path for those of the server.
        let probes = end.is_client() || self.task.direction != Direction::Send;
        let bits = ProbePacket::Udp.bytes().get() * 8;
        let spacing = (u128::from(bits) * 1_000_000_000 / u128::from(self.task.rate.get().max(1))) as u64;
        Settings { spacing, max_hops: self.task.max_hops, path_mtu: self.task.path_mtu, probes }
    }

    /// Returns the keys of both ways at this end.
    fn ways(&self, end: PathEnd) -> Ways {
        match self.task.far_end {
            FarEnd::Agent => {
                let key = end.key(&self.key);
                let [forward, backward] = [FORWARD, BACKWARD].map(|purpose| mode(&proof(&key, purpose, &[])));
                let (own, peer) = if end.is_client() { (forward, backward) } else { (backward, forward) };
                Ways { own, peer: Some(peer), clock: StampClock::Monotonic }
            }
            FarEnd::Stamp { .. } => {
                let own = self.stamp_key.clone().map_or(Mode::Unauthenticated, Mode::Authenticated);
                Ways { own, peer: None, clock: StampClock::Utc }
            }
            FarEnd::Host { .. } => Ways { own: mode(&random_key()), peer: None, clock: StampClock::Utc },
        }
    }

    fn spec(&self, client: bool) -> SocketSpec<'_> {
        let socket = &self.task.net.socket;
        let bind = socket.bind_address.filter(|_| client).map(|address| SocketAddr::new(address, 0));
        SocketSpec { transport: Transport::Udp, v6: self.v6(), options: socket, bind, device: client }
    }
}

fn mode(key: &[u8]) -> Mode {
    Mode::Authenticated(Key::new(key))
}

fn invalid(text: impl Into<String>) -> ProbeError {
    SocketError::InvalidRequest(text.into()).into()
}

fn run(assignment: &Assignment, host: &dyn Conductor) -> Result<Counted, ProbeError> {
    let job = Job::check(assignment)?;
    let listening = host.listen_options();
    let mut listeners = BTreeMap::new();
    let mut endpoints = Endpoints::new();
    for (index, end) in job.ends.iter().enumerate() {
        if let Side::Server { link, address } = end.side {
            let packets = listen(&job, *end, address, &listening)?;
            endpoints.insert(link, packets.1);
            listeners.insert(index, packets.0);
        }
    }
    let servers = host.listening(endpoints)?;
    let start = host.ready(Ready { lead: LEAD, ..Ready::default() })?;
    let timeline = Timeline::new(start, job.window);
    let counters = Arc::new(Counters::default());
    let mut workers = Vec::new();
    for (index, end) in job.ends.iter().enumerate() {
        let (packets, fall_back) = match (listeners.remove(&index), end.side) {
            (Some(packets), _) => packets,
            (None, Side::Client { link }) => connect(&job, link.and_then(|link| servers.get(&link)).copied())?,
            (None, Side::Server { .. }) => unreachable!("every server listens"),
        };
        let prober =
            Prober::new(packets, fall_back, job.ways(*end), job.settings(end), timeline.clone(), Arc::clone(&counters));
        let stop = Arc::clone(host.stop());
        let path = end.path;
        workers.push(Worker { name: format!("probe {path}"), sends: true, work: move || prober.run(path, &stop) });
    }
    let mut running: Workers<Result<ProbedEnd, ProbeError>> = Workers::default();
    running.start(workers).map_err(failed("starting a thread"))?;
    host.runs(Work {
        start,
        window: Some(timeline.clone()),
        threads: running.threads().to_vec(),
        disks: Vec::new(),
        meters: Arc::new(Progress(counters)),
    });
    let mut roles = Vec::new();
    let mut router_probes = Vec::new();
    for probed in running.join() {
        let ProbedEnd { end, router_probes: of_end } = probed?;
        roles.push(RoleCounts::Hops(Box::new(end)));
        router_probes.extend(of_end);
    }
    if host.stop().is_set() {
        return Err(Stopped.into());
    }
    let caveats = router_caveats(&router_probes);
    Ok(Counted { roles, started_unix_ns: clock::unix_at(timeline.open()), caveats, remains: Vec::new() })
}

/// Returns what the results of ends must not be taken for, if routers were not probed by the packets of the task.
fn router_caveats(router_probes: &[RouterProbes]) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    if router_probes.contains(&RouterProbes::Echo) {
        let text = message!(
            "caveat-routers-by-echo",
            "the system of a probing host reports no answers of routers to UDP, so ICMP echo requests probed the routers: where several \
             branches carry the path, their routers may be those of another branch; the path MTU was not searched for"
        );
        caveats.push(Caveat::new(CaveatKind::Fallback, text));
    }
    if router_probes.contains(&RouterProbes::None) {
        let text = message!(
            "caveat-routers-not-probed",
            "the system of a probing host reports no answers of routers, so only the far end was probed: the path's routers and its MTU \
             are unknown"
        );
        caveats.push(Caveat::new(CaveatKind::NotMeasured, text));
    }
    caveats
}

/// Packets of an end, and the kinds that it may change to.
type EndPackets = (Box<dyn Packets>, FallBack);

/// Opens the packets of a server's end, and returns the address that it listens at.
fn listen(
    job: &Job,
    end: PathEnd,
    address: std::net::IpAddr,
    listening: &ListenOptions,
) -> Result<(EndPackets, SocketAddr), ProbeError> {
    let peer = job.ways(end).peer;
    let greets =
        move |bytes: &[u8]| peer.as_ref().is_some_and(|mode| crate::stamp::TestPacket::read(bytes, mode).is_ok());
    let listener = listening.datagrams(job.spec(false), address, Box::new(greets))?;
    let local = listener.address();
    let packets = UdpPackets::of(listener, listening.peers.clone())?;
    Ok(((Box::new(packets), FallBack::only(ProbePacket::Udp)), local))
}

/// Opens the packets of a client's end.
fn connect(job: &Job, server: Option<SocketAddr>) -> Result<EndPackets, ProbeError> {
    let peer = match (&job.task.far_end, server) {
        (FarEnd::Agent, Some(server)) => server,
        (FarEnd::Agent, None) => return Err(invalid("no server was given to probe")),
        (FarEnd::Host { address, port } | FarEnd::Stamp { address, port, .. }, _) => SocketAddr::new(*address, *port),
    };
    if peer.is_ipv6() != job.v6() {
        return Err(invalid(format!("{} is not of the IP version asked for", peer.ip())));
    }
    let has_reflector = !matches!(job.task.far_end, FarEnd::Host { .. });
    let client = Client { peer, has_reflector, options: job.task.net.socket.clone() };
    let kinds = match (&job.task.far_end, job.task.packet) {
        (FarEnd::Host { .. }, None) => ProbePacket::ALL.to_vec(),
        (_, packet) => vec![packet.unwrap_or(ProbePacket::Udp)],
    };
    Ok(FallBack::first(&kinds, Box::new(move |packet| packets::open(&client, packet)))?)
}

/// Progress of the probes of a host.
struct Progress(Arc<Counters>);

impl Meters for Progress {
    fn read(&self) -> Meter {
        Meter {
            sent_bytes: self.0.sent_bytes.load(Ordering::Relaxed),
            operations: self.0.answered.load(Ordering::Relaxed),
            ..Meter::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamp::{ReflectorOptions, StampService};
    use linerate_engine::testing::one_path::{Ended, client_role, pair, part, parts, was_stopped};
    use linerate_engine::testing::{Reached, assignment, scope, sessions};
    use linerate_engine::{PortServer, at_one_port};
    use linerate_model::{HopsEnd, MtuProof, Net, Password, ProbedWay, Role, RoleKind, Timing};
    use linerate_sys::error_queue::queue_errors;
    use linerate_sys::handle::AsSocket as _;
    use linerate_units::BitRate;
    use std::net::{Ipv4Addr, TcpListener, UdpSocket};
    use std::time::Duration;

    fn task(ip: IpVersion) -> Task {
        let net = Net { ip, ..Net::plain(Transport::Udp) };
        Task::Hops(HopsTask { net, rate: BitRate::per_second(1_000_000), ..HopsTask::plain() })
    }

    fn end(ended: Ended) -> HopsEnd {
        match ended.expect("it ends with counts").roles.remove(0) {
            RoleCounts::Hops(end) => *end,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn both_ends_probe_each_other_over_loopback() {
        for ip in [IpVersion::V4, IpVersion::V6] {
            let [client, server] = pair(parts(&task(ip), Nanos::from_millis(600)));
            let [client, server] = scope(|scope| {
                let server = scope.spawn(move || server.run(&Probes));
                let client = client.run(&Probes);
                [client, server.join().expect("no panic")]
            })
            .map(end);
            for end in [&client, &server] {
                let way = end.way.as_ref().expect("both ends probe");
                let far_end = way.far_end().expect("it answered");
                assert_eq!((far_end.ttl, way.hops.len(), way.rejected), (1, 1, 0), "{way:?}");
                assert_eq!(far_end.addresses[0].address, way.destination);
                assert!(far_end.sent > 3 && far_end.answered > 0 && end.reflected > 0, "{end:?}");
                let timed = far_end.samples.iter().filter_map(|sample| Some((sample.delay?, sample.one_way?)));
                for (delay, [there, back]) in timed {
                    // One host has one clock, so that both ways take time and are parts of the round trip.
                    assert!(
                        there >= 0 && back >= 0 && (there + back).unsigned_abs() <= delay.get(),
                        "{there} {back} {delay}"
                    );
                }
                assert_eq!(far_end.reflected.map(|reflected| reflected <= far_end.sent), Some(true));
            }
        }
    }

    /// An agent listens at the port of its API unless it is told other ports.
    #[test]
    fn both_ends_probe_each_other_at_the_port_of_the_agent() {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let (listener, reserved) =
            at_one_port(any, TcpListener::bind, PortServer::keep_datagram_port).expect("a port free for both");
        let port = PortServer::start(listener, Box::new(drop)).expect("it serves");
        drop(reserved);
        let [client, server] = pair(parts(&task(IpVersion::V4), Nanos::from_millis(600)));
        let server =
            server.listening_with(ListenOptions { shared: Some(port.port().clone()), ..ListenOptions::default() });
        let [client, server] = scope(|scope| {
            let server = scope.spawn(move || server.run(&Probes));
            let client = client.run(&Probes);
            [client, server.join().expect("no panic")]
        })
        .map(end);
        for end in [&client, &server] {
            let far_end = end.way.as_ref().and_then(ProbedWay::far_end).expect("the other end answered");
            assert!(far_end.ttl == 1 && far_end.answered > 0 && end.reflected > 0, "{end:?}");
        }
    }

    #[test]
    fn host_without_an_agent_answers_that_its_port_is_closed() {
        let closed = UdpSocket::bind("127.0.0.1:0").expect("binds").local_addr().expect("is bound");
        let far_end = FarEnd::Host { address: closed.ip(), port: closed.port() };
        let Task::Hops(probes) = task(IpVersion::V4) else { unreachable!() };
        let task = Task::Hops(HopsTask { far_end, path_mtu: true, ..probes });
        let role = Role { connects: Vec::new(), ..client_role() };
        let part = part(&task, Nanos::from_millis(500), vec![role], 1);
        let session = sessions([part]).remove(0);
        let way = end(scope(|_| session.run(&Probes))).way.expect("it probes");
        let far_end = way.far_end().expect("the kernel answers");
        assert_eq!((far_end.ttl, far_end.addresses[0].address), (1, closed.ip()));
        assert_eq!(far_end.samples.iter().filter(|sample| sample.one_way.is_some()).count(), 0);
        let mtu = way.path_mtu.expect("it was searched for");
        assert_eq!((mtu.found_by, mtu.bytes), (MtuProof::FarEnd, Some(mtu.link_mtu)));
    }

    /// Probes a TCP port of this host.
    fn probe_port(port: u16) -> linerate_model::ProbedWay {
        let far_end = FarEnd::Host { address: Ipv4Addr::LOCALHOST.into(), port };
        let Task::Hops(probes) = task(IpVersion::V4) else { unreachable!() };
        let task = Task::Hops(HopsTask { far_end, packet: Some(ProbePacket::TcpSyn), ..probes });
        let role = Role { connects: Vec::new(), ..client_role() };
        let session = sessions([part(&task, Nanos::from_millis(500), vec![role], 1)]).remove(0);
        end(scope(|_| session.run(&Probes))).way.expect("it probes")
    }

    /// Returns whether the system reports ICMP errors with the packets that they quote.
    fn queues_errors() -> bool {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("binds");
        queue_errors(socket.as_socket(), false).is_ok()
    }

    #[test]
    fn tcp_ports_answer_whether_open_or_closed() {
        if !queues_errors() {
            return;
        }
        let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
        let open = listener.local_addr().expect("is bound").port();
        let way = probe_port(open);
        drop(listener);
        for way in [way, probe_port(open)] {
            let far_end = way.far_end().expect("the kernel answers");
            assert_eq!((far_end.ttl, way.packet, way.given_up.len()), (1, ProbePacket::TcpSyn, 0));
            assert!(far_end.answered > 3 && way.path_mtu.is_none(), "{way:?}");
            assert_eq!(way.sent_bytes, 60 * way.sent);
        }
    }

    #[test]
    fn agents_and_stamp_reflectors_are_probed_by_udp_only() {
        let Task::Hops(probes) = task(IpVersion::V4) else { unreachable!() };
        let stamp = FarEnd::Stamp { address: Ipv4Addr::LOCALHOST.into(), port: 862, authenticated: false };
        for far_end in [FarEnd::Agent, stamp] {
            let task = HopsTask { far_end, packet: Some(ProbePacket::RawIcmp), ..probes.clone() };
            let part = part(&Task::Hops(task), Nanos::from_secs(1), vec![client_role()], 1);
            let error = Probes.demand(&part).expect_err("they answer no echo requests").to_string();
            assert!(error.contains("not ICMP echo by a raw socket: leave the packets"), "{error}");
        }
    }

    #[test]
    fn stamp_reflector_reports_one_way_delays_and_what_it_received() {
        let digits = "00112233445566778899aabbccddeeff";
        for (authenticated, is_stateful) in [(false, true), (false, false), (true, true)] {
            let key = Key::from_hex(digits).expect("hexadecimal digits");
            let reflector_mode = if authenticated { Mode::Authenticated(key) } else { Mode::Unauthenticated };
            let options = ReflectorOptions { mode: reflector_mode, is_stateful, ..ReflectorOptions::default() };
            let service = StampService::start(&[(Ipv4Addr::LOCALHOST, 0).into()], options).expect("it serves");
            let reflector = service.addresses()[0];
            let far_end = FarEnd::Stamp { address: reflector.ip(), port: reflector.port(), authenticated };
            let Task::Hops(probes) = task(IpVersion::V4) else { unreachable!() };
            let task = Task::Hops(HopsTask { far_end, ..probes });
            let role = Role { connects: Vec::new(), ..client_role() };
            let mut part = part(&task, Nanos::from_millis(500), vec![role], 1);
            part.password = authenticated.then(|| Password(digits.to_owned()));
            let session = sessions([part]).remove(0);
            let way = end(scope(|_| session.run(&Probes))).way.expect("it probes");
            let far_end = way.far_end().expect("the reflector answers");
            assert!(far_end.ttl == 1 && far_end.answered > 0 && service.counts().answered > 0, "{way:?}");
            assert!(far_end.samples.iter().any(|sample| sample.one_way.is_some()), "{far_end:?}");
            assert_eq!(far_end.reflected.is_some(), is_stateful, "a stateless reflector counts nothing");
        }
    }

    #[test]
    fn stop_ends_both_ends_soon() {
        let [client, server] = pair(parts(&task(IpVersion::V4), Nanos::from_secs(600)));
        scope(|scope| {
            let running = [&client, &server].map(|session| scope.spawn(|| session.run(&Probes)));
            for session in [&client, &server] {
                assert!(session.wait_for(Reached::Running, Duration::from_secs(60)));
                session.stop("enough");
            }
            for session in running {
                assert!(was_stopped(&session.join().expect("no panic")));
            }
        });
    }

    #[test]
    fn demand_names_hosts_without_an_agent() {
        let role = Role { kind: RoleKind::Client { path: 0 }, listens: Vec::new(), connects: Vec::new() };
        let far_end = FarEnd::Host { address: Ipv4Addr::new(192, 0, 2, 7).into(), port: FarEnd::PORT };
        let Task::Hops(probes) = task(IpVersion::V4) else { unreachable!() };
        let probes = HopsTask { far_end, paths: vec![linerate_model::Path::between("a", "b")], ..probes };
        let timing = Timing::of(Nanos::from_secs(1), Nanos::from_secs(2));
        let demand = |probes: HopsTask| Probes.demand(&assignment(Task::Hops(probes), timing, vec![role.clone()]));
        let wanted = demand(probes.clone()).expect("it can be meant");
        assert_eq!(wanted.sends.map(BitRate::get), Some(2_000_000));
        assert_eq!(wanted.needs.servers[0].address, std::net::IpAddr::from([192, 0, 2, 7]));
        assert_eq!(wanted.needs.powers, [Power::Transact, Power::Servers].into_iter().collect());
        let loud = HopsTask { rate: BitRate::per_second(MAX_RATE + 1), ..probes };
        assert!(demand(loud).expect_err("a load").to_string().contains("choose 1 to 100000000"));
    }
}
