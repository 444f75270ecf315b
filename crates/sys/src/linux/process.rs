//! Child processes that do not outlive their parent, and processes known by more than a number that is used again.

use crate::Error;
use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// Where and how a child runs.
#[derive(Debug, Default)]
pub struct Placement<'a> {
    /// The user namespace it joins.
    pub user: Option<BorrowedFd<'a>>,
    /// The network namespace it joins.
    pub net: Option<BorrowedFd<'a>>,
    /// The mount namespace it joins; its working directory is then the root.
    pub mount: Option<BorrowedFd<'a>>,
    /// Descriptors it inherits, under the same numbers.
    pub inherited: Vec<BorrowedFd<'a>>,
    /// It leads a session of its own, so that Ctrl-C at the terminal does not reach it.
    pub own_session: bool,
    /// The kernel kills it when the thread that spawns it ends.
    pub ends_with_thread: bool,
}

/// Starts `command` as `placement` says.
pub fn spawn(command: &mut Command, placement: &Placement<'_>) -> Result<Child, Error> {
    let raw = |fd: &BorrowedFd<'_>| fd.as_raw_fd();
    let spaces: Vec<(RawFd, CloneFlags)> = [
        (placement.user.as_ref().map(raw), CloneFlags::CLONE_NEWUSER),
        (placement.net.as_ref().map(raw), CloneFlags::CLONE_NEWNET),
        (placement.mount.as_ref().map(raw), CloneFlags::CLONE_NEWNS),
    ]
    .into_iter()
    .filter_map(|(fd, flag)| Some((fd?, flag)))
    .collect();
    let inherited: Vec<RawFd> = placement.inherited.iter().map(raw).collect();
    let (own_session, ends_with_thread) = (placement.own_session, placement.ends_with_thread);
    let parent = nix::unistd::getpid();
    let prepare = move || -> io::Result<()> {
        for (fd, flag) in &spaces {
            // SAFETY: `placement` borrows the descriptor until `spawn` returns, which is after the child's exec.
            setns(unsafe { BorrowedFd::borrow_raw(*fd) }, *flag)?;
        }
        for fd in &inherited {
            // SAFETY: fcntl(F_SETFD) reads no memory; the descriptor is open as above, and this is the child's copy.
            if unsafe { libc::fcntl(*fd, libc::F_SETFD, 0) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        if own_session {
            nix::unistd::setsid()?;
        }
        // Last, because a change of credentials (by joining a user namespace) takes the signal back.
        if ends_with_thread {
            nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
            // The parent may have died before that.
            if nix::unistd::getppid() != parent {
                // Only a raw number reaches the parent.
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure only makes async-signal-safe system calls, reads what it owns and
    // allocates nothing (errors are raw numbers).
    unsafe { command.pre_exec(prepare) };
    command.spawn().map_err(|error| Error::new("spawn", command.get_program().to_string_lossy(), error))
}

/// Waits for a child that shares the terminal. SIGINT and SIGQUIT, which its keys send to both, end the child alone, as in
/// system(3).
///
/// # Errors
///
/// The system accepts no such disposition, or the child is not to be waited for.
pub fn wait_in_foreground(child: &mut Child) -> io::Result<ExitStatus> {
    let ignored = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
    let mut before = Vec::new();
    for signal in [Signal::SIGINT, Signal::SIGQUIT] {
        // SAFETY: no handler is installed, so nothing runs when the signal arrives.
        before.push((signal, unsafe { sigaction(signal, &ignored) }?));
    }
    let status = child.wait();
    for (signal, action) in before {
        // SAFETY: this restores the disposition that the process had.
        unsafe { sigaction(signal, &action) }?;
    }
    status
}

/// A descriptor of an anonymous file in memory, for a child's words: writing to it never blocks and it leaves nothing.
pub fn scratch_file(name: &str) -> Result<File, Error> {
    let flags = nix::sys::memfd::MFdFlags::MFD_CLOEXEC;
    nix::sys::memfd::memfd_create(name, flags).map(File::from).map_err(|error| Error::new("memfd_create", name, error))
}

/// Returns the value of an environment variable in the nearest ancestor of this process that has it. `None` if none has it, or
/// if this user may not see it.
pub fn variable_of_ancestor(name: &str) -> Option<String> {
    let mut process = std::os::unix::process::parent_id();
    while process > 1 {
        if let Ok(environment) = fs::read(format!("/proc/{process}/environ")) {
            let mut entries = environment.split(|byte| *byte == 0).map(String::from_utf8_lossy);
            let value = entries.find_map(|entry| Some(entry.strip_prefix(name)?.strip_prefix('=')?.to_owned()));
            if value.is_some() {
                return value;
            }
        }
        process = parent_of(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)?;
    }
    None
}

/// Returns the parent in the text of proc_pid_stat(5). The program's name in it may hold anything.
fn parent_of(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// A process by its number and the moment it started: numbers are used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessId {
    /// The kernel's number.
    pub pid: u32,
    /// Clock ticks from boot to its start (field 22 of proc_pid_stat(5)).
    pub started_ticks: u64,
}

impl ProcessId {
    /// The running process with number `pid`; none if there is none, or only its remains.
    pub fn of(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may hold spaces and parentheses itself.
        let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace();
        let state = fields.next()?;
        let started_ticks = fields.nth(18)?.parse().ok()?;
        (!matches!(state, "Z" | "X")).then_some(Self { pid, started_ticks })
    }

    /// It still runs.
    pub fn lives(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    /// Asks it to end (SIGTERM), waits for `grace`, then kills it and waits for that. Nothing happens to another process
    /// that got its number.
    pub fn end(self, grace: Duration) -> Result<(), Error> {
        let object = format!("process {}", self.pid);
        // SAFETY: pidfd_open(2) takes two integers and gives a new descriptor or -1.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, self.pid, 0) } as RawFd;
        if fd < 0 {
            let error = Error::last("pidfd_open", &object);
            return if self.lives() { Err(error) } else { Ok(()) };
        }
        // SAFETY: the descriptor is new and nobody else's.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // From here on the descriptor stands for one process: if it is the wrong one now, it always was.
        for (signal, timeout) in [(libc::SIGTERM, grace), (libc::SIGKILL, Duration::from_secs(5))] {
            if !self.lives() {
                return Ok(());
            }
            // SAFETY: pidfd_send_signal(2) with no siginfo takes integers and a null pointer.
            let sent = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd.as_raw_fd(), signal, 0usize, 0) };
            // Taken first: to look whether it lives reads files, which sets the error number anew.
            let error = (sent < 0).then(|| Error::last("pidfd_send_signal", &object));
            if let Some(error) = error
                && self.lives()
            {
                return Err(error);
            }
            if ended(fd.as_fd(), timeout) {
                return Ok(());
            }
        }
        Err(Error::new("pidfd_send_signal(SIGKILL)", object, io::ErrorKind::TimedOut))
    }
}

/// Waits until the process behind `fd` has ended, at most for `timeout`; false if it has not.
fn ended(fd: BorrowedFd<'_>, timeout: Duration) -> bool {
    let begun = Instant::now();
    loop {
        let left = timeout.saturating_sub(begun.elapsed());
        let mut wait = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: `wait` is one valid pollfd for the length of the call.
        let ready = unsafe { libc::poll(&mut wait, 1, left.as_millis().try_into().unwrap_or(i32::MAX)) };
        // A signal to this process says nothing about the other.
        if ready >= 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return ready > 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek};
    use std::process::Stdio;

    #[test]
    fn a_child_inherits_what_it_is_given_and_no_more() {
        let (given, kept) = (scratch_file("given").expect("memfd"), scratch_file("kept").expect("memfd"));
        let mut out = scratch_file("out").expect("memfd");
        let mut command = Command::new("sh");
        let test = |file: &File| format!("test -e /proc/self/fd/{} && echo yes || echo no", file.as_raw_fd());
        command.arg("-c").arg(format!("{}; {}", test(&given), test(&kept)));
        command.stdout(out.try_clone().expect("dup"));
        let placement = Placement { inherited: vec![given.as_fd()], ..Placement::default() };
        assert!(spawn(&mut command, &placement).expect("sh").wait().expect("wait").success());
        let mut text = String::new();
        out.rewind().and_then(|()| out.read_to_string(&mut text)).expect("read");
        assert_eq!(text, "yes\nno\n");
    }

    #[test]
    fn a_child_ends_with_the_thread_that_started_it() {
        let placement = Placement { ends_with_thread: true, ..Placement::default() };
        let start = move || spawn(Command::new("sleep").arg("60"), &placement).expect("sleep");
        let mut child = std::thread::spawn(start).join().expect("thread");
        let status = child.wait().expect("wait");
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGKILL));
    }

    #[test]
    fn parent_follows_the_name_of_the_program() {
        assert_eq!(parent_of("42 (a) b (c) S 7 42 42"), Some(7));
        assert_eq!(variable_of_ancestor("LINERATE_NO_SUCH_VARIABLE"), None);
    }

    #[test]
    fn a_process_is_known_by_its_start_too() {
        let mut child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().expect("sleep");
        let id = ProcessId::of(child.id()).expect("it runs");
        let other = ProcessId { started_ticks: id.started_ticks + 1, ..id };
        assert!(id.lives() && !other.lives());
        other.end(Duration::from_secs(1)).expect("nothing to do");
        assert!(id.lives(), "a process that only has the number was ended");
        id.end(Duration::from_secs(1)).expect("end");
        assert!(!id.lives());
        child.wait().expect("wait");
    }
}
