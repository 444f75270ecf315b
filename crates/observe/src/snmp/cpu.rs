//! CPU time as UCD-SNMP-MIB counts it, and CPU use as 1-minute averages.

use super::error::SnmpError;
use super::wire::{Answer, Name, Wire};
use std::time::Instant;

/// `ssCpuRaw*` of UCD-SNMP-MIB, all CPUs summed, in hundredths of a second; and `ssCpuIdle`, in percent.
const SYSTEM_STATS: [u64; 8] = [1, 3, 6, 1, 4, 1, 2021, 11];
const SYS_UP_TIME: [u64; 9] = [1, 3, 6, 1, 2, 1, 1, 3, 0];
const SS_CPU_IDLE: u64 = 11;
/// Column `hrProcessorLoad` of HOST-RESOURCES-MIB: percent.
const HR_PROCESSOR_LOAD: [u64; 11] = [1, 3, 6, 1, 2, 1, 25, 3, 3, 1, 2];

/// The raw counters that a device has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Ticks {
    user: Option<u32>,
    nice: Option<u32>,
    system: Option<u32>,
    idle: Option<u32>,
    wait: Option<u32>,
    kernel: Option<u32>,
    interrupt: Option<u32>,
    softirq: Option<u32>,
    steal: Option<u32>,
}

/// Shares of a window's CPU time, 0 to 1 of all CPUs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shares {
    pub(super) busy: f64,
    pub(super) softirq: Option<f64>,
}

impl Ticks {
    const OBJECTS: [u64; 9] = [50, 51, 52, 53, 54, 55, 56, 61, 64];

    /// None if the device does not count, or not yet: net-snmp says zero throughout until it first looked, 5 s after
    /// its start, and the step from there to the truth would be all the time since the machine started.
    pub(super) fn new(counts: [Option<u32>; 9]) -> Option<Self> {
        let [user, nice, system, idle, wait, kernel, interrupt, softirq, steal] = counts;
        let counted = counts.iter().any(|count| count.is_some_and(|count| count > 0));
        (counted && idle.is_some()).then_some(Self {
            user,
            nice,
            system,
            idle,
            wait,
            kernel,
            interrupt,
            softirq,
            steal,
        })
    }

    /// Returns the shares since `before`. `None` if no time has passed on these counters.
    ///
    /// Everything but idling and waiting for a disk is busy; time stolen by a hypervisor counts as neither busy nor
    /// idle, as in [`linerate_model::CoreUse`]. Where a system tells its kernel time apart, `ssCpuRawSystem` may hold
    /// it once more (says the MIB), so that only the parts count.
    pub(super) fn since(&self, before: &Self) -> Option<Shares> {
        let grown = |now: Option<u32>, then: Option<u32>| now.zip(then).map(|(now, then)| grown(then, now));
        let or_zero = |growth: Option<u32>| f64::from(growth.unwrap_or(0));
        let softirq = grown(self.softirq, before.softirq);
        let kernel = or_zero(grown(self.kernel, before.kernel));
        let system = if kernel > 0.0 { kernel } else { or_zero(grown(self.system, before.system)) };
        let busy = system
            + or_zero(grown(self.user, before.user))
            + or_zero(grown(self.nice, before.nice))
            + or_zero(grown(self.interrupt, before.interrupt))
            + or_zero(softirq);
        let rest = or_zero(grown(self.idle, before.idle))
            + or_zero(grown(self.wait, before.wait))
            + or_zero(grown(self.steal, before.steal));
        let all = busy + rest;
        (all > 0.0).then(|| Shares { busy: busy / all, softirq: softirq.map(|softirq| f64::from(softirq) / all) })
    }
}

/// Returns the growth of a 32-bit counter. Linux occasionally takes back a tick of idle or waiting time, which is no
/// growth.
fn grown(then: u32, now: u32) -> u32 {
    let growth = now.wrapping_sub(then);
    if growth > u32::MAX / 2 { 0 } else { growth }
}

/// Answer to one request for CPU times.
#[derive(Debug, Clone)]
pub(super) struct CpuReading {
    pub(super) at: Instant,
    /// Hundredths of a second since its SNMP service started.
    pub(super) uptime: Option<i64>,
    pub(super) ticks: Option<Ticks>,
}

impl CpuReading {
    pub(super) async fn take(wire: &mut Wire) -> Result<Self, SnmpError> {
        let mut names = vec![SYS_UP_TIME.to_vec()];
        names.extend(Ticks::OBJECTS.map(system_stats));
        let answers = wire.get(&names).await?;
        let counts = std::array::from_fn(|at| answers[at + 1].as_ref().and_then(Answer::counter_32));
        Ok(Self { at: Instant::now(), uptime: answers[0].as_ref().and_then(Answer::number), ticks: Ticks::new(counts) })
    }

    /// True if the service's clock went back: it started anew, and other counters with it. The clock runs over after
    /// 497 days, from its top.
    pub(super) fn restarted_since(&self, before: &Self) -> bool {
        const HALF: i64 = 1 << 31;
        self.uptime.zip(before.uptime).is_some_and(|(now, then)| now < then && then < HALF)
    }
}

/// Busy shares over the last minute, as far as the device tells them.
#[derive(Debug, Clone, Default)]
pub(super) struct Averages {
    pub(super) per_cpu: Vec<f64>,
    /// Share of all CPUs together.
    pub(super) all: Option<f64>,
}

impl Averages {
    pub(super) async fn take(wire: &mut Wire) -> Result<Self, SnmpError> {
        let idle = wire.get(&[system_stats(SS_CPU_IDLE)]).await?;
        let rows = wire.column(&HR_PROCESSOR_LOAD).await?;
        Ok(Self {
            per_cpu: rows.iter().filter_map(|(_, answer)| answer.number()).map(percent).collect(),
            all: idle[0].as_ref().and_then(Answer::number).map(|idle| 1.0 - percent(idle)),
        })
    }

    pub(super) fn busiest(&self) -> Option<f64> {
        self.per_cpu.iter().copied().reduce(f64::max)
    }
}

fn system_stats(object: u64) -> Name {
    SYSTEM_STATS.into_iter().chain([object, 0]).collect()
}

fn percent(value: i64) -> f64 {
    value.clamp(0, 100) as f64 / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// user, nice, system, idle, wait, kernel, interrupt, softirq, steal.
    fn ticks(counts: [u32; 9]) -> Ticks {
        Ticks::new(counts.map(Some)).expect("counted")
    }

    #[test]
    fn shares_are_of_the_time_that_passed() {
        let before = ticks([100, 10, 50, 1000, 5, 0, 0, 20, 0]);
        let after = ticks([130, 10, 60, 1040, 15, 0, 0, 30, 0]);
        let shares = after.since(&before).expect("time passed");
        assert!((shares.busy - 0.5).abs() < 1e-12, "{shares:?}");
        assert!((shares.softirq.expect("softirq") - 0.1).abs() < 1e-12, "{shares:?}");
        assert_eq!(before.since(&before), None);
    }

    #[test]
    fn kernel_time_counts_once() {
        let before = ticks([0, 0, 0, 1, 0, 0, 0, 0, 0]);
        // A system that sums kernel (30) and wait (20) up as system time.
        let after = ticks([0, 0, 50, 51, 20, 30, 0, 0, 0]);
        assert!((after.since(&before).expect("time passed").busy - 0.3).abs() < 1e-12);
    }

    #[test]
    fn stolen_time_is_neither_busy_nor_idle() {
        let before = ticks([0, 0, 0, 1, 0, 0, 0, 0, 0]);
        let after = ticks([25, 0, 0, 51, 0, 0, 0, 0, 25]);
        assert!((after.since(&before).expect("time passed").busy - 0.25).abs() < 1e-12);
    }

    #[test]
    fn counters_run_over_and_step_back() {
        assert_eq!(grown(u32::MAX - 4, 5), 10);
        assert_eq!(grown(1000, 999), 0);
        assert_eq!(grown(7, 9), 2);
    }

    #[test]
    fn nothing_counted_yet_is_no_reading() {
        assert_eq!(Ticks::new([Some(0); 9]), None);
        assert_eq!(Ticks::new([None; 9]), None);
    }

    #[test]
    fn a_restart_shows_in_the_clock() {
        let at = |uptime| CpuReading { at: Instant::now(), uptime: Some(uptime), ticks: None };
        assert!(at(10).restarted_since(&at(5000)));
        assert!(!at(5000).restarted_since(&at(10)));
        assert!(!at(10).restarted_since(&at(i64::from(u32::MAX) - 5)));
    }
}
