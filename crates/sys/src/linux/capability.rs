//! Capabilities of the calling thread, capabilities(7). A thread that it starts has the same.

use crate::Error;
use std::fmt;
use std::io;

/// The layout of [`Header`] and [`Sets`] (`_LINUX_CAPABILITY_VERSION_3` in linux/capability.h).
const VERSION: u32 = 0x2008_0522;

/// One capability, by the kernel's name and number (linux/capability.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum KernelCapability {
    Chown = 0,
    DacOverride = 1,
    DacReadSearch = 2,
    Fowner = 3,
    Fsetid = 4,
    Setpcap = 8,
    NetBindService = 10,
    NetAdmin = 12,
    NetRaw = 13,
    SysAdmin = 21,
    SysNice = 23,
    Perfmon = 38,
    Bpf = 39,
}

/// The kernel's names, by number (Linux 5.9 has all of them).
const NAMES: [&str; 41] = [
    "chown",
    "dac_override",
    "dac_read_search",
    "fowner",
    "fsetid",
    "kill",
    "setgid",
    "setuid",
    "setpcap",
    "linux_immutable",
    "net_bind_service",
    "net_broadcast",
    "net_admin",
    "net_raw",
    "ipc_lock",
    "ipc_owner",
    "sys_module",
    "sys_rawio",
    "sys_chroot",
    "sys_ptrace",
    "sys_pacct",
    "sys_admin",
    "sys_boot",
    "sys_nice",
    "sys_resource",
    "sys_time",
    "sys_tty_config",
    "mknod",
    "lease",
    "audit_write",
    "audit_control",
    "setfcap",
    "mac_override",
    "mac_admin",
    "syslog",
    "wake_alarm",
    "block_suspend",
    "audit_read",
    "perfmon",
    "bpf",
    "checkpoint_restore",
];

/// A set of capabilities.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CapabilitySet(u64);

impl CapabilitySet {
    /// Returns the permitted capabilities of the calling thread.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn held() -> Result<Self, Error> {
        let sets = read()?;
        Ok(Self(u64::from(sets[0].permitted) | u64::from(sets[1].permitted) << 32))
    }

    /// Returns the capabilities that this kernel knows.
    ///
    /// # Errors
    /// It does not tell their number.
    pub fn known() -> Result<Self, Error> {
        let file = "/proc/sys/kernel/cap_last_cap";
        let text = std::fs::read_to_string(file).map_err(|error| Error::new("read", file, error))?;
        let last: u32 = text.trim().parse().map_err(|error| Error::new("read", file, io::Error::other(error)))?;
        Ok(Self(u64::MAX.checked_shr(63_u32.saturating_sub(last)).unwrap_or(u64::MAX)))
    }

    /// Returns whether it has `capability`.
    pub fn has(self, capability: KernelCapability) -> bool {
        self.0 >> capability as u8 & 1 != 0
    }

    /// Returns whether it has none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Takes from the calling thread all capabilities but those of this set, and returns what it is left with. No
    /// program that it starts can get the others back, if it may shrink its bounding set (`CAP_SETPCAP`).
    ///
    /// # Errors
    /// The kernel refuses. Some may be gone already.
    pub fn keep_only(self) -> Result<Self, Error> {
        let held = Self::held()?;
        let kept = Self(held.0 & self.0);
        if held.has(KernelCapability::Setpcap) {
            for number in (0..u64::BITS).filter(|number| self.0 >> number & 1 == 0) {
                if let Err(error) = drop_from_bounding_set(number) {
                    // A number that this kernel does not know, as all that follow. The list must not end sooner.
                    if error.raw_os_error() == Some(libc::EINVAL) && Self::known()?.0 >> number & 1 == 0 {
                        break;
                    }
                    return Err(Error::new("prctl(PR_CAPBSET_DROP)", format!("capability {number}"), error));
                }
            }
        }
        let [low, high] = [kept.0 as u32, (kept.0 >> 32) as u32];
        let set = |bits| Sets { effective: bits, permitted: bits, inheritable: 0 };
        // What is neither permitted nor inheritable leaves the ambient set by itself.
        write(&[set(low), set(high)])?;
        Ok(kept)
    }
}

impl FromIterator<KernelCapability> for CapabilitySet {
    fn from_iter<T: IntoIterator<Item = KernelCapability>>(all: T) -> Self {
        Self(all.into_iter().fold(0, |set, capability| set | 1 << capability as u8))
    }
}

/// `net_raw, bpf`, as capsh(1) and systemd.exec(5) name them without their prefix; `none` for the empty set.
impl fmt::Display for CapabilitySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        let names = (0..64).filter(|number| self.0 >> number & 1 != 0);
        let names = names.map(|number| NAMES.get(number).map_or_else(|| number.to_string(), ToString::to_string));
        f.write_str(&names.collect::<Vec<_>>().join(", "))
    }
}

/// `struct __user_cap_header_struct` of linux/capability.h.
#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

/// `struct __user_cap_data_struct` of linux/capability.h: 32 capabilities.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Sets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Takes a capability, by its number, from what programs that the calling thread starts can get.
fn drop_from_bounding_set(number: u32) -> io::Result<()> {
    // The arguments of prctl(2) are read as unsigned long, whatever is passed.
    const UNUSED: libc::c_ulong = 0;
    // SAFETY: prctl(PR_CAPBSET_DROP) takes a number and no memory.
    match unsafe { libc::prctl(libc::PR_CAPBSET_DROP, libc::c_ulong::from(number), UNUSED, UNUSED, UNUSED) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn read() -> Result<[Sets; 2], Error> {
    let mut header = Header { version: VERSION, pid: 0 };
    let mut sets = [Sets::default(); 2];
    // SAFETY: the kernel writes the header's version and, at this version, two sets; both outlive the call.
    if unsafe { libc::syscall(libc::SYS_capget, &raw mut header, sets.as_mut_ptr()) } != 0 {
        return Err(Error::last("capget", "the calling thread"));
    }
    Ok(sets)
}

fn write(sets: &[Sets; 2]) -> Result<(), Error> {
    let mut header = Header { version: VERSION, pid: 0 };
    // SAFETY: at this version the kernel reads two sets, which outlive the call.
    if unsafe { libc::syscall(libc::SYS_capset, &raw mut header, sets.as_ptr()) } != 0 {
        return Err(Error::last("capset", "the calling thread"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use KernelCapability::{Bpf, NetRaw, SysAdmin};

    #[test]
    fn a_set_is_shown_by_the_kernels_names() {
        let set: CapabilitySet = [Bpf, NetRaw].into_iter().collect();
        assert_eq!(set.to_string(), "net_raw, bpf");
        assert_eq!(CapabilitySet::default().to_string(), "none");
        assert!(set.has(Bpf) && !set.has(SysAdmin));
        let known = CapabilitySet::known().expect("known");
        assert!(known.has(SysAdmin) && known != CapabilitySet(u64::MAX), "{known:?}");
    }

    #[test]
    fn only_a_number_that_the_kernel_does_not_know_is_invalid() {
        let known = CapabilitySet::known().expect("known");
        // All threads of a process have bounding sets of their own.
        std::thread::spawn(move || {
            for number in 0..u64::BITS {
                let error = drop_from_bounding_set(number).err().and_then(|error| error.raw_os_error());
                // EPERM comes first where the thread may not shrink its set.
                let is_known = known.0 >> number & 1 != 0;
                let expected = if is_known { None } else { Some(libc::EINVAL) };
                assert!(error == expected || error == Some(libc::EPERM), "capability {number}: {error:?}");
            }
        })
        .join()
        .expect("the thread ends well");
    }

    #[test]
    fn a_thread_keeps_only_what_it_names_and_had() {
        std::thread::spawn(|| {
            let before = CapabilitySet::held().expect("held");
            let wanted: CapabilitySet = [NetRaw].into_iter().collect();
            let kept = wanted.keep_only().expect("dropped");
            assert_eq!(kept, CapabilitySet(before.0 & wanted.0));
            assert_eq!(CapabilitySet::held().expect("held"), kept);
            let status = std::fs::read_to_string("/proc/thread-self/status").expect("status");
            let field = |name: &str| {
                let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a field").trim();
                u64::from_str_radix(line, 16).expect("a mask")
            };
            assert_eq!((field("CapEff:"), field("CapInh:"), field("CapAmb:")), (kept.0, 0, 0));
            if before.has(KernelCapability::Setpcap) {
                assert_eq!(field("CapBnd:") & !wanted.0, 0);
            }
        })
        .join()
        .expect("the thread ends well");
        // Only that thread.
        if nix::unistd::geteuid().is_root() {
            assert!(!CapabilitySet::held().expect("held").is_empty());
        }
    }
}
