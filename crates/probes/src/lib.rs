//! Probes of a path: routers by packets with small TTLs, path MTU, one-way delay, and STAMP (RFC 8762).
#![forbid(unsafe_code)]

pub mod stamp;
