//! Times of the cores.

use crate::Error;
use crate::core_time::CoreTime;

/// Reads the times of the cores, in the order of their numbers (kern.cp_times).
///
/// # Errors
/// The call fails.
#[cfg(target_os = "freebsd")]
pub fn core_times() -> Result<Vec<CoreTime>, Error> {
    use super::{records, sysctl};
    use std::io;
    use std::mem::offset_of;
    let rates = sysctl::bytes(c"kern.clockrate")?;
    let rate = rates.get(offset_of!(libc::clockinfo, stathz)..).and_then(|bytes| bytes.first_chunk());
    let rate = rate.map(|bytes| u32::from_ne_bytes(*bytes)).filter(|rate| *rate > 0);
    let rate = rate.ok_or_else(|| Error::new("sysctl", "kern.clockrate", io::ErrorKind::InvalidData))?;
    Ok(records::core_times(&sysctl::bytes(c"kern.cp_times")?, rate.into()))
}

/// Reads the times of the cores, in the order of their numbers (host_processor_info of Mach, which counts 100 ticks a second). The counters have
/// 32 bits: they run over after 497 days.
///
/// # Errors
/// The call fails.
#[cfg(target_os = "macos")]
pub fn core_times() -> Result<Vec<CoreTime>, Error> {
    use super::records::ticks_to_time;
    use linerate_units::Nanos;
    use std::{io, mem, ptr, slice};
    const TICKS_PER_SECOND: u64 = 100;
    /// CPU_STATE_MAX of mach/machine.h: user, system, idle, and of low priority.
    const STATES: usize = 4;
    let mut cores = 0;
    let mut counts: libc::processor_info_array_t = ptr::null_mut();
    let mut length = 0;
    #[allow(deprecated, reason = "another crate for one call is worse")]
    // SAFETY: the call takes the right to ask this host, and writes a pointer and two integers, which are live.
    let result = unsafe {
        libc::host_processor_info(
            libc::mach_host_self(),
            libc::PROCESSOR_CPU_LOAD_INFO,
            &raw mut cores,
            &raw mut counts,
            &raw mut length,
        )
    };
    if result != libc::KERN_SUCCESS {
        let source = io::Error::other(format!("Mach returned {result}"));
        return Err(Error::new("host_processor_info", "cores", source));
    }
    // SAFETY: the call succeeded, so the array has this number of integers until it is freed below.
    let (all, _) = unsafe { slice::from_raw_parts(counts.cast_const(), length as usize) }.as_chunks::<STATES>();
    let time = |ticks: i32| ticks_to_time(ticks.cast_unsigned().into(), TICKS_PER_SECOND);
    let times = all
        .iter()
        .map(|[user, system, idle, nice]| CoreTime {
            user: time(*user) + time(*nice),
            kernel: time(*system),
            deferred: Nanos::default(),
            interrupt: Nanos::default(),
            idle: time(*idle),
        })
        .collect();
    #[allow(deprecated, reason = "as above")]
    // SAFETY: the array was made for this process by the call above, has this size, and no reference to it is left.
    unsafe {
        libc::vm_deallocate(
            libc::mach_task_self(),
            counts as libc::vm_address_t,
            length as usize * mem::size_of::<i32>(),
        );
    }
    Ok(times)
}
