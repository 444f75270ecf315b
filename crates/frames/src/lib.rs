//! Raw frames between ports: sent, counted and timed by XDP programs, or by packet sockets if those are not permitted.
//!
//! Everything works in the calling thread's network namespace. Nothing is left afterwards: programs are attached by
//! links and sockets that the kernel removes with the process.

mod account;
mod answering;
mod attempt;
mod capture;
mod carrier;
mod engine;
mod error;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod headers;
mod layout;
mod learning;
mod meets;
#[cfg(test)]
mod mutated;
mod neighbours;
mod packet;
mod plan;
mod port;
mod progress;
mod resolve;
mod signature;
mod taken;
mod trial;
mod vary;
mod xdp;

pub use capture::{BadCapture, first_frame};
pub use engine::Frames;
pub use error::FrameError;
pub use port::port;
pub use resolve::resolve;
pub use xdp::xdp_possible;
