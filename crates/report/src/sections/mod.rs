//! Sections of a document.

pub(crate) mod abridged;
pub(crate) mod attempts;
pub(crate) mod caveats;
pub(crate) mod charts;
pub(crate) mod directions;
pub(crate) mod hops;
pub(crate) mod hosts;
pub(crate) mod measuring;
pub(crate) mod over_time;
pub(crate) mod parties;
pub(crate) mod path;
pub(crate) mod results;
pub(crate) mod tables;
pub(crate) mod verdicts;
