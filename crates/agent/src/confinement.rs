//! What an agent gives up before it answers anyone: capabilities, files, programs, system calls.
//!
//! A fault in the code that reads foreign bytes is then worth what the agent's options allow, and no more. Nothing of it can be
//! taken back while the process lives. It binds the thread that starts the agent and all threads that this one starts; so an
//! agent that is to be confined is started before its process has others.

use crate::{AgentOptions, StartError};
use linerate_sys::bpf;
use linerate_sys::capability::{CapabilitySet, KernelCapability};
use linerate_sys::landlock::{self, FolderRights};
use linerate_sys::seccomp::RefusedCalls;
use linerate_sys::thread;
use std::fmt;
use std::path::{Path, PathBuf};

/// What a confined agent needs besides what its other options tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Folders that it reads, as that of its identity.
    pub reads: Vec<PathBuf>,
    /// Folders that it writes beside those of its engines, as that of its records.
    pub writes: Vec<PathBuf>,
    /// It binds ports below 1024: those that many NFS servers ask of their callers, or one that it was told to listen at.
    pub low_ports: bool,
    /// It keeps `CAP_NET_ADMIN`: for socket buffers beyond the system's limits, busy polling and all congestion controls.
    pub net_admin: bool,
}

/// What is in force after an agent has confined itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confined {
    /// The version of Landlock; none if this kernel has none.
    pub landlock: Option<u32>,
    /// Folders that it may write, with what is below them.
    pub folders: Vec<PathBuf>,
    /// Allowed folders that are not there: they stay out of reach, also when they come.
    pub missing: Vec<PathBuf>,
    /// Why no filter of system calls is in force; none if one is.
    pub unfiltered: Option<String>,
    /// The capabilities left.
    pub capabilities: CapabilitySet,
}

impl Confinement {
    /// Gives up all that an agent with these `options` does not need. What the kernel does not have is left out, and told by
    /// what is returned.
    ///
    /// # Errors
    /// A folder cannot be opened, or the kernel refuses what it has.
    pub(crate) fn apply(&self, options: &AgentOptions) -> Result<Confined, StartError> {
        // Paths below /proc are not written later.
        if !options.limits.frames.is_none() {
            thread::hold_session_order();
            bpf::lift_memory_limit();
        }
        if options.limits.cold_cache {
            linerate_copy::hold_cache_dropping();
        }
        // Some things are tried by means that are given up.
        linerate_observe::capabilities();

        let (folders, missing): (Vec<_>, Vec<_>) =
            written(options).into_iter().chain(self.writes.clone()).partition(|path| path.exists());
        let mut rules: Vec<(&Path, FolderRights)> = ["/proc", "/sys"]
            .into_iter()
            .map(Path::new)
            .filter(|path| path.is_dir())
            .chain(self.reads.iter().map(PathBuf::as_path))
            .map(|path| (path, FolderRights::Read))
            .collect();
        rules.extend(folders.iter().map(|path| (path.as_path(), FolderRights::Write)));
        let landlock = landlock::restrict(&rules).map_err(StartError::Confinement)?;
        // Before the filter: dropping what may be inherited takes prctl(2), and this must not fail for want of it.
        let capabilities = self.capabilities(options).keep_only().map_err(StartError::Confinement)?;
        let unfiltered = refused(!options.limits.frames.is_none()).apply().err().map(|error| error.to_string());
        Ok(Confined { landlock, folders, missing, unfiltered, capabilities })
    }

    fn capabilities(&self, options: &AgentOptions) -> CapabilitySet {
        use KernelCapability as Kernel;
        let mut kept = Vec::new();
        if !options.limits.frames.is_none() {
            // Packet sockets, programs at interfaces, an even pace, and the empty network namespace that a sending program runs
            // in. The last one needs CAP_SYS_ADMIN; Landlock and the filter forbid most else that it permits.
            kept.extend([Kernel::NetRaw, Kernel::NetAdmin, Kernel::Bpf, Kernel::Perfmon, Kernel::SysNice]);
            kept.push(Kernel::SysAdmin);
        }
        if self.net_admin {
            kept.push(Kernel::NetAdmin);
        }
        if self.low_ports {
            kept.push(Kernel::NetBindService);
        }
        if !written(options).is_empty() {
            // Files of all users below the folders, and times and permissions of those written.
            kept.extend([Kernel::DacOverride, Kernel::DacReadSearch, Kernel::Fowner, Kernel::Fsetid, Kernel::Chown]);
        }
        kept.into_iter().collect()
    }
}

/// Folders that engines may write.
fn written(options: &AgentOptions) -> Vec<PathBuf> {
    let engines = &options.engines;
    let mut all: Vec<PathBuf> = engines.folders.allowed.clone();
    all.extend(engines.folders.scratch.clone());
    all.extend(engines.nfs.directory.clone());
    all
}

/// The number of kexec_file_load(2) (Linux, asm/unistd_64.h and asm-generic/unistd.h), which crate libc lacks for musl on arm64.
const KEXEC_FILE_LOAD: libc::c_long = if cfg!(target_arch = "x86_64") { 320 } else { 294 };

/// System calls that no engine makes and that could harm the kernel, other processes or the host; most are rarely used
/// otherwise, and many were used in attacks.
fn refused(frames: bool) -> RefusedCalls {
    use libc as number;
    let mut calls = vec![
        // Other programs and processes.
        number::SYS_execve,
        number::SYS_execveat,
        number::SYS_ptrace,
        number::SYS_process_vm_readv,
        number::SYS_process_vm_writev,
        number::SYS_process_madvise,
        number::SYS_pidfd_getfd,
        number::SYS_kcmp,
        // The host.
        number::SYS_reboot,
        number::SYS_kexec_load,
        KEXEC_FILE_LOAD,
        number::SYS_init_module,
        number::SYS_finit_module,
        number::SYS_delete_module,
        number::SYS_swapon,
        number::SYS_swapoff,
        number::SYS_acct,
        number::SYS_quotactl,
        number::SYS_syslog,
        number::SYS_sethostname,
        number::SYS_setdomainname,
        number::SYS_settimeofday,
        number::SYS_clock_settime,
        number::SYS_adjtimex,
        number::SYS_clock_adjtime,
        number::SYS_vhangup,
        // File systems and namespaces.
        number::SYS_mount,
        number::SYS_umount2,
        number::SYS_pivot_root,
        number::SYS_chroot,
        number::SYS_move_mount,
        number::SYS_open_tree,
        number::SYS_fsopen,
        number::SYS_fsconfig,
        number::SYS_fsmount,
        number::SYS_fspick,
        number::SYS_mount_setattr,
        number::SYS_open_by_handle_at,
        number::SYS_fanotify_init,
        // Parts of the kernel with a long record of faults.
        number::SYS_perf_event_open,
        number::SYS_userfaultfd,
        number::SYS_io_uring_setup,
        number::SYS_io_uring_enter,
        number::SYS_io_uring_register,
        number::SYS_add_key,
        number::SYS_request_key,
        number::SYS_keyctl,
        number::SYS_personality,
    ];
    let mut families = vec![number::AF_UNIX, number::AF_INET, number::AF_INET6, number::AF_NETLINK];
    if frames {
        families.push(number::AF_PACKET);
    } else {
        calls.push(number::SYS_bpf);
    }
    // Its flags are in memory, where a filter cannot look: threads are started by clone(2) instead.
    RefusedCalls {
        calls,
        absent: vec![number::SYS_clone3],
        families: Some(families),
        namespaces: true,
        network_namespaces: !frames,
    }
}

/// One line: what is in force, and what is not and why.
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
