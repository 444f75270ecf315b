//! System calls that a thread gives up, for itself and all that it starts (seccomp(2)).

use crate::Error;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, sock_filter,
};
use std::collections::BTreeMap;
use std::io;

/// System calls that are refused.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RefusedCalls {
    /// Their numbers (`libc::SYS_...`). They fail with EPERM.
    pub calls: Vec<i64>,
    /// Numbers of calls that fail as on a kernel that does not have them (ENOSYS), so that libraries fall back to others.
    pub absent: Vec<i64>,
    /// The only address families (`libc::AF_...`) of new sockets; none allows all.
    pub families: Option<Vec<i32>>,
    /// New namespaces of every kind but network (clone(2), unshare(2), setns(2)).
    pub namespaces: bool,
    /// With `namespaces`: network namespaces as well. clone(2) makes none in either case.
    pub network_namespaces: bool,
}

impl RefusedCalls {
    /// Refuses these calls to the calling thread and all that it starts. Calls that are not refused cost no more than the
    /// kernel's look into a bitmap (Linux 5.11).
    ///
    /// # Errors
    /// The kernel has no such filters, or this processor's calls are not known here.
    pub fn apply(&self) -> Result<(), Error> {
        set_no_new_privileges()?;
        let refused = compiled(self.rules()?, libc::EPERM).map_err(not_compiled)?;
        install(&[without_x32(), refused].concat())?;
        // Each filter has one error, so that these need one of their own.
        let absent: BTreeMap<_, _> = self.absent.iter().map(|number| (*number, Vec::new())).collect();
        if !absent.is_empty() {
            install(&compiled(absent, libc::ENOSYS).map_err(not_compiled)?)?;
        }
        Ok(())
    }

    fn rules(&self) -> Result<BTreeMap<i64, Vec<SeccompRule>>, Error> {
        let mut rules: BTreeMap<_, _> = self.calls.iter().map(|number| (*number, Vec::new())).collect();
        let rule = |conditions| SeccompRule::new(conditions).map_err(not_compiled);
        if let Some(families) = &self.families {
            // All conditions of a rule must hold: the family is none of these.
            let others = families.iter().map(|family| condition(0, SeccompCmpOp::Ne, *family as u64));
            let others = others.collect::<Result<_, _>>().map_err(not_compiled)?;
            rules.insert(libc::SYS_socket, vec![rule(others)?]);
        }
        if self.namespaces {
            let net = u64::from(libc::CLONE_NEWNET.cast_unsigned());
            let has = |flag: u64| condition(0, SeccompCmpOp::MaskedEq(flag), flag).map_err(not_compiled);
            let spaces = NAMESPACES.iter().map(|flag| rule(vec![has(u64::from(flag.cast_unsigned()))?]));
            rules.insert(libc::SYS_clone, spaces.collect::<Result<_, _>>()?);
            for (call, flags) in [(libc::SYS_unshare, 0), (libc::SYS_setns, 1)] {
                let other = condition(flags, SeccompCmpOp::Ne, net).map_err(not_compiled)?;
                let other = if self.network_namespaces { Vec::new() } else { vec![rule(vec![other])?] };
                rules.insert(call, other);
            }
        }
        Ok(rules)
    }
}

/// Flags of clone(2).
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Returns how many filters of system calls bind the calling thread (`Seccomp_filters` in proc_pid_status(5)); none if this
/// kernel has no filters or does not tell.
pub fn filters() -> Option<u32> {
    let status = std::fs::read_to_string("/proc/thread-self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:"))?.trim().parse().ok()
}

/// On the argument at that place, from 0.
fn condition(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
}

fn compiled(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    errno: libc::c_int,
) -> Result<BpfProgram, seccompiler::BackendError> {
    let processor = TargetArch::try_from(std::env::consts::ARCH)?;
    let errno = SeccompAction::Errno(errno.cast_unsigned());
    BpfProgram::try_from(SeccompFilter::new(rules, SeccompAction::Allow, errno, processor)?)
}

/// What refuses the second set of numbers that x86-64 has for all calls (`__X32_SYSCALL_BIT`), which would evade every
/// other rule. Other processors have none.
fn without_x32() -> Vec<sock_filter> {
    const X32: u32 = 0x4000_0000;
    const REFUSE: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();
    if !cfg!(target_arch = "x86_64") {
        return Vec::new();
    }
    // The number is the first field of struct seccomp_data.
    vec![
        sock_filter { code: (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16, jt: 0, jf: 0, k: 0 },
        sock_filter { code: (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16, jt: 0, jf: 1, k: X32 },
        sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: REFUSE },
    ]
}

fn not_compiled(error: seccompiler::BackendError) -> Error {
    Error::new("seccomp", "a filter of system calls", io::Error::new(io::ErrorKind::Unsupported, error))
}

fn set_no_new_privileges() -> Result<(), Error> {
    // The arguments of prctl(2) are read as unsigned long, and all after the first must be zero.
    const SET: libc::c_ulong = 1;
    const UNUSED: libc::c_ulong = 0;
    // SAFETY: prctl(PR_SET_NO_NEW_PRIVS) takes numbers and no memory.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, SET, UNUSED, UNUSED, UNUSED) } != 0 {
        return Err(Error::last("prctl(PR_SET_NO_NEW_PRIVS)", "the calling thread"));
    }
    Ok(())
}

fn install(program: &[sock_filter]) -> Result<(), Error> {
    let filter = libc::sock_fprog {
        len: program.len().try_into().unwrap_or(u16::MAX),
        // The kernel only reads it.
        filter: program.as_ptr().cast_mut().cast(),
    };
    // Kernels before 5.16 otherwise slow the thread down, as if it ran foreign code (spec_store_bypass).
    let flags = libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    // SAFETY: the kernel copies the `len` instructions of 8 bytes behind `filter`, which outlive the call; the two crates'
    // sock_filter are both `struct sock_filter` of linux/filter.h.
    let done = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const filter) };
    if done != 0 {
        return Err(Error::last("seccomp(SECCOMP_SET_MODE_FILTER)", "the calling thread"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errno(result: i64) -> Option<i32> {
        (result < 0).then(|| io::Error::last_os_error().raw_os_error()).flatten()
    }

    #[test]
    fn refused_calls_fail_and_others_go_on() {
        let refused = RefusedCalls {
            calls: vec![libc::SYS_getpriority],
            absent: vec![libc::SYS_getrusage],
            families: Some(vec![libc::AF_INET, libc::AF_UNIX]),
            namespaces: true,
            network_namespaces: false,
        };
        std::thread::spawn(move || {
            let privileged = nix::unistd::geteuid().is_root();
            refused.apply().expect("applied");
            assert!(filters().is_some_and(|count| count >= 2));
            // SAFETY: the call takes two numbers.
            assert_eq!(errno(unsafe { libc::syscall(libc::SYS_getpriority, 0, 0) }), Some(libc::EPERM));
            // SAFETY: the call takes a number, and would write to a buffer that is large enough.
            let told = unsafe { libc::syscall(libc::SYS_getrusage, 0, [0_u64; 64].as_mut_ptr()) };
            assert_eq!(errno(told), Some(libc::ENOSYS));
            #[cfg(target_arch = "x86_64")]
            {
                // SAFETY: as above, by the call's other number.
                let other = unsafe { libc::syscall(libc::SYS_getpriority | 0x4000_0000, 0, 0) };
                assert_eq!(errno(other), Some(libc::EPERM));
            }
            assert!(std::net::UdpSocket::bind("127.0.0.1:0").is_ok());
            assert_eq!(std::net::UdpSocket::bind("[::1]:0").expect_err("IPv6").raw_os_error(), Some(libc::EPERM));
            // SAFETY: without memory of its own the child has a copy of this thread's; it would end at once.
            let child = unsafe { libc::syscall(libc::SYS_clone, libc::CLONE_NEWUSER | libc::SIGCHLD, 0, 0, 0, 0) };
            if child == 0 {
                // SAFETY: ends the child without running anything else in it.
                unsafe { libc::_exit(0) };
            }
            assert_eq!(errno(child), Some(libc::EPERM));
            let unshared = nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNS);
            assert_eq!(unshared, Err(nix::errno::Errno::EPERM));
            if privileged {
                nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).expect("that kind is allowed");
            }
            let refused = RefusedCalls { namespaces: true, network_namespaces: true, ..RefusedCalls::default() };
            refused.apply().expect("one more");
            let unshared = nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET);
            assert_eq!(unshared, Err(nix::errno::Errno::EPERM));
            // A thread is no namespace.
            std::thread::spawn(|| ()).join().expect("a thread starts");
        })
        .join()
        .expect("the thread ends well");
    }
}
