//! Tests of the crate from outside.

mod copies;
mod escape;
mod memory;
mod mishaps;
mod nfs;
mod pair;
mod roles;
