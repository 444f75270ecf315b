//! MTU of the way from a socket to its peer, where the system does not report it.

use crate::Error;
use crate::handle::BorrowedSocket;
use crate::netlink::Route;
use socket2::SockRef;
use std::io;

/// Returns the MTU of the interface by which a connected socket sends, in bytes.
///
/// # Errors
/// The socket is not connected, or there is no route to its peer.
pub(crate) fn of_interface(socket: BorrowedSocket<'_>) -> Result<u32, Error> {
    let failed = |source| Error::new("looking for the MTU", "a socket", source);
    let peer = SockRef::from(&socket).peer_addr().map_err(failed)?;
    let peer = peer.as_socket().ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
    let mut route = Route::open()?;
    let index = route.outgoing(peer.ip())?.ok_or_else(|| failed(io::ErrorKind::NetworkUnreachable.into()))?;
    let link = route.links()?.into_iter().find(|link| link.index == index);
    link.map(|link| link.mtu).ok_or_else(|| failed(io::ErrorKind::NotFound.into()))
}
