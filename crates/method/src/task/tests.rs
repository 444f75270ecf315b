//! Loads cut into sessions, and put together again.

use super::*;
use crate::copy::tests::{cell, part, plan, side};
use crate::measure::tests::host;
use crate::transfer::tests::{spec, stream_of, trial};
use linerate_model::{
    CopyCounts, CopyFrom, CopyInto, CopyOnError, CopyPart, CopyParts, CopyStage, CopyTask, CopyWay, Counts, EndCounts,
    FileServer, FrameEngine, FrameForm, FrameHeaders, FramePartCounts, FramePayload, FrameReceiver, FrameStream,
    FrameStreamPart, FramesArrived, FramesSent, FramesTask, Histogram, LinkId, Mac, NfsMix, NfsServer, NfsTask, Path,
    PathCounts, RoleCounts, Server, Timing, Transport,
};
use linerate_units::{FrameRate, FrameSize, Nanos};

/// Hosts of which each is reached at an address of its own; `shared` are one machine.
struct Known {
    hosts: Vec<Host>,
    /// One that the others may be unable to reach.
    hidden: Option<HostName>,
}

impl Known {
    fn of(names: &[&str], shared: &[&str]) -> Self {
        let one = |name: &&str| {
            let boot_id = if shared.contains(name) { "one".to_owned() } else { (*name).to_owned() };
            Host { boot_id, ..host(name, None) }
        };
        Self { hosts: names.iter().map(one).collect(), hidden: None }
    }
}

impl Addresses for Known {
    fn data_address(&self, listener: &HostName, connector: &HostName, _: IpVersion) -> Result<IpAddr, String> {
        let at = self.hosts.iter().position(|host| host.name == *listener);
        let at = at.ok_or_else(|| format!("{connector} cannot reach {listener}"))?;
        Ok([192, 0, 2, at as u8].into())
    }

    fn is_hidden(&self, host: &HostName, _: &HostName) -> bool {
        self.hidden.as_ref() == Some(host)
    }

    fn host(&self, name: &HostName) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name == *name)
    }
}

fn abc() -> Known {
    Known::of(&["a", "b", "c"], &[])
}

/// A role: what it is, the links it listens on, the links it connects.
type Linked = (RoleKind, Vec<u16>, Vec<u16>);

/// Each host with its roles.
fn roles(assigned: &Assigned) -> Vec<(&str, Vec<Linked>)> {
    let role = |role: &Role| {
        let links = role.listens.iter().map(|listen| listen.link.0).collect();
        (role.kind.clone(), links, role.connects.iter().map(|link| link.0).collect())
    };
    assigned.parts.iter().map(|(host, roles)| (host.0.as_str(), roles.iter().map(role).collect())).collect()
}

/// What a host counted in `roles`.
fn counted(roles: Vec<RoleCounts>, started_unix_ns: u64) -> HostCounts {
    HostCounts {
        roles,
        observation: Observation::default(),
        series: linerate_model::Series::default(),
        started_unix_ns,
        caveats: Vec::new(),
        remains: Vec::new(),
    }
}

fn joining(parts: Vec<(&str, Result<HostCounts, String>)>) -> Vec<Joining> {
    vec![Joining { caveats: Vec::new(), parts: parts.into_iter().map(|(host, part)| (host.into(), part)).collect() }]
}

#[test]
fn a_server_of_two_clients_has_a_link_for_each() {
    let mut trial = spec();
    stream_of(&mut trial).paths = vec![Path::between("a", "c"), Path::between("b", "c")];
    let assigned = assign(trial.load(), &abc()).expect("they reach each other");
    let server = |path| (RoleKind::Server { path }, vec![path], vec![]);
    let client = |path| (RoleKind::Client { path }, vec![], vec![path]);
    let all = [("c", vec![server(0), server(1)]), ("a", vec![client(0)]), ("b", vec![client(1)])];
    assert_eq!(roles(&assigned), all);
    assert_eq!(assigned.parts[0].1[0].listens[0].address, IpAddr::from([192, 0, 2, 2]));
    stream_of(&mut trial).paths.push(Path::between("a", "d"));
    assert_eq!(assign(trial.load(), &abc()), Err("a cannot reach d".to_owned()));
}

#[test]
fn a_server_that_runs_no_agent_has_no_part() {
    let mix = NfsMix::named("getattr").expect("a mix");
    let server = NfsServer {
        address: [192, 0, 2, 9].into(),
        export: "/e".into(),
        nfs_port: None,
        mount_port: None,
        uid: 0,
        gid: 0,
    };
    let paths = vec![Path { client: "a".into(), server: Server::Foreign("filer:/e".into()) }];
    let nfs = NfsTask { paths, server: Some(server), ..NfsTask::plain(Transport::Tcp, mix) };
    let load = Load { task: Task::Nfs(nfs), timing: Timing::UntilDone };
    let assigned = assign(&load, &abc()).expect("nothing is to be reached");
    assert_eq!(roles(&assigned), [("a", vec![(RoleKind::Client { path: 0 }, vec![], vec![])])]);
    let trial = Trial { name: "nfs".into(), loads: vec![load], proves: None };
    let end = RoleCounts::Flows(Box::default());
    let result = join(&trial, 0, joining(vec![("a", Ok(counted(vec![end], 7)))])).expect("the client is there");
    assert_eq!((result.paths()[0].server.clone(), result.started_unix_ns), (EndCounts::default(), 7));
}

#[test]
fn what_a_server_without_an_agent_tells_is_its_end() {
    let mut trial = spec();
    stream_of(&mut trial).paths = vec![Path { client: "a".into(), server: Server::Foreign("iperf3://b".into()) }];
    let PathCounts { client, server, .. } = crate::transfer::tests::trial(9_000, 1_000).paths()[0].clone();
    let told = EndCounts { told: Some(serde_json::json!({"streams": []})), ..server };
    let roles = [client, told.clone()].map(|end| RoleCounts::Flows(Box::new(end)));
    let result = join(&trial, 0, joining(vec![("a", Ok(counted(roles.into(), 7)))])).expect("the client is there");
    assert_eq!(result.paths()[0].server, told);
    assert_eq!(result.paths()[0].forward_loss.map(|loss| (loss.lost, loss.of)), Some((1_000, 10_000)));
}

#[test]
fn the_ends_of_a_path_are_joined_and_its_losses_placed() {
    let whole = trial(9_000, 1_000);
    let PathCounts { client, server, .. } = whole.paths()[0].clone();
    let ends = |remains: &[&str]| {
        let mut a = counted(vec![RoleCounts::Flows(Box::new(client.clone()))], 50);
        a.remains = remains.iter().map(|what| (*what).to_owned()).collect();
        let mut b = counted(vec![RoleCounts::Flows(Box::new(server.clone()))], 40);
        b.caveats = vec![Caveat::new(CaveatKind::Fallback, linerate_model::Message::untranslated("recv stood in"))];
        joining(vec![("b", Ok(b)), ("a", Ok(a))])
    };
    let result = join(&spec(), 2, ends(&["b:/tmp/x was not removed"])).expect("both ends are there");
    assert_eq!(result.paths()[0].forward_loss.map(|loss| (loss.lost, loss.places.unaccounted)), Some((1_000, 1_000)));
    assert_eq!((result.attempt, result.started_unix_ns, result.hosts.len()), (2, 40, 2));
    let doubts: Vec<(CaveatKind, &str)> =
        result.caveats.iter().map(|doubt| (doubt.kind, doubt.text.text.as_str())).collect();
    assert_eq!(
        doubts,
        [(CaveatKind::Fallback, "on b: recv stood in"), (CaveatKind::LeftBehind, "b:/tmp/x was not removed")]
    );
    let mut lost = ends(&[]);
    lost[0].parts[1].1 = Err("it fell silent".to_owned());
    assert_eq!(join(&spec(), 0, lost), Err("a: it fell silent".to_owned()));
    let mut short = ends(&[]);
    short[0].parts.pop();
    assert!(join(&spec(), 0, short).expect_err("an end is missing").starts_with("a: the agent gave no counts"));
}

/// The client and the server of a path may be one host.
#[test]
fn one_host_may_be_both_ends() {
    let mut trial = spec();
    stream_of(&mut trial).paths = vec![Path::between("a", "a")];
    let assigned = assign(trial.load(), &abc()).expect("it reaches itself");
    let kinds: Vec<&RoleKind> = assigned.parts[0].1.iter().map(|role| &role.kind).collect();
    assert_eq!(kinds, [&RoleKind::Server { path: 0 }, &RoleKind::Client { path: 0 }]);
    let end = |interface: &str| {
        RoleCounts::Flows(Box::new(EndCounts { interface: Some(interface.into()), ..EndCounts::default() }))
    };
    let part = counted(vec![end("server"), end("client")], 1);
    let result = join(&trial, 0, joining(vec![("a", Ok(part))])).expect("both roles are there");
    let ends = &result.paths()[0];
    assert_eq!((ends.server.interface.as_deref(), ends.client.interface.as_deref()), (Some("server"), Some("client")));
}

fn frames(ports: &[&str], ways: &[(u16, u16)]) -> Trial {
    let stream = |&(from, to): &(u16, u16)| FrameStream {
        from,
        to,
        copies_to: Vec::new(),
        size: FrameSize::with_fcs(64).expect("a size"),
        rate: Some(FrameRate::per_second(1_000)),
        count: None,
        after: Nanos::default(),
        time: None,
        headers: FrameHeaders {
            source_mac: Mac::default(),
            destination_mac: Mac::default(),
            vlans: Vec::new(),
            priority: 0,
            dscp: 0,
            source: "198.18.0.1".parse().expect("an address"),
            destination: "198.18.0.2".parse().expect("an address"),
            payload: FramePayload::Udp { source_port: 7, destination_port: 7 },
        },
        form: FrameForm::default(),
    };
    let task = FramesTask {
        home: "home".into(),
        ports: ports.iter().map(|name| (*name).into()).collect(),
        streams: ways.iter().map(stream).collect(),
        time: Nanos::from_secs(1),
        settle: Nanos::default(),
        engine: FrameEngine::Auto,
        receiver: FrameReceiver::Port,
        line: None,
        hosts: Vec::new(),
    };
    Trial::new("throughput 64", Task::Frames(task), Timing::UntilDone)
}

#[test]
fn each_host_has_its_own_ports_and_all_the_same_mark() {
    let cut = |ports: &[&str]| -> Vec<(String, RoleKind)> {
        let mut assigned = assign(frames(ports, &[(0, 1)]).load(), &abc()).expect("ports need no address");
        assigned.mark(7);
        let first = |(host, roles): (HostName, Vec<Role>)| (host.0, roles[0].kind.clone());
        assigned.parts.into_iter().map(first).collect()
    };
    let ports = |own: &[u16]| RoleKind::Ports { own: own.to_vec(), tag: 7 };
    assert_eq!(cut(&["p0", "p1", "p2"]), [("home".to_owned(), ports(&[0, 1, 2]))]);
    assert_eq!(cut(&["b:p0", "a:p0", "b:p1"]), [("b".to_owned(), ports(&[0, 2])), ("a".to_owned(), ports(&[1]))]);
    assert!(drains(frames(&["p0"], &[]).task()) && !drains(spec().task()));
}

#[test]
fn xdp_gives_way_where_both_senders_are_one_machine() {
    let engine = |known: &Known, ways: &[(u16, u16)]| {
        let assigned = assign(frames(&["a:p0", "b:p0"], ways).load(), known).expect("ports need no address");
        let Task::Frames(task) = &assigned.load.task else { panic!("frames") };
        (task.engine, assigned.caveats.iter().map(|caveat| caveat.kind).collect::<Vec<_>>())
    };
    let (apart, together) = (abc(), Known::of(&["a", "b"], &["a", "b"]));
    let both = [(0, 1), (1, 0)];
    assert_eq!(engine(&apart, &both), (FrameEngine::Auto, vec![]));
    assert_eq!(engine(&together, &both), (FrameEngine::PacketSocket, vec![CaveatKind::Fallback]));
    assert_eq!(engine(&together, &both[..1]), (FrameEngine::Auto, vec![]), "only one sends");
}

/// Two hosts, one stream each way: a sends 1,000 frames of which b gets 990, b sends 500 of which a gets all.
fn both_ways() -> [HostCounts; 2] {
    let sent = |sent, first| FramesSent { intended: 1_000, sent, first, ..FramesSent::default() };
    let arrived = |received, last_gap| FramesArrived { received, expected: 1_000, last_gap, ..Default::default() };
    let part = |streams, started| {
        counted(vec![RoleCounts::Frames(FramePartCounts { engine: FrameEngine::Xdp, streams })], started)
    };
    let a = vec![
        FrameStreamPart { sent: Some(sent(1_000, 5_000)), arrived: None, flooded: 3, ..FrameStreamPart::default() },
        FrameStreamPart { sent: None, arrived: Some(arrived(500, None)), ..FrameStreamPart::default() },
    ];
    let b = vec![
        FrameStreamPart {
            sent: None,
            arrived: Some(arrived(990, Some(6_000))),
            flooded: 4,
            ..FrameStreamPart::default()
        },
        FrameStreamPart { sent: Some(sent(500, 9_000)), arrived: None, ..FrameStreamPart::default() },
    ];
    [part(a, 50), part(b, 40)]
}

fn joined([a, b]: [HostCounts; 2]) -> Result<TrialResult, String> {
    join(&frames(&["a:p0", "b:p0"], &[(0, 1), (1, 0)]), 0, joining(vec![("a", Ok(a)), ("b", Ok(b))]))
}

/// What a host counted of frames, to be changed.
fn part_of(host: &mut HostCounts) -> &mut FramePartCounts {
    match &mut host.roles[0] {
        RoleCounts::Frames(part) => part,
        other => panic!("no frames: {other:?}"),
    }
}

#[test]
fn the_senders_and_the_receivers_counts_become_one() {
    let result = joined(both_ways()).expect("both hosts are there");
    let run = result.frames().expect("frames");
    let [there, back] = &run.counts.streams[..] else { panic!("{result:?}") };
    assert_eq!((there.intended, there.sent, there.received, there.lost(), there.flooded), (1_000, 1_000, 990, 10, 7));
    assert_eq!((back.intended, back.sent, back.received, back.lost(), back.flooded), (1_000, 500, 500, 500, 0));
    assert_eq!((there.last_gap, back.last_gap), (Some(Nanos::new(1_000)), None));
    assert_eq!(there.latency, Histogram::default());
    assert_eq!((run.counts.engine, result.started_unix_ns, result.hosts.len()), (FrameEngine::Xdp, 40, 2));
    assert!(result.hosts.contains_key(&HostName::from("b")));
}

#[test]
fn a_doubt_names_its_host_and_the_slower_engine_is_the_wholes() {
    let [a, mut b] = both_ways();
    part_of(&mut b).engine = FrameEngine::PacketSocket;
    b.caveats.push(Caveat::new(
        CaveatKind::Fallback,
        linerate_model::Message::untranslated("packet sockets were used instead of XDP"),
    ));
    let result = joined([a, b]).expect("both hosts are there");
    assert_eq!(result.frames().map(|run| run.counts.engine), Some(FrameEngine::PacketSocket));
    assert_eq!(result.caveats[0].text, "on b: packet sockets were used instead of XDP");
}

#[test]
fn an_end_that_nobody_counted_is_no_zero() {
    let [a, mut b] = both_ways();
    part_of(&mut b).streams[0].arrived = None;
    let error = joined([a, b]).expect_err("what b received is not known");
    assert!(error.contains("stream 0") && error.contains("same linerate"), "{error}");
}

fn filer() -> FileServer {
    FileServer::AgentNfs("192.0.2.9:2049".parse().expect("an address"))
}

/// A copy from `sources` to `destinations`.
fn copy(way: CopyWay, sources: &[&str], destinations: &[&str], from: CopyFrom, into: CopyInto) -> CopyTask {
    let sources = sources.iter().map(|name| (*name).into()).collect();
    CopyTask { way, sources, from, into, ..plan(destinations) }
}

fn cut(task: CopyTask) -> Assigned {
    assign(cell(task).load(), &abc()).expect("they reach each other")
}

#[test]
fn each_pair_of_source_and_destination_has_a_link() {
    let task = copy(CopyWay::Linerate, &["a", "b"], &["c", "b"], CopyFrom::Files, CopyInto::Scratch);
    let assigned = cut(task);
    // Links are numbered by destination, then source.
    let (source, destination) = (RoleKind::Source, RoleKind::Destination);
    let all = [
        ("c", vec![(destination.clone(), vec![0, 1], vec![])]),
        ("b", vec![(destination, vec![2, 3], vec![]), (source.clone(), vec![], vec![1, 3])]),
        ("a", vec![(source, vec![], vec![0, 2])]),
    ];
    assert_eq!(roles(&assigned), all);
    let folders: Vec<_> = assigned.parts[0].1[0].listens.iter().map(|listen| listen.folder.as_deref()).collect();
    assert_eq!(folders, [Some("a"), Some("b")], "several sources have a folder each");
    let one = cut(copy(CopyWay::Linerate, &["a"], &["b"], CopyFrom::Files, CopyInto::Scratch));
    assert_eq!(one.parts[0].1[0].listens[0].folder, None);
    assert_eq!(one.parts[1].1[0].connects, [LinkId(0)]);
}

#[test]
fn a_destination_that_may_be_hidden_connects_to_its_source() {
    let hosts = Known { hidden: Some("b".into()), ..abc() };
    let cut = |way, from: &[&str], to: &[&str]| {
        let task = copy(way, from, to, CopyFrom::Files, CopyInto::Scratch);
        assign(cell(task).load(), &hosts).expect("they reach each other")
    };
    let source = |listens, connects| (RoleKind::Source, listens, connects);
    let destination = |listens, connects| (RoleKind::Destination, listens, connects);
    let reversed = cut(CopyWay::Linerate, &["a"], &["b"]);
    assert_eq!(roles(&reversed), [("b", vec![destination(vec![], vec![0])]), ("a", vec![source(vec![0], vec![])])]);
    let usual = cut(CopyWay::Linerate, &["b"], &["a"]);
    assert_eq!(roles(&usual), [("a", vec![destination(vec![0], vec![])]), ("b", vec![source(vec![], vec![0])])]);
    let server = cut(CopyWay::Nfs, &["a"], &["b"]);
    assert_eq!(server.parts[0].1[0].listens.len(), 1, "a file server is connected to");
}

#[test]
fn where_a_file_server_is_an_end_one_host_does_all() {
    let copier =
        |folder: Option<&str>, destination| RoleKind::Copier { folder: folder.map(str::to_owned), destination };
    let alone = |host, folder| (host, vec![(copier(folder, 0), vec![], vec![])]);
    let reader = |host, destination| (host, vec![(copier(None, destination), vec![], vec![])]);
    let path = cut(copy(CopyWay::Path, &["a"], &[], CopyFrom::Files, CopyInto::Folder("/m".into())));
    assert_eq!(roles(&path), [alone("a", None)]);
    let read = cut(copy(CopyWay::Nfs, &["filer"], &["b", "c"], CopyFrom::Server(filer()), CopyInto::Scratch));
    assert_eq!(roles(&read), [reader("b", 0), reader("c", 1)]);
    let written = cut(copy(CopyWay::Smb, &["a", "b"], &["filer"], CopyFrom::Files, CopyInto::Server(filer())));
    assert_eq!(roles(&written), [alone("a", Some("a")), alone("b", Some("b"))]);
    let by_one = cut(copy(CopyWay::Smb, &["a"], &["filer"], CopyFrom::Files, CopyInto::Server(filer())));
    assert_eq!(roles(&by_one), [alone("a", None)]);
    let served = cut(copy(CopyWay::Nfs, &["a"], &["b", "c"], CopyFrom::Files, CopyInto::Scratch));
    let server = |link| vec![(RoleKind::FileServer, vec![link], vec![])];
    let all = [("b", server(0)), ("c", server(1)), ("a", vec![(copier(None, 0), vec![], vec![0, 1])])];
    assert_eq!(roles(&served), all);
}

/// A host's counts of a copy: a side for each of its links.
fn copied(sides: usize) -> RoleCounts {
    let CopyPart { counted, .. } = part("x", (0..sides).map(|_| side(2, 300, CopyStage::Write)).collect());
    RoleCounts::Copy(counted)
}

fn parts_of(result: &TrialResult) -> &CopyParts {
    result.copy().expect("a copy")
}

#[test]
fn the_parts_of_a_copy_are_told_apart() {
    let task = copy(CopyWay::Linerate, &["a", "b"], &["c", "b"], CopyFrom::Files, CopyInto::Scratch);
    let all = |b: Vec<RoleCounts>| {
        let [a, c] = [copied(2), copied(2)].map(|role| Ok(counted(vec![role], 9)));
        join(&cell(task.clone()), 0, joining(vec![("c", c), ("b", Ok(counted(b, 3))), ("a", a)]))
    };
    let result = all(vec![copied(2), copied(1)]).expect("all are there");
    let names = |parts: &[CopyPart]| parts.iter().map(|part| part.host.0.clone()).collect::<Vec<_>>();
    let CopyParts { sources, destinations, servers } = parts_of(&result);
    assert_eq!((names(sources), names(destinations)), (vec!["a".into(), "b".into()], vec!["c".into(), "b".into()]));
    assert_eq!((sources[1].counted.sides.len(), destinations[1].counted.sides.len()), (1, 2), "roles are in order");
    assert!(servers.is_empty() && result.started_unix_ns == 3);
    assert!(figure(&result) > 0.0);
    assert!(all(vec![copied(2)]).expect_err("a role is missing").starts_with("b: its agent gave no counts"));
}

#[test]
fn a_copy_goes_on_without_a_host_while_each_end_has_one_left() {
    let mut task = copy(CopyWay::Linerate, &["a"], &["b", "c"], CopyFrom::Files, CopyInto::Scratch);
    let load = |task: &CopyTask| cell(task.clone()).load().clone();
    let lost = |hosts: &[&str]| hosts.iter().map(|host| HostName::from(*host)).collect::<Vec<_>>();
    assert!(survives(&load(&task), &[]) && survives(&load(&task), &lost(&["b"])));
    assert!(!survives(&load(&task), &lost(&["b", "c"])), "nobody is left to write");
    assert!(!survives(&load(&task), &lost(&["a"])), "nobody is left to read");
    assert!(!survives(spec().load(), &lost(&["a"])), "a stream needs both ends");

    let without_b = |task: &CopyTask| {
        let [a, c] = [copied(2), copied(1)].map(|role| Ok(counted(vec![role], 9)));
        join(&cell(task.clone()), 0, joining(vec![("b", Err("it fell silent".into())), ("c", c), ("a", a)]))
    };
    let result = without_b(&task).expect("c is left");
    let CopyCounts { sides, faults, faults_total } = &parts_of(&result).destinations[0].counted;
    assert_eq!((sides.len(), faults[0].reason.as_str(), *faults_total), (1, "it fell silent", 1));
    assert_eq!(result.hosts.keys().map(|host| host.0.as_str()).collect::<Vec<_>>(), ["a", "c"]);
    task.options.on_error = CopyOnError::Stop;
    assert_eq!(without_b(&task), Err("b: it fell silent".to_owned()));
}

#[test]
fn a_load_beside_another_is_counted_by_itself_and_says_nothing_of_the_hosts() {
    let mut trial = spec();
    trial.loads.push(trial.loads[0].clone());
    let flows = trial.paths()[0].clone();
    assert_eq!(flows, Path::between("a", "b"));
    let load = |window, started| {
        let end = || RoleCounts::Flows(Box::default());
        let seen = |mut part: HostCounts| {
            part.observation.window = Nanos::from_secs(window);
            Ok(part)
        };
        let parts = vec![("b", seen(counted(vec![end()], started))), ("a", seen(counted(vec![end()], started)))];
        joining(parts).remove(0)
    };
    let result = join(&trial, 0, vec![load(1, 50), load(9, 20)]).expect("both loads are there");
    assert!(matches!(&result.counts[..], [Counts::Flows(_), Counts::Flows(_)]));
    assert_eq!(result.started_unix_ns, 50, "the measured load began");
    assert!(result.hosts.values().all(|seen| seen.window == Nanos::from_secs(1)));
}
