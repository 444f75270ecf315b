//! The tester's limit in NFS operations: the cheapest that touches a file, in a closed loop, against the embedded
//! server on the asking host itself. No network is between, and the server does next to nothing.

use linerate_model::{Calibration, FileSet, NfsMix, NfsTask, Path, Plan, Repeats, Task, Timing, Trial};
use linerate_units::{ByteCount, Nanos};

/// The result's name.
pub const TESTER_LIMIT: &str = "nfs getattr, tester alone";

/// Long enough for a steady rate.
const TIMING: Timing = Timing::of(Nanos::from_millis(200), Nanos::from_secs(1));
/// Enough in flight that no flow waits for an answer.
const OUTSTANDING: u16 = 32;

/// The plan that measures it for the first NFS cell of `plan`; none if there is no such cell.
pub fn calibration(plan: &Plan) -> Option<Plan> {
    let nfs = plan.cells().iter().find_map(|cell| match cell.task() {
        Task::Nfs(nfs) => Some(nfs),
        _ => None,
    })?;
    let alone = |path: &Path| Path::between(path.client.clone(), path.client.clone());
    let nfs = NfsTask {
        paths: nfs.paths.iter().map(alone).collect(),
        server: None,
        mix: NfsMix::named("getattr").ok()?,
        files: FileSet { files: 16, directories: 1, symlinks: 0, file_bytes: ByteCount::new(1024) },
        outstanding: nfs.outstanding.max(OUTSTANDING),
        rate: None,
        ..nfs.clone()
    };
    let cell = Trial::new(TESTER_LIMIT, Task::Nfs(nfs), TIMING);
    Some(Plan { calibration: Some(Calibration::loopback()), ..Plan::sweep(vec![cell], Repeats::Times(1)) })
}
