//! Values of the kernel by name, sysctl(3).

use crate::Error;
use std::ffi::{CStr, c_int, c_void};
use std::io;
use std::ptr;

/// Bytes beyond the announced length: tables of the kernel may grow meanwhile.
const SPARE_BYTES: usize = 4096;

/// Reads a value.
///
/// # Errors
/// The kernel has no such value, or does not show it to this user.
pub(super) fn bytes(name: &CStr) -> Result<Vec<u8>, Error> {
    read(&name.to_string_lossy(), |value, length| {
        // SAFETY: the name ends with a zero; `read` answers for the rest.
        unsafe { libc::sysctlbyname(name.as_ptr(), value, length, ptr::null_mut(), 0) }
    })
}

/// Reads a value by `call`, which takes a buffer and its length as sysctl(3) does.
fn read(name: &str, call: impl Fn(*mut c_void, *mut usize) -> c_int) -> Result<Vec<u8>, Error> {
    // Without a buffer the kernel only writes the length, to a live integer.
    let mut length = 0;
    if call(ptr::null_mut(), &raw mut length) != 0 {
        return Err(Error::last("sysctl", name));
    }
    // The kernel writes at most `length` bytes, which the buffer has.
    let mut value = vec![0_u8; length + SPARE_BYTES];
    let mut length = value.len();
    if call(value.as_mut_ptr().cast(), &raw mut length) != 0 {
        return Err(Error::last("sysctl", name));
    }
    value.truncate(length);
    Ok(value)
}

/// Reads a text.
///
/// # Errors
/// As [`bytes`].
pub(super) fn text(name: &CStr) -> Result<String, Error> {
    let value = bytes(name)?;
    let text = value.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(text).trim().to_owned())
}

/// Reads a number of 32 or 64 bits.
///
/// # Errors
/// As [`bytes`], and if the value is no number.
pub(super) fn number(name: &CStr) -> Result<u64, Error> {
    let value = bytes(name)?;
    let number = match value.len() {
        4 => value.try_into().ok().map(|bytes| u32::from_ne_bytes(bytes).into()),
        8 => value.try_into().ok().map(u64::from_ne_bytes),
        _ => None,
    };
    number.ok_or_else(|| Error::new("sysctl", name.to_string_lossy(), io::ErrorKind::InvalidData))
}

/// Reads the messages of NET_RT_IFLIST2, route(4): the state and the 64-bit counters of all interfaces.
///
/// # Errors
/// As [`bytes`].
#[cfg(target_os = "macos")]
pub(super) fn interface_list() -> Result<Vec<u8>, Error> {
    let parts = [libc::CTL_NET, libc::PF_ROUTE, 0, 0, libc::NET_RT_IFLIST2, 0];
    read("NET_RT_IFLIST2", |value, length| {
        // SAFETY: the name has this number of parts, which are only read; `read` answers for the rest.
        unsafe { libc::sysctl(parts.as_ptr().cast_mut(), parts.len() as u32, value, length, ptr::null_mut(), 0) }
    })
}
