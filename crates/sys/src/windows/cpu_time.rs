//! CPU time of threads and of the process. The system counts it in steps of the clock interrupt, 15.6 ms as a rule.

pub use crate::process_time::ProcessTime;
use linerate_units::Nanos;
use windows_sys::Win32::Foundation::{CloseHandle, FILETIME, HANDLE};
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, GetCurrentThread, GetExitCodeThread, GetProcessTimes, GetThreadTimes, OpenThread,
    THREAD_QUERY_LIMITED_INFORMATION,
};

/// Exit code of a thread that runs.
const STILL_ACTIVE: u32 = 259;

/// Returns the CPU time so far of a thread. `None` if it has ended.
pub fn of_thread(tid: i32) -> Option<Nanos> {
    // SAFETY: the call takes any number; null is checked below.
    let thread = unsafe { OpenThread(THREAD_QUERY_LIMITED_INFORMATION, 0, tid.cast_unsigned()) };
    if thread.is_null() {
        return None;
    }
    let mut code = 0;
    // SAFETY: the handle is open, and the code is written into a live integer.
    let runs = unsafe { GetExitCodeThread(thread, &raw mut code) } != 0 && code == STILL_ACTIVE;
    let time = runs.then(|| times(thread, GetThreadTimes)).flatten().map(sum);
    // SAFETY: the handle is open and is not used again.
    unsafe { CloseHandle(thread) };
    time
}

/// Returns the CPU time so far of the calling thread. `None` if the system does not report it.
pub fn of_caller() -> Option<Nanos> {
    // SAFETY: the function has no requirements; its handle needs no closing.
    times(unsafe { GetCurrentThread() }, GetThreadTimes).map(sum)
}

/// Returns the CPU time so far of this process. `None` if the system does not report it.
pub fn of_process() -> Option<ProcessTime> {
    // SAFETY: the function has no requirements; its handle needs no closing.
    times(unsafe { GetCurrentProcess() }, GetProcessTimes)
}

/// Reads the times of a thread or process.
type Times = unsafe extern "system" fn(HANDLE, *mut FILETIME, *mut FILETIME, *mut FILETIME, *mut FILETIME) -> i32;

fn times(of: HANDLE, read: Times) -> Option<ProcessTime> {
    let [mut created, mut ended, mut kernel, mut user] = [FILETIME::default(); 4];
    // SAFETY: the handle is open and of the kind that `read` takes; the times are written into live structures.
    let result = unsafe { read(of, &raw mut created, &raw mut ended, &raw mut kernel, &raw mut user) };
    (result != 0).then(|| ProcessTime { user: ticks(user), system: ticks(kernel) })
}

/// Converts a time in units of 100 ns.
fn ticks(time: FILETIME) -> Nanos {
    Nanos::new(100 * (u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime)))
}

fn sum(time: ProcessTime) -> Nanos {
    time.user + time.system
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};
    use windows_sys::Win32::System::Threading::GetCurrentThreadId;

    #[test]
    fn work_takes_time_of_the_thread_and_of_the_process() {
        // SAFETY: the function has no requirements.
        let own = unsafe { GetCurrentThreadId() }.cast_signed();
        let before = of_thread(own).expect("this thread runs");
        let began = Instant::now();
        while of_thread(own).expect("this thread runs") == before && began.elapsed() < Duration::from_secs(60) {}
        assert!(of_thread(own).expect("this thread runs") > before);
        assert!(sum(of_process().expect("this process runs")).get() > 0);
    }
}
