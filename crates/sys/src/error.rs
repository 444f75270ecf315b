//! The one error of this crate: which call failed, on what, and why.

use std::io;

/// A call that failed.
#[derive(Debug, thiserror::Error)]
#[error("{call} on {object}: {source}")]
pub struct Error {
    /// The system call or operation, as in `setsockopt(TCP_CONGESTION)`.
    pub call: &'static str,
    /// What it was applied to, as in `cubic` or `interface eth0`.
    pub object: String,
    /// Why.
    pub source: io::Error,
}

impl Error {
    /// `call` on `object` failed with `source`.
    pub fn new(call: &'static str, object: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self { call, object: object.into(), source: source.into() }
    }

    /// `call` on `object` failed with the thread's last error number.
    pub fn last(call: &'static str, object: impl Into<String>) -> Self {
        Self::new(call, object, io::Error::last_os_error())
    }
}
