//! Support for the tests of all crates. Only tests depend on this crate.
//!
//! **Tiers.** Each test belongs to one of four tiers, according to its attribute:
//!
//! | attribute | test | command |
//! |---|---|---|
//! | `#[test]` | logic, protocols, loopback; runs wherever Rust runs, without root | `cargo xtask test` |
//! | `#[lab_test]` | network namespaces, real links, faults; needs root | `cargo xtask test --lab` |
//! | `#[server_test]` | third-party servers and programs | `cargo xtask test --servers` |
//! | `#[wine_test]` | the program for Windows under Wine, in network namespaces; needs root | `cargo xtask test --wine` |
//!
//! The three attributes list the test's further needs, for example `#[server_test(Root, Program("smbd"))]`. If a need is
//! not met, the test prints `SKIPPED`, its name and the reason. If `CI` is set, it fails instead.
//!
//! Each lab test has a share of the kernel's table of IPv6 neighbours ([`Ipv6Neighbours`]). A test that fills the table
//! lists `AllIpv6Neighbours` and runs alone.
//!
//! On other systems than Linux only what all systems have is offered; the tests that need more are Linux's.
//!
//! A test `a` with such an attribute is called `a::in_lab`, `a::with_servers` or `a::with_wine`, so that a filter selects a tier.

mod alone;
mod file_lock;
#[cfg(target_os = "linux")]
pub mod files;
#[cfg(target_os = "linux")]
pub mod fleet;
#[cfg(target_os = "linux")]
mod needs;
mod neighbours;
pub mod page_outline;
#[cfg(target_os = "linux")]
pub mod report_page;
#[cfg(target_os = "linux")]
pub mod servers;
mod wait;
#[cfg(target_os = "linux")]
pub mod wine;

pub use alone::{Alone, alone};
pub use linerate_testsuite_macros::{lab_test, server_test, wine_test};
#[cfg(target_os = "linux")]
pub use needs::{Need, can_run, program, skip};
pub use neighbours::Ipv6Neighbours;
pub use wait::wait_until;
