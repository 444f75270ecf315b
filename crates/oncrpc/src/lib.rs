//! ONC RPC version 2 (RFC 5531): callers with any number of calls under way, and the servers that answer them, over TCP
//! with record marking and over UDP with retransmission.
//!
//! A connection or socket belongs to one thread, which sends and takes calls and replies in batches and shares nothing
//! on the hot path. The engine is the same for every [`Protocol`]: linerate's own program ([`OncRpc`]), or one of
//! another crate ([`run`]).

pub mod client;
mod connect;
mod engine;
mod error;
mod flow_meter;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod greeting;
mod job;
pub mod load;
pub mod message;
mod needs;
mod portmap;
mod privileged;
mod program;
mod progress;
mod protocol;
mod record;
mod rpc_service;
mod running;
mod running_server;
pub mod server;

pub use connect::connect_flow;
pub use engine::{OncRpc, demand, run};
pub use error::RpcError;
pub use flow_meter::FlowMeter;
pub use greeting::{PROGRAM, VERSION};
pub use job::Job;
pub use load::{Flow, LoadContext, Outcome};
pub use needs::calls_need;
pub use privileged::socket_from_privileged_port;
pub use protocol::{Opening, ProgramSource, Protocol};
pub use rpc_service::RpcService;
