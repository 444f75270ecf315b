//! Which cores threads run on. Cores are numbered through all processor groups, which have 64 numbers each.

use crate::Error;
use windows_sys::Win32::System::SystemInformation::GROUP_AFFINITY;
use windows_sys::Win32::System::Threading::{GetCurrentThread, GetThreadGroupAffinity, SetThreadGroupAffinity};

/// Cores of a processor group.
const GROUP: u32 = 64;

/// Keeps the calling thread on core `cpu`.
///
/// # Errors
/// This host has no such core.
pub fn pin(cpu: u32) -> Result<(), Error> {
    let failed = || Error::last("SetThreadGroupAffinity", format!("core {cpu}"));
    let Ok(group) = u16::try_from(cpu / GROUP) else { return Err(failed()) };
    let affinity = GROUP_AFFINITY { Mask: 1 << (cpu % GROUP), Group: group, Reserved: [0; 3] };
    // SAFETY: the pseudo handle of the calling thread is always valid, and the call reads one structure that outlives it.
    let result = unsafe { SetThreadGroupAffinity(GetCurrentThread(), &raw const affinity, std::ptr::null_mut()) };
    if result == 0 { Err(failed()) } else { Ok(()) }
}

/// Returns the cores that the calling thread may use, at least one.
pub fn allowed() -> Vec<u32> {
    let mut affinity = GROUP_AFFINITY::default();
    // SAFETY: the pseudo handle of the calling thread is always valid, and the call writes one structure that outlives it.
    let result = unsafe { GetThreadGroupAffinity(GetCurrentThread(), &raw mut affinity) };
    if result == 0 || affinity.Mask == 0 {
        return vec![0];
    }
    let first = u32::from(affinity.Group) * GROUP;
    (0..GROUP).filter(|core| affinity.Mask >> core & 1 == 1).map(|core| first + core).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinned_thread_has_one_core() {
        let pinned = std::thread::spawn(|| {
            let last = *allowed().last().expect("one at least");
            (pin(last).map(|()| allowed()), last)
        });
        let (cores, last) = pinned.join().expect("it ends");
        assert_eq!(cores.expect("the core is there"), [last]);
    }

    #[test]
    fn missing_core_is_named() {
        let error =
            std::thread::spawn(|| pin(60 * GROUP)).join().expect("it ends").expect_err("no machine has 3,841 cores");
        assert!(error.to_string().contains("core 3840"), "{error}");
    }
}
