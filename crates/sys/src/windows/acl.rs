//! Owners and access control lists of files.

use super::wide::wide;
use std::ffi::c_void;
use std::io;
use std::mem;
use std::os::windows::io::{AsRawHandle as _, BorrowedHandle};
use std::path::Path;
use std::ptr;
use windows_sys::Win32::Foundation::{CloseHandle, GENERIC_ALL, GENERIC_READ, GENERIC_WRITE, LocalFree};
use windows_sys::Win32::Security::Authorization::{
    ConvertSidToStringSidW, ConvertStringSecurityDescriptorToSecurityDescriptorW, GetNamedSecurityInfoW,
    GetSecurityInfo, SDDL_REVISION_1, SE_FILE_OBJECT,
};
use windows_sys::Win32::Security::{
    ACCESS_ALLOWED_ACE, ACE_HEADER, ACL, DACL_SECURITY_INFORMATION, GetAce, GetTokenInformation, INHERIT_ONLY_ACE,
    LookupAccountSidW, OWNER_SECURITY_INFORMATION, PSECURITY_DESCRIPTOR, PSID, SECURITY_ATTRIBUTES, TOKEN_QUERY,
    TOKEN_USER, TokenUser,
};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_APPEND_DATA, FILE_DELETE_CHILD, FILE_READ_DATA, FILE_WRITE_DATA, WRITE_DAC, WRITE_OWNER,
};
use windows_sys::Win32::System::SystemServices::{ACCESS_ALLOWED_ACE_TYPE, ACCESS_ALLOWED_CALLBACK_ACE_TYPE};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

/// The system itself.
const SYSTEM: &str = "S-1-5-18";
/// Administrators, who can take any file.
pub(super) const ADMINISTRATORS: &str = "S-1-5-32-544";
/// Stands for the owner of the file.
const OWNER_RIGHTS: &str = "S-1-3-4";
/// Rights with which a file or folder can be changed, or given to others.
pub(super) const WRITES: u32 =
    FILE_WRITE_DATA | FILE_APPEND_DATA | FILE_DELETE_CHILD | WRITE_DAC | WRITE_OWNER | GENERIC_WRITE | GENERIC_ALL;
/// Rights with which a file can be read or changed.
pub(super) const READS_OR_WRITES: u32 = FILE_READ_DATA | GENERIC_READ | WRITES;
/// Characters of an account's name or of its domain's name, at most.
const MAX_NAME: usize = 256;

/// An account, or a group of accounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Account {
    /// Security identifier, as in `S-1-5-18`.
    pub(super) sid: String,
    /// Name with its domain, as in `BUILTIN\Users`, or the identifier if it has none.
    pub(super) name: String,
}

/// Owner of a file and rights on it.
pub(super) struct Permissions {
    /// Security identifier of the owner.
    pub(super) owner: String,
    /// Accounts with their rights. `None` if everybody may do everything, as on FAT.
    granted: Option<Vec<(Account, u32)>>,
}

impl Permissions {
    /// Reads those of the file or folder at `path`.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let path = wide(path)?;
        let mut owner: PSID = ptr::null_mut();
        let mut acl: *mut ACL = ptr::null_mut();
        let mut descriptor: PSECURITY_DESCRIPTOR = ptr::null_mut();
        // SAFETY: the path ends with a zero, and the system writes three pointers into live variables.
        let status = unsafe {
            GetNamedSecurityInfoW(
                path.as_ptr(),
                SE_FILE_OBJECT,
                OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION,
                &raw mut owner,
                ptr::null_mut(),
                &raw mut acl,
                ptr::null_mut(),
                &raw mut descriptor,
            )
        };
        if status != 0 {
            return Err(io::Error::from_raw_os_error(status.cast_signed()));
        }
        let _descriptor = Local(descriptor);
        // SAFETY: `owner` and `acl` point into the descriptor, which is freed when this returns.
        unsafe { Ok(Self { owner: sid_text(owner)?, granted: if acl.is_null() { None } else { Some(granted(acl)?) } }) }
    }

    /// Returns an account that has one of `rights` and is neither this user, nor the system, nor its administrators. `None` if no
    /// other has.
    pub(super) fn granted_to_others(&self, rights: u32) -> io::Result<Option<Account>> {
        let Some(granted) = &self.granted else {
            return Ok(Some(Account { sid: "S-1-1-0".to_owned(), name: "Everyone".to_owned() }));
        };
        let user = user()?;
        let trusted = [&user, SYSTEM, ADMINISTRATORS, OWNER_RIGHTS];
        let mut others = granted.iter().filter(|(account, _)| !trusted.contains(&account.sid.as_str()));
        Ok(others.find(|(_, mask)| mask & rights != 0).map(|(account, _)| account.clone()))
    }
}

/// Returns whether an open file or folder belongs to this user, or to the administrators.
pub(super) fn is_own(file: BorrowedHandle<'_>) -> io::Result<bool> {
    let mut owner: PSID = ptr::null_mut();
    let mut descriptor: PSECURITY_DESCRIPTOR = ptr::null_mut();
    // SAFETY: the handle is borrowed for the call, and the system writes two pointers into live variables.
    let status = unsafe {
        GetSecurityInfo(
            file.as_raw_handle(),
            SE_FILE_OBJECT,
            OWNER_SECURITY_INFORMATION,
            &raw mut owner,
            ptr::null_mut(),
            ptr::null_mut(),
            ptr::null_mut(),
            &raw mut descriptor,
        )
    };
    if status != 0 {
        return Err(io::Error::from_raw_os_error(status.cast_signed()));
    }
    let _descriptor = Local(descriptor);
    // SAFETY: `owner` points into the descriptor, which is freed when this returns.
    let owner = unsafe { sid_text(owner)? };
    Ok(owner == ADMINISTRATORS || owner == user()?)
}

/// Permissions of a new file: full access of this user, the system and its administrators, and of nobody else.
pub(super) struct Private(Local);

impl Private {
    /// Makes the permissions. With `inherited`, files in the new folder have them too.
    pub(super) fn new(inherited: bool) -> io::Result<Self> {
        let flags = if inherited { "OICI" } else { "" };
        let user = user()?;
        let entries = [SYSTEM, ADMINISTRATORS, &user].map(|sid| format!("(A;{flags};FA;;;{sid})"));
        let text = wide(format!("D:P{}", entries.concat()))?;
        let mut descriptor: PSECURITY_DESCRIPTOR = ptr::null_mut();
        // SAFETY: the text ends with a zero, and the system writes a pointer into a live variable.
        let result = unsafe {
            ConvertStringSecurityDescriptorToSecurityDescriptorW(
                text.as_ptr(),
                SDDL_REVISION_1,
                &raw mut descriptor,
                ptr::null_mut(),
            )
        };
        if result == 0 { Err(io::Error::last_os_error()) } else { Ok(Self(Local(descriptor))) }
    }

    /// Returns them as calls take them. They are valid as long as `self`.
    pub(super) fn attributes(&self) -> SECURITY_ATTRIBUTES {
        SECURITY_ATTRIBUTES {
            nLength: mem::size_of::<SECURITY_ATTRIBUTES>() as u32,
            lpSecurityDescriptor: self.0.0,
            bInheritHandle: 0,
        }
    }
}

/// Memory that the system allocated for the caller.
struct Local(*mut c_void);

impl Drop for Local {
    fn drop(&mut self) {
        // SAFETY: the system allocated it for its caller, and nothing else frees it.
        unsafe { LocalFree(self.0) };
    }
}

/// Returns the security identifier of this program's user.
pub(super) fn user() -> io::Result<String> {
    let mut token = ptr::null_mut();
    // SAFETY: the pseudo handle of this process is always valid, and the system writes a handle into a live variable.
    if unsafe { OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &raw mut token) } == 0 {
        return Err(io::Error::last_os_error());
    }
    // A TOKEN_USER and the identifier that it points to, which has at most 68 bytes. Aligned for pointers.
    let mut buffer = [0_u64; 32];
    let mut written = 0;
    // SAFETY: the token is open, and the system writes at most the size of the live array into it.
    let result = unsafe {
        GetTokenInformation(
            token,
            TokenUser,
            buffer.as_mut_ptr().cast(),
            mem::size_of_val(&buffer) as u32,
            &raw mut written,
        )
    };
    let failed = io::Error::last_os_error();
    // SAFETY: the token is open, and nothing else closes it.
    unsafe { CloseHandle(token) };
    if result == 0 {
        return Err(failed);
    }
    // SAFETY: the system wrote a TOKEN_USER, whose pointer leads into the array, which is live and aligned.
    unsafe { sid_text((*buffer.as_ptr().cast::<TOKEN_USER>()).User.Sid) }
}

/// Returns the entries of an access control list that grant rights on the file itself.
///
/// # Safety
/// `acl` points to a valid list.
unsafe fn granted(acl: *const ACL) -> io::Result<Vec<(Account, u32)>> {
    let mut granted = Vec::new();
    // SAFETY: the caller promises a valid list.
    for index in 0..unsafe { (*acl).AceCount }.into() {
        let mut entry = ptr::null_mut();
        // SAFETY: the list is valid, and the system writes a pointer into a live variable.
        if unsafe { GetAce(acl, index, &raw mut entry) } == 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: an entry begins with this header.
        let header = unsafe { *entry.cast::<ACE_HEADER>() };
        let grants = [ACCESS_ALLOWED_ACE_TYPE, ACCESS_ALLOWED_CALLBACK_ACE_TYPE].contains(&header.AceType.into());
        if !grants || u32::from(header.AceFlags) & INHERIT_ONLY_ACE != 0 {
            continue;
        }
        let entry = entry.cast::<ACCESS_ALLOWED_ACE>();
        // SAFETY: entries of both types have a mask at this place, and an identifier from `SidStart` on.
        unsafe {
            let sid: PSID = (&raw mut (*entry).SidStart).cast();
            granted.push((account(sid)?, (*entry).Mask));
        }
    }
    Ok(granted)
}

/// Returns the account of an identifier.
///
/// # Safety
/// `sid` points to a valid identifier.
unsafe fn account(sid: PSID) -> io::Result<Account> {
    // SAFETY: the caller promises a valid identifier.
    let text = unsafe { sid_text(sid)? };
    let mut name = [0; MAX_NAME];
    let mut domain = [0; MAX_NAME];
    let [mut name_length, mut domain_length] = [MAX_NAME as u32; 2];
    let mut kind = 0;
    // SAFETY: the identifier is valid; the system writes at most `MAX_NAME` characters into each live array, and three live integers.
    let found = unsafe {
        LookupAccountSidW(
            ptr::null(),
            sid,
            name.as_mut_ptr(),
            &raw mut name_length,
            domain.as_mut_ptr(),
            &raw mut domain_length,
            &raw mut kind,
        )
    };
    let written = |characters: &[u16], length: u32| String::from_utf16_lossy(&characters[..length as usize]);
    let name = match (found != 0, written(&domain, domain_length.min(MAX_NAME as u32))) {
        (false, _) => text.clone(),
        (true, domain) if domain.is_empty() => written(&name, name_length),
        (true, domain) => format!(r"{domain}\{}", written(&name, name_length)),
    };
    Ok(Account { sid: text, name })
}

/// Returns an identifier as text.
///
/// # Safety
/// `sid` points to a valid identifier.
unsafe fn sid_text(sid: PSID) -> io::Result<String> {
    let mut text = ptr::null_mut();
    // SAFETY: the caller promises a valid identifier, and the system writes a pointer into a live variable.
    if unsafe { ConvertSidToStringSidW(sid, &raw mut text) } == 0 {
        return Err(io::Error::last_os_error());
    }
    let _text = Local(text.cast());
    // SAFETY: the text ends with a zero, and is freed when this returns.
    let characters = (0..).map(|index| unsafe { *text.add(index) }).take_while(|character| *character != 0);
    Ok(String::from_utf16_lossy(&characters.collect::<Vec<u16>>()))
}
