//! Tests of the crate from outside.

mod benches;
mod delay;
mod endings;
mod rates;
mod reference;
mod support;
mod tester;
