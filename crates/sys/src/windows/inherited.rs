//! Sockets that the parent process opened for this one.

use crate::Error;
use std::io;
use std::net::TcpListener;

/// Fails on Windows, where a service manager hands no sockets over.
///
/// # Errors
/// Always, with `Unsupported`.
pub fn listener(descriptor: i32) -> Result<TcpListener, Error> {
    Err(Error::new("taking over a listener", format!("descriptor {descriptor}"), io::ErrorKind::Unsupported))
}
