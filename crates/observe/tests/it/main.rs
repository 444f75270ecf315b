//! Tests of the crate from outside.

mod cost;
mod planted;
mod sampler;
mod snmp;
mod traffic;
