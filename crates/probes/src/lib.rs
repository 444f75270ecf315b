//! Probes of a path: routers by packets with small TTLs, path MTU, one-way delay, and STAMP (RFC 8762).
#![forbid(unsafe_code)]

mod engine;
mod error;
mod fall_back;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod icmp_extension;
mod packets;
mod path_mtu;
mod prober;
mod replay_window;
pub mod stamp;
mod survey;

pub use engine::Probes;
