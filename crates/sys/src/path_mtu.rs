//! MTU of the way from a socket to its peer, where the system does not report it.

use crate::Error;
use crate::handle::BorrowedSocket;
use crate::netlink::Route;
use socket2::SockRef;
use std::io;

/// Returns the MTU of the interface with a connected socket's own address, in bytes.
///
/// # Errors
/// The socket is not connected.
pub(crate) fn of_interface(socket: BorrowedSocket<'_>) -> Result<u32, Error> {
    let failed = |source| Error::new("looking for the MTU", "a socket", source);
    let own = SockRef::from(&socket).local_addr().map_err(failed)?;
    let own = own.as_socket().ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?.ip().to_canonical();
    let mut route = Route::open()?;
    let address = route.addresses()?.into_iter().find(|address| address.address == own);
    let index = address.ok_or_else(|| failed(io::ErrorKind::NotConnected.into()))?.link;
    let link = route.links()?.into_iter().find(|link| link.index == index);
    link.map(|link| link.mtu).ok_or_else(|| failed(io::ErrorKind::NotFound.into()))
}
