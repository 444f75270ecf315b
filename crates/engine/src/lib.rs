//! Common parts of engines: the contract between an engine and its agent, sockets with a trial's options, checks of
//! these options, worker threads, the flag that stops them, schedules of messages and requests, and the authentication
//! of data connections.
#![forbid(unsafe_code)]

mod check;
mod congestion;
mod connect;
mod contract;
mod default_congestion;
mod error;
pub mod greeting;
mod inbox;
mod listening;
mod pace;
mod path_end;
mod path_rates;
mod peer_silence;
mod peers;
pub mod proof;
mod reply_allowance;
mod report;
mod reserve;
mod schedule;
mod shared_port;
mod socket;
mod stop;
mod strangers;
mod tcp_flow;
mod tcp_sample;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod timeline;
mod vanished_peer;
mod wake_batching;
mod workers;
mod zone;

pub use check::{MOST_BITS_PER_SECOND, MOST_PER_SECOND, check_assignment, check_rate};
pub use connect::connect;
pub use contract::{
    Conductor, Counted, Demand, Engine, EngineError, EngineFailure, FailedBy, ForeignServer, Meters, Needs, Stopped,
    Work, WorkError,
};
pub use default_congestion::DefaultCongestion;
pub use error::{FlowsMissing, SocketError, failed};
pub use inbox::Greets;
pub use listening::{DataPorts, DatagramListener, ListenOptions, Listener, at_one_port, listen};
pub use pace::Pace;
pub use path_end::{PathEnd, Side, path_ends};
pub use path_rates::{PathRates, bits_per_second};
pub use peer_silence::{KEEPALIVE, KEEPALIVE_RETRIES, PEER_GONE, PeerSilence};
pub use peers::AllowedPeers;
pub use reply_allowance::{ReplyAllowance, SendingSession, StrangerReplies};
pub use report::Report;
pub use reserve::Reserve;
pub use schedule::Schedule;
pub use shared_port::{PortServer, SharedPort, TakesApiConnection};
pub use socket::{SocketSpec, socket};
pub use stop::Stop;
pub use strangers::{StrangerLimits, Strangers, origin};
pub use tcp_flow::tcp_flow;
pub use tcp_sample::{SAMPLED_CONNECTIONS, retransmits, sample_tcp};
pub use timeline::Timeline;
pub use vanished_peer::end_if_vanished;
pub use wake_batching::WakeBatching;
pub use workers::{Ended, Worker, Workers};
pub use zone::{only_zone, own_with_zone, with_zone};
