//! Computes when a disk of known speed completes each request, and signals it then.
//!
//! Completion times are computed, so that the disk is as exact as the timer that signals them.

use super::SlowDisk;
use linerate_sys::{clock, thread};
use linerate_units::{BitRate, ByteCount, Nanos};
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, PoisonError};

/// Delay of a wake-up, nanoseconds, within which a new request counts as made in time.
const LATE: u64 = 10_000_000;

/// Requests to a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// To get to a file.
    Access,
    /// Reads this number of bytes.
    Read(usize),
    /// Writes this number of bytes.
    Write(usize),
}

/// The one thing of a disk that moves: it does one request after the other.
pub(super) struct Head {
    disk: SlowDisk,
    /// When it has done what it was given.
    free: Mutex<u64>,
    late: Sender<(u64, Answer)>,
}

/// Callback for a finished request.
type Answer = Box<dyn FnOnce() + Send>;

impl Head {
    pub(super) fn new(disk: SlowDisk) -> Self {
        let (late, due) = mpsc::channel::<(u64, Answer)>();
        std::thread::spawn(move || {
            thread::sharpen_timers();
            for (at, answer) in due {
                clock::sleep_until(at);
                answer();
            }
        });
        Self { disk, free: Mutex::new(0), late }
    }

    /// Calls `answer` when `work` is done.
    pub(super) fn after(&self, work: Work, answer: impl FnOnce() + Send + 'static) {
        let time = time(&self.disk, work);
        if time == 0 {
            return answer();
        }
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        *free = begins(*free, clock::now()).saturating_add(time);
        // In the order in which they are due, as the lock is held. The thread lives as long as this does.
        let _ = self.late.send((*free, Box::new(answer)));
    }
}

/// When a request begins that arrives at `now` at a disk that is free from `free` on. One that comes right after the
/// last is taken to have waited: the timer and the program that asks are late by no more, and that would make the disk
/// slower than planted.
fn begins(free: u64, now: u64) -> u64 {
    if now.saturating_sub(free) <= LATE { free } else { now }
}

/// Returns the time that `work` takes, nanoseconds.
fn time(disk: &SlowDisk, work: Work) -> u64 {
    let at = |rate: Option<BitRate>, bytes: usize| rate.and_then(|rate| rate.time_for(ByteCount::new(bytes as u64)));
    let time = match work {
        Work::Access => disk.access_time,
        Work::Read(bytes) => at(disk.read_rate, bytes),
        Work::Write(bytes) => at(disk.write_rate, bytes),
    };
    time.map_or(0, Nanos::get)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    const MS: u64 = 1_000_000;

    fn disk(text: &str) -> SlowDisk {
        text.parse().expect("a slow disk")
    }

    #[test]
    fn each_kind_of_work_has_its_own_time() {
        let disk = disk("b,read-rate=10MB/s,access-time=3ms");
        assert_eq!(time(&disk, Work::Read(100_000)), 10 * MS);
        assert_eq!(time(&disk, Work::Write(100_000)), 0);
        assert_eq!(time(&disk, Work::Access), 3 * MS);
    }

    #[test]
    fn a_late_program_makes_no_slower_disk_and_an_idle_disk_saves_nothing_up() {
        assert_eq!(begins(100 * MS, 50 * MS), 100 * MS, "it is busy");
        assert_eq!(begins(100 * MS, 109 * MS), 100 * MS, "who asks was told late");
        assert_eq!(begins(100 * MS, 150 * MS), 150 * MS);
    }

    #[test]
    fn requests_are_done_one_after_the_other() {
        let head = Head::new(disk("b,write-rate=10MB/s"));
        let done = Arc::new(Mutex::new(Vec::new()));
        let begun = clock::now();
        let (last, all) = mpsc::channel();
        for number in 0..3 {
            let done = Arc::clone(&done);
            let last = last.clone();
            head.after(Work::Write(100_000), move || {
                done.lock().expect("the list").push((number, clock::now() - begun));
                let _ = last.send(());
            });
        }
        let empty = done.lock().expect("the list").is_empty();
        let passed = clock::now() - begun;
        assert!(empty || passed >= 10 * MS, "one is done after {passed} ns");
        (0..3).for_each(|_| all.recv().expect("it comes"));
        let done = done.lock().expect("the list");
        assert!(done.iter().enumerate().all(|(at, (number, _))| at == *number), "{done:?}");
        assert!(done.iter().zip([10, 20, 30]).all(|((_, after), least)| *after >= least * MS), "{done:?}");
        head.after(Work::Read(100_000), || ());
    }
}
