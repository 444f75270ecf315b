//! Tests of the crate from outside.

mod limits;
mod schema;
