//! What a host saw during the measured window of a trial. All counts are differences over it.

use crate::NetworkCounters;
use crate::network_counters::is_zero;
use linerate_units::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a host saw. CPU figures cover the measured window; drop and traffic counters go on until stragglers had arrived,
/// so that they cover the same datagrams as the loss.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Observation {
    /// Length of the window the CPU figures cover.
    pub window: Nanos,
    /// Each core.
    pub cores: Vec<CoreUse>,
    /// The engine's own threads.
    pub threads: Vec<ThreadUse>,
    /// The kernel's own threads that receive packets, of those that did anything: `ksoftirqd` of each core, and the threads of
    /// interfaces that have their own (`napi/`). They belong to the machine, not to one network namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernel_threads: Vec<KernelThreadUse>,
    /// CPU time of the whole agent, engine threads included.
    pub agent_cpu: Nanos,
    /// Interfaces that had traffic; they count on until stragglers have arrived.
    pub interfaces: Vec<InterfaceCounters>,
    /// The same within the window alone: what the links carried meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub carried: Vec<InterfaceCounters>,
    /// Statistics of the drivers that count drops, by queue where the driver does so: those that grew.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub driver_counters: Vec<DriverCounter>,
    /// Queueing disciplines that had traffic or drops.
    pub qdiscs: Vec<QdiscCounters>,
    /// The kernel's input queues, all cores together. They belong to the machine, not to one network namespace.
    pub softnet: Softnet,
    /// What the protocols of the host's network namespace counted, drops and errors above all.
    #[serde(default)]
    pub network: NetworkCounters,
    /// Pressure stall information; none where the kernel keeps none.
    pub pressure: Option<Pressure>,
    /// What the CPU quota of the agent's control group did to it; none without a quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<CpuQuota>,
    /// Disks that hold the folders of a copy. They belong to the machine; none where files are on no disk (memory, another
    /// host, a program).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<DiskUse>,
}

/// How one core spent the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CoreUse {
    /// The core's number.
    pub core: u32,
    /// In user space.
    pub user: Nanos,
    /// In the kernel, on behalf of a program.
    pub system: Nanos,
    /// In hard interrupts.
    pub irq: Nanos,
    /// In soft interrupts: network receive and transmit work.
    pub softirq: Nanos,
    /// Taken by the hypervisor.
    pub steal: Nanos,
    /// Idle or waiting for I/O.
    pub idle: Nanos,
}

impl CoreUse {
    /// All time but idle and stolen.
    pub fn busy(&self) -> Nanos {
        self.user + self.system + self.irq + self.softirq
    }

    /// Busy share of the accounted time, 0 to 1; zero if none was accounted.
    pub fn busy_share(&self) -> f64 {
        let all = self.busy() + self.steal + self.idle;
        if all.get() == 0 { 0.0 } else { self.busy().get() as f64 / all.get() as f64 }
    }

    /// What passed since the earlier reading `then` of the same core. Idle time may step back by a little (proc_stat(5)):
    /// that is no time passed, and the difference of times ends at zero.
    pub fn since(&self, then: &Self) -> Self {
        Self {
            core: self.core,
            user: self.user - then.user,
            system: self.system - then.system,
            irq: self.irq - then.irq,
            softirq: self.softirq - then.softirq,
            steal: self.steal - then.steal,
            idle: self.idle - then.idle,
        }
    }
}

/// How one engine thread spent the window.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadUse {
    /// The thread's name, as in `send 0`.
    pub name: String,
    /// CPU time it consumed, user and system; soft interrupts that ran on top of it are in it.
    pub cpu: Nanos,
    /// Time it was ready to run and had no core; none where the kernel does not count it (CONFIG_SCHED_INFO).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited: Option<Nanos>,
    /// Which end of a path it served, so that costs can be told apart.
    pub sends: bool,
}

/// How one of the kernel's threads spent the window.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KernelThreadUse {
    /// Its name, as in `ksoftirqd/0` or `napi/eth0-17`.
    pub name: String,
    /// Time on a core.
    pub cpu: Nanos,
    /// Time it had packets to look after and no core to do so.
    pub waited: Nanos,
}

/// The CPU quota of a control group over the window: the tightest of those that the agent is under.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuQuota {
    /// Cores' worth of time it allows, as in 0.2.
    pub cores: f64,
    /// Periods that passed in which the group ran.
    pub periods: u64,
    /// Of them, those in which its quota was used up and it was stopped.
    pub throttled: u64,
}

/// How a disk, or a part of one, spent the window, whoever used it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiskUse {
    /// The system's name for it, as in `sda1`.
    pub name: String,
    /// Requests to read that were completed.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Requests to write that were completed.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Time with at least one request under way.
    pub busy: Nanos,
}

impl DiskUse {
    /// What it did since `before`. Counters that went back have begun anew.
    pub fn since(&self, before: &Self) -> Self {
        let grown = |of: fn(&Self) -> u64| of(self).checked_sub(of(before)).unwrap_or_else(|| of(self));
        Self {
            name: self.name.clone(),
            reads: grown(|disk| disk.reads),
            read_bytes: grown(|disk| disk.read_bytes),
            writes: grown(|disk| disk.writes),
            written_bytes: grown(|disk| disk.written_bytes),
            busy: self.busy - before.busy,
        }
    }
}

/// An interface's counters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceCounters {
    /// The interface.
    pub name: String,
    /// Packets received. With offloads on, a packet may stand for many on a wire.
    pub rx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Packets dropped on receipt: the driver's ring, or the kernel's input queue.
    pub rx_dropped: u64,
    /// Packets lost in the NIC on receipt, whatever the reason; the following fields are parts of it, where the driver tells them apart.
    pub rx_errors: u64,
    /// Of them, packets for which the host had given the NIC no buffer: the driver's ring was full.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rx_missed_errors: u64,
    /// Of them, packets that found the NIC's own memory full (linux/if_link.h: rx_fifo_errors and rx_over_errors).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rx_fifo_errors: u64,
    /// Of them, frames damaged on the link (linux/if_link.h: rx_crc_errors and rx_frame_errors).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rx_crc_errors: u64,
    /// Of them, frames shorter or longer than allowed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rx_length_errors: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets dropped by the driver on sending.
    pub tx_dropped: u64,
    /// Packets lost in the NIC on sending.
    pub tx_errors: u64,
}

/// A statistic of an interface's driver (`ethtool -S`) that counts drops or the like. The driver names it, and often counts one packet
/// under several names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DriverCounter {
    /// The interface.
    pub interface: String,
    /// The driver's name for it, as in `rx_queue_0_drops`.
    pub name: String,
    /// How far it grew.
    pub count: u64,
}

/// A queueing discipline's counters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QdiscCounters {
    /// Its interface.
    pub interface: String,
    /// Its kind, as in `tbf`.
    pub kind: String,
    /// It is the interface's root: only these drops count, since a child's drops are counted by its parent too.
    pub root: bool,
    /// Packets passed.
    pub packets: u64,
    /// Bytes passed.
    pub bytes: u64,
    /// Packets dropped. Of `clsact` and `ingress`: by a filter, on receipt or (`clsact`) on sending.
    pub drops: u64,
    /// Times the rate limit was met.
    pub overlimits: u64,
    /// Packets queued at the end of the window.
    pub backlog_packets: u64,
}

/// The kernel's input queues (`/proc/net/softnet_stat`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Softnet {
    /// Packets processed.
    pub processed: u64,
    /// Packets dropped because the queue was full.
    pub dropped: u64,
    /// Times the work was cut short with packets left.
    pub squeezed: u64,
}

/// Pressure stall information (`/proc/pressure`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pressure {
    /// Waiting for a core.
    pub cpu: Stall,
    /// Waiting for storage.
    pub io: Stall,
    /// Waiting for memory.
    pub memory: Stall,
}

/// Stalled time of one resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stall {
    /// At least one task was stalled.
    pub some: Nanos,
    /// All runnable tasks were stalled at once.
    pub full: Nanos,
}
