//! CPU time of the process.

pub use crate::process_time::ProcessTime;
pub use crate::usage::process_time as of_process;
