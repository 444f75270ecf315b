//! CPU time of threads and of the process.

use crate::clock;
pub use crate::process_time::ProcessTime;
pub use crate::usage::process_time as of_process;
use linerate_units::Nanos;
#[cfg(target_os = "freebsd")]
use nix::time::{ClockId, clock_gettime};

/// Returns the CPU time so far of a thread of this process. `None` if it has ended.
#[cfg(target_os = "freebsd")]
pub fn of_thread(tid: i32) -> Option<Nanos> {
    let mut clock = 0;
    // SAFETY: the call takes numbers and writes one live integer.
    let result = unsafe { libc::clock_getcpuclockid2(tid.into(), libc::CPUCLOCK_WHICH_TID, &raw mut clock) };
    if result == 0 { time(ClockId::from_raw(clock)) } else { None }
}

/// Returns the CPU time so far of a thread of this process, in steps of 1 us. `None` if it has ended.
#[cfg(target_os = "macos")]
pub fn of_thread(tid: i32) -> Option<Nanos> {
    // SAFETY: the structure is made of integers, for which all zeroes is a value.
    let mut info: libc::thread_basic_info = unsafe { std::mem::zeroed() };
    let mut length = libc::THREAD_BASIC_INFO_COUNT;
    // SAFETY: the kernel writes at most `length` integers, which the structure has. A name of no thread is an error.
    let result = unsafe {
        libc::thread_info(
            tid.cast_unsigned(),
            libc::THREAD_BASIC_INFO.cast_unsigned(),
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    let micros = |time: libc::time_value_t| i64::from(time.seconds) * 1_000_000 + i64::from(time.microseconds);
    let time = micros(info.user_time) + micros(info.system_time);
    (result == libc::KERN_SUCCESS).then(|| Nanos::new(time.unsigned_abs() * 1_000))
}

/// Returns the CPU time so far of the calling thread. `None` if the system does not report it.
pub fn of_caller() -> Option<Nanos> {
    Some(Nanos::new(clock::thread_cpu()))
}

#[cfg(target_os = "freebsd")]
fn time(clock: ClockId) -> Option<Nanos> {
    let time = clock_gettime(clock).ok()?;
    Some(Nanos::new(time.tv_sec().unsigned_abs() * 1_000_000_000 + time.tv_nsec().unsigned_abs()))
}
