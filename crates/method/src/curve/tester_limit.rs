//! The tester's limit in NFS operations: the cheapest that touches a file, in a closed loop, against the embedded
//! server on the asking host itself. No network is between, and the server does next to nothing.

use crate::tester_limit::TESTER_LIMIT;
use linerate_model::{Calibration, FileSet, NfsMix, NfsTask, Path, Plan, Repeats, Task, Timing, Trial};
use linerate_units::{ByteCount, Nanos};

/// Long enough for a steady rate.
const TIMING: Timing = Timing::of(Nanos::from_millis(200), Nanos::from_secs(1));
/// Enough in flight that no flow waits for an answer.
const OUTSTANDING: u16 = 32;
/// Fewest files: the attributes of one would be asked for by all calls.
const FILES: u32 = 16;

/// The plan that measures it for the first NFS cell of `plan`; none if there is no such cell.
pub fn calibration(plan: &Plan) -> Option<Plan> {
    let nfs = plan.cells().iter().find_map(|cell| match cell.task() {
        Task::Nfs(nfs) => Some(nfs),
        _ => None,
    })?;
    // Each connection needs files of its own.
    let files = FILES.max(nfs.net.flows.into());
    let alone = |path: &Path| Path::between(path.client.clone(), path.client.clone());
    let nfs = NfsTask {
        paths: nfs.paths.iter().map(alone).collect(),
        server: None,
        mix: NfsMix::named("getattr").ok()?,
        files: FileSet { files, directories: 1, symlinks: 0, file_bytes: ByteCount::new(1024) },
        outstanding: nfs.outstanding.max(OUTSTANDING),
        rate: None,
        ..nfs.clone()
    };
    let cell = Trial::new(TESTER_LIMIT, Task::Nfs(nfs), TIMING);
    Some(Plan { calibration: Some(Calibration::loopback()), ..Plan::sweep(vec![cell], Repeats::Times(1)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{Net, Transport};

    #[test]
    fn each_connection_has_a_file() {
        for (flows, files) in [(1, FILES), (45, 45)] {
            let paths = vec![Path::between("a", "b")];
            let plain = NfsTask::plain(Transport::Tcp, NfsMix::named("getattr").expect("a mix"));
            let nfs = NfsTask { paths, net: Net { flows, ..plain.net }, ..plain };
            let plan = Plan::sweep(vec![Trial::new("nfs", Task::Nfs(nfs), TIMING)], Repeats::Times(1));
            let calibration = calibration(&plan).expect("an NFS cell");
            let cells = calibration.cells();
            let Task::Nfs(alone) = cells[0].task() else { panic!("no NFS cell") };
            assert_eq!(alone.files.files, files);
        }
    }
}
