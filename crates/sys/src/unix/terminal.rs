//! Settings of the terminal, and its keys.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};
use std::fs::File;
use std::io::{self, IsTerminal as _, stdin};
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

/// The settings that the terminal on standard input had; dropping this puts them back.
#[derive(Debug)]
pub struct TerminalSettings(Termios);

impl TerminalSettings {
    /// Reads the present settings. Returns `None` if standard input is no terminal.
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

/// The keys of the terminal that crossterm reads. crossterm itself does not notice a closed terminal, and reads its end for ever.
#[derive(Debug)]
pub struct Keys(OwnedFd);

/// Result of waiting for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyWait {
    /// A key can be read.
    Pressed,
    /// No key was pressed in time.
    TimedOut,
    /// The terminal was closed.
    Closed,
}

impl Keys {
    /// Opens standard input, or the terminal of the session if standard input is none.
    ///
    /// # Errors
    /// The session has no terminal.
    pub fn open() -> io::Result<Self> {
        if stdin().is_terminal() {
            return stdin().as_fd().try_clone_to_owned().map(Self);
        }
        Ok(Self(File::open("/dev/tty")?.into()))
    }

    /// Waits for a key, at most for `timeout`. A signal ends the wait early.
    ///
    /// # Errors
    /// poll(2) fails.
    pub fn wait(&self, timeout: Duration) -> io::Result<KeyWait> {
        let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
        let mut polled = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
        match poll(&mut polled, timeout) {
            Ok(_) => {}
            // The terminal has another size.
            Err(Errno::EINTR) => return Ok(KeyWait::TimedOut),
            Err(error) => return Err(error.into()),
        }
        let events = polled[0].revents().unwrap_or(PollFlags::empty());
        Ok(if events.intersects(PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL) {
            KeyWait::Closed
        } else if events.contains(PollFlags::POLLIN) {
            KeyWait::Pressed
        } else {
            KeyWait::TimedOut
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn closed_terminal_is_noticed() {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        let keys = Keys(reader.into());
        let wait = || keys.wait(Duration::ZERO).expect("polls");
        assert_eq!(wait(), KeyWait::TimedOut);
        writer.write_all(b"q").expect("written");
        assert_eq!(wait(), KeyWait::Pressed);
        drop(writer);
        assert_eq!(wait(), KeyWait::Closed);
    }
}
