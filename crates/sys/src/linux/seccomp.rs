//! System calls that a thread keeps, for itself and all that it starts (seccomp(2)).

use crate::Error;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, sock_filter,
};
use std::collections::BTreeMap;
use std::io;

/// System calls that a thread keeps. All others fail with EPERM.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedCalls {
    /// Numbers of calls (`libc::SYS_...`), each with alternatives: a call passes if all conditions of one of them hold, or if it has none.
    pub calls: BTreeMap<i64, Vec<Vec<Condition>>>,
    /// Numbers of calls that fail as on a kernel that does not have them (ENOSYS), so that libraries fall back to others.
    pub absent: Vec<i64>,
}

/// A condition on an argument of a call. The argument is its position, from 0; its lower 32 bits are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// The argument has this value.
    Is(u8, u32),
    /// The argument has another value.
    IsNot(u8, u32),
    /// The bits of the mask (the second number) have the value of the third.
    Bits(u8, u32, u32),
}

impl AllowedCalls {
    /// Leaves the calling thread, and all that it starts, these calls. Calls without conditions cost no more than the kernel's look into a
    /// bitmap (Linux 5.11).
    ///
    /// # Errors
    /// The kernel has no such filters, or this processor's calls are not known here.
    pub fn apply(&self) -> Result<(), Error> {
        set_no_new_privileges()?;
        let mut rules = BTreeMap::new();
        for (call, alternatives) in &self.calls {
            let alternatives = alternatives.iter().map(|conditions| rule(conditions));
            rules.insert(*call, alternatives.collect::<Result<Vec<_>, _>>().map_err(not_compiled)?);
        }
        let allowed = compiled(rules, SeccompAction::Allow, errno(libc::EPERM)).map_err(not_compiled)?;
        install(&[without_x32(), allowed].concat())?;
        // A filter has one action for all calls that it does not name. Of two refusals the later filter's counts.
        let absent: BTreeMap<_, _> = self.absent.iter().map(|number| (*number, Vec::new())).collect();
        if !absent.is_empty() {
            install(&compiled(absent, errno(libc::ENOSYS), SeccompAction::Allow).map_err(not_compiled)?)?;
        }
        Ok(())
    }
}

/// Returns the ways out of this process that the calling thread still has. It tries each in a way that changes nothing. For tests of
/// what confinement leaves.
pub fn ways_out() -> Vec<&'static str> {
    let parent = nix::unistd::getppid().as_raw();
    let mut limit = [0_u64; 2];
    // SAFETY: the call takes numbers.
    let unix = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    let mut pair = [-1; 2];
    // SAFETY: the kernel writes two descriptors, for which there is room.
    let paired = unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_DGRAM, 0, pair.as_mut_ptr()) };
    // SAFETY: the calls take numbers; one makes a segment that is not attached.
    let segment = unsafe { libc::shmget(libc::IPC_PRIVATE, 4_096, 0o600) };
    // SAFETY: as above; one makes a queue.
    let queue = unsafe { libc::msgget(libc::IPC_PRIVATE, 0o600) };
    for descriptor in [unix, pair[0], pair[1]].into_iter().filter(|descriptor| *descriptor >= 0) {
        // SAFETY: the descriptor was made here, and nothing else has it.
        unsafe { libc::close(descriptor) };
    }
    if segment >= 0 {
        // SAFETY: removes the segment that was made here.
        unsafe { libc::shmctl(segment, libc::IPC_RMID, std::ptr::null_mut()) };
    }
    if queue >= 0 {
        // SAFETY: removes the queue that was made here.
        unsafe { libc::msgctl(queue, libc::IPC_RMID, std::ptr::null_mut()) };
    }
    let none = std::ptr::null::<libc::c_void>();
    let (limit_kind, limit) = (libc::RLIMIT_NOFILE, limit.as_mut_ptr());
    // SAFETY: without a new limit the kernel only writes the two numbers of the old one, for which there is room.
    let limits = unsafe { libc::syscall(libc::SYS_prlimit64, parent, limit_kind, none, limit) };
    // SAFETY: signal 0 is not sent; the kernel only checks whether it could be.
    let signals = unsafe { libc::kill(parent, 0) };
    // SAFETY: a call with numbers. Without a descriptor it does nothing.
    let typed = unsafe { libc::ioctl(-1, libc::TIOCSTI, none) };
    let terminal = typed == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::EPERM);
    // SAFETY: as above.
    let owner = unsafe { libc::fcntl(-1, libc::F_SETOWN, parent) };
    let owner = owner == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::EPERM);
    // SAFETY: the calls take numbers, and open nothing that they keep.
    let process = unsafe { libc::syscall(libc::SYS_pidfd_open, parent, 0) };
    if let Ok(process) = i32::try_from(process)
        && process >= 0
    {
        // SAFETY: the descriptor was made here, and nothing else has it.
        unsafe { libc::close(process) };
    }
    [
        ("socket(AF_UNIX)", unix >= 0),
        ("socketpair(AF_UNIX)", paired >= 0),
        ("shmget", segment >= 0),
        ("msgget", queue >= 0),
        ("prlimit64", limits >= 0),
        ("kill", signals >= 0),
        ("ioctl(TIOCSTI)", terminal),
        ("fcntl(F_SETOWN)", owner),
        ("pidfd_open", process >= 0),
    ]
    .into_iter()
    .filter_map(|(way, is_open)| is_open.then_some(way))
    .collect()
}

/// Returns how many filters of system calls bind the calling thread (`Seccomp_filters` in proc_pid_status(5)); none if this
/// kernel has no filters or does not tell.
pub fn filters() -> Option<u32> {
    let status = std::fs::read_to_string("/proc/thread-self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:"))?.trim().parse().ok()
}

fn rule(conditions: &[Condition]) -> Result<SeccompRule, seccompiler::BackendError> {
    let conditions = conditions.iter().map(|condition| {
        let (argument, operator, value) = match *condition {
            Condition::Is(argument, value) => (argument, SeccompCmpOp::Eq, value),
            Condition::IsNot(argument, value) => (argument, SeccompCmpOp::Ne, value),
            Condition::Bits(argument, mask, value) => (argument, SeccompCmpOp::MaskedEq(mask.into()), value),
        };
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value.into())
    });
    SeccompRule::new(conditions.collect::<Result<_, _>>()?)
}

fn errno(number: libc::c_int) -> SeccompAction {
    SeccompAction::Errno(number.cast_unsigned())
}

/// Compiles a filter of what happens to the calls that match `rules`, and to all others.
fn compiled(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    matching: SeccompAction,
    others: SeccompAction,
) -> Result<BpfProgram, seccompiler::BackendError> {
    let processor = TargetArch::try_from(std::env::consts::ARCH)?;
    BpfProgram::try_from(SeccompFilter::new(rules, others, matching, processor)?)
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

    fn failed(result: i64) -> Option<i32> {
        (result < 0).then(|| io::Error::last_os_error().raw_os_error()).flatten()
    }

    /// Calls that a thread of a test makes, without conditions.
    fn usual() -> BTreeMap<i64, Vec<Vec<Condition>>> {
        let mut calls: BTreeMap<i64, Vec<Vec<Condition>>> = (0..600).map(|number| (number, Vec::new())).collect();
        for number in [libc::SYS_getpriority, libc::SYS_shmget, libc::SYS_msgget, libc::SYS_socketpair, libc::SYS_kill]
        {
            calls.remove(&number);
        }
        calls.remove(&libc::SYS_pidfd_open);
        calls.insert(libc::SYS_socket, vec![vec![Condition::Is(0, libc::AF_INET.cast_unsigned())]]);
        calls.insert(libc::SYS_prlimit64, vec![vec![Condition::Is(0, 0)]]);
        let terminal = vec![Condition::IsNot(1, libc::TIOCSTI as u32), Condition::IsNot(1, libc::TIOCLINUX as u32)];
        calls.insert(libc::SYS_ioctl, vec![terminal]);
        calls.insert(libc::SYS_fcntl, vec![vec![Condition::IsNot(1, libc::F_SETOWN.cast_unsigned())]]);
        calls.insert(libc::SYS_clone, vec![vec![Condition::Bits(0, libc::CLONE_NEWUSER.cast_unsigned(), 0)]]);
        calls
    }

    #[test]
    fn only_allowed_calls_pass() {
        assert!(ways_out().contains(&"socket(AF_UNIX)"), "{:?}", ways_out());
        let allowed = AllowedCalls { calls: usual(), absent: vec![libc::SYS_getrusage] };
        std::thread::spawn(move || {
            allowed.apply().expect("applied");
            assert!(filters().is_some_and(|count| count >= 2));
            // SAFETY: the call takes two numbers.
            assert_eq!(failed(unsafe { libc::syscall(libc::SYS_getpriority, 0, 0) }), Some(libc::EPERM));
            // SAFETY: the call takes a number, and would write to a buffer that is large enough.
            let usage = unsafe { libc::syscall(libc::SYS_getrusage, 0, [0_u64; 64].as_mut_ptr()) };
            assert_eq!(failed(usage), Some(libc::ENOSYS));
            #[cfg(target_arch = "x86_64")]
            {
                // SAFETY: the call takes no arguments; by its other number.
                let other = unsafe { libc::syscall(libc::SYS_getpid | 0x4000_0000) };
                assert_eq!(failed(other), Some(libc::EPERM));
            }
            assert!(std::net::UdpSocket::bind("127.0.0.1:0").is_ok());
            assert_eq!(std::net::UdpSocket::bind("[::1]:0").expect_err("IPv6").raw_os_error(), Some(libc::EPERM));
            // SAFETY: without memory of its own the child has a copy of this thread's; it would end at once.
            let child = unsafe { libc::syscall(libc::SYS_clone, libc::CLONE_NEWUSER | libc::SIGCHLD, 0, 0, 0, 0) };
            if child == 0 {
                // SAFETY: ends the child without running anything else in it.
                unsafe { libc::_exit(0) };
            }
            assert_eq!(failed(child), Some(libc::EPERM));
            assert_eq!(ways_out(), <[&str; 0]>::default());
            // A thread is no namespace.
            std::thread::spawn(|| ()).join().expect("a thread starts");
        })
        .join()
        .expect("the thread ends well");
    }
}
