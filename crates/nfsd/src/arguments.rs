//! Reads a call's arguments where they lie.
//!
//! The decoder of `nfs3_types` makes room for whatever length a caller claims, up to 4 GiB; here, opaque data is
//! borrowed from the call, so that a claim costs nothing.

use crate::handle::Handle;
use linerate_oncrpc::message::{Refused, Rest};
use nfs3_types::nfs3::nfsstat3;
use nfs3_types::xdr_codec::Unpack;

/// The longest handle, bytes (RFC 1813 section 2.4).
const HANDLE_MAXIMUM: usize = 64;

/// Unread arguments of a call. Arguments that cannot be read refuse the call (GARBAGE_ARGS).
#[derive(Debug)]
pub(super) struct Arguments<'a>(Rest<'a>);

impl<'a> Arguments<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(Rest(bytes))
    }

    /// Any value of fixed length, or of a length that its own discriminants bound.
    pub(super) fn take<T: Unpack>(&mut self) -> Result<T, Refused> {
        T::unpack(&mut self.0.0).map(|(value, _)| value).map_err(|_| Refused::GarbageArguments)
    }

    /// Variable-length opaque data.
    pub(super) fn opaque(&mut self) -> Result<&'a [u8], Refused> {
        self.0.opaque(usize::MAX).ok_or(Refused::GarbageArguments)
    }

    /// A handle; one that is not of this server is an error of the operation, not of the call.
    pub(super) fn handle(&mut self) -> Result<Result<Handle, nfsstat3>, Refused> {
        self.0.opaque(HANDLE_MAXIMUM).map(Handle::from_bytes).ok_or(Refused::GarbageArguments)
    }

    /// A directory and a name in it.
    pub(super) fn place(&mut self) -> Result<(Result<Handle, nfsstat3>, &'a [u8]), Refused> {
        Ok((self.handle()?, self.opaque()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claimed_length_costs_nothing() {
        let mut arguments = Arguments::new(&[0, 0, 0, 5, 1, 2, 3, 4, 5, 0, 0, 0, 0, 0, 0, 7]);
        assert_eq!(arguments.opaque(), Ok(&[1, 2, 3, 4, 5][..]));
        assert_eq!(arguments.take::<u32>(), Ok(7));
        assert_eq!(arguments.take::<u32>(), Err(Refused::GarbageArguments));
        for hostile in [&[0, 0, 0, 5, 1, 2, 3, 4, 5][..], &[0xff; 4], &[0xff; 64], &[0, 0, 1]] {
            assert_eq!(Arguments::new(hostile).opaque(), Err(Refused::GarbageArguments), "{hostile:?}");
        }
    }

    #[test]
    fn a_strange_handle_is_no_garbage_unless_no_server_could_have_given_it() {
        let call = |length: u8| [&[0, 0, 0, length][..], &[9; 68]].concat();
        assert!(matches!(Arguments::new(&call(16)).handle(), Ok(Ok(_))));
        assert_eq!(Arguments::new(&call(64)).handle(), Ok(Err(nfsstat3::NFS3ERR_BADHANDLE)));
        assert_eq!(Arguments::new(&call(65)).handle(), Err(Refused::GarbageArguments));
    }
}
