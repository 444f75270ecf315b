//! Which cores threads run on.

use crate::Error;
use crate::thread::current_tid;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Keeps the calling thread on core `cpu`.
pub fn pin(cpu: u32) -> Result<(), Error> {
    // As in "0-3".
    let online = || fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let object = || format!("core {cpu} (this host's cores are {})", online().trim());
    let mut set = CpuSet::new();
    set.set(cpu as usize).map_err(|errno| Error::new("CPU_SET", object(), errno))?;
    sched_setaffinity(Pid::from_raw(0), &set).map_err(|errno| Error::new("sched_setaffinity", object(), errno))
}

/// The cores that the calling thread may use, at least one.
pub fn allowed() -> Vec<u32> {
    numbers(&sched_getaffinity(Pid::from_raw(0)).unwrap_or_default())
}

/// The same without regard to [`ClearCores`]: a sender is not to take the core to which another sender of this process has moved all
/// others.
pub fn allowed_unless_cleared() -> Vec<u32> {
    let cleared = Cleared::lock();
    let now = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
    numbers(&cleared.before(current_tid(), now))
}

fn numbers(set: &CpuSet) -> Vec<u32> {
    let cores: Vec<u32> =
        (0..CpuSet::count()).filter(|core| set.is_set(*core).is_ok_and(|is| is)).map(|core| core as u32).collect();
    if cores.is_empty() { vec![0] } else { cores }
}

/// What all [`ClearCores`] of this process ask for together.
static CLEARED: Mutex<Cleared> = Mutex::new(Cleared { cores: Vec::new(), moved: BTreeMap::new() });

/// Keeps the threads that this process has now off some cores until it is dropped, so that what looks on does not hold up what
/// measures there. A thread that has no other core stays, and so does all that other processes run.
#[derive(Debug)]
#[must_use = "the threads may go back when it is dropped"]
pub struct ClearCores(Vec<usize>);

impl ClearCores {
    /// Clears `cores`. Best effort: a thread that the kernel does not move costs evenness only.
    pub fn of(cores: impl IntoIterator<Item = u32>) -> Self {
        let cores: Vec<usize> = cores.into_iter().map(|core| core as usize).collect();
        let mut cleared = Cleared::lock();
        cleared.cores.extend(&cores);
        cleared.move_threads();
        Self(cores)
    }
}

impl Drop for ClearCores {
    fn drop(&mut self) {
        let mut cleared = Cleared::lock();
        for core in &self.0 {
            if let Some(at) = cleared.cores.iter().position(|held| held == core) {
                cleared.cores.swap_remove(at);
            }
        }
        cleared.move_threads();
    }
}

#[derive(Debug)]
struct Cleared {
    /// The cores, each as often as it is asked for.
    cores: Vec<usize>,
    /// Threads that were moved: the cores that they had before, and those that they were given.
    moved: BTreeMap<i32, (CpuSet, CpuSet)>,
}

impl Cleared {
    fn lock() -> MutexGuard<'static, Self> {
        CLEARED.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cores that a thread which has `now` had before it was moved.
    fn before(&self, thread: i32, now: CpuSet) -> CpuSet {
        // A thread that began meanwhile has the cores of the one that began it.
        let inherited = || self.moved.values().find(|(_, given)| *given == now);
        let known = self.moved.get(&thread).filter(|(_, given)| *given == now).or_else(inherited);
        known.map_or(now, |(before, _)| *before)
    }

    /// Gives each thread the cores it had before, without those that are to be clear.
    fn move_threads(&mut self) {
        let mut moved = BTreeMap::new();
        for thread in threads() {
            let Ok(now) = sched_getaffinity(Pid::from_raw(thread)) else { continue };
            let before = self.before(thread, now);
            let mut wanted = before;
            for core in &self.cores {
                let _ = wanted.unset(*core);
            }
            let wanted = if wanted == CpuSet::new() { before } else { wanted };
            let given = match wanted == now || sched_setaffinity(Pid::from_raw(thread), &wanted).is_ok() {
                true => wanted,
                false => now,
            };
            if given != before {
                moved.insert(thread, (before, given));
            }
        }
        self.moved = moved;
    }
}

/// The most listings that [`threads`] makes. Only a process that begins and ends threads all the time needs so many.
const LISTINGS: usize = 100;

/// The threads of this process, by the kernel's numbers. If a thread ends during a listing, the kernel may leave out others that
/// still run (proc_task_readdir() in its fs/proc/base.c). The next listing is without the ended thread, so it differs: two equal
/// listings are complete.
fn threads() -> Vec<i32> {
    let mut listed = listed_threads();
    for _ in 1..LISTINGS {
        let again = listed_threads();
        if again == listed {
            break;
        }
        listed = again;
    }
    listed
}

fn listed_threads() -> Vec<i32> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_core_that_is_not_there_is_named() {
        let error = pin(1_000).expect_err("no machine here has 1,001 cores");
        assert!(error.to_string().contains("core 1000 (this host's cores are 0"), "{error}");
        std::thread::spawn(|| pin(0).expect("core 0 is there")).join().expect("the thread ends");
    }

    /// The cores of the calling thread.
    fn own() -> Vec<usize> {
        allowed().into_iter().map(|core| core as usize).collect()
    }

    #[test]
    fn a_thread_knows_the_cores_that_it_may_use() {
        let pinned = std::thread::spawn(|| {
            // No other test moves threads meanwhile.
            let _cleared = Cleared::lock();
            let last = *allowed().last().expect("one at least");
            (pin(last).map(|()| allowed()), last)
        });
        let (known, last) = pinned.join().expect("it ends");
        assert_eq!(known.expect("the core is there"), [last]);
    }

    #[test]
    fn a_thread_that_ends_hides_no_other() {
        for _ in 0..100 {
            let short: Vec<_> = (0..20).map(|_| std::thread::spawn(|| ())).collect();
            let (end, ended) = mpsc::channel::<()>();
            let (tell, told) = mpsc::channel();
            let stays = std::thread::spawn(move || {
                tell.send(current_tid()).expect("the test listens");
                let _ = ended.recv();
            });
            let tid = told.recv().expect("it runs");
            assert!(threads().contains(&tid));
            drop(end);
            short.into_iter().chain([stays]).for_each(|thread| thread.join().expect("it ends"));
        }
    }

    #[test]
    fn threads_leave_cores_that_are_to_be_clear_and_come_back() {
        // In a process of one core there is nowhere to go.
        let all = own();
        let [first, .., last] = all[..] else { return };
        let (ask, asked) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let other = std::thread::spawn(move || asked.iter().for_each(|()| tell.send(own()).expect("the test listens")));
        let cores_of_other = || {
            ask.send(()).expect("the thread listens");
            told.recv().expect("the thread answers")
        };
        let without =
            |cleared: &[usize]| -> Vec<usize> { all.iter().copied().filter(|core| !cleared.contains(core)).collect() };

        let one = ClearCores::of([first as u32]);
        assert_eq!((cores_of_other(), own()), (without(&[first]), without(&[first])));
        assert_eq!(allowed_unless_cleared(), all.iter().map(|core| *core as u32).collect::<Vec<_>>());
        let pinned = std::thread::spawn(move || {
            pin(first as u32).expect("the core is there");
            let _again = ClearCores::of([first as u32]);
            own()
        });
        assert_eq!(pinned.join().expect("it ends"), [first], "it has no other core");
        let (wait, waited) = mpsc::channel::<()>();
        let begun_meanwhile = std::thread::spawn(move || {
            let _ = waited.recv();
            own()
        });
        let both = ClearCores::of([first as u32, last as u32]);
        drop(one);
        let rest = if all.len() > 2 { without(&[first, last]) } else { all.clone() };
        assert_eq!(cores_of_other(), rest, "the last core of a thread is not taken");
        drop(both);
        assert_eq!((cores_of_other(), own()), (all.clone(), all.clone()));
        drop(wait);
        assert_eq!(begun_meanwhile.join().expect("it ends"), all);
        drop(ask);
        other.join().expect("it ends");
    }
}
