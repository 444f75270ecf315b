//! Calls of ntdll on files and folders. They take a name and the handle of the folder that it is in, which no call of the Windows API does.

use crate::windows::acl::Private;
use std::ffi::c_void;
use std::io;
use std::mem;
use std::os::windows::io::{AsRawHandle as _, BorrowedHandle, FromRawHandle as _, OwnedHandle};
use std::ptr;
use windows_sys::Wdk::Foundation::OBJECT_ATTRIBUTES;
use windows_sys::Wdk::Storage::FileSystem::{
    FILE_INFORMATION_CLASS, FILE_OPEN_FOR_BACKUP_INTENT, FILE_OPEN_REPARSE_POINT, FILE_SYNCHRONOUS_IO_NONALERT,
    FileFsSizeInformation, FileFullDirectoryInformation, NtCreateFile, NtQueryDirectoryFile, NtQueryInformationFile,
    NtQueryVolumeInformationFile, NtSetInformationFile,
};
use windows_sys::Wdk::System::SystemServices::FILE_FS_SIZE_INFORMATION;
use windows_sys::Win32::Foundation::{
    HANDLE, NTSTATUS, OBJ_CASE_INSENSITIVE, RtlNtStatusToDosError, STATUS_FILE_IS_A_DIRECTORY,
    STATUS_INVALID_INFO_CLASS, STATUS_INVALID_PARAMETER, STATUS_NO_MORE_FILES, STATUS_NO_SUCH_FILE,
    STATUS_NOT_IMPLEMENTED, STATUS_NOT_SUPPORTED, UNICODE_STRING,
};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_ATTRIBUTE_NORMAL, FILE_SHARE_DELETE, FILE_SHARE_READ, FILE_SHARE_WRITE, SYNCHRONIZE,
};
use windows_sys::Win32::System::IO::IO_STATUS_BLOCK;

/// Others may do anything with an open file.
pub(super) const SHARE_ALL: u32 = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;

/// How a name is opened.
#[derive(Debug, Clone, Copy)]
pub(super) struct Opening {
    /// Rights of the handle, SYNCHRONIZE aside.
    pub(super) access: u32,
    /// Rights that other handles may have.
    pub(super) share: u32,
    /// FILE_OPEN or FILE_CREATE.
    pub(super) disposition: u32,
    /// FILE_DIRECTORY_FILE, FILE_NON_DIRECTORY_FILE or neither.
    pub(super) kind: u32,
}

/// Opens `name` in `folder`, and a link instead of what it leads to. An empty name opens the folder itself. The name must be a component
/// of a path.
pub(super) fn open(folder: BorrowedHandle<'_>, name: &str, opening: Opening) -> io::Result<OwnedHandle> {
    create(folder, name, opening, None)
}

/// Opens like [`open`], and gives what is made the `permissions`, or without them those that its folder gives.
pub(super) fn create(
    folder: BorrowedHandle<'_>,
    name: &str,
    opening: Opening,
    permissions: Option<&Private>,
) -> io::Result<OwnedHandle> {
    let units: Vec<u16> = name.encode_utf16().collect();
    let name = unicode(&units)?;
    let attributes = OBJECT_ATTRIBUTES {
        Length: mem::size_of::<OBJECT_ATTRIBUTES>() as u32,
        RootDirectory: raw(folder),
        ObjectName: &raw const name,
        Attributes: OBJ_CASE_INSENSITIVE,
        SecurityDescriptor: permissions
            .map_or(ptr::null(), |permissions| permissions.attributes().lpSecurityDescriptor.cast()),
        ..Default::default()
    };
    let options = FILE_SYNCHRONOUS_IO_NONALERT | FILE_OPEN_REPARSE_POINT | FILE_OPEN_FOR_BACKUP_INTENT;
    let mut handle = ptr::null_mut();
    let mut result = IO_STATUS_BLOCK::default();
    // SAFETY: the attributes, the name and the permissions in them and the name's characters outlive the call, which writes one handle and one status block. The
    // folder's handle is borrowed for the call.
    let status = unsafe {
        NtCreateFile(
            &raw mut handle,
            opening.access | SYNCHRONIZE,
            &raw const attributes,
            &raw mut result,
            ptr::null(),
            FILE_ATTRIBUTE_NORMAL,
            opening.share,
            opening.disposition,
            options | opening.kind,
            ptr::null(),
            0,
        )
    };
    check(status)?;
    // SAFETY: the call succeeded, so that the handle is open and nobody else's.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

/// A structure of information about a file: integers and booleans, without a pointer.
///
/// # Safety
/// Every pattern of bytes that the system writes must be a value of it, and all bytes that it reads must be initialised.
pub(super) unsafe trait Information: Default {}

/// Reads information of `class` about `file`.
pub(super) fn query<T: Information>(file: BorrowedHandle<'_>, class: FILE_INFORMATION_CLASS) -> io::Result<T> {
    let mut value = T::default();
    let mut result = IO_STATUS_BLOCK::default();
    // SAFETY: the system writes at most the size of the live value, and what it writes is a value of the type.
    let status = unsafe {
        NtQueryInformationFile(
            raw(file),
            &raw mut result,
            ptr::from_mut(&mut value).cast(),
            mem::size_of::<T>() as u32,
            class,
        )
    };
    check(status)?;
    Ok(value)
}

/// Changes information of `class` about `file`.
pub(super) fn set<T: Information>(
    file: BorrowedHandle<'_>,
    class: FILE_INFORMATION_CLASS,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the system reads the size of a live value.
    unsafe { set_raw(file, class, ptr::from_ref(value).cast(), mem::size_of::<T>()) }
}

/// Gives `file` another name in `folder`: with FileRenameInformation and `flags` 0 or 1 (replaces what has the name), or with
/// FileRenameInformationEx and its flags.
pub(super) fn rename(
    file: BorrowedHandle<'_>,
    folder: BorrowedHandle<'_>,
    name: &str,
    class: FILE_INFORMATION_CLASS,
    flags: u32,
) -> io::Result<()> {
    // FILE_RENAME_INFORMATION: flags, handle of the folder, bytes of the name, the name.
    const HANDLE_AT: usize = mem::size_of::<HANDLE>();
    const LENGTH_AT: usize = 2 * HANDLE_AT;
    const NAME_AT: usize = LENGTH_AT + 4;
    let units: Vec<u16> = name.encode_utf16().collect();
    let mut bytes = vec![0_u8; NAME_AT];
    bytes[..4].copy_from_slice(&flags.to_ne_bytes());
    bytes[HANDLE_AT..LENGTH_AT].copy_from_slice(&(raw(folder) as usize).to_ne_bytes());
    bytes[LENGTH_AT..NAME_AT].copy_from_slice(&(2 * units.len() as u32).to_ne_bytes());
    bytes.extend(units.iter().flat_map(|unit| unit.to_ne_bytes()));
    // The structure is as aligned as its handle.
    let words = bytes.chunks(mem::size_of::<u64>()).map(|chunk| {
        let mut word = [0; mem::size_of::<u64>()];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_ne_bytes(word)
    });
    let structure: Vec<u64> = words.collect();
    // SAFETY: the system reads `bytes.len()` bytes, which the live and aligned copy has. The folder's handle is borrowed for the call.
    unsafe { set_raw(file, class, structure.as_ptr().cast(), bytes.len()) }
}

/// # Safety
/// `value` points to `bytes` initialised bytes, which are what the class asks for.
unsafe fn set_raw(
    file: BorrowedHandle<'_>,
    class: FILE_INFORMATION_CLASS,
    value: *const c_void,
    bytes: usize,
) -> io::Result<()> {
    let mut result = IO_STATUS_BLOCK::default();
    // SAFETY: the caller answers for the value; the status block is live.
    let status = unsafe { NtSetInformationFile(raw(file), &raw mut result, value, bytes as u32, class) };
    check(status)
}

/// Reads the next entries of `folder`, which match `filter` if there is one, as FILE_FULL_DIR_INFORMATION into `buffer`. Returns their
/// bytes, or `None` after the last one. The filter counts in the first call with a handle.
pub(super) fn read_folder<'a>(
    folder: BorrowedHandle<'_>,
    filter: Option<&str>,
    buffer: &'a mut [u64],
) -> io::Result<Option<&'a [u8]>> {
    let units: Vec<u16> = filter.unwrap_or_default().encode_utf16().collect();
    let name = unicode(&units)?;
    let mut result = IO_STATUS_BLOCK::default();
    // SAFETY: the system writes at most the size of the live buffer of integers. The name and its characters outlive the call.
    let status = unsafe {
        NtQueryDirectoryFile(
            raw(folder),
            ptr::null_mut(),
            None,
            ptr::null(),
            &raw mut result,
            buffer.as_mut_ptr().cast(),
            mem::size_of_val(buffer) as u32,
            FileFullDirectoryInformation,
            false,
            if filter.is_some() { &raw const name } else { ptr::null() },
            false,
        )
    };
    if matches!(status, STATUS_NO_MORE_FILES | STATUS_NO_SUCH_FILE) {
        return Ok(None);
    }
    check(status)?;
    let bytes = result.Information.min(mem::size_of_val(buffer));
    // SAFETY: the bytes are those of a live slice of integers, borrowed as long as the result.
    Ok(Some(unsafe { std::slice::from_raw_parts(buffer.as_ptr().cast(), bytes) }))
}

/// Returns how many bytes this user may still write to the volume of `folder`.
pub(super) fn free_bytes(folder: BorrowedHandle<'_>) -> io::Result<u64> {
    let mut size = FILE_FS_SIZE_INFORMATION::default();
    let mut result = IO_STATUS_BLOCK::default();
    // SAFETY: the system writes at most the size of the live structure of integers.
    let status = unsafe {
        NtQueryVolumeInformationFile(
            raw(folder),
            &raw mut result,
            ptr::from_mut(&mut size).cast(),
            mem::size_of::<FILE_FS_SIZE_INFORMATION>() as u32,
            FileFsSizeInformation,
        )
    };
    check(status)?;
    let units = u64::try_from(size.AvailableAllocationUnits).unwrap_or_default();
    Ok(units.saturating_mul(u64::from(size.SectorsPerAllocationUnit) * u64::from(size.BytesPerSector)))
}

/// Converts a status to an error. The kind is `IsADirectory` for a folder in the place of a file, and `Unsupported` if the file system
/// does not know the class of information.
fn check(status: NTSTATUS) -> io::Result<()> {
    match status {
        0.. => Ok(()),
        STATUS_FILE_IS_A_DIRECTORY => Err(io::ErrorKind::IsADirectory.into()),
        STATUS_INVALID_INFO_CLASS | STATUS_INVALID_PARAMETER | STATUS_NOT_IMPLEMENTED | STATUS_NOT_SUPPORTED => {
            Err(io::ErrorKind::Unsupported.into())
        }
        // SAFETY: the function takes any status.
        failed => Err(io::Error::from_raw_os_error(unsafe { RtlNtStatusToDosError(failed) }.cast_signed())),
    }
}

fn unicode(units: &[u16]) -> io::Result<UNICODE_STRING> {
    let bytes = u16::try_from(mem::size_of_val(units)).map_err(|_| io::ErrorKind::InvalidFilename)?;
    Ok(UNICODE_STRING { Length: bytes, MaximumLength: bytes, Buffer: units.as_ptr().cast_mut() })
}

fn raw(handle: BorrowedHandle<'_>) -> HANDLE {
    handle.as_raw_handle()
}
