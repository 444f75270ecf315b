//! The upper layers of the demonstration: RPC by the size of its data, and the curve of an NFS server. Each trial is run once:
//! neighbours on a curve confirm each other.

use crate::arguments::Repetition;
use crate::commands::nfs;
use linerate_model::{
    CurvePlan, Goal, Net, NfsMix, NfsTask, Path, Plan, Repeats, RpcCall, RpcTask, Task, Transport, Trial,
};
use linerate_units::{ByteCount, Nanos};

/// Units of data, beside the 8 KiB over TCP of the ladder's layer.
const UNITS: [(Transport, u64); 5] = [
    (Transport::Udp, 512),
    (Transport::Udp, 2048),
    (Transport::Udp, 8192),
    (Transport::Tcp, 512),
    (Transport::Tcp, 2048),
];
/// Calls in flight at a time, as at the ladder's layer.
const OUTSTANDING: u16 = 16;
/// Steps of the curve: few, for it is to be quick.
const STEPS: u32 = 5;
const RESPONSE_CAP: Nanos = Nanos::from_millis(50);

/// RPC by the size of its data, in windows of `time`.
pub(super) fn sweep(path: &Path, time: Nanos, warmup: Nanos) -> Result<Plan, String> {
    let repetition = Repetition::brief(time, warmup, 1);
    let timing = repetition.timing()?;
    let cell = |(transport, bytes)| {
        let rpc = RpcTask::plain(transport, RpcCall::Write, ByteCount::new(bytes));
        let protocol = if transport == Transport::Udp { "udp" } else { "tcp" };
        let task = RpcTask { paths: vec![path.clone()], outstanding: OUTSTANDING, ..rpc };
        Trial::new(format!("rpc {protocol} write {bytes}"), Task::Rpc(task), timing)
    };
    repetition.sweep(UNITS.map(cell).into())
}

/// The curve of an NFS server, in windows of `time`.
pub(super) fn curve(path: &Path, time: Nanos, warmup: Nanos) -> Result<Plan, String> {
    let timing = Repetition::brief(time, warmup, 1).timing()?;
    let mix = NfsMix::named("sfs97-like").map_err(|error| error.to_string())?;
    let plain = NfsTask::plain(Transport::Tcp, mix);
    let net = Net { flows: 2, ..plain.net.clone() };
    let task = NfsTask { paths: vec![path.clone()], net, outstanding: OUTSTANDING, ..plain };
    let curve = nfs::curve(task, timing, Repeats::Times(1), RESPONSE_CAP);
    Ok(Plan::of(Goal::Curve(CurvePlan { steps: STEPS, ..curve })))
}
