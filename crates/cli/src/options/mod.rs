//! Options that several commands share, a file for each group.
//!
//! All properties of an option stand at its field: its help, and with `hide_short_help` that only `--help-all` shows it.
//! What else needs to know options reads them from clap.

mod repetition;
mod requests;
mod results;
mod sockets;
mod typed;

pub(crate) use repetition::{Prove, Repetition};
pub(crate) use requests::{Flows, Over, Requests};
pub(crate) use results::{BuildReport, Results, StorePath};
pub(crate) use sockets::{Family, Sockets};
pub(crate) use typed::{Typed, typed};
