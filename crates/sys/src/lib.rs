//! Calls of the operating system made safe: the only crate that may say `unsafe`.
//!
//! Each operating system has a folder. What leaves it is safe, owned and small, and has the same names on each. Each error names the
//! call and the object. It holds no policy.

#[cfg(any(target_os = "freebsd", target_os = "macos"))]
mod bsd;
#[cfg(all(test, target_os = "linux"))]
#[path = "bsd/records.rs"]
mod bsd_records;
#[cfg(any(test, not(target_os = "linux")))]
pub mod core_time;
mod datagram;
#[cfg(not(target_os = "linux"))]
mod discard;
mod echo_answer;
mod engine_thread;
pub mod entry;
#[cfg(not(target_os = "linux"))]
pub mod epoll;
pub mod error;
#[cfg(not(target_os = "linux"))]
pub mod event;
#[cfg(test)]
mod folder_tests;
pub mod interface;
mod kept_rights;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(any(windows, target_os = "macos"))]
mod milliseconds;
mod nfs_ids;
#[cfg(not(target_os = "linux"))]
mod path_mtu;
mod process_time;
#[cfg(any(test, not(target_os = "linux")))]
pub mod protocol_counts;
mod queued_error;
#[cfg(not(windows))]
pub mod service;
mod tcp_info;
#[cfg(unix)]
mod unix;
mod wait;
#[cfg(windows)]
mod windows;
pub mod windows_name;

#[cfg(any(target_os = "freebsd", target_os = "macos"))]
pub use bsd::*;
pub use error::Error;
#[cfg(target_os = "linux")]
pub use linux::*;
#[cfg(unix)]
pub use unix::*;
#[cfg(windows)]
pub use windows::*;

/// Whether the authors have run the program on this system, or for Windows under Wine.
pub const IS_TESTED: bool = cfg!(any(target_os = "linux", windows));
