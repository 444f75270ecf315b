//! The report's outputs, of records as runs leave them.

mod accessibility;
mod answers;
mod attempts;
mod browser;
mod calls;
mod copy;
mod copy_timeline;
mod device;
mod document;
mod frames;
mod hostile;
mod ladder;
mod language;
mod large;
mod layout;
mod limits;
mod messages;
mod nfs;
mod outputs;
mod over_time;
mod overview;
mod path;
mod pictures;
mod recorded;
mod sample;
mod snapshots;
