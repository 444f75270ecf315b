//! What a result cost: CPU time at both ends.

use crate::statistics::summary;
use crate::transfer::transfers;
use crate::validity::steal;
use linerate_model::{CpuCost, CpuCosts, HostName, TrialResult};
use std::collections::BTreeSet;

/// Medians over the runs of what each end cost.
pub(super) fn cpu(runs: &[&TrialResult], shared_machine: bool) -> CpuCosts {
    let end = |sends: bool| {
        let all: Vec<CpuCost> = runs.iter().map(|run| end_cost(run, sends, shared_machine)).collect();
        let median = |of: fn(&CpuCost) -> f64| summary(all.iter().map(of).collect()).map_or(0.0, |s| s.median);
        let median_of_some =
            |of: fn(&CpuCost) -> Option<f64>| summary(all.iter().filter_map(of).collect()).map(|s| s.median);
        CpuCost {
            busiest_core: median(|c| c.busiest_core),
            busiest_core_softirq: median(|c| c.busiest_core_softirq),
            busiest_thread: median(|c| c.busiest_thread),
            ns_per_byte: median_of_some(|c| c.ns_per_byte),
            ns_per_packet: median_of_some(|c| c.ns_per_packet),
            host_ns_per_byte: median_of_some(|c| c.host_ns_per_byte),
            steal: median(|c| c.steal),
        }
    };
    CpuCosts { sender: end(true), receiver: end(false) }
}

/// What one end of one trial cost, all hosts on that side together.
fn end_cost(run: &TrialResult, sends: bool, shared_machine: bool) -> CpuCost {
    let all = transfers(run);
    let hosts: BTreeSet<&HostName> = all.iter().map(|t| if sends { t.from } else { t.to }).collect();
    let observed: Vec<_> = hosts.into_iter().filter_map(|host| run.hosts.get(host)).collect();
    let busiest = observed.iter().flat_map(|o| &o.cores).max_by(|l, r| l.busy_share().total_cmp(&r.busy_share()));
    let threads = || observed.iter().flat_map(|o| o.threads.iter().filter(|t| t.sends == sends).map(move |t| (o, t)));
    let thread_ns: u64 = threads().map(|(_, thread)| thread.cpu.get()).sum();
    let busy_ns: u64 = observed.iter().flat_map(|o| &o.cores).map(|core| core.busy().get()).sum();

    let transact = run.trial.task().is_requests();
    let (mut bytes, mut packets) = (0, 0);
    for transfer in &all {
        if transact {
            packets += transfer.sender.transactions.as_ref().map_or(0, |t| t.completed);
        } else if sends {
            let segments: u64 =
                transfer.sender.flows.iter().filter_map(|flow| flow.tcp.as_ref()).map(|tcp| tcp.segments_out).sum();
            bytes += transfer.sender.sent.as_ref().map_or(0, |s| s.payload_bytes);
            packets += if segments > 0 { segments } else { transfer.sender.sent.as_ref().map_or(0, |s| s.messages) };
        } else {
            let segments: u64 =
                transfer.receiver.flows.iter().filter_map(|flow| flow.tcp.as_ref()).map(|tcp| tcp.segments_in).sum();
            bytes += transfer.receiver.received.as_ref().map_or(0, |r| r.payload_bytes);
            packets +=
                if segments > 0 { segments } else { transfer.receiver.received.as_ref().map_or(0, |r| r.messages) };
        }
    }
    let per = |ns: u64, count: u64| (count > 0 && ns > 0).then(|| ns as f64 / count as f64);
    CpuCost {
        busiest_core: busiest.map_or(0.0, |core| core.busy_share()),
        busiest_core_softirq: busiest.map_or(0.0, |core| {
            let all = (core.busy() + core.steal + core.idle).get();
            if all == 0 { 0.0 } else { core.softirq.get() as f64 / all as f64 }
        }),
        busiest_thread: threads()
            .map(|(o, thread)| thread.cpu.get() as f64 / o.window.get().max(1) as f64)
            .fold(0.0, f64::max),
        ns_per_byte: per(thread_ns, bytes),
        ns_per_packet: per(thread_ns, packets),
        host_ns_per_byte: if shared_machine { None } else { per(busy_ns, bytes) },
        steal: observed.iter().map(|o| steal(o)).fold(0.0, f64::max),
    }
}
