//! What engines share: sockets with a trial's options, checks of these options, worker threads, and the flag that stops them.

mod check;
mod error;
mod socket;
mod stop;
mod tcp_flow;
mod workers;

pub use check::{check_flows, check_half, check_rate};
pub use error::{FlowsMissing, SocketError, failed};
pub use socket::{SocketSpec, socket};
pub use stop::Stop;
pub use tcp_flow::tcp_flow;
pub use workers::{Worker, Workers};
