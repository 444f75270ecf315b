//! Raw frames between ports: sent, counted and timed by XDP programs, or by packet sockets if those are not permitted.
//!
//! Everything works in the calling thread's network namespace. Nothing is left afterwards: programs are attached by
//! links and sockets that the kernel removes with the process.
//!
//! Raw frames need Linux. On other systems each call fails and says so ([`FrameError::NeedsLinux`]).

mod capture;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
mod error;
#[cfg(target_os = "linux")]
mod linux;

pub use capture::{BadCapture, first_frame};
#[cfg(not(target_os = "linux"))]
pub use elsewhere::{Frames, port, resolve, xdp_possible};
pub use error::FrameError;
#[cfg(target_os = "linux")]
pub use linux::*;
