//! Settings of the console.

use windows_sys::Win32::System::Console::{
    CONSOLE_MODE, GetConsoleMode, GetStdHandle, STD_INPUT_HANDLE, SetConsoleMode,
};

/// The input mode that the console on standard input had. Dropping this restores it.
#[derive(Debug)]
pub struct TerminalSettings(CONSOLE_MODE);

impl TerminalSettings {
    /// Reads the present mode. Returns `None` if standard input is no console.
    pub fn keep() -> Option<Self> {
        let mut mode = 0;
        // SAFETY: the call writes one integer that outlives it. A handle that is no console's is an error.
        let result = unsafe { GetConsoleMode(GetStdHandle(STD_INPUT_HANDLE), &raw mut mode) };
        (result != 0).then_some(Self(mode))
    }
}

impl Drop for TerminalSettings {
    fn drop(&mut self) {
        // SAFETY: the call takes a handle and a number. A handle that is no console's is an error, and needs no mode.
        unsafe { SetConsoleMode(GetStdHandle(STD_INPUT_HANDLE), self.0) };
    }
}
