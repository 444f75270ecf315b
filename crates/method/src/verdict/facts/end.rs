//! What the hosts at one end of the transfers saw of their processors.

use super::median;
use crate::transfer::{Transfer, transfers};
use linerate_model::{CoreUse, HostName, Observation, Task, ThreadUse, TrialResult};
use linerate_units::Nanos;
use std::collections::BTreeSet;

/// A quota used up in most of its periods is what stops the threads.
pub(crate) const THROTTLED: f64 = 0.5;

/// A thread with work for this share of the time hardly ever waited for anything else.
pub(crate) const OCCUPIED: f64 = 0.9;
/// Below this it had time to spare in every stretch that matters.
pub(crate) const NEARLY_OCCUPIED: f64 = 0.75;
/// With less than this to do it had time for everything, bursts and all; a host that is itself the limit is not busy all the time
/// either, for its ends wait for each other.
pub(crate) const AMPLE: f64 = 0.6;
/// A core with less than this to do has room for a thread.
const SPARE: f64 = 0.5;
/// A core this busy has no time left.
pub(crate) const CORE_FULL: f64 = 0.97;
/// With so much of its time in interrupts, they are what a full core is full of.
const MOSTLY_INTERRUPTS: f64 = 0.65;
/// What is kept from a core for this share of the time lets rings and buffers overflow, which hold some milliseconds.
pub(super) const KEPT_WAITING: f64 = 0.25;

/// One end of the transfers, its hosts together.
#[derive(Debug, Clone, Default)]
pub(crate) struct End {
    /// Share of the window that its engine threads were on a core, on average of the threads.
    pub(crate) busy: f64,
    /// Share in which they were ready and had none; zero where that is not counted.
    pub(crate) waited: f64,
    /// Of what its threads' clocks show, the share at the least that was spent on soft interrupts: all that programs and system calls of
    /// its hosts took is less by so much.
    pub(crate) interrupted: f64,
    /// The share at the most: all soft interrupts of its hosts, which may have run on top of other programs or on idle cores as well.
    pub(crate) interruptible: f64,
    /// Of the periods of its CPU quota, the share in which that was used up, and the cores' worth it allows.
    pub(crate) throttled: Option<(f64, f64)>,
    /// Share of the time that its host's busiest core was busy, whatever ran there.
    pub(crate) busiest_core: f64,
    /// Cores of its host that had more time to spare than not, whatever ran there.
    pub(crate) spare_cores: usize,
    /// The kernel's thread that had most to do with receiving.
    pub(crate) kernel: Option<KernelThread>,
    /// Share of the packets that its host's NIC or input queue dropped on receipt.
    pub(crate) dropped: f64,
    /// Share of what came to its host that was damaged on the way: frames that failed the checksum of the link, and TCP segments that
    /// failed theirs. A packet that offloads joined counts once.
    pub(crate) corrupted: f64,
    /// Share of the time that its host's core with the most interrupts spent on them, soft and hard.
    pub(crate) interrupts: f64,
    /// Share of the time that this core was busy at all.
    pub(crate) interrupted_core: f64,
    /// The other end of a stream ran no agent: nothing at all is known of its host.
    pub(crate) unseen: bool,
    /// Its threads ask for what has come without end (`--busy-poll`): they are on a core all the time, whatever there is to do.
    pub(crate) polls: bool,
}

/// A thread of the kernel that receives packets.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KernelThread {
    pub(crate) name: String,
    /// It receives for the interface of this end alone (`napi/`), and not for the whole machine (`ksoftirqd`).
    pub(crate) own: bool,
    /// Share of the window that it was on a core.
    pub(crate) busy: f64,
    /// Share in which it had packets and no core.
    pub(crate) waited: f64,
}

impl KernelThread {
    pub(super) fn occupied(&self) -> f64 {
        self.busy + self.waited
    }
}

impl End {
    pub(super) fn of(runs: &[&TrialResult], sends: bool) -> Self {
        let ends: Vec<Self> = runs.iter().map(|run| Self::of_run(run, sends)).collect();
        let middle = |of: fn(&Self) -> f64| median(ends.iter().map(of));
        Self {
            busy: middle(|end| end.busy),
            waited: middle(|end| end.waited),
            interrupted: middle(|end| end.interrupted),
            interruptible: middle(|end| end.interruptible),
            throttled: ends.iter().filter_map(|end| end.throttled).max_by(|l, r| l.0.total_cmp(&r.0)),
            busiest_core: middle(|end| end.busiest_core),
            spare_cores: ends.iter().map(|end| end.spare_cores).min().unwrap_or(0),
            kernel: foremost(ends.iter().filter_map(|end| end.kernel.clone())),
            dropped: middle(|end| end.dropped),
            corrupted: middle(|end| end.corrupted),
            interrupts: middle(|end| end.interrupts),
            interrupted_core: middle(|end| end.interrupted_core),
            unseen: ends.iter().any(|end| end.unseen),
            polls: ends.iter().any(|end| end.polls),
        }
    }

    fn of_run(run: &TrialResult, sends: bool) -> Self {
        let all = transfers(run);
        let end = |transfer: &Transfer<'_>| if sends { transfer.from.clone() } else { transfer.to.clone() };
        let names: BTreeSet<HostName> = all.iter().map(end).collect();
        let hosts: Vec<&Observation> = names.iter().filter_map(|host| run.hosts.get(host)).collect();
        let share = |time: u64, host: &Observation| time as f64 / host.window.get().max(1) as f64;
        let threads: Vec<(&Observation, &ThreadUse)> = hosts
            .iter()
            .flat_map(|host| host.threads.iter().filter(|thread| thread.sends == sends).map(|thread| (*host, thread)))
            .collect();
        let average = |of: fn(&ThreadUse) -> u64| {
            threads.iter().map(|(host, thread)| share(of(thread), host)).sum::<f64>() / threads.len().max(1) as f64
        };
        let clocks: u64 = threads.iter().map(|(_, thread)| thread.cpu.get()).sum();
        let sum =
            |of: fn(&CoreUse) -> Nanos| hosts.iter().flat_map(|host| &host.cores).map(|core| of(core).get()).sum();
        let (programs, interrupting): (u64, u64) =
            (sum(|core| core.user + core.system), sum(|core| core.irq + core.softirq));
        let throttled = hosts.iter().filter_map(|host| host.quota).filter(|quota| quota.periods > 0);
        // Of the frames that came to a receiver's interface, the share that it dropped, and the share that was damaged.
        let lost = |transfer: &Transfer<'_>| {
            let host = run.hosts.get(transfer.to)?;
            let interface = host.interfaces.iter().find(|i| Some(&i.name) == transfer.receiver.interface.as_ref())?;
            let damaged = interface.rx_crc_errors;
            let dropped = interface.rx_dropped + interface.rx_errors.saturating_sub(damaged);
            let came = (interface.rx_packets + dropped + damaged).max(1) as f64;
            Some([dropped as f64 / came, damaged as f64 / came])
        };
        let receivers: Vec<[f64; 2]> = if sends { Vec::new() } else { all.iter().filter_map(lost).collect() };
        let cores = || hosts.iter().flat_map(|host| host.cores.iter().map(|core| core.busy_share()));
        let interfaces: BTreeSet<&String> =
            all.iter().filter_map(|t| if sends { t.sender } else { t.receiver }.interface.as_ref()).collect();
        // Another interface's thread has no part in this.
        let receives = |name: &str| match name.strip_prefix("napi/").and_then(|name| name.rsplit_once('-')) {
            Some((interface, _)) => interfaces.iter().any(|own| *own == interface),
            None => true,
        };
        let kernel = hosts.iter().flat_map(|host| host.kernel_threads.iter().map(move |thread| (host, thread)));
        let kernel = kernel.filter(|(_, thread)| receives(&thread.name)).map(|(host, thread)| KernelThread {
            name: thread.name.clone(),
            own: thread.name.starts_with("napi/"),
            busy: share(thread.cpu.get(), host),
            waited: share(thread.waited.get(), host),
        });
        let most = hosts.iter().flat_map(|host| &host.cores).map(interrupts_of).max_by(|l, r| l.0.total_cmp(&r.0));
        let (interrupts, interrupted_core) = most.unwrap_or_default();
        Self {
            busy: average(|thread| thread.cpu.get()),
            waited: average(|thread| thread.waited.map_or(0, |waited| waited.get())),
            interrupted: clocks.saturating_sub(programs) as f64 / clocks.max(1) as f64,
            interruptible: (interrupting as f64 / clocks.max(1) as f64).min(1.0),
            throttled: throttled
                .map(|quota| (quota.throttled as f64 / quota.periods as f64, quota.cores))
                .max_by(|l, r| l.0.total_cmp(&r.0)),
            kernel: foremost(kernel),
            busiest_core: largest(cores()),
            spare_cores: cores().filter(|busy| *busy < SPARE).count(),
            corrupted: largest(hosts.iter().map(|host| checksum_errors(host)))
                + largest(receivers.iter().map(|[_, damaged]| *damaged)),
            interrupts,
            interrupted_core,
            unseen: hosts.is_empty() && matches!(run.trial.task(), Task::Stream(stream) if stream.iperf3.is_some()),
            polls: matches!(run.trial.task(), Task::Transact(transact) if transact.busy_poll),
            dropped: largest(receivers.iter().map(|[dropped, _]| *dropped)),
        }
    }

    /// Share of the window that its threads were on a core for work: zero where they poll, for their work is not known.
    pub(crate) fn known_busy(&self) -> f64 {
        if self.polls { 0.0 } else { self.busy }
    }

    /// Share of the window in which its threads had work: on a core, or waiting for one.
    pub(crate) fn occupied(&self) -> f64 {
        (self.busy + self.waited).min(1.0)
    }

    /// The same end where each of its turns waits for the other's: what it waits for a core is part of the time that a
    /// request takes, and no sign that it has more to do than it can.
    pub(crate) fn in_turn(&self) -> Self {
        Self { waited: 0.0, ..self.clone() }
    }

    /// Its threads were ready and kept from a core.
    pub(crate) fn is_kept_waiting(&self) -> bool {
        self.waited >= KEPT_WAITING
    }

    /// A core of its host had no time left, and spent most of it on interrupts.
    pub(crate) fn is_full_of_interrupts(&self) -> bool {
        self.interrupts >= MOSTLY_INTERRUPTS && self.interrupted_core >= CORE_FULL
    }

    /// A CPU quota stops its threads.
    pub(crate) fn is_throttled(&self) -> bool {
        self.throttled.is_some_and(|(share, _)| share >= THROTTLED)
    }
}

/// The largest share; zero of none.
fn largest(shares: impl Iterator<Item = f64>) -> f64 {
    shares.fold(0.0, f64::max)
}

/// TCP segments that failed their checksum, as a share of the packets received.
fn checksum_errors(host: &Observation) -> f64 {
    let (failed, received) = (host.network.tcp.checksum_errors, host.network.ip.received);
    failed as f64 / received.max(1) as f64
}

/// Shares of its time that a core spent on interrupts, soft and hard, and that it was busy at all.
fn interrupts_of(core: &CoreUse) -> (f64, f64) {
    let all = core.busy() + core.steal + core.idle;
    ((core.irq + core.softirq).get() as f64 / all.get().max(1) as f64, core.busy_share())
}

/// The interface's own thread before one of the machine, then the one with most to do.
fn foremost(threads: impl Iterator<Item = KernelThread>) -> Option<KernelThread> {
    threads.max_by(|l, r| l.own.cmp(&r.own).then(l.occupied().total_cmp(&r.occupied())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::tests::trial;
    use linerate_model::InterfaceCounters;

    #[test]
    fn a_frame_that_was_damaged_on_the_link_is_not_dropped_by_the_host() {
        let mut run = trial(1_000, 0);
        let counters = InterfaceCounters {
            name: "eth0".into(),
            rx_packets: 900,
            rx_errors: 100,
            rx_crc_errors: 60,
            ..Default::default()
        };
        run.hosts.get_mut(&"b".into()).expect("the receiver").interfaces = vec![counters];
        let [sender, receiver] = [true, false].map(|sends| End::of(&[&run], sends));
        assert_eq!((receiver.dropped, receiver.corrupted), (0.04, 0.06));
        assert_eq!((sender.dropped, sender.corrupted), (0.0, 0.0));
    }
}
