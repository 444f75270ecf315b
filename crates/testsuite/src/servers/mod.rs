//! Servers and programs of other makers, each with its files in a folder or a namespace of its own, ended with the
//! test.
//!
//! A test that uses one declares its programs, as in `#[server_test(Root, Program("smbd"))]`.

mod axe;
pub mod chromium;
mod ganesha;
mod iperf3;
mod nats;
mod open_page;
mod port;
mod postgres;
mod prometheus;
mod samba;
mod snmpd;
mod stamp_suite;
mod tmux;

pub use axe::axe;
pub use ganesha::Ganesha;
pub use iperf3::{Iperf3, KeyPair};
pub use nats::NatsServer;
pub use open_page::OpenPage;
pub use postgres::{ADMINISTRATOR, GUARDED_ROLE, Postgres};
pub use prometheus::{Alertmanager, Prometheus};
pub use samba::{PASSWORD, Samba, USER};
pub use snmpd::Snmpd;
pub use stamp_suite::StampSuite;
pub use tmux::Tmux;
