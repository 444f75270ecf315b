//! The report's outputs, of records as runs leave them.

mod accessibility;
mod answers;
mod attempts;
mod browser;
mod calls;
mod copy;
mod device;
mod document;
mod frames;
mod ladder;
mod language;
mod large;
mod limits;
mod nfs;
mod outputs;
mod over_time;
mod overclaims;
mod overview;
mod page_outline;
mod path;
mod pictures;
mod planted;
mod recorded;
mod sample;
mod snapshots;
mod study;
