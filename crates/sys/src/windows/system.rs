//! The system: version, memory, processor, and which start of which machine it is.

use super::status::check_nt;
use crate::Error;
use std::io;
use std::mem;
use std::path::Path;
use std::ptr;
use windows_sys::Wdk::System::SystemInformation::{NtQuerySystemInformation, SystemTimeOfDayInformation};
use windows_sys::Wdk::System::SystemServices::RtlGetVersion;
use windows_sys::Win32::System::Registry::{HKEY_LOCAL_MACHINE, RRF_RT_REG_SZ, RRF_SUBKEY_WOW6464KEY, RegGetValueW};
use windows_sys::Win32::System::SystemInformation::{
    ComputerNameDnsHostname, GetComputerNameExW, GlobalMemoryStatusEx, MEMORYSTATUSEX, OSVERSIONINFOW,
};

/// Characters of a value that is read, at most.
const MAX_CHARACTERS: usize = 512;

/// Returns name and release, as in `Windows 10.0.22631`.
pub fn version() -> String {
    let mut version =
        OSVERSIONINFOW { dwOSVersionInfoSize: mem::size_of::<OSVERSIONINFOW>() as u32, ..Default::default() };
    // SAFETY: the structure is live and has its size.
    unsafe { RtlGetVersion(&raw mut version) };
    format!("Windows {}.{}.{}", version.dwMajorVersion, version.dwMinorVersion, version.dwBuildNumber)
}

/// Returns the name of this host. `None` if it has none.
pub fn host_name() -> Option<String> {
    let mut name = [0_u16; MAX_CHARACTERS];
    let mut length = name.len() as u32;
    // SAFETY: the buffer is live and has that many characters.
    let read = unsafe { GetComputerNameExW(ComputerNameDnsHostname, name.as_mut_ptr(), &raw mut length) };
    let name = String::from_utf16_lossy(name.get(..length as usize)?);
    (read != 0 && !name.is_empty()).then_some(name)
}

/// Returns the command by which an administrator lets others reach `program` through this system's firewall. `None` if it has none that keeps
/// programs from listening.
pub fn firewall_rule(program: &Path) -> Option<String> {
    let program = program.display();
    Some(format!(r#"netsh advfirewall firewall add rule name=linerate dir=in action=allow program="{program}""#))
}

/// Returns the size of main memory in bytes.
///
/// # Errors
/// The call fails.
pub fn memory_bytes() -> Result<u64, Error> {
    let mut status = MEMORYSTATUSEX { dwLength: mem::size_of::<MEMORYSTATUSEX>() as u32, ..Default::default() };
    // SAFETY: the structure is live and has its length.
    let result = unsafe { GlobalMemoryStatusEx(&raw mut status) };
    if result == 0 { Err(Error::last("GlobalMemoryStatusEx", "main memory")) } else { Ok(status.ullTotalPhys) }
}

/// Returns the name of the processor. `None` if it is not known.
pub fn processor() -> Option<String> {
    text(r"HARDWARE\DESCRIPTION\System\CentralProcessor\0", "ProcessorNameString").ok()
}

/// Returns an identifier of this start of this machine: the machine's identifier, which copies of a virtual machine share, and the time of
/// the start.
///
/// # Errors
/// The call fails.
pub fn boot_id() -> Result<String, Error> {
    // SYSTEM_TIMEOFDAY_INFORMATION of winternl.h: the time of the start comes first.
    let mut times = [0_i64; 6];
    // SAFETY: the system writes at most `size_of_val(&times)` bytes into the live array of integers.
    let status = unsafe {
        NtQuerySystemInformation(
            SystemTimeOfDayInformation,
            ptr::from_mut(&mut times).cast(),
            mem::size_of_val(&times) as u32,
            ptr::null_mut(),
        )
    };
    check_nt("NtQuerySystemInformation", status)?;
    let machine = text(r"SOFTWARE\Microsoft\Cryptography", "MachineGuid")?;
    Ok(format!("{machine} {:x}", times[0]))
}

/// Reads a text of the registry.
fn text(key: &str, name: &str) -> Result<String, Error> {
    let wide = |text: &str| text.encode_utf16().chain([0]).collect::<Vec<u16>>();
    let (wide_key, wide_name) = (wide(key), wide(name));
    let mut value = [0_u16; MAX_CHARACTERS];
    let mut bytes = mem::size_of_val(&value) as u32;
    // SAFETY: both names end with a zero; the system writes at most `bytes` bytes into the live array of integers.
    let status = unsafe {
        RegGetValueW(
            HKEY_LOCAL_MACHINE,
            wide_key.as_ptr(),
            wide_name.as_ptr(),
            RRF_RT_REG_SZ | RRF_SUBKEY_WOW6464KEY,
            ptr::null_mut(),
            value.as_mut_ptr().cast(),
            &raw mut bytes,
        )
    };
    if status != 0 {
        return Err(Error::new(
            "RegGetValue",
            format!(r"{key}\{name}"),
            io::Error::from_raw_os_error(status.cast_signed()),
        ));
    }
    let characters = value.iter().copied().take_while(|character| *character != 0);
    Ok(String::from_utf16_lossy(&characters.collect::<Vec<u16>>()).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_is_described() {
        assert!(version().starts_with("Windows ") && !version().contains(" 0."), "{}", version());
        assert!(memory_bytes().expect("memory") > 64 << 20);
        assert_eq!(boot_id().expect("an identifier"), boot_id().expect("an identifier"));
        assert!(text(r"SOFTWARE\Nobody", "Nothing").is_err());
    }
}
