//! Settings of the terminal.

use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};
use std::io;

/// The settings that the terminal on standard input had; dropping this puts them back.
#[derive(Debug)]
pub struct TerminalSettings(Termios);

impl TerminalSettings {
    /// The settings of now; none where standard input is no terminal.
    pub fn keep() -> Option<Self> {
        tcgetattr(io::stdin()).ok().map(Self)
    }
}

impl Drop for TerminalSettings {
    fn drop(&mut self) {
        // A terminal that is gone needs no settings.
        let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &self.0);
    }
}
