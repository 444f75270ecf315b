//! Tests of the crate from outside.

mod ganesha;
mod nfs;
