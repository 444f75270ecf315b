//! The agent's own engines: each task has exactly one, and none escapes the limits.

use super::*;
use crate::admission::admit;
use crate::engines::table;
use crate::grant::Grant;
use crate::{AllowedServers, Budget};
use linerate_model::{
    CopyCache, CopyFrom, CopyInto, CopyOptions, CopyTask, CopyTree, CopyVerify, CopyWay, FileServer, HopsTask,
    IpVersion, LinkId, NfsMix, NfsServer, NfsTask, Path, RpcCall, RpcTask, SmbServer, SmbVersion, TaskKind,
    TransactTask,
};
use linerate_units::BitRate;
use std::net::{IpAddr, SocketAddr};

/// One host's part in a task of `kind` without a rate limit.
fn unbounded(kind: TaskKind) -> Assignment {
    let paths = vec![Path::between("a", "b")];
    let client = RoleKind::Client { path: 0 };
    let window = Timing::of(Nanos::default(), Nanos::from_secs(1));
    let (task, role, timing) = match kind {
        TaskKind::Frames => return super::frames::frames(Nanos::from_secs(1), vec![0], None),
        TaskKind::Copy => (Task::Copy(copy()), RoleKind::Source, Timing::UntilDone),
        TaskKind::Stream => {
            let plain = StreamTask::plain(Transport::Tcp, ByteCount::new(1_000));
            (Task::Stream(StreamTask { paths, ..plain }), client, window)
        }
        TaskKind::Hops => {
            // No more than an engine of probes takes.
            let rate = BitRate::per_second(100_000_000);
            (Task::Hops(HopsTask { paths, rate, ..HopsTask::plain() }), client, window)
        }
        TaskKind::Transact => {
            (Task::Transact(TransactTask { paths, ..TransactTask::plain(Transport::Tcp) }), client, window)
        }
        TaskKind::Rpc => {
            let plain = RpcTask::plain(Transport::Tcp, RpcCall::Echo, ByteCount::new(1_000));
            (Task::Rpc(RpcTask { paths, ..plain }), client, window)
        }
        TaskKind::Nfs => {
            let plain = NfsTask::plain(Transport::Tcp, NfsMix::named("read").expect("a mix"));
            (Task::Nfs(NfsTask { paths, ..plain }), client, window)
        }
    };
    let role = Role { kind: role, listens: Vec::new(), connects: vec![LinkId(0)] };
    Assignment { task, timing, roles: vec![role], ..assignment("fast") }
}

/// A made tree from one host to another.
fn copy() -> CopyTask {
    CopyTask {
        tree: CopyTree::default(),
        each: Vec::new(),
        way: CopyWay::Linerate,
        sources: vec![HostName::from("a")],
        destinations: vec![HostName::from("b")],
        from: CopyFrom::Memory,
        into: CopyInto::Discard,
        options: CopyOptions::PLAIN,
        ip: IpVersion::V4,
    }
}

#[test]
fn each_task_has_exactly_one_engine() {
    let engines = table(&EngineOptions::default());
    for kind in TaskKind::ALL {
        let task = unbounded(kind).task;
        let names: Vec<_> = engines.iter().filter(|engine| engine.takes(&task)).map(|engine| engine.name()).collect();
        assert_eq!(names.len(), 1, "{kind} is taken by {names:?}");
    }
}

/// Attack: the holder of an agent URL uses the agent's place in the network, its ports below 1024 and any user's number at file servers
/// that trust the agent's host.
#[test]
fn the_reach_to_file_servers_is_lent_only_where_it_was_allowed() {
    let filer: IpAddr = "192.0.2.5".parse().expect("an address");
    let nfs = NfsServer {
        address: filer,
        export: "/srv/data".to_owned(),
        nfs_port: Some(2049),
        mount_port: None,
        uid: 1000,
        gid: 100,
    };
    let [name, share, folder, user] = ["filer", "data", "new", "ann"].map(str::to_owned);
    let smb = SmbServer {
        address: SocketAddr::new(filer, 445),
        name,
        share,
        folder,
        user,
        minimum: SmbVersion::default(),
        sign: false,
    };
    let operations =
        NfsTask { server: Some(nfs.clone()), ..NfsTask::plain(Transport::Tcp, NfsMix::named("read").expect("a mix")) };
    let operations = NfsTask { paths: vec![Path::between("a", "b")], ..operations };
    let copier = RoleKind::Copier { folder: None, destination: 0 };
    let copies =
        [FileServer::Nfs(nfs), FileServer::Smb(smb), FileServer::AgentNfs(SocketAddr::new(filer, 22))].map(|server| {
            let from = CopyTask { from: CopyFrom::Server(server.clone()), ..copy() };
            let into = CopyTask {
                into: CopyInto::Server(server),
                options: CopyOptions { verify: CopyVerify::ReadBack, ..copy().options },
                ..copy()
            };
            [from, into]
        });
    let tasks = copies.into_iter().flatten().map(|task| (Task::Copy(task), copier.clone(), Vec::new()));
    let tasks = tasks.chain([(Task::Nfs(operations), RoleKind::Client { path: 0 }, vec![LinkId(0)])]);
    let engines = table(&EngineOptions::default());
    for (task, kind, connects) in tasks {
        let timing = unbounded(task.kind()).timing;
        let role = Role { kind, listens: Vec::new(), connects };
        let assignment = Assignment { task, timing, roles: vec![role], ..assignment("fast") };
        let engine = engines.iter().find(|engine| engine.takes(&assignment.task)).expect("an engine");
        let demand = engine.demand(&assignment).expect("it can be meant");
        let admitted = |servers: &[&str], users: &[&str]| {
            let servers = AllowedServers {
                servers: servers.iter().map(|text| text.parse().expect("a server")).collect(),
                users: users.iter().map(|text| text.parse().expect("a user")).collect(),
            };
            let limits = Limits { servers, ..Limits::default() };
            let grant = Grant::of_owner(&limits);
            admit(&limits, &grant, assignment.task.kind(), &demand, std::iter::empty(), &[])
                .map_err(|error| error.message)
        };
        let what = format!("{:?}", assignment.task);
        let error = admitted(&[], &[]).expect_err(&what);
        assert!(error.contains("--allow-server 192.0.2.5:"), "{error}");
        assert!(admitted(&["192.0.2.6", "192.0.2.5:/srv/other", "192.0.2.5:other"], &["any"]).is_err(), "{what}");
        assert_eq!(admitted(&["192.0.2.5"], &["1000:100"]), Ok(()), "{what}");
        let as_root = admitted(&["192.0.2.5"], &["0"]);
        let has_user = demand.needs.servers.iter().any(|server| server.user.is_some());
        assert_eq!(as_root.is_err_and(|error| error.contains("--allow-uid 1000:100")), has_user, "{what}");
    }
}

/// Attack: a stranger to the host's other programs has its caches emptied, over and over.
#[test]
fn caches_are_emptied_only_where_that_was_allowed() {
    let task = CopyTask { options: CopyOptions { cache: CopyCache::Cold, ..copy().options }, ..copy() };
    let assignment = Assignment { task: Task::Copy(task), ..unbounded(TaskKind::Copy) };
    let engines = table(&EngineOptions::default());
    let engine = engines.iter().find(|engine| engine.takes(&assignment.task)).expect("an engine");
    let demand = engine.demand(&assignment).expect("it can be meant");
    let admitted = |cold_cache| {
        let limits = Limits { cold_cache, ..Limits::default() };
        let grant = Grant::of_owner(&limits);
        admit(&limits, &grant, TaskKind::Copy, &demand, std::iter::empty(), &[]).map_err(|error| error.message)
    };
    assert!(admitted(false).is_err_and(|error| error.contains("--allow-cold-cache")));
    assert_eq!(admitted(true), Ok(()));
}

/// Without a rate, beyond the time, or one too many: whatever the task, the agent refuses it and names the limit.
#[test]
fn no_task_escapes_the_limits() {
    let open = Limits { frames: AllowedInterfaces::All, ..Limits::default() };
    let engines = table(&EngineOptions::default());
    for kind in TaskKind::ALL {
        let assignment = unbounded(kind);
        let engine = engines.iter().find(|engine| engine.takes(&assignment.task)).expect("an engine");
        let demand = engine.demand(&assignment).unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert_eq!(admit(&open, &Grant::of_owner(&open), kind, &demand, std::iter::empty(), &[]), Ok(()), "{kind}");
        let refused = |limits: Limits, option: &str| {
            let error =
                admit(&limits, &Grant::of_owner(&limits), kind, &demand, std::iter::empty(), &[]).expect_err(option);
            assert!(error.message.contains(option), "{kind}: {}", error.message);
        };
        let below = if kind == TaskKind::Hops { 1 << 20 } else { 1 << 40 };
        refused(Limits { max_rate: Some(BitRate::per_second(below)), ..open.clone() }, "--max-rate");
        refused(Limits { max_trials: 0, ..open.clone() }, "--max-trials");
        match demand.time {
            Some(_) => refused(Limits { max_time: Nanos::from_millis(999), ..open.clone() }, "--max-time"),
            // What has no length of its own is ended at the limit: tests/limits.rs.
            None => assert_eq!(kind, TaskKind::Copy),
        }
    }
}

/// 64 MiB messages, 128 flows, 4 trials: each within its own limit, and 32 GiB together.
#[test]
fn messages_count_for_each_flow() {
    let engines = table(&EngineOptions::default());
    let limits =
        Limits { budget: Budget { memory: ByteCount::new(4 << 30), ..Budget::default() }, ..Limits::default() };
    let mut assignment = unbounded(TaskKind::Stream);
    let Task::Stream(task) = &mut assignment.task else { panic!("a stream") };
    task.message_bytes = ByteCount::new(StreamTask::TCP_MAXIMUM);
    task.net.flows = 128;
    let engine = engines.iter().find(|engine| engine.takes(&assignment.task)).expect("an engine");
    let demand = engine.demand(&assignment).expect("it can be meant");
    let admit = || admit(&limits, &Grant::of_owner(&limits), TaskKind::Stream, &demand, [].into_iter(), &[]);
    let error = admit().expect_err("more than the host has").message;
    assert!(error.contains("--max-memory") && error.contains("fewer flows"), "{error}");
}
