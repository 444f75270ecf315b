//! The upper layers of the demonstration: RPC by the size of its data, and the curve of an NFS server. Each is run once:
//! neighbours on a curve bear each other out.

use crate::arguments::Repetition;
use crate::commands::nfs;
use linerate_model::{NfsMix, NfsSpec, Path, Plan, Record, Repeats, RpcCall, RpcSpec, Transport, TrialSpec, Workload};
use linerate_runner::Outcome;
use linerate_store::{Store, StoreError};
use linerate_units::{ByteCount, Nanos};

/// Units of data, beside the 8 KiB over TCP of the ladder's rung.
const UNITS: [(Transport, u64); 5] = [
    (Transport::Udp, 512),
    (Transport::Udp, 2048),
    (Transport::Udp, 8192),
    (Transport::Tcp, 512),
    (Transport::Tcp, 2048),
];
/// Calls under way at a time, as at the ladder's rung.
const OUTSTANDING: u16 = 16;
/// Steps of the curve: few, for it is to be quick.
const STEPS: u32 = 5;
const RESPONSE_CAP: Nanos = Nanos::from_millis(50);

/// What is measured, in windows of `time`.
pub(super) fn plan(path: &Path, time: Nanos, warmup: Nanos) -> Result<Plan, String> {
    let timing = Repetition::brief(time, warmup, 1).timing()?;
    let mix = NfsMix::named("sfs97-like").map_err(|error| error.to_string())?;
    let spec = NfsSpec { flows: 2, outstanding: OUTSTANDING, ..NfsSpec::plain(Transport::Tcp, mix) };
    let mut plan = nfs::curve(vec![path.clone()], spec, timing, Repeats::Times(1), RESPONSE_CAP);
    plan.curve.iter_mut().for_each(|curve| curve.steps = STEPS);
    plan.cells.extend(UNITS.map(|(transport, bytes)| {
        let rpc = RpcSpec::plain(transport, RpcCall::Write, ByteCount::new(bytes));
        let protocol = if transport == Transport::Udp { "udp" } else { "tcp" };
        TrialSpec {
            name: format!("rpc {protocol} write {bytes}"),
            paths: vec![path.clone()],
            workload: Workload::Rpc(RpcSpec { outstanding: OUTSTANDING, ..rpc }),
            timing,
            probe: None,
            proves: None,
        }
    }));
    Ok(plan)
}

/// Puts what was measured into the demonstration's record, and keeps its trials there.
pub(super) fn join(measured: &mut Outcome, called: Outcome, store: &Store) -> Result<(), StoreError> {
    let Record { plan, results, trials, outcome, caveats, .. } = called.record;
    let record = &mut measured.record;
    for trial in &trials {
        store.trial(&record.id, trial)?;
    }
    record.plan.cells.extend(plan.cells);
    record.plan.curve = plan.curve;
    record.results.extend(results);
    record.trials.extend(trials);
    record.caveats.extend(caveats);
    record.outcome.get_or_insert_default().nfs = outcome.and_then(|found| found.nfs);
    measured.failure = called.failure;
    Ok(())
}
