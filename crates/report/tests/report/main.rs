//! The report's outputs, of records as runs leave them.

mod browser;
mod device;
mod ladder;
mod outputs;
mod sample;
