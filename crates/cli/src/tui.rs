//! `--tui`: the terminal shows a run while it goes on.

#[cfg(not(feature = "tui"))]
mod absent;
#[cfg(feature = "tui")]
mod display;
#[cfg(feature = "tui")]
mod draw;
#[cfg(feature = "tui")]
#[cfg(feature = "tui")]
mod screen;
#[cfg(all(test, feature = "tui"))]
mod snapshots;
#[cfg(feature = "tui")]
mod state;

#[cfg(not(feature = "tui"))]
pub(crate) use absent::{Display, check, give_back, is_taken};
#[cfg(feature = "tui")]
pub(crate) use display::Display;
#[cfg(feature = "tui")]
pub(crate) use screen::{check, give_back, is_taken};
