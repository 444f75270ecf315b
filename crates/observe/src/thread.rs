//! CPU time of the engine's threads and of the whole process.

use crate::thread_clock::{cpu_of, process_cpu, waited};
use linerate_model::ThreadUse;
use linerate_sys::thread::EngineThread;
use linerate_units::Nanos;

/// CPU time so far of this process and of some of its threads.
#[derive(Debug, Clone, Default)]
pub(crate) struct ThreadTimes {
    process: Nanos,
    /// In the order of the threads; none for one that has ended.
    threads: Vec<Option<ThreadTime>>,
}

/// CPU time of one thread.
#[derive(Debug, Clone, Copy)]
struct ThreadTime {
    cpu: Nanos,
    waited: Option<Nanos>,
}

impl ThreadTimes {
    pub(crate) fn read(threads: &[EngineThread]) -> Self {
        Self {
            process: process_cpu().unwrap_or_default(),
            threads: threads.iter().map(|thread| ThreadTime::read(thread.tid)).collect(),
        }
    }

    /// CPU time of the process since `before`.
    pub(crate) fn process_since(&self, before: &Self) -> Nanos {
        self.process - before.process
    }

    /// CPU time of each of `threads` since `before`; one that has ended meanwhile is left out, for its time is not
    /// known.
    pub(crate) fn threads_since(&self, before: &Self, threads: &[EngineThread]) -> Vec<ThreadUse> {
        let times = self.threads.iter().zip(&before.threads);
        threads
            .iter()
            .zip(times)
            .filter_map(|(thread, (after, before))| {
                let (after, before) = ((*after)?, (*before)?);
                Some(ThreadUse {
                    name: thread.name.clone(),
                    cpu: after.cpu - before.cpu,
                    waited: after.waited.zip(before.waited).map(|(after, before)| after - before),
                    sends: thread.sends,
                })
            })
            .collect()
    }
}

impl ThreadTime {
    /// Reads the time of a thread. `None` if it has ended.
    fn read(tid: i32) -> Option<Self> {
        Some(Self { cpu: cpu_of(tid)?, waited: waited(tid) })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use linerate_sys::clock;
    use linerate_sys::thread::current_tid;
    use linerate_testsuite::wait_until;
    use std::sync::mpsc::{self, Receiver, Sender};
    use std::thread::{self, JoinHandle};

    /// A thread that waits to be told how much CPU time to use up, says when it has, and waits again.
    pub(crate) struct Worker {
        pub(crate) engine: EngineThread,
        pub(crate) orders: Sender<Nanos>,
        pub(crate) done: Receiver<()>,
        pub(crate) thread: JoinHandle<()>,
    }

    pub(crate) fn worker(name: &str) -> Worker {
        let (orders, work) = mpsc::channel::<Nanos>();
        let (report, done) = mpsc::channel();
        let (started, tid) = mpsc::channel();
        let thread = thread::spawn(move || {
            started.send(current_tid()).expect("the test waits");
            for amount in work {
                let start = clock::thread_cpu();
                while clock::thread_cpu() - start < amount.get() {}
                report.send(()).expect("the test waits");
            }
        });
        let tid = tid.recv().expect("it starts");
        Worker { engine: EngineThread { name: name.into(), tid, sends: true }, orders, done, thread }
    }

    #[test]
    fn tells_a_busy_thread_from_an_idle_one_and_from_one_that_has_ended() {
        let [busy, idle, ended] = ["busy", "idle", "ended"].map(worker);
        let threads = [&busy, &idle, &ended].map(|worker| worker.engine.clone());
        let before = ThreadTimes::read(&threads);
        let amount = Nanos::from_millis(20);
        busy.orders.send(amount).expect("it waits");
        busy.done.recv().expect("it works");
        drop(ended.orders);
        ended.thread.join().expect("it ends");
        // The kernel wakes whoever joins before the thread is gone.
        wait_until("the thread is gone", || cpu_of(ended.engine.tid).is_none().then_some(()));
        let after = ThreadTimes::read(&threads);

        let used = after.threads_since(&before, &threads);
        assert_eq!(used.iter().map(|thread| thread.name.as_str()).collect::<Vec<_>>(), ["busy", "idle"]);
        assert!(used[0].cpu >= amount, "{used:?}");
        // It may still have been on its way to waiting when first looked at.
        assert!(used[1].cpu < Nanos::from_millis(5), "{used:?}");
        assert!(after.process_since(&before) >= used[0].cpu, "{used:?}");
    }
}
