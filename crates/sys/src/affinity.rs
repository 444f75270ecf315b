//! Pinning threads to cores.

use crate::Error;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

/// Keeps the calling thread on core `cpu`.
pub fn pin(cpu: u32) -> Result<(), Error> {
    let object = || format!("core {cpu}");
    let mut set = CpuSet::new();
    set.set(cpu as usize).map_err(|errno| Error::new("CPU_SET", object(), errno))?;
    sched_setaffinity(Pid::from_raw(0), &set).map_err(|errno| Error::new("sched_setaffinity", object(), errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_that_is_not_there_is_named() {
        let error = pin(1_000).expect_err("no machine here has 1,001 cores");
        assert!(error.to_string().contains("core 1000"), "{error}");
        std::thread::spawn(|| pin(0).expect("core 0 is there")).join().expect("the thread ends");
    }
}
