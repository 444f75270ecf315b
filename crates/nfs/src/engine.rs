//! The engine of NFS operations: calls like others, of a protocol of their own.

use crate::check::check;
use crate::load::Operations;
use linerate_engine::{
    Conductor, Counted, Demand, Engine, EngineError, EngineFailure, ForeignServer, Needs, PathRates, bits_per_second,
};
use linerate_model::{Assignment, FileSet, NfsServer, NfsTask, Power, Task};
use linerate_oncrpc::load::Load;
use linerate_oncrpc::server::Program;
use linerate_oncrpc::{Job, Opening, ProgramSource, Protocol, RpcError};
use std::sync::Arc;

/// The engine of NFS operations, on a server of linerate's own or on any other.
#[derive(Debug, Clone)]
pub struct Nfs {
    /// The programs of linerate's own server.
    pub server: Arc<dyn ProgramSource>,
}

impl Engine for Nfs {
    fn name(&self) -> &'static str {
        "nfs"
    }

    fn takes(&self, task: &Task) -> bool {
        matches!(task, Task::Nfs(_))
    }

    fn demand(&self, assignment: &Assignment) -> Result<Demand, EngineError> {
        linerate_oncrpc::demand(self, assignment)
    }

    fn run(&self, assignment: &Assignment, host: &dyn Conductor) -> Result<Counted, EngineFailure> {
        linerate_oncrpc::run(self, assignment, host)
    }
}

fn nfs(task: &Task) -> Result<&NfsTask, RpcError> {
    match task {
        Task::Nfs(task) => Ok(task),
        other => Err(RpcError::InvalidRequest(format!("task {} has an engine of its own", other.kind()))),
    }
}

impl Protocol for Nfs {
    fn check(&self, task: &Task) -> Result<(), RpcError> {
        check(nfs(task)?)
    }

    fn rates(&self, job: &Job) -> Result<PathRates, RpcError> {
        let task = nfs(&job.task)?;
        // Any operation may be a transfer, either way.
        let rate = task.rate.map(|rate| bits_per_second(rate.get(), task.transfer_bytes.get()));
        Ok(PathRates { forward: rate, backward: rate })
    }

    fn needs(&self, job: &Job) -> Result<Needs, RpcError> {
        let task = nfs(&job.task)?;
        // A server of linerate's own may serve a folder of this host, also in a session that calls a foreign server.
        let serves = task.server.is_none() || job.servers() > 0;
        let powers = task.server.iter().map(|_| Power::Servers).chain(serves.then_some(Power::Files)).collect();
        let needs = linerate_oncrpc::calls_need(job, task.transfer_bytes.get(), task.outstanding.into());
        let served = if job.servers() > 0 { self.server.memory() } else { 0 };
        let handles = set_memory(&task.files).saturating_mul(job.clients());
        let server = |server: &NfsServer| ForeignServer {
            address: server.address,
            export: server.export.clone(),
            user: Some((server.uid, server.gid)),
        };
        let servers = task.server.iter().map(server).collect();
        Ok(Needs { memory: needs.memory.saturating_add(served).saturating_add(handles), powers, servers, ..needs })
    }

    fn load(&self, job: &Job, opening: &Opening<'_>) -> Result<Arc<dyn Load>, RpcError> {
        Ok(Arc::new(Operations::open(job, nfs(&job.task)?, opening)?))
    }

    fn programs(&self, job: &Job) -> Result<Vec<Arc<dyn Program>>, RpcError> {
        self.server.programs(job.servers())
    }
}

/// Returns the memory of a caller for a set of files: a handle for each name, and the versions of each kibibyte, also
/// of files that grew to twice their size.
fn set_memory(files: &FileSet) -> u64 {
    const NAME: u64 = 256;
    const BLOCK: u64 = 2 * 20;
    let names = u64::from(files.files) + u64::from(files.directories) + u64::from(files.symlinks);
    names.saturating_mul(NAME).saturating_add((files.bytes() / NfsTask::UNIT).saturating_mul(BLOCK))
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{LinkId, Listen, NfsMix, Path, Role, RoleKind, SessionId, SessionKey, Timing, Transport};
    use linerate_units::{BitRate, ByteCount, Nanos, OpRate};

    #[derive(Debug)]
    struct NoServer;

    impl ProgramSource for NoServer {
        fn memory(&self) -> u64 {
            7 << 20
        }

        fn programs(&self, _: u64) -> Result<Vec<Arc<dyn Program>>, RpcError> {
            Ok(Vec::new())
        }
    }

    #[test]
    fn operations_load_both_ways_and_take_time_to_set_up() {
        let demand = |mix, rate: Option<u64>| {
            let plain = NfsTask::plain(Transport::Tcp, NfsMix::named(mix).expect("built in"));
            let task = NfsTask {
                paths: vec![Path::between("a", "b")],
                transfer_bytes: ByteCount::new(8 << 10),
                rate: rate.map(OpRate::per_second),
                ..plain
            };
            let set_up_timeout = task.files.set_up_timeout();
            let assignment = Assignment {
                id: SessionId("t".into()),
                key: SessionKey([1; 16]),
                task: Task::Nfs(task),
                timing: Timing::of(Nanos::from_secs(1), Nanos::from_secs(10)),
                roles: vec![Role {
                    kind: RoleKind::Client { path: 0 },
                    listens: Vec::new(),
                    connects: vec![LinkId(0)],
                }],
                password: None,
                sampling: linerate_model::Sampling::default(),
            };
            let nfs = Nfs { server: Arc::new(NoServer) };
            (nfs.demand(&assignment).expect("it can be meant"), set_up_timeout)
        };
        let (paced, set_up_timeout) = demand("sfs97-like", Some(10));
        let rate = Some(BitRate::per_second(10 * 8_192 * 8));
        assert_eq!((paced.sends, paced.receives, paced.set_up), (rate, rate, set_up_timeout));
        let (closed, _) = demand("null", None);
        assert_eq!((closed.sends, closed.receives, closed.set_up), (None, None, Nanos::default()));
    }

    /// The attack: a user who may call a foreign server has linerate's own server started too, with a folder of this
    /// host.
    #[test]
    fn a_server_of_our_own_beside_one_of_others_needs_the_power_of_files() {
        let powers = |server: Option<NfsServer>, kind: RoleKind| {
            let plain = NfsTask::plain(Transport::Tcp, NfsMix::named("read").expect("built in"));
            let task = NfsTask { paths: vec![Path::between("a", "b")], server, ..plain };
            let (listens, connects) = match kind {
                RoleKind::Server { .. } => {
                    let address = [127, 0, 0, 1].into();
                    (vec![Listen { link: LinkId(0), address, folder: None }], Vec::new())
                }
                _ => (Vec::new(), vec![LinkId(0)]),
            };
            let assignment = Assignment {
                id: SessionId("t".into()),
                key: SessionKey([1; 16]),
                task: Task::Nfs(task),
                timing: Timing::of(Nanos::from_secs(1), Nanos::from_secs(10)),
                roles: vec![Role { kind, listens, connects }],
                password: None,
                sampling: linerate_model::Sampling::default(),
            };
            Nfs { server: Arc::new(NoServer) }.demand(&assignment).expect("it can be meant").needs.powers.to_string()
        };
        let other = NfsServer {
            address: [192, 0, 2, 5].into(),
            export: "/srv".to_owned(),
            nfs_port: Some(2049),
            mount_port: None,
            uid: 0,
            gid: 0,
        };
        assert_eq!(powers(None, RoleKind::Client { path: 0 }), "files");
        assert_eq!(powers(Some(other.clone()), RoleKind::Client { path: 0 }), "servers");
        assert_eq!(powers(Some(other), RoleKind::Server { path: 0 }), "files,servers");
    }
}
