//! Tests of the crate from outside.

mod hostile;
mod limits;
mod schema;
