//! What a process gives up before it answers anyone: capabilities, files, programs, system calls.
//!
//! Nothing of it can be taken back while the process lives. It binds the calling thread and all threads that this one starts.

use crate::Error;
use crate::capability::{CapabilitySet, KernelCapability};
pub use crate::kept_rights::KeptRights;
use crate::landlock::{self, FolderRights};
use crate::seccomp::{AllowedCalls, Condition};
use crate::{bpf, thread};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// Restrictions in force after a process has confined itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confined {
    /// The version of Landlock; none if this kernel has none.
    pub landlock: Option<u32>,
    /// Folders that it may write, with what is below them.
    pub folders: Vec<PathBuf>,
    /// Allowed folders that are not there: they stay out of reach, also when they come.
    pub missing: Vec<PathBuf>,
    /// Reason why no filter of system calls is in force. `None` if one is.
    pub unfiltered: Option<String>,
    /// The capabilities left.
    pub capabilities: CapabilitySet,
}

/// Gives up all but `kept`. What the kernel does not have is left out, and shown by the result.
///
/// # Errors
/// A folder cannot be opened, or the kernel refuses what it has.
pub fn confine(kept: &KeptRights) -> Result<Confined, Error> {
    // Paths below /proc are not written later.
    if kept.frames {
        thread::hold_session_order();
        bpf::lift_memory_limit();
    }
    let (folders, missing): (Vec<_>, Vec<_>) = kept.writes.iter().cloned().partition(|path| path.exists());
    let mut rules: Vec<(&Path, FolderRights)> = ["/proc", "/sys"]
        .into_iter()
        .map(Path::new)
        .filter(|path| path.is_dir())
        .chain(kept.reads.iter().map(PathBuf::as_path))
        .map(|path| (path, FolderRights::Read))
        .collect();
    rules.extend(folders.iter().map(|path| (path.as_path(), FolderRights::Write)));
    let landlock = landlock::restrict(&rules)?;
    // Before the filter: dropping what may be inherited takes prctl(2), and this must not fail for want of it.
    let capabilities = capabilities(kept).keep_only()?;
    let unfiltered = allowed(kept.frames).apply().err().map(|error| error.to_string());
    Ok(Confined { landlock, folders, missing, unfiltered, capabilities })
}

fn capabilities(rights: &KeptRights) -> CapabilitySet {
    use KernelCapability as Kernel;
    let mut kept = Vec::new();
    if rights.frames {
        // Packet sockets, programs at interfaces, an even pace, and the empty network namespace that a sending
        // program runs in. The last one needs CAP_SYS_ADMIN; Landlock and the filter forbid most else that it
        // permits.
        kept.extend([Kernel::NetRaw, Kernel::NetAdmin, Kernel::Bpf, Kernel::Perfmon, Kernel::SysNice]);
        kept.push(Kernel::SysAdmin);
    }
    if rights.net_admin {
        kept.push(Kernel::NetAdmin);
    }
    if rights.low_ports {
        kept.push(Kernel::NetBindService);
    }
    if rights.files_of_all_users {
        // Files of all users below the folders, and times and permissions of those written.
        kept.extend([Kernel::DacOverride, Kernel::DacReadSearch, Kernel::Fowner, Kernel::Fsetid, Kernel::Chown]);
    }
    kept.into_iter().collect()
}

/// Flags of clone(2) that make namespaces.
const NAMESPACES: libc::c_int = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

/// Calls that the engines, the API and the libraries below them make, whatever their arguments.
const USED: &[libc::c_long] = {
    use libc as number;
    &[
        // Memory.
        number::SYS_brk,
        number::SYS_madvise,
        number::SYS_membarrier,
        number::SYS_memfd_create,
        number::SYS_mincore,
        number::SYS_mlock,
        number::SYS_mmap,
        number::SYS_mprotect,
        number::SYS_mremap,
        number::SYS_msync,
        number::SYS_munlock,
        number::SYS_munmap,
        // Threads of this process, and its end.
        number::SYS_exit,
        number::SYS_exit_group,
        number::SYS_futex,
        number::SYS_get_robust_list,
        number::SYS_getcpu,
        number::SYS_getrusage,
        number::SYS_gettid,
        number::SYS_restart_syscall,
        number::SYS_rseq,
        number::SYS_rt_sigaction,
        number::SYS_rt_sigprocmask,
        number::SYS_rt_sigreturn,
        number::SYS_rt_sigtimedwait,
        number::SYS_sched_getaffinity,
        number::SYS_sched_getparam,
        number::SYS_sched_getscheduler,
        number::SYS_sched_yield,
        number::SYS_set_robust_list,
        number::SYS_set_tid_address,
        number::SYS_sigaltstack,
        // Who and where this process is.
        number::SYS_capget,
        number::SYS_getegid,
        number::SYS_geteuid,
        number::SYS_getgid,
        number::SYS_getpgid,
        number::SYS_getpid,
        number::SYS_getppid,
        number::SYS_getpriority,
        number::SYS_getrandom,
        number::SYS_getsid,
        number::SYS_getuid,
        number::SYS_sysinfo,
        number::SYS_uname,
        // What it gives up.
        number::SYS_capset,
        number::SYS_landlock_add_rule,
        number::SYS_landlock_create_ruleset,
        number::SYS_landlock_restrict_self,
        number::SYS_prctl,
        number::SYS_seccomp,
        // Time. Setting the clock takes a capability that is given up.
        number::SYS_adjtimex,
        number::SYS_clock_adjtime,
        number::SYS_clock_getres,
        number::SYS_clock_gettime,
        number::SYS_clock_nanosleep,
        number::SYS_gettimeofday,
        number::SYS_nanosleep,
        number::SYS_timerfd_create,
        number::SYS_timerfd_gettime,
        number::SYS_timerfd_settime,
        // Descriptors.
        number::SYS_close,
        number::SYS_close_range,
        number::SYS_dup,
        number::SYS_dup3,
        number::SYS_epoll_create1,
        number::SYS_epoll_ctl,
        number::SYS_epoll_pwait,
        number::SYS_epoll_pwait2,
        number::SYS_eventfd2,
        number::SYS_pipe2,
        number::SYS_ppoll,
        number::SYS_pselect6,
        // Files.
        number::SYS_copy_file_range,
        number::SYS_faccessat,
        number::SYS_faccessat2,
        number::SYS_fadvise64,
        number::SYS_fallocate,
        number::SYS_fchdir,
        number::SYS_fchmod,
        number::SYS_fchmodat,
        number::SYS_fchown,
        number::SYS_fchownat,
        number::SYS_fdatasync,
        number::SYS_flock,
        number::SYS_fstat,
        number::SYS_fstatfs,
        number::SYS_fsync,
        number::SYS_ftruncate,
        number::SYS_getcwd,
        number::SYS_getdents64,
        number::SYS_linkat,
        number::SYS_lseek,
        number::SYS_mkdirat,
        number::SYS_newfstatat,
        number::SYS_openat,
        number::SYS_openat2,
        number::SYS_pread64,
        number::SYS_preadv,
        number::SYS_preadv2,
        number::SYS_pwrite64,
        number::SYS_pwritev,
        number::SYS_pwritev2,
        number::SYS_read,
        number::SYS_readlinkat,
        number::SYS_readv,
        number::SYS_renameat,
        number::SYS_renameat2,
        number::SYS_sendfile,
        number::SYS_splice,
        number::SYS_statfs,
        number::SYS_statx,
        number::SYS_symlinkat,
        number::SYS_sync,
        number::SYS_sync_file_range,
        number::SYS_syncfs,
        number::SYS_truncate,
        number::SYS_umask,
        number::SYS_unlinkat,
        number::SYS_utimensat,
        number::SYS_write,
        number::SYS_writev,
        // Sockets, once they are made.
        number::SYS_accept,
        number::SYS_accept4,
        number::SYS_bind,
        number::SYS_connect,
        number::SYS_getpeername,
        number::SYS_getsockname,
        number::SYS_getsockopt,
        number::SYS_listen,
        number::SYS_recvfrom,
        number::SYS_recvmmsg,
        number::SYS_recvmsg,
        number::SYS_sendmmsg,
        number::SYS_sendmsg,
        number::SYS_sendto,
        number::SYS_setsockopt,
        number::SYS_shutdown,
    ]
};

/// Older forms of the same calls, which x86-64 has besides.
#[cfg(target_arch = "x86_64")]
const OLDER: &[libc::c_long] = {
    use libc as number;
    &[
        number::SYS_access,
        number::SYS_arch_prctl,
        number::SYS_chmod,
        number::SYS_chown,
        number::SYS_dup2,
        number::SYS_epoll_wait,
        number::SYS_getdents,
        number::SYS_getpgrp,
        number::SYS_getrlimit,
        number::SYS_lchown,
        number::SYS_link,
        number::SYS_lstat,
        number::SYS_mkdir,
        number::SYS_open,
        number::SYS_pipe,
        number::SYS_poll,
        number::SYS_readlink,
        number::SYS_rename,
        number::SYS_rmdir,
        number::SYS_select,
        number::SYS_setrlimit,
        number::SYS_stat,
        number::SYS_symlink,
        number::SYS_time,
        number::SYS_unlink,
        number::SYS_utimes,
    ]
};
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[libc::c_long] = &[];

/// The system calls that are kept; with `frames` also those for raw frames. What is not listed could reach other
/// processes, the host or parts of the kernel that no engine needs.
fn allowed(frames: bool) -> AllowedCalls {
    use Condition::{Bits, Is, IsNot};
    use libc as number;
    // The numbers of processes and flags have 31 bits.
    let value = |number: libc::c_int| number.cast_unsigned();
    let mut calls: BTreeMap<i64, Vec<Vec<Condition>>> =
        USED.iter().chain(OLDER).map(|call| (*call, Vec::new())).collect();
    calls.insert(number::SYS_socket, sockets(frames));
    // Threads. Namespaces only where raw frames need one.
    calls.insert(number::SYS_clone, vec![vec![Bits(0, value(NAMESPACES), 0)]]);
    // This process, or the calling thread.
    let own = value(std::process::id().cast_signed());
    calls.insert(number::SYS_tgkill, vec![vec![Is(0, own)]]);
    calls.insert(number::SYS_prlimit64, vec![vec![Is(0, 0)]]);
    calls.insert(number::SYS_sched_setaffinity, vec![vec![Is(0, 0)]]);
    // Neither typing into a terminal, which root's shell may read, nor signals to others when a descriptor is ready.
    let requests = [number::TIOCSTI as u32, number::TIOCLINUX as u32, FIOSETOWN, SIOCSPGRP];
    calls.insert(number::SYS_ioctl, vec![requests.map(|request| IsNot(1, request)).to_vec()]);
    let commands = [value(number::F_SETOWN), F_SETSIG, F_SETOWN_EX];
    calls.insert(number::SYS_fcntl, vec![commands.map(|command| IsNot(1, command)).to_vec()]);
    if frames {
        calls.insert(number::SYS_bpf, Vec::new());
        // PRIO_PROCESS of the caller itself; the type of that constant differs between C libraries.
        calls.insert(number::SYS_setpriority, vec![vec![Is(0, 0), Is(1, 0)]]);
        calls.insert(number::SYS_sched_setscheduler, vec![vec![Is(0, 0)]]);
        calls.insert(number::SYS_unshare, vec![vec![Is(0, value(number::CLONE_NEWNET))]]);
        calls.insert(number::SYS_setns, vec![vec![Is(1, value(number::CLONE_NEWNET))]]);
    }
    // The flags of clone3(2) are in memory, where a filter cannot look: threads are started by clone(2) instead.
    AllowedCalls { calls, absent: vec![number::SYS_clone3] }
}

// Linux, asm-generic/sockios.h and asm-generic/fcntl.h; crate libc lacks some of them for musl.
const FIOSETOWN: u32 = 0x8901;
const SIOCSPGRP: u32 = 0x8902;
const F_SETSIG: u32 = 10;
const F_SETOWN_EX: u32 = 15;

/// The sockets that are made: TCP and UDP, unprivileged ping sockets, the kernel's tables of links and addresses, and packets with `frames`.
/// Local sockets (AF_UNIX) lead to services of the host that trust their callers.
fn sockets(frames: bool) -> Vec<Vec<Condition>> {
    use Condition::{Bits, Is};
    use libc as number;
    let value = |number: libc::c_int| number.cast_unsigned();
    // SOCK_CLOEXEC and SOCK_NONBLOCK are above the type.
    const TYPE: u32 = 0xf;
    let mut sockets = Vec::new();
    for family in [number::AF_INET, number::AF_INET6] {
        for (kind, protocols) in
            [(number::SOCK_STREAM, [0, number::IPPROTO_TCP]), (number::SOCK_DGRAM, [0, number::IPPROTO_UDP])]
        {
            for protocol in protocols {
                sockets.push(vec![Is(0, value(family)), Bits(1, TYPE, value(kind)), Is(2, value(protocol))]);
            }
        }
    }
    for (family, protocol) in [(number::AF_INET, number::IPPROTO_ICMP), (number::AF_INET6, number::IPPROTO_ICMPV6)] {
        sockets.push(vec![Is(0, value(family)), Bits(1, TYPE, value(number::SOCK_DGRAM)), Is(2, value(protocol))]);
    }
    sockets.push(vec![Is(0, value(number::AF_NETLINK)), Is(2, value(number::NETLINK_ROUTE))]);
    if frames {
        sockets.push(vec![Is(0, value(number::AF_PACKET))]);
    }
    sockets
}

/// Formats one line: the restrictions in force, the missing ones, and the reasons.
impl fmt::Display for Confined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.landlock {
            None => {
                f.write_str("files not confined (this kernel has no Landlock: it needs Linux 5.13 and lsm=landlock)")?
            }
            Some(version) if self.folders.is_empty() => write!(f, "writes no files (Landlock {version})")?,
            Some(version) => {
                write!(f, "writes files below {} only (Landlock {version})", listed(&self.folders))?;
            }
        }
        match &self.unfiltered {
            None => f.write_str(", no programs (seccomp)")?,
            Some(why) => write!(f, ", system calls not filtered ({why})")?,
        }
        write!(f, ", capabilities: {}", self.capabilities)?;
        if !self.missing.is_empty() && self.landlock.is_some() {
            write!(f, "; not there: {}: make it, and start the agent again", listed(&self.missing))?;
        }
        Ok(())
    }
}

fn listed(folders: &[PathBuf]) -> String {
    folders.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_landlock_is_told() {
        let confined = Confined {
            landlock: None,
            folders: vec!["/srv".into()],
            missing: vec!["/nonesuch".into()],
            unfiltered: Some("seccomp: not there".into()),
            capabilities: CapabilitySet::default(),
        };
        let said = confined.to_string();
        for part in ["files not confined", "no Landlock", "system calls not filtered", "capabilities: none"] {
            assert!(said.contains(part), "{said}");
        }
        let confined = Confined { landlock: Some(6), unfiltered: None, ..confined };
        let said = "writes files below /srv only (Landlock 6), no programs (seccomp), capabilities: none; not there: /nonesuch: make it, \
                    and start the agent again";
        assert_eq!(confined.to_string(), said);
    }
}
