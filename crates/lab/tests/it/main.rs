//! Tests of the crate from outside.

mod benches;
mod chain;
mod delay;
mod endings;
mod faults;
mod hub;
mod open_vswitch;
mod path;
mod port_queues;
mod rates;
mod reference;
mod support;
mod tester;
