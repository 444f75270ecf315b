//! Writes a procedure's results.

use crate::handle::Handle;
use crate::store::{Result, Store};
use nfs3_types::nfs3::{Nfs3Option, Nfs3Result, nfs_fh3, post_op_attr, post_op_fh3, wcc_data};
use nfs3_types::xdr_codec::{Opaque, Pack};

/// Appends `value`.
pub(super) fn put(reply: &mut Vec<u8>, value: &impl Pack) {
    value.pack(reply).expect("a vector takes whatever is written to it, and nothing here is 4 GiB long");
}

/// Appends the results of an operation, or its status and what goes with a failure.
pub(super) fn answer<T: Pack, E: Pack>(reply: &mut Vec<u8>, outcome: Result<T>, failed: impl FnOnce() -> E) {
    let outcome: Nfs3Result<T, E> = match outcome {
        Ok(done) => Nfs3Result::Ok(done),
        Err(status) => Nfs3Result::Err((status, failed())),
    };
    put(reply, &outcome);
}

/// A handle as it stands in results.
pub(super) fn handle(handle: Handle) -> nfs_fh3 {
    nfs_fh3 { data: Opaque::owned(handle.to_bytes().to_vec()) }
}

/// The handle of what was just made.
pub(super) fn made(made: Handle) -> post_op_fh3 {
    Nfs3Option::Some(handle(made))
}

/// Returns the attributes of an object after an operation on it, as far as they are known.
pub(super) fn attributes(store: &dyn Store, object: Result<Handle>) -> post_op_attr {
    object.and_then(|object| store.attributes(object)).map_or(Nfs3Option::None, Nfs3Option::Some)
}

/// Returns the attributes of an object that did not change, or without known earlier attributes.
pub(super) fn unchanged(store: &dyn Store, object: Result<Handle>) -> wcc_data {
    wcc_data { before: Nfs3Option::None, after: attributes(store, object) }
}
