//! What the tests of all crates share. Only tests depend on this crate.
//!
//! **Tiers.** A test belongs to one of three tiers, and its attribute says to which:
//!
//! | attribute | test | command |
//! |---|---|---|
//! | `#[test]` | logic, protocols, loopback; runs wherever Rust runs, without root | `cargo xtask test` |
//! | `#[lab_test]` | network namespaces, real links, faults; needs root | `cargo xtask test --lab` |
//! | `#[server_test]` | with servers and programs of other makers | `cargo xtask test --servers` |
//!
//! The two attributes list what else the test needs, for example `#[server_test(Root, Program("smbd"))]`. A test whose needs
//! are not met prints `SKIPPED`, its name and the reason; where `CI` is set it fails instead.
//!
//! Each lab test has a share of the kernel's table of IPv6 neighbours ([`Ipv6Neighbours`]); one that fills the table lists
//! `AllIpv6Neighbours`, and runs while no other lab test does.
//!
//! A test `a` with such an attribute is called `a::in_lab` or `a::with_servers`, so that a filter selects a tier.

mod alone;
mod file_lock;
mod needs;
mod neighbours;
pub mod page_outline;
pub mod report_page;
pub mod servers;
mod wait;

pub use alone::{Alone, alone};
pub use linerate_testsuite_macros::{lab_test, server_test};
pub use needs::{Need, can_run, program, skip};
pub use neighbours::Ipv6Neighbours;
pub use wait::wait_until;
