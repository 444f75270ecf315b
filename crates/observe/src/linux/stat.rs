//! Times of the cores in `/proc/stat`.
//!
//! The kernel shows them in ticks of 10 ms: each figure may be off by one tick, so over a window of a second a share is
//! good to about 1 %. What the engine's threads cost is known to the nanosecond ([`crate::thread`]).

use crate::cores::CoreTimes;
use linerate_model::CoreUse;
use linerate_units::Nanos;

/// USER_HZ, in which `/proc/stat` counts on every architecture of interest, is 100.
const TICK_NS: u64 = 10_000_000;

/// Reads the text of `/proc/stat`, proc_stat(5).
pub(crate) fn cores(text: &str) -> CoreTimes {
    CoreTimes::new(text.lines().take_while(|line| line.starts_with("cpu")).filter_map(core).collect())
}

/// Reads one `cpuN` line. Returns `None` for the line of all cores together.
fn core(line: &str) -> Option<CoreUse> {
    let mut fields = line.strip_prefix("cpu")?.split_ascii_whitespace();
    if line.starts_with("cpu ") {
        return None;
    }
    let core = fields.next()?.parse().ok()?;
    let mut ticks = || fields.next().and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    // In this order. What guests used follows, and is part of user and nice already.
    let [user, nice, system, idle, io_wait, irq, softirq, steal] = std::array::from_fn(|_| ticks());
    let time = |ticks: u64| Nanos::new(ticks.saturating_mul(TICK_NS));
    Some(CoreUse {
        core,
        user: time(user + nice),
        system: time(system),
        irq: time(irq),
        softirq: time(softirq),
        steal: time(steal),
        idle: time(idle + io_wait),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "cpu  30 1 20 900 5 0 3 2 0 0\n\
        cpu0 10 1 10 400 5 0 1 2 0 0\n\
        cpu2 20 0 10 500 0 0 2 0 0 0\n\
        intr 468431 0 0\n\
        cpufreq 1\n";
    const AFTER: &str = "cpu  99 9 99 999 9 9 9 9 0 0\n\
        cpu0 15 2 12 401 4 1 8 3 4 1\n\
        cpu2 20 0 10 600 0 0 2 0 0 0\n\
        cpu3 7 0 0 0 0 0 0 0 0 0\n";

    #[test]
    fn differences_by_core() {
        let passed = cores(AFTER).since(&cores(BEFORE));
        let ms = |count: u64| Nanos::new(count * 1_000_000);
        let first = CoreUse {
            core: 0,
            user: ms(60),
            system: ms(20),
            irq: ms(10),
            softirq: ms(70),
            steal: ms(10),
            // One more tick idle and one fewer of I/O wait.
            idle: ms(0),
        };
        let second = CoreUse { core: 2, idle: ms(1000), ..CoreUse::default() };
        assert_eq!(passed, [first, second]);
    }

    #[test]
    fn old_kernels_give_fewer_columns_and_rubbish_gives_nothing() {
        assert_eq!(cores("cpu0 1 2 3 4\n").count(), 1);
        assert_eq!(cores("").count(), 0);
        assert_eq!(cores("cpux 1 2 3\n").count(), 0);
    }
}
