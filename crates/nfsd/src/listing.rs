//! The procedures that show a directory: READDIR and READDIRPLUS (RFC 1813 sections 3.3.16 and 3.3.17).

use crate::arguments::Arguments;
use crate::handle::Handle;
use crate::reply::{self, answer, attributes};
use crate::store::{DirOpArgs, Name, Result, Store};
use linerate_oncrpc::message::Refused;
use nfs3_types::nfs3::{
    Nfs3Option, READDIR3resfail, READDIR3resok, READDIRPLUS3resfail, READDIRPLUS3resok, cookieverf3, dirlist3,
    dirlistplus3, entry3, entryplus3, fattr3, nfsstat3,
};
use nfs3_types::xdr_codec::{List, Pack};

/// Size of the results without the entries: attributes, verifier, end of the list, end of the directory.
const AROUND: usize = (4 + 84) + 8 + 4 + 4;
/// Size that READDIRPLUS adds to an entry: attributes and a handle.
const PLUS: usize = (4 + 84) + (4 + 4 + Handle::BYTES);

/// READDIR.
pub(super) fn readdir(
    store: &dyn Store,
    maximum: u32,
    arguments: &mut Arguments<'_>,
    reply: &mut Vec<u8>,
) -> std::result::Result<(), Refused> {
    let listing = ListingArguments::read(arguments)?;
    let count = arguments.take::<u32>()?.min(maximum) as usize;
    let directory = listing.directory;
    let done = listing.entries(store, usize::MAX, count, 0).map(|shown| READDIR3resok {
        dir_attributes: Nfs3Option::Some(shown.attributes),
        cookieverf: cookieverf3(store.verifier()),
        reply: dirlist3 { entries: List(shown.entries), eof: shown.all },
    });
    answer(reply, done, || READDIR3resfail { dir_attributes: attributes(store, directory) });
    Ok(())
}

/// READDIRPLUS.
pub(super) fn readdirplus(
    store: &dyn Store,
    maximum: u32,
    arguments: &mut Arguments<'_>,
    reply: &mut Vec<u8>,
) -> std::result::Result<(), Refused> {
    let listing = ListingArguments::read(arguments)?;
    let names = arguments.take::<u32>()? as usize;
    let count = arguments.take::<u32>()?.min(maximum) as usize;
    let directory = listing.directory;
    let done = listing.entries(store, names, count, PLUS).and_then(|shown| {
        let entries = shown.entries.into_iter().map(|entry| with_attributes(store, directory?, entry));
        Ok(READDIRPLUS3resok {
            dir_attributes: Nfs3Option::Some(shown.attributes),
            cookieverf: cookieverf3(store.verifier()),
            reply: dirlistplus3 { entries: List(entries.collect::<Result<_>>()?), eof: shown.all },
        })
    });
    answer(reply, done, || READDIRPLUS3resfail { dir_attributes: attributes(store, directory) });
    Ok(())
}

/// First arguments of both procedures.
struct ListingArguments {
    directory: Result<Handle>,
    cookie: u64,
    verifier: cookieverf3,
}

/// Listed entries.
struct Shown {
    attributes: fattr3,
    entries: Vec<entry3<'static>>,
    all: bool,
}

impl ListingArguments {
    fn read(arguments: &mut Arguments<'_>) -> std::result::Result<Self, Refused> {
        Ok(Self { directory: arguments.handle()?, cookie: arguments.take()?, verifier: arguments.take()? })
    }

    /// Lists as many entries as fit: names and numbers into `names` bytes, and all of the results into `count`, where
    /// each entry takes `more` bytes in addition to its name and numbers.
    fn entries(&self, store: &dyn Store, names: usize, count: usize, more: usize) -> Result<Shown> {
        let directory = self.directory?;
        if self.cookie != 0 && self.verifier != cookieverf3(store.verifier()) {
            return Err(nfsstat3::NFS3ERR_BAD_COOKIE);
        }
        let mut entries = Vec::new();
        let mut names_length = 0;
        let mut total = AROUND;
        let (attributes, all) = store.list(directory, self.cookie, &mut |entry| {
            let entry = entry3 { fileid: entry.file_id, name: entry.name.to_vec().into(), cookie: entry.cookie };
            let bytes = entry.packed_size();
            names_length += bytes;
            // In the list there is a word before each entry.
            total += 4 + bytes + more;
            // What limits the names is a hint; one at least is shown if it fits at all.
            let fits = total <= count && (names_length <= names || entries.is_empty());
            if fits {
                entries.push(entry);
            }
            fits
        })?;
        if entries.is_empty() && !all {
            return Err(nfsstat3::NFS3ERR_TOOSMALL);
        }
        Ok(Shown { attributes, entries, all })
    }
}

/// An entry with what it stands for. What was removed meanwhile has no attributes any more.
fn with_attributes(store: &dyn Store, directory: Handle, entry: entry3<'static>) -> Result<entryplus3<'static>> {
    let object = match entry.name.as_ref() {
        b"." => store.attributes(directory).map(|attributes| (directory, attributes)),
        b".." => store.parent(directory),
        name => Name::new(name).and_then(|name| store.lookup(DirOpArgs { directory, name })),
    };
    let (name_handle, name_attributes) = match object {
        Ok((handle, attributes)) => (reply::made(handle), Nfs3Option::Some(attributes)),
        Err(_) => (Nfs3Option::None, Nfs3Option::None),
    };
    Ok(entryplus3 { fileid: entry.fileid, name: entry.name, cookie: entry.cookie, name_attributes, name_handle })
}
