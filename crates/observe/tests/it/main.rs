//! Tests of the crate from outside.

mod cost;
mod sampler;
mod snmp;
mod traffic;
