//! Tests of the crate from outside.

mod folder;
mod ganesha;
mod nfs;
