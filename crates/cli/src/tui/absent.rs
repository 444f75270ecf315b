//! What stands for the display in a program that was built without it.

use crate::exit::Failure;
use linerate_runner::Event;
use std::convert::Infallible;
use std::io;
use tokio::sync::watch;

/// There is none.
pub(crate) struct Display(Infallible);

impl Display {
    pub(crate) fn open(_: watch::Receiver<bool>) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn note(&mut self, _: &Event<'_>) {
        match self.0 {}
    }
}

/// Refuses `--tui`.
pub(crate) fn check() -> Result<(), Failure> {
    Err(Failure::usage("--tui: this linerate was built without the display: build it with `--features tui`"))
}

pub(crate) fn is_taken() -> bool {
    false
}

pub(crate) fn give_back() {}
