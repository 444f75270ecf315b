//! The threads of a half: one for each flow.

use linerate_sys::thread::{EngineThread, current_tid, sharpen_timers};
use std::io;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

/// What one thread is to do.
#[derive(Debug)]
pub struct Hand<W> {
    /// The thread's name.
    pub name: String,
    /// It sends; of requests, it asks.
    pub sends: bool,
    /// Its work.
    pub work: W,
}

/// The threads of a half at work, in the order of its flows. What one gives is a `T`. Dropped, it waits for them: who has it stops
/// them before.
#[derive(Debug)]
pub struct Crew<T> {
    work: Vec<JoinHandle<T>>,
    threads: Vec<EngineThread>,
    finished: Arc<AtomicUsize>,
}

impl<T> Default for Crew<T> {
    fn default() -> Self {
        Self { work: Vec::new(), threads: Vec::new(), finished: Arc::default() }
    }
}

impl<T: Send + 'static> Crew<T> {
    /// Starts a thread for each of `hands`; all have begun when this returns.
    ///
    /// # Errors
    /// The system has no more threads to give. Those that were started are at work.
    pub fn start<W>(&mut self, hands: impl IntoIterator<Item = Hand<W>>) -> io::Result<()>
    where
        W: FnOnce() -> T + Send + 'static,
    {
        let (report, reports) = mpsc::channel();
        for Hand { name, sends, work } in hands {
            let (report, finished, own_name) = (report.clone(), Arc::clone(&self.finished), name.clone());
            self.work.push(thread::Builder::new().name(name).spawn(move || {
                // The receiver is there until all threads have reported.
                let _ = report.send(EngineThread { name: own_name, tid: current_tid(), sends });
                drop(report);
                sharpen_timers();
                let given = work();
                finished.fetch_add(1, Ordering::Release);
                given
            })?);
        }
        drop(report);
        self.threads.extend(reports);
        self.threads.sort_by_key(|thread| thread.tid);
        Ok(())
    }
}

impl<T> Crew<T> {
    /// The threads.
    pub fn threads(&self) -> &[EngineThread] {
        &self.threads
    }

    /// All have done their work.
    pub fn has_finished(&self) -> bool {
        self.finished.load(Ordering::Acquire) == self.work.len()
    }

    /// Some have not been waited for.
    pub fn is_there(&self) -> bool {
        !self.work.is_empty()
    }

    /// Waits for all, and gives what each gave, in their order.
    ///
    /// # Panics
    /// A thread did.
    pub fn join(&mut self) -> Vec<T> {
        let work = std::mem::take(&mut self.work);
        work.into_iter().map(|work| work.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    }
}

impl<T> Drop for Crew<T> {
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

    #[test]
    fn each_gives_its_own_in_their_order_and_is_known_by_its_name() {
        let mut crew = Crew::default();
        let hand = |number: usize| Hand { name: format!("send {number}"), sends: number == 0, work: move || number };
        crew.start((0..3).map(hand)).expect("three threads");
        let mut known: Vec<_> = crew.threads().iter().map(|thread| (thread.name.clone(), thread.sends)).collect();
        known.sort();
        assert_eq!(known, [("send 0".into(), true), ("send 1".into(), false), ("send 2".into(), false)]);
        assert!(crew.is_there());
        assert_eq!(crew.join(), [0, 1, 2]);
        assert!(!crew.is_there());
    }

    #[test]
    fn who_drops_it_waits_for_all() {
        let done = Arc::new(AtomicUsize::new(0));
        let mut crew = Crew::default();
        let hand = |_| {
            let done = Arc::clone(&done);
            let work = move || {
                thread::sleep(std::time::Duration::from_millis(20));
                done.fetch_add(1, Ordering::Relaxed)
            };
            Hand { name: String::from("late"), sends: false, work }
        };
        crew.start((0..2).map(hand)).expect("two threads");
        assert!(!crew.has_finished());
        drop(crew);
        assert_eq!(done.load(Ordering::Relaxed), 2);
    }
}
