//! Worker threads of flows.

use linerate_sys::thread::{EngineThread, current_tid, sharpen_timers};
use std::io;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

/// Worker thread before its start.
#[derive(Debug)]
pub struct Worker<W> {
    /// Name of the thread.
    pub name: String,
    /// Whether it sends; in transactions, whether it sends the requests.
    pub sends: bool,
    /// Function that it runs.
    pub work: W,
}

/// Running worker threads in the order of their flows, each of which returns a `T`. Dropping it waits for them: stop
/// them first.
#[derive(Debug)]
pub struct Workers<T> {
    work: Vec<JoinHandle<T>>,
    threads: Vec<EngineThread>,
    finished: Arc<AtomicUsize>,
}

impl<T> Default for Workers<T> {
    fn default() -> Self {
        Self { work: Vec::new(), threads: Vec::new(), finished: Arc::default() }
    }
}

impl<T: Send + 'static> Workers<T> {
    /// Starts a thread for each of `workers`. All are running when this returns.
    ///
    /// # Errors
    /// Fails if the system has no more threads. Those started before keep running.
    pub fn start<W>(&mut self, workers: impl IntoIterator<Item = Worker<W>>) -> io::Result<()>
    where
        W: FnOnce() -> T + Send + 'static,
    {
        let (report, reports) = mpsc::channel();
        for Worker { name, sends, work } in workers {
            let report = report.clone();
            let finished = Arc::clone(&self.finished);
            let thread_name = name.clone();
            self.work.push(thread::Builder::new().name(name).spawn(move || {
                // The receiver is there until all threads have reported.
                let _ = report.send(EngineThread { name: thread_name, tid: current_tid(), sends });
                drop(report);
                sharpen_timers();
                let result = work();
                finished.fetch_add(1, Ordering::Release);
                result
            })?);
        }
        drop(report);
        self.threads.extend(reports);
        self.threads.sort_by_key(|thread| thread.tid);
        Ok(())
    }
}

impl<T> Workers<T> {
    /// Returns the threads, by thread id.
    pub fn threads(&self) -> &[EngineThread] {
        &self.threads
    }

    /// Returns an observer of the end of the started workers, which also works after they have been joined.
    pub fn ended(&self) -> Ended {
        Ended { finished: Arc::clone(&self.finished), all: self.work.len() }
    }

    /// Returns whether any worker was started and not joined.
    pub fn is_running(&self) -> bool {
        !self.work.is_empty()
    }

    /// Waits for all workers and returns their results in order.
    ///
    /// # Panics
    /// Panics if a worker did.
    pub fn join(&mut self) -> Vec<T> {
        let work = std::mem::take(&mut self.work);
        work.into_iter().map(|work| work.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    }
}

/// Observer of the end of worker threads.
#[derive(Debug, Clone)]
pub struct Ended {
    finished: Arc<AtomicUsize>,
    all: usize,
}

impl Ended {
    /// Returns whether all workers have ended.
    pub fn all(&self) -> bool {
        self.finished.load(Ordering::Acquire) >= self.all
    }
}

impl<T> Drop for Workers<T> {
    fn drop(&mut self) {
        for work in self.work.drain(..) {
            // A panic has been printed by its thread; a destructor must not panic again.
            let _ = work.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn returns_results_in_order_and_threads_by_name() {
        let mut workers = Workers::default();
        let three = (0..3).map(|number: usize| Worker {
            name: format!("send {number}"),
            sends: number == 0,
            work: move || number,
        });
        workers.start(three).expect("three threads");
        let mut threads: Vec<_> = workers.threads().iter().map(|thread| (thread.name.clone(), thread.sends)).collect();
        threads.sort();
        assert_eq!(threads, [("send 0".into(), true), ("send 1".into(), false), ("send 2".into(), false)]);
        assert!(workers.is_running());
        assert_eq!(workers.join(), [0, 1, 2]);
        assert!(!workers.is_running());
    }

    #[test]
    fn dropping_waits_for_all() {
        let count = Arc::new(AtomicUsize::new(0));
        let mut workers = Workers::default();
        let (release, blocked) = mpsc::channel::<()>();
        let blocked = Arc::new(Mutex::new(blocked));
        let two = (0..2).map(|_| {
            let count = Arc::clone(&count);
            let blocked = Arc::clone(&blocked);
            let work = move || {
                // Returns when the sender is dropped.
                let _ = blocked.lock().expect("no holder panics").recv();
                count.fetch_add(1, Ordering::Relaxed)
            };
            Worker { name: String::from("late"), sends: false, work }
        });
        workers.start(two).expect("two threads");
        let ended = workers.ended();
        assert!(!ended.all());
        drop(release);
        drop(workers);
        assert!(ended.all());
        assert_eq!(count.load(Ordering::Relaxed), 2);
    }
}
