//! Settings of the console, and its keys.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::io::AsRawHandle as _;
use std::time::Duration;
use windows_sys::Win32::Foundation::{HANDLE, WAIT_OBJECT_0, WAIT_TIMEOUT};
use windows_sys::Win32::System::Console::{
    CONSOLE_MODE, GetConsoleMode, GetStdHandle, STD_INPUT_HANDLE, SetConsoleMode,
};
use windows_sys::Win32::System::Threading::WaitForSingleObject;

/// The input mode that the console on standard input had. Dropping this restores it.
#[derive(Debug)]
pub struct TerminalSettings(CONSOLE_MODE);

impl TerminalSettings {
    /// Reads the present mode. Returns `None` if standard input is no console.
    pub fn keep() -> Option<Self> {
        // SAFETY: the call takes one number.
        mode(unsafe { GetStdHandle(STD_INPUT_HANDLE) }).map(Self)
    }
}

impl Drop for TerminalSettings {
    fn drop(&mut self) {
        // SAFETY: the call takes a handle and a number. A handle that is no console's is an error, and needs no mode.
        unsafe { SetConsoleMode(GetStdHandle(STD_INPUT_HANDLE), self.0) };
    }
}

/// Returns the mode of a console. `None` if the handle is no console's.
fn mode(handle: HANDLE) -> Option<CONSOLE_MODE> {
    let mut mode = 0;
    // SAFETY: the call writes one integer that outlives it. A handle that is no console's is an error.
    let result = unsafe { GetConsoleMode(handle, &raw mut mode) };
    (result != 0).then_some(mode)
}

/// The keys of the console that crossterm reads.
#[derive(Debug)]
pub struct Keys(File);

/// Result of waiting for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyWait {
    /// The console has input: a key, or an event of the mouse or the window.
    Pressed,
    /// No key was pressed in time.
    TimedOut,
    /// The console was closed.
    Closed,
}

impl Keys {
    /// Opens the input of the console, whatever standard input is.
    ///
    /// # Errors
    /// The process has no console.
    pub fn open() -> io::Result<Self> {
        OpenOptions::new().read(true).write(true).open("CONIN$").map(Self)
    }

    /// Waits for a key, at most for `timeout`.
    ///
    /// # Errors
    /// The wait fails although the console is open.
    pub fn wait(&self, timeout: Duration) -> io::Result<KeyWait> {
        let handle = self.0.as_raw_handle();
        // The largest number means no limit.
        let timeout = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX).min(u32::MAX - 1);
        // SAFETY: the handle is open as long as the file.
        match unsafe { WaitForSingleObject(handle, timeout) } {
            WAIT_OBJECT_0 if mode(handle).is_none() => Ok(KeyWait::Closed),
            WAIT_OBJECT_0 => Ok(KeyWait::Pressed),
            WAIT_TIMEOUT => Ok(KeyWait::TimedOut),
            _ if mode(handle).is_none() => Ok(KeyWait::Closed),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_that_is_no_console_counts_as_closed() {
        let path = std::env::temp_dir().join(format!("linerate-no-console-{}", std::process::id()));
        let keys = Keys(File::create(&path).expect("created"));
        assert_eq!(keys.wait(Duration::ZERO).expect("waits"), KeyWait::Closed);
        std::fs::remove_file(&path).expect("removed");
    }
}
