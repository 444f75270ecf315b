//! What a process gives up before it answers anyone: other programs, code made at run time, libraries of other hosts, privileges.
//!
//! Nothing of it can be taken back while the process lives. It binds the whole process. Files stay within the rights of its user:
//! Windows takes those from a process only when it is started.

use crate::Error;
pub use crate::kept_rights::KeptRights;
use std::ffi::c_void;
use std::fmt;
use std::mem;
use std::ptr;
use windows_sys::Win32::Foundation::{CloseHandle, HANDLE, LUID};
use windows_sys::Win32::Security::{
    AdjustTokenPrivileges, GetTokenInformation, LUID_AND_ATTRIBUTES, LookupPrivilegeValueW, SE_CHANGE_NOTIFY_NAME,
    SE_PRIVILEGE_REMOVED, TOKEN_ADJUST_PRIVILEGES, TOKEN_PRIVILEGES, TOKEN_QUERY, TokenPrivileges,
};
use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_ACTIVE_PROCESS, JOBOBJECT_BASIC_LIMIT_INFORMATION,
    JobObjectBasicLimitInformation, SetInformationJobObject,
};
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, OpenProcessToken, PROCESS_MITIGATION_POLICY, ProcessDynamicCodePolicy, ProcessImageLoadPolicy,
    SetProcessMitigationPolicy,
};

/// Bit of PROCESS_MITIGATION_DYNAMIC_CODE_POLICY: ProhibitDynamicCode.
const PROHIBIT_DYNAMIC_CODE: u32 = 1;
/// Bits of PROCESS_MITIGATION_IMAGE_LOAD_POLICY: NoRemoteImages and NoLowMandatoryLabelImages.
const NO_FOREIGN_IMAGES: u32 = 1 | 1 << 1;
/// Privileges of a token, at most.
const MAX_PRIVILEGES: usize = 64;

/// Whether [`confine`] takes anything away.
pub const CONFINES: bool = true;

/// Restrictions in force after a process has confined itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Confined {
    in_force: Vec<&'static str>,
    /// Restrictions that the system refused, with the reason.
    refused: Vec<String>,
}

impl Confined {
    fn note(&mut self, restriction: &'static str, result: Result<(), Error>) {
        match result {
            Ok(()) => self.in_force.push(restriction),
            Err(error) => self.refused.push(format!("{restriction} ({error})")),
        }
    }
}

/// Formats one line: the restrictions in force, the missing ones, and the reasons.
impl fmt::Display for Confined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("files not confined (Windows confines them by the rights of the user)")?;
        for restriction in &self.in_force {
            write!(f, ", {restriction}")?;
        }
        if !self.refused.is_empty() {
            write!(f, "; refused: {}", self.refused.join(", "))?;
        }
        Ok(())
    }
}

/// Gives up what no agent needs. What the system does not have is left out, and shown by the result.
///
/// # Errors
/// None on this system.
pub fn confine(_kept: &KeptRights) -> Result<Confined, Error> {
    let mut confined = Confined::default();
    confined.note("no programs", forbid_programs());
    confined.note("no code made at run time", set_policy(ProcessDynamicCodePolicy, PROHIBIT_DYNAMIC_CODE));
    confined.note("no libraries of other hosts", set_policy(ProcessImageLoadPolicy, NO_FOREIGN_IMAGES));
    confined.note("no privileges", remove_privileges());
    Ok(confined)
}

/// Puts this process into a job that has room for no other process.
fn forbid_programs() -> Result<(), Error> {
    let limits = JOBOBJECT_BASIC_LIMIT_INFORMATION {
        LimitFlags: JOB_OBJECT_LIMIT_ACTIVE_PROCESS,
        ActiveProcessLimit: 1,
        ..JOBOBJECT_BASIC_LIMIT_INFORMATION::default()
    };
    // SAFETY: both pointers may be null: the job has no name, and nothing inherits it.
    let job = unsafe { CreateJobObjectW(ptr::null(), ptr::null()) };
    if job.is_null() {
        return Err(Error::last("CreateJobObject", "this process"));
    }
    // SAFETY: the job is open, and the system reads a structure of this size that outlives the call.
    let limited = unsafe {
        SetInformationJobObject(
            job,
            JobObjectBasicLimitInformation,
            (&raw const limits).cast(),
            mem::size_of_val(&limits) as u32,
        )
    };
    // SAFETY: the job is open, and the pseudo handle of this process is always valid.
    let result = if limited != 0 && unsafe { AssignProcessToJobObject(job, GetCurrentProcess()) } != 0 {
        Ok(())
    } else {
        Err(Error::last("AssignProcessToJobObject", "this process"))
    };
    // The job lives as long as a process is in it.
    // SAFETY: the job is open and is not used again.
    unsafe { CloseHandle(job) };
    result
}

/// Sets the flags of a mitigation policy.
fn set_policy(policy: PROCESS_MITIGATION_POLICY, flags: u32) -> Result<(), Error> {
    // SAFETY: the structures of both policies are one u32 of flags, which outlives the call.
    let result =
        unsafe { SetProcessMitigationPolicy(policy, ptr::from_ref(&flags).cast::<c_void>(), mem::size_of::<u32>()) };
    if result == 0 { Err(Error::last("SetProcessMitigationPolicy", "this process")) } else { Ok(()) }
}

/// Privileges as calls take them, with room for [`MAX_PRIVILEGES`]. It begins as TOKEN_PRIVILEGES does.
#[repr(C)]
struct Privileges {
    count: u32,
    entries: [LUID_AND_ATTRIBUTES; MAX_PRIVILEGES],
}

/// Removes all privileges of this process but that of passing through folders, which every user has.
fn remove_privileges() -> Result<(), Error> {
    let mut token = ptr::null_mut();
    // SAFETY: the pseudo handle of this process is always valid, and the system writes a handle into a live variable.
    if unsafe { OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY | TOKEN_ADJUST_PRIVILEGES, &raw mut token) } == 0 {
        return Err(Error::last("OpenProcessToken", "this process"));
    }
    let result = remove_from(token);
    // SAFETY: the token is open and is not used again.
    unsafe { CloseHandle(token) };
    result
}

fn remove_from(token: HANDLE) -> Result<(), Error> {
    let mut passing = LUID::default();
    // SAFETY: the name ends with a zero, and the system writes into a live structure.
    if unsafe { LookupPrivilegeValueW(ptr::null(), SE_CHANGE_NOTIFY_NAME, &raw mut passing) } == 0 {
        return Err(Error::last("LookupPrivilegeValue", "SeChangeNotifyPrivilege"));
    }
    let mut privileges = Privileges { count: 0, entries: [LUID_AND_ATTRIBUTES::default(); MAX_PRIVILEGES] };
    let mut written = 0;
    // SAFETY: the token is open, and the system writes at most the size of the live structure into it.
    let read = unsafe {
        GetTokenInformation(
            token,
            TokenPrivileges,
            (&raw mut privileges).cast(),
            mem::size_of_val(&privileges) as u32,
            &raw mut written,
        )
    };
    if read == 0 {
        return Err(Error::last("GetTokenInformation", "this process"));
    }
    for entry in privileges.entries.iter_mut().take(privileges.count as usize) {
        let is_kept = (entry.Luid.LowPart, entry.Luid.HighPart) == (passing.LowPart, passing.HighPart);
        if !is_kept {
            entry.Attributes = SE_PRIVILEGE_REMOVED;
        }
    }
    // SAFETY: the token is open; the structure begins as TOKEN_PRIVILEGES does and has `count` entries.
    let removed = unsafe {
        AdjustTokenPrivileges(
            token,
            0,
            (&raw const privileges).cast::<TOKEN_PRIVILEGES>(),
            0,
            ptr::null_mut(),
            ptr::null_mut(),
        )
    };
    if removed == 0 { Err(Error::last("AdjustTokenPrivileges", "this process")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const CONFINED: &str = "LINERATE_TEST_CONFINED";

    #[test]
    fn confined_process_starts_no_program() {
        if std::env::var_os(CONFINED).is_none() {
            let output = Command::new(std::env::current_exe().expect("this program"))
                .args(["--exact", "windows::confinement::tests::confined_process_starts_no_program", "--nocapture"])
                .env(CONFINED, "1")
                .output()
                .expect("starts");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            return;
        }
        let confined = confine(&KeptRights::default()).expect("confined");
        assert!(confined.to_string().contains("files not confined"), "{confined}");
        std::thread::spawn(|| std::net::TcpListener::bind("127.0.0.1:0").expect("binds")).join().expect("runs");
        let refused = Command::new("cmd").args(["/c", "exit"]).status();
        // Wine 8 does not count the processes of a job.
        let is_wine = std::env::var_os("WINEPREFIX").is_some();
        assert!(is_wine || refused.is_err(), "{confined}");
    }
}
