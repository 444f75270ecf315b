//! Windows.

pub mod cpu_time;
mod nt_status;
pub mod processor;
pub mod protocol_statistics;
pub mod system;
