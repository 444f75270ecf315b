//! The agent's own engines: each task has exactly one, and none escapes the limits.

use super::*;
use crate::admission::admit;
use crate::engines::table;
use crate::grant::Grant;
use linerate_model::{
    CopyCache, CopyExisting, CopyFrom, CopyInto, CopyLinks, CopyOnError, CopyOptions, CopySync, CopyTask, CopyTree,
    CopyVerify, CopyWay, IpVersion, LinkId, NfsMix, NfsTask, Path, RpcCall, RpcTask, TaskKind, TransactTask,
};
use linerate_units::BitRate;

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
        way: CopyWay::Linerate,
        sources: vec![HostName::from("a")],
        destinations: vec![HostName::from("b")],
        from: CopyFrom::Memory,
        into: CopyInto::Discard,
        options: CopyOptions {
            lanes: 4,
            verify: CopyVerify::None,
            sync: CopySync::End,
            cache: CopyCache::AsIs,
            on_error: CopyOnError::Stop,
            existing: CopyExisting::Refuse,
            links: CopyLinks::Copy,
        },
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

/// Without a rate, beyond the time, or one too many: whatever the task, the agent refuses it and names the limit.
#[test]
fn no_task_escapes_the_limits() {
    let open = Limits { frames: AllowedInterfaces::All, ..Limits::default() };
    let engines = table(&EngineOptions::default());
    for kind in TaskKind::ALL {
        let assignment = unbounded(kind);
        let engine = engines.iter().find(|engine| engine.takes(&assignment.task)).expect("an engine");
        let demand = engine.demand(&assignment).unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert_eq!(admit(&open, &Grant::of_owner(&open), kind, &demand, [].into_iter()), Ok(()), "{kind}");
        let refused = |limits: Limits, option: &str| {
            let error = admit(&limits, &Grant::of_owner(&limits), kind, &demand, [].into_iter()).expect_err(option);
            assert!(error.message.contains(option), "{kind}: {}", error.message);
        };
        refused(Limits { max_rate: Some(BitRate::per_second(1 << 40)), ..open.clone() }, "--max-rate");
        refused(Limits { max_trials: 0, ..open.clone() }, "--max-trials");
        match demand.time {
            Some(_) => refused(Limits { max_time: Nanos::from_millis(999), ..open.clone() }, "--max-time"),
            // What has no length of its own is ended at the limit: tests/limits.rs.
            None => assert_eq!(kind, TaskKind::Copy),
        }
    }
}
