//! Tests of the crate from outside.

mod cost;
mod snmp;
mod traffic;
