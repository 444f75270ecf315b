//! How the kernel's own threads that receive packets spent the window: `schedstat`,
//! Documentation/scheduler/sched-stats.rst.
//!
//! Packets are received in interrupts, which nothing on the core holds up, until there are too many; then a thread goes
//! on, and shares the core with whatever else runs there. How long that thread waits is what a busy neighbour costs.

use crate::proc::ProcFile;
use linerate_model::KernelThreadUse;
use linerate_units::Nanos;
use std::fs;

/// The threads there are, kept open.
pub(crate) struct KernelThreads(Vec<(String, ProcFile)>);

/// Their times so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct KernelTimes(Vec<KernelThreadUse>);

impl KernelThreads {
    /// Looks for them among the children of kthreadd, which are few however many programs run: this delays the window.
    /// Finds none where another process namespace hides them, or the kernel lists no children (CONFIG_PROC_CHILDREN).
    pub(crate) fn open() -> Self {
        let children = fs::read_to_string("/proc/2/task/2/children").unwrap_or_default();
        let numbers = children.split_ascii_whitespace();
        let receives = |name: &String| name.starts_with("ksoftirqd/") || name.starts_with("napi/");
        let found = numbers.filter_map(|number| {
            let name = fs::read_to_string(format!("/proc/{number}/comm")).ok()?.trim_end().to_owned();
            receives(&name).then(|| (name, ProcFile::open(&format!("/proc/{number}/schedstat"))))
        });
        Self(found.collect())
    }

    pub(crate) fn read(&self) -> KernelTimes {
        KernelTimes(self.0.iter().filter_map(|(name, file)| times(name, &file.read()?)).collect())
    }
}

impl KernelTimes {
    /// Returns the difference from `before` for the threads that did anything.
    pub(crate) fn since(&self, before: &Self) -> Vec<KernelThreadUse> {
        let both = self.0.iter().filter_map(|now| Some((now, before.0.iter().find(|then| then.name == now.name)?)));
        let passed = both.map(|(now, then)| KernelThreadUse {
            name: now.name.clone(),
            cpu: now.cpu - then.cpu,
            waited: now.waited - then.waited,
        });
        passed.filter(|thread| thread.cpu.get() > 0).collect()
    }
}

/// On a core, waiting for one, and how often it ran; the first two in nanoseconds.
fn times(name: &str, counts: &str) -> Option<KernelThreadUse> {
    let mut fields = counts.split_ascii_whitespace().map(|field| field.parse().ok().map(Nanos::new));
    Some(KernelThreadUse { name: name.to_owned(), cpu: fields.next()??, waited: fields.next()?? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_of_those_that_ran() {
        let thread = |name: &str, counts: &str| times(name, counts).expect(counts);
        let before = KernelTimes(vec![thread("ksoftirqd/0", "100 50 3"), thread("napi/eth0-7", "5 5 1")]);
        let after = KernelTimes(vec![thread("ksoftirqd/0", "100 50 3"), thread("napi/eth0-7", "45 25 9")]);
        let passed = after.since(&before);
        assert_eq!(passed.len(), 1);
        assert_eq!((passed[0].name.as_str(), passed[0].cpu.get(), passed[0].waited.get()), ("napi/eth0-7", 40, 20));
        assert_eq!(times("x", "1"), None);
    }
}
