//! Linux.

mod account;
mod answering;
mod attempt;
mod carrier;
mod engine;
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
mod pace;
mod packet;
mod pause;
mod plan;
mod port;
mod progress;
mod resolve;
mod signature;
mod sockets;
mod taken;
mod trial;
mod vary;
mod xdp;

pub use engine::Frames;
pub use port::port;
pub use resolve::resolve;
pub use xdp::xdp_possible;
