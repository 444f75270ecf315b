//! The results of NFS version 3 procedures as they come from a server that may be anyone's: RFC 1813 section 3.3.
//!
//! Reading never allocates and believes no length: what is read borrows from the reply. (nfs3_types, of which the calls
//! are made, trusts the lengths it reads, and allocates 4 GB for a reply that claims as much.)

use crate::status;
use linerate_model::NfsOperation;
use linerate_oncrpc::message::Rest;

/// Bytes of a `fattr3`, and of a `wcc_attr`.
const ATTRIBUTES: usize = 84;
const BEFORE: usize = 24;
/// The most bytes of a handle (NFS3_FHSIZE), and of a name or path that is believed.
const HANDLE: usize = 64;
const NAME: usize = 4096;

/// A verifier of writes: it changes when the server has lost what was not committed.
pub(crate) type Verifier = [u8; 8];

/// Answer of a server.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answer<'a> {
    /// The call failed with this status.
    Failed(u32),
    /// The call succeeded, without further results.
    Done,
    /// Attributes of the object.
    Attributes(Attributes),
    /// Handle of the object that was looked up or created, and its attributes, if the server sent them.
    Handle(Option<&'a [u8]>, Option<Attributes>),
    /// Data of a read.
    Data { bytes: &'a [u8], eof: bool },
    /// Number of bytes written.
    Written { count: u32, verifier: Verifier },
    /// Earlier writes are stable.
    Committed(Verifier),
    /// Target of a symbolic link.
    Path(&'a [u8]),
    /// A part of a directory.
    Entries(Entries<'a>),
    /// The most bytes of one read and of one write, and the steps in which times are kept, nanoseconds.
    Limits { read: u32, write: u32, time_step: u64 },
}

/// Attributes of a file, directory or link: the used parts of a `fattr3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attributes {
    /// An `ftype3`.
    pub(crate) kind: u32,
    pub(crate) mode: u32,
    pub(crate) size: u64,
    /// Seconds and nanoseconds since 1970.
    pub(crate) modified: (u32, u32),
    pub(crate) changed: (u32, u32),
}

/// The entries of a directory that one reply holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entries<'a> {
    rest: Rest<'a>,
    plus: bool,
    /// Verifier that belongs to the cookies.
    pub(crate) verifier: Verifier,
    /// Whether the listing is complete.
    pub(crate) end: bool,
}

/// Entry of a directory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'a> {
    pub(crate) name: &'a [u8],
    /// Cookie with which the listing goes on after this entry.
    pub(crate) cookie: u64,
    /// Attributes; READDIRPLUS only, and only if the server sent them.
    pub(crate) attributes: Option<Attributes>,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        entry(&mut self.rest, self.plus).flatten()
    }
}

/// Reads the results of `operation`. Returns `None` if they do not follow the standard.
pub(crate) fn read(operation: NfsOperation, results: &[u8]) -> Option<Answer<'_>> {
    let mut rest = Rest(results);
    if operation == NfsOperation::Null {
        return rest.0.is_empty().then_some(Answer::Done);
    }
    let status = rest.word()?;
    if status != status::OK {
        return Some(Answer::Failed(status));
    }
    let answer = succeeded(operation, &mut rest)?;
    rest.0.is_empty().then_some(answer)
}

fn succeeded<'a>(operation: NfsOperation, rest: &mut Rest<'a>) -> Option<Answer<'a>> {
    Some(match operation {
        NfsOperation::Null => Answer::Done,
        NfsOperation::Getattr => Answer::Attributes(known(rest)?),
        NfsOperation::Setattr | NfsOperation::Remove | NfsOperation::Rmdir => {
            consistency(rest)?;
            Answer::Done
        }
        NfsOperation::Rename => {
            consistency(rest)?;
            consistency(rest)?;
            Answer::Done
        }
        NfsOperation::Lookup => {
            let handle = rest.opaque(HANDLE)?;
            let object_attributes = attributes(rest)?;
            attributes(rest)?;
            Answer::Handle(Some(handle), object_attributes)
        }
        NfsOperation::Create | NfsOperation::Mkdir | NfsOperation::Symlink => {
            let handle = if flag(rest)? { Some(rest.opaque(HANDLE)?) } else { None };
            let object_attributes = attributes(rest)?;
            consistency(rest)?;
            Answer::Handle(handle, object_attributes)
        }
        NfsOperation::Access => {
            attributes(rest)?;
            rest.word()?;
            Answer::Done
        }
        NfsOperation::Readlink => {
            attributes(rest)?;
            Answer::Path(rest.opaque(NAME)?)
        }
        NfsOperation::Read => {
            attributes(rest)?;
            let count = rest.word()?;
            let eof = flag(rest)?;
            let bytes = rest.opaque(rest.0.len())?;
            // "count: the number of bytes of data returned".
            if count as usize != bytes.len() {
                return None;
            }
            Answer::Data { bytes, eof }
        }
        NfsOperation::Write => {
            consistency(rest)?;
            let count = rest.word()?;
            let committed = rest.word()?;
            // stable_how is 0 to 2.
            if committed > 2 {
                return None;
            }
            Answer::Written { count, verifier: verifier(rest)? }
        }
        NfsOperation::Commit => {
            consistency(rest)?;
            Answer::Committed(verifier(rest)?)
        }
        NfsOperation::Readdir | NfsOperation::Readdirplus => {
            attributes(rest)?;
            let verifier = verifier(rest)?;
            let plus = operation == NfsOperation::Readdirplus;
            let first = *rest;
            while entry(rest, plus)?.is_some() {}
            let end = flag(rest)?;
            Answer::Entries(Entries { rest: first, plus, verifier, end })
        }
        NfsOperation::Fsstat => {
            attributes(rest)?;
            // Six counts, and for how long they hold.
            skip(rest, 6 * 8 + 4)?;
            Answer::Done
        }
        NfsOperation::Fsinfo => {
            attributes(rest)?;
            let max_read = rest.word()?;
            // rtpref and rtmult.
            skip(rest, 8)?;
            let write = rest.word()?;
            // wtpref, wtmult, dtpref, the largest file.
            skip(rest, 3 * 4 + 8)?;
            let (seconds, nanos) = time(rest)?;
            // The properties.
            rest.word()?;
            Answer::Limits { read: max_read, write, time_step: u64::from(seconds) * 1_000_000_000 + u64::from(nanos) }
        }
        NfsOperation::Pathconf => {
            attributes(rest)?;
            // linkmax and name_max, then four flags.
            skip(rest, 8)?;
            for _ in 0..4 {
                flag(rest)?;
            }
            Answer::Done
        }
    })
}

/// The next entry; none inside if there is no further one.
fn entry<'a>(rest: &mut Rest<'a>, plus: bool) -> Option<Option<Entry<'a>>> {
    if !flag(rest)? {
        return Some(None);
    }
    // The file's number.
    skip(rest, 8)?;
    let name = rest.opaque(NAME)?;
    let cookie = long(rest)?;
    let mut entry_attributes = None;
    if plus {
        entry_attributes = attributes(rest)?;
        if flag(rest)? {
            rest.opaque(HANDLE)?;
        }
    }
    Some(Some(Entry { name, cookie, attributes: entry_attributes }))
}

fn verifier(rest: &mut Rest<'_>) -> Option<Verifier> {
    skip(rest, 8)?.try_into().ok()
}

/// A `wcc_data`.
fn consistency(rest: &mut Rest<'_>) -> Option<()> {
    if flag(rest)? {
        skip(rest, BEFORE)?;
    }
    attributes(rest).map(drop)
}

/// A `post_op_attr`.
fn attributes(rest: &mut Rest<'_>) -> Option<Option<Attributes>> {
    if flag(rest)? { known(rest).map(Some) } else { Some(None) }
}

/// A `fattr3`.
fn known(rest: &mut Rest<'_>) -> Option<Attributes> {
    let mut rest = Rest(skip(rest, ATTRIBUTES)?);
    let kind = rest.word()?;
    let mode = rest.word()?;
    // nlink, uid, gid.
    skip(&mut rest, 3 * 4)?;
    let size = long(&mut rest)?;
    // used, rdev, fsid, fileid, atime.
    skip(&mut rest, 5 * 8)?;
    Some(Attributes { kind, mode, size, modified: time(&mut rest)?, changed: time(&mut rest)? })
}

/// An `nfstime3`: seconds and nanoseconds.
fn time(rest: &mut Rest<'_>) -> Option<(u32, u32)> {
    Some((rest.word()?, rest.word()?))
}

/// An unsigned hyper integer.
fn long(rest: &mut Rest<'_>) -> Option<u64> {
    skip(rest, 8)?.try_into().ok().map(u64::from_be_bytes)
}

/// An XDR boolean.
fn flag(rest: &mut Rest<'_>) -> Option<bool> {
    match rest.word()? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// The next `bytes` bytes, a multiple of four.
fn skip<'a>(rest: &mut Rest<'a>, bytes: usize) -> Option<&'a [u8]> {
    let (skipped, left) = rest.0.split_at_checked(bytes)?;
    rest.0 = left;
    Some(skipped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfs3_types::nfs3::*;
    use nfs3_types::xdr_codec::{List, Opaque, Pack};
    use proptest::prelude::*;

    fn packed(results: &impl Pack) -> Vec<u8> {
        let mut bytes = Vec::new();
        results.pack(&mut bytes).expect("a Vec takes it");
        bytes
    }

    fn attributes() -> post_op_attr {
        let time = nfstime3::default();
        Nfs3Option::Some(fattr3 {
            type_: ftype3::NF3REG,
            mode: 0o644,
            nlink: 1,
            uid: 0,
            gid: 0,
            size: 9,
            used: 10,
            rdev: specdata3::default(),
            fsid: 1,
            fileid: 2,
            atime: time,
            mtime: nfstime3 { seconds: 3, nseconds: 4 },
            ctime: nfstime3 { seconds: 5, nseconds: 6 },
        })
    }

    fn wcc() -> wcc_data {
        let time = nfstime3::default();
        wcc_data { before: Nfs3Option::Some(wcc_attr { size: 9, mtime: time, ctime: time }), after: attributes() }
    }

    fn handle() -> nfs_fh3 {
        nfs_fh3 { data: Opaque::owned(vec![7; 29]) }
    }

    fn made() -> (post_op_fh3, post_op_attr, wcc_data) {
        (Nfs3Option::Some(handle()), attributes(), wcc())
    }

    /// Returns results of every operation as another implementation packs them.
    fn packed_by_another() -> Vec<(NfsOperation, Vec<u8>)> {
        type Ok<T> = Nfs3Result<T, nfs3_types::xdr_codec::Void>;
        let name = |bytes: &'static [u8]| filename3::from(bytes);
        let cookieverf = cookieverf3::default();
        let entries = List(vec![
            entry3 { fileid: 1, name: name(b"."), cookie: 1 },
            entry3 { fileid: 3, name: name(b"f12"), cookie: 2 },
        ]);
        let plus = List(vec![
            entryplus3 {
                fileid: 1,
                name: name(b"."),
                cookie: 1,
                name_attributes: attributes(),
                name_handle: Nfs3Option::Some(handle()),
            },
            entryplus3 {
                fileid: 3,
                name: name(b"f12"),
                cookie: 2,
                name_attributes: Nfs3Option::None,
                name_handle: Nfs3Option::None,
            },
        ]);
        let Nfs3Option::Some(fattr) = attributes() else { unreachable!("made so") };
        let dir = attributes;
        vec![
            (NfsOperation::Null, Vec::new()),
            (NfsOperation::Getattr, packed(&Ok::Ok(GETATTR3resok { obj_attributes: fattr }))),
            (NfsOperation::Setattr, packed(&Ok::Ok(SETATTR3resok { obj_wcc: wcc() }))),
            (
                NfsOperation::Lookup,
                packed(&Ok::Ok(LOOKUP3resok { object: handle(), obj_attributes: dir(), dir_attributes: dir() })),
            ),
            (NfsOperation::Access, packed(&Ok::Ok(ACCESS3resok { obj_attributes: dir(), access: 63 }))),
            (
                NfsOperation::Readlink,
                packed(&Ok::Ok(READLINK3resok { symlink_attributes: dir(), data: b"f3".as_slice().into() })),
            ),
            (
                NfsOperation::Read,
                packed(&Ok::Ok(READ3resok {
                    file_attributes: dir(),
                    count: 5,
                    eof: true,
                    data: Opaque::borrowed(b"12345"),
                })),
            ),
            (
                NfsOperation::Write,
                packed(&Ok::Ok(WRITE3resok {
                    file_wcc: wcc(),
                    count: 4096,
                    committed: stable_how::FILE_SYNC,
                    verf: writeverf3([1; 8]),
                })),
            ),
            (NfsOperation::Create, {
                let (obj, obj_attributes, dir_wcc) = made();
                packed(&Ok::Ok(CREATE3resok { obj, obj_attributes, dir_wcc }))
            }),
            (NfsOperation::Mkdir, {
                let (obj, obj_attributes, dir_wcc) = made();
                packed(&Ok::Ok(MKDIR3resok { obj, obj_attributes, dir_wcc }))
            }),
            (NfsOperation::Symlink, {
                let (obj, obj_attributes, dir_wcc) = made();
                packed(&Ok::Ok(SYMLINK3resok { obj, obj_attributes, dir_wcc }))
            }),
            (NfsOperation::Remove, packed(&Ok::Ok(REMOVE3resok { dir_wcc: wcc() }))),
            (NfsOperation::Rmdir, packed(&Ok::Ok(RMDIR3resok { dir_wcc: wcc() }))),
            (
                NfsOperation::Rename,
                packed(&Ok::Ok(RENAME3resok { fromdir_wcc: wcc(), todir_wcc: wcc_data::default() })),
            ),
            (
                NfsOperation::Readdir,
                packed(&Ok::Ok(READDIR3resok {
                    dir_attributes: dir(),
                    cookieverf,
                    reply: dirlist3 { entries, eof: true },
                })),
            ),
            (
                NfsOperation::Readdirplus,
                packed(&Ok::Ok(READDIRPLUS3resok {
                    dir_attributes: dir(),
                    cookieverf,
                    reply: dirlistplus3 { entries: plus, eof: false },
                })),
            ),
            (
                NfsOperation::Fsstat,
                packed(&Ok::Ok(FSSTAT3resok {
                    obj_attributes: dir(),
                    tbytes: 1,
                    fbytes: 1,
                    abytes: 1,
                    tfiles: 1,
                    ffiles: 1,
                    afiles: 1,
                    invarsec: 0,
                })),
            ),
            (
                NfsOperation::Fsinfo,
                packed(&Ok::Ok(FSINFO3resok {
                    obj_attributes: dir(),
                    rtmax: 65_536,
                    rtpref: 65_536,
                    rtmult: 1,
                    wtmax: 32_768,
                    wtpref: 32_768,
                    wtmult: 1,
                    dtpref: 1,
                    maxfilesize: 1,
                    time_delta: nfstime3 { seconds: 0, nseconds: 1 },
                    properties: 27,
                })),
            ),
            (
                NfsOperation::Pathconf,
                packed(&Ok::Ok(PATHCONF3resok {
                    obj_attributes: dir(),
                    linkmax: 1,
                    name_max: 255,
                    no_trunc: true,
                    chown_restricted: true,
                    case_insensitive: false,
                    case_preserving: true,
                })),
            ),
            (NfsOperation::Commit, packed(&Ok::Ok(COMMIT3resok { file_wcc: wcc(), verf: writeverf3([2; 8]) }))),
        ]
    }

    #[test]
    fn what_another_implementation_packs_is_understood_and_nothing_shorter_or_longer_is() {
        let all = packed_by_another();
        let expected = Attributes { kind: 1, mode: 0o644, size: 9, modified: (3, 4), changed: (5, 6) };
        assert_eq!(all.iter().map(|(operation, _)| *operation).collect::<Vec<_>>(), NfsOperation::ALL);
        for (operation, bytes) in all {
            let answer = read(operation, &bytes).unwrap_or_else(|| panic!("{operation}"));
            match (operation, answer) {
                (NfsOperation::Lookup | NfsOperation::Create | NfsOperation::Mkdir, Answer::Handle(found, known)) => {
                    assert_eq!((found, known), (Some(&[7; 29][..]), Some(expected)), "{operation}");
                }
                (NfsOperation::Symlink, Answer::Handle(Some(_), _)) => (),
                (NfsOperation::Getattr, Answer::Attributes(known)) => assert_eq!(known, expected),
                (NfsOperation::Readlink, Answer::Path(path)) => assert_eq!(path, b"f3"),
                (NfsOperation::Read, Answer::Data { bytes, eof }) => assert_eq!((bytes, eof), (&b"12345"[..], true)),
                (NfsOperation::Write, Answer::Written { count, verifier }) => {
                    assert_eq!((count, verifier), (4096, [1; 8]));
                }
                (NfsOperation::Commit, Answer::Committed(verifier)) => assert_eq!(verifier, [2; 8]),
                (NfsOperation::Readdir | NfsOperation::Readdirplus, Answer::Entries(entries)) => {
                    let plus = operation == NfsOperation::Readdirplus;
                    assert_eq!(entries.end, !plus);
                    let parsed: Vec<_> = entries.map(|entry| (entry.name, entry.cookie, entry.attributes)).collect();
                    let first = plus.then_some(expected);
                    assert_eq!(parsed, [(&b"."[..], 1, first), (b"f12", 2, None)], "{operation}");
                }
                (NfsOperation::Fsinfo, Answer::Limits { read, write, time_step }) => {
                    assert_eq!((read, write, time_step), (65_536, 32_768, 1));
                }
                (_, Answer::Done) => (),
                (_, other) => panic!("{operation}: {other:?}"),
            }
            for length in 0..bytes.len() {
                assert!(read(operation, &bytes[..length]).is_none(), "{operation} cut to {length}");
            }
            assert!(read(operation, &[&bytes[..], &[0; 4]].concat()).is_none(), "{operation} with more behind it");
        }
    }

    #[test]
    fn failures_are_told_by_their_status() {
        let failed = packed(&LOOKUP3res::Err((nfsstat3::NFS3ERR_STALE, LOOKUP3resfail::default())));
        assert!(matches!(read(NfsOperation::Lookup, &failed), Some(Answer::Failed(70))));
    }

    proptest! {
        #[test]
        fn no_bytes_at_all_are_too_much(bytes in proptest::collection::vec(any::<u8>(), 0..300), which in 0..20usize) {
            if let Some(Answer::Entries(entries)) = read(NfsOperation::ALL[which], &bytes) {
                // Each takes 24 bytes at the least.
                prop_assert!(entries.count() <= bytes.len() / 24);
            }
        }

        #[test]
        fn nor_are_replies_with_any_of_their_bytes_changed(which in 0..20usize, at in any::<usize>(), to in any::<u32>()) {
            let (operation, mut bytes) = packed_by_another().swap_remove(which);
            if !bytes.is_empty() {
                let at = at % (bytes.len() / 4) * 4;
                bytes[at..at + 4].copy_from_slice(&to.to_be_bytes());
                if let Some(Answer::Data { bytes: data, .. }) = read(operation, &bytes) {
                    prop_assert!(data.len() <= bytes.len());
                }
            }
        }
    }
}
