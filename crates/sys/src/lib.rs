//! Calls of the operating system made safe: the only crate that may say `unsafe`.
//!
//! Each operating system has a folder. What leaves it is safe, owned and small, and has the same names on each. Each error names the
//! call and the object. It holds no policy.

mod datagram;
mod echo_answer;
mod engine_thread;
pub mod entry;
pub mod error;
#[cfg(test)]
mod folder_tests;
pub mod interface;
mod kept_rights;
#[cfg(target_os = "linux")]
mod linux;
mod nfs_ids;
mod process_time;
mod queued_error;
#[cfg(not(windows))]
pub mod service;
mod tcp_info;
#[cfg(windows)]
mod windows;
pub mod windows_name;

pub use error::Error;
#[cfg(target_os = "linux")]
pub use linux::*;
#[cfg(windows)]
pub use windows::*;
