//! Waits for keys, and notices a terminal that was closed: crossterm would read its end for ever.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::File;
use std::io::{self, IsTerminal as _, stdin};
use std::os::fd::{AsFd as _, OwnedFd};

/// How long a key is waited for before the run is looked at again, milliseconds.
const TICK_MS: u8 = 100;

/// The terminal that keys come from: the one that crossterm reads.
pub(super) struct Keys(OwnedFd);

/// What came of waiting.
pub(super) enum Waited {
    /// Something can be read.
    Key,
    /// Nothing can.
    InVain,
    /// The terminal was closed.
    Gone,
}

impl Keys {
    /// Opens standard input, or the terminal of the session where that is none.
    ///
    /// # Errors
    /// The session has no terminal.
    pub(super) fn open() -> io::Result<Self> {
        if stdin().is_terminal() {
            return stdin().as_fd().try_clone_to_owned().map(Self);
        }
        Ok(Self(File::open("/dev/tty")?.into()))
    }

    /// Waits for a key, but not for long.
    ///
    /// # Errors
    /// poll(2) fails.
    pub(super) fn wait(&self) -> io::Result<Waited> {
        let mut polled = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
        match poll(&mut polled, PollTimeout::from(TICK_MS)) {
            Ok(_) => {}
            // A terminal of another size.
            Err(Errno::EINTR) => return Ok(Waited::InVain),
            Err(error) => return Err(error.into()),
        }
        let events = polled[0].revents().unwrap_or(PollFlags::empty());
        Ok(match () {
            () if events.intersects(PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL) => Waited::Gone,
            () if events.contains(PollFlags::POLLIN) => Waited::Key,
            () => Waited::InVain,
        })
    }
}
