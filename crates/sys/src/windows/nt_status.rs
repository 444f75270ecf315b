//! Results of the calls of ntdll.

use crate::Error;
use std::io;
use windows_sys::Win32::Foundation::{NTSTATUS, RtlNtStatusToDosError};

impl Error {
    /// `call` on `object` failed with a status of the kernel.
    pub(crate) fn nt(call: &'static str, object: impl Into<String>, status: NTSTATUS) -> Self {
        // SAFETY: the function takes any status.
        let number = unsafe { RtlNtStatusToDosError(status) };
        Self::new(call, object, io::Error::from_raw_os_error(number.cast_signed()))
    }
}
