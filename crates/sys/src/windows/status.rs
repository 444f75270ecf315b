//! Results of calls that return a status.

use crate::Error;
use std::io;
use windows_sys::Win32::Foundation::{NTSTATUS, RtlNtStatusToDosError};

/// Checks the error number that a call of the Windows API returned; zero is success.
pub(crate) fn check(call: &'static str, number: u32) -> Result<(), Error> {
    let source = io::Error::from_raw_os_error(number.cast_signed());
    if number == 0 { Ok(()) } else { Err(Error::new(call, "this system", source)) }
}

/// Checks the status that a call of ntdll returned.
pub(crate) fn check_nt(call: &'static str, status: NTSTATUS) -> Result<(), Error> {
    // SAFETY: the function takes any status.
    if status >= 0 { Ok(()) } else { check(call, unsafe { RtlNtStatusToDosError(status) }) }
}
