//! The tester's own ceiling in NFS operations: the cheapest that touches a file, in a closed loop, against the embedded
//! server on the asking host itself. No network is between, and the server does next to nothing.

use linerate_model::{FileSet, NfsMix, NfsSpec, Path, Plan, Repeats, Timing, TrialSpec, Workload};
use linerate_units::{ByteCount, Nanos};

/// The result's name.
pub const CEILING: &str = "nfs getattr, tester alone";

/// Long enough for a steady rate.
const TIMING: Timing = Timing { warmup: Nanos::from_millis(200), measure: Nanos::from_secs(1) };
/// Enough under way that no flow waits for an answer.
const OUTSTANDING: u16 = 32;

/// The plan that measures it for the first NFS cell of `plan`; none if there is no such cell.
pub fn calibration(plan: &Plan) -> Option<Plan> {
    let (cell, nfs) = plan.cells.iter().find_map(|cell| match &cell.workload {
        Workload::Nfs(nfs) => Some((cell, nfs)),
        _ => None,
    })?;
    let alone = |path: &Path| Path { opener: path.opener.clone(), listener: path.opener.clone() };
    let nfs = NfsSpec {
        server: None,
        mix: NfsMix::named("getattr").ok()?,
        files: FileSet { files: 16, directories: 1, symlinks: 0, file_bytes: ByteCount::new(1024) },
        outstanding: nfs.outstanding.max(OUTSTANDING),
        rate: None,
        ..nfs.clone()
    };
    let cell = TrialSpec {
        name: CEILING.to_owned(),
        paths: cell.paths.iter().map(alone).collect(),
        workload: Workload::Nfs(nfs),
        timing: TIMING,
        probe: None,
        proves: None,
    };
    Some(Plan::of(vec![cell], Repeats::Times(1)))
}
