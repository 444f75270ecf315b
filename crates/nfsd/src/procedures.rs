//! The procedures of NFS version 3 (RFC 1813 section 3.3): from a call's bytes to a reply's.

use crate::arguments::Arguments;
use crate::handle::Handle;
use crate::listing::{readdir, readdirplus};
use crate::reply::{answer, attributes, handle, made, unchanged};
use crate::store::{DirOpArgs, LINK_MAXIMUM, Made, NAME_MAXIMUM, Name, New, Removed, Result, Store};
use crate::transfer::{commit, read, write};
use linerate_oncrpc::message::Refused;
use nfs3_types::nfs3::{
    ACCESS3_DELETE, ACCESS3_EXECUTE, ACCESS3_EXTEND, ACCESS3_LOOKUP, ACCESS3_MODIFY, ACCESS3_READ, ACCESS3resfail,
    ACCESS3resok, CREATE3resfail, CREATE3resok, FSF3_CANSETTIME, FSF3_HOMOGENEOUS, FSF3_SYMLINK, FSINFO3resfail,
    FSINFO3resok, FSSTAT3resfail, FSSTAT3resok, GETATTR3resok, LINK3resfail, LINK3resok, LOOKUP3resfail, LOOKUP3resok,
    MKNOD3resfail, MKNOD3resok, NFS_PROGRAM, Nfs3Option, PATHCONF3resfail, PATHCONF3resok, READLINK3resfail,
    READLINK3resok, REMOVE3resfail, REMOVE3resok, RENAME3resfail, RENAME3resok, SETATTR3resfail, SETATTR3resok,
    createhow3, ftype3, nfsstat3, nfstime3, sattr3, sattrguard3,
};
use nfs3_types::xdr_codec::Void;

type Parsed = std::result::Result<(), Refused>;

/// Does what one call asks of a store; transfers and listings are cut at `maximum` bytes.
pub(super) fn execute(
    store: &dyn Store,
    maximum: u32,
    procedure: NFS_PROGRAM,
    arguments: &mut Arguments<'_>,
    reply: &mut Vec<u8>,
) -> Parsed {
    match procedure {
        NFS_PROGRAM::NFSPROC3_NULL => Ok(()),
        NFS_PROGRAM::NFSPROC3_GETATTR => getattr(store, arguments, reply),
        NFS_PROGRAM::NFSPROC3_SETATTR => setattr(store, arguments, reply),
        NFS_PROGRAM::NFSPROC3_LOOKUP => lookup(store, arguments, reply),
        NFS_PROGRAM::NFSPROC3_ACCESS => access(store, arguments, reply),
        NFS_PROGRAM::NFSPROC3_READLINK => readlink(store, arguments, reply),
        NFS_PROGRAM::NFSPROC3_READ => read(store, maximum, arguments, reply),
        NFS_PROGRAM::NFSPROC3_WRITE => write(store, maximum, arguments, reply),
        NFS_PROGRAM::NFSPROC3_CREATE => create(store, arguments, reply),
        NFS_PROGRAM::NFSPROC3_MKDIR => mkdir(store, arguments, reply),
        NFS_PROGRAM::NFSPROC3_SYMLINK => symlink(store, arguments, reply),
        NFS_PROGRAM::NFSPROC3_MKNOD => mknod(store, arguments, reply),
        NFS_PROGRAM::NFSPROC3_REMOVE => remove(store, Removed::File, arguments, reply),
        NFS_PROGRAM::NFSPROC3_RMDIR => remove(store, Removed::Directory, arguments, reply),
        NFS_PROGRAM::NFSPROC3_RENAME => rename(store, arguments, reply),
        NFS_PROGRAM::NFSPROC3_LINK => link(store, arguments, reply),
        NFS_PROGRAM::NFSPROC3_READDIR => readdir(store, maximum, arguments, reply),
        NFS_PROGRAM::NFSPROC3_READDIRPLUS => readdirplus(store, maximum, arguments, reply),
        NFS_PROGRAM::NFSPROC3_FSSTAT => fsstat(store, arguments, reply),
        NFS_PROGRAM::NFSPROC3_FSINFO => fsinfo(store, maximum, arguments, reply),
        NFS_PROGRAM::NFSPROC3_PATHCONF => pathconf(store, arguments, reply),
        NFS_PROGRAM::NFSPROC3_COMMIT => commit(store, arguments, reply),
    }
}

fn getattr(store: &dyn Store, arguments: &mut Arguments<'_>, reply: &mut Vec<u8>) -> Parsed {
    let object = arguments.handle()?;
    let done = object.and_then(|object| store.attributes(object));
    answer(reply, done.map(|obj_attributes| GETATTR3resok { obj_attributes }), || Void);
    Ok(())
}

fn setattr(store: &dyn Store, arguments: &mut Arguments<'_>, reply: &mut Vec<u8>) -> Parsed {
    let (object, to, guard) = (arguments.handle()?, arguments.take::<sattr3>()?, arguments.take::<sattrguard3>()?);
    let guard = match guard {
        Nfs3Option::Some(time) => Some(time),
        Nfs3Option::None => None,
    };
    let done = object.and_then(|object| store.set_attributes(object, &to, guard));
    let done = done.map(|obj_wcc| SETATTR3resok { obj_wcc });
    answer(reply, done, || SETATTR3resfail { obj_wcc: unchanged(store, object) });
    Ok(())
}

fn lookup(store: &dyn Store, arguments: &mut Arguments<'_>, reply: &mut Vec<u8>) -> Parsed {
    let (directory, name) = arguments.place()?;
    let done = directory.and_then(|directory| match name {
        b"." => store.parent(directory).and_then(|_| Ok((directory, store.attributes(directory)?))),
        b".." => store.parent(directory),
        name => store.lookup(DirOpArgs { directory, name: Name::new(name)? }),
    });
    let dir_attributes = || attributes(store, directory);
    let done = done.map(|(object, attributes)| LOOKUP3resok {
        object: handle(object),
        obj_attributes: Nfs3Option::Some(attributes),
        dir_attributes: dir_attributes(),
    });
    answer(reply, done, || LOOKUP3resfail { dir_attributes: dir_attributes() });
    Ok(())
}

/// ACCESS: whatever makes sense for the object. Who may call at all may do all that the store does, and a store that
/// cannot says so when it comes to it.
fn access(store: &dyn Store, arguments: &mut Arguments<'_>, reply: &mut Vec<u8>) -> Parsed {
    let (object, wanted) = (arguments.handle()?, arguments.take::<u32>()?);
    let done = object.and_then(|object| store.attributes(object)).map(|attributes| {
        let sensible = ACCESS3_READ | ACCESS3_MODIFY | ACCESS3_EXTEND;
        let sensible = sensible
            | match attributes.type_ {
                ftype3::NF3DIR => ACCESS3_LOOKUP | ACCESS3_DELETE,
                _ => ACCESS3_EXECUTE,
            };
        ACCESS3resok { obj_attributes: Nfs3Option::Some(attributes), access: wanted & sensible }
    });
    answer(reply, done, || ACCESS3resfail { obj_attributes: attributes(store, object) });
    Ok(())
}

fn readlink(store: &dyn Store, arguments: &mut Arguments<'_>, reply: &mut Vec<u8>) -> Parsed {
    let link = arguments.handle()?;
    let done = link.and_then(|link| store.link_text(link)).map(|(text, attributes)| READLINK3resok {
        symlink_attributes: Nfs3Option::Some(attributes),
        data: text.into(),
    });
    answer(reply, done, || READLINK3resfail { symlink_attributes: attributes(store, link) });
    Ok(())
}

fn create(store: &dyn Store, arguments: &mut Arguments<'_>, reply: &mut Vec<u8>) -> Parsed {
    let ((directory, name), how) = (arguments.place()?, arguments.take::<createhow3>()?);
    let new = match &how {
        createhow3::UNCHECKED(attributes) => New::Unchecked { attributes },
        createhow3::GUARDED(attributes) => New::Guarded { attributes },
        createhow3::EXCLUSIVE(number) => New::Exclusive { number: *number },
    };
    make(store, directory, name, new, reply);
    Ok(())
}

fn mkdir(store: &dyn Store, arguments: &mut Arguments<'_>, reply: &mut Vec<u8>) -> Parsed {
    let ((directory, name), attributes) = (arguments.place()?, arguments.take::<sattr3>()?);
    make(store, directory, name, New::Directory { attributes: &attributes }, reply);
    Ok(())
}

fn symlink(store: &dyn Store, arguments: &mut Arguments<'_>, reply: &mut Vec<u8>) -> Parsed {
    let ((directory, name), attributes) = (arguments.place()?, arguments.take::<sattr3>()?);
    let text = arguments.opaque()?;
    make(store, directory, name, New::Link { attributes: &attributes, text }, reply);
    Ok(())
}

/// The results of CREATE, MKDIR and SYMLINK are alike.
fn make(store: &dyn Store, directory: Result<Handle>, name: &[u8], new: New<'_>, reply: &mut Vec<u8>) {
    let checked = match new {
        New::Link { text, .. } if text.len() > LINK_MAXIMUM => Err(nfsstat3::NFS3ERR_NAMETOOLONG),
        New::Link { text, .. } if text.is_empty() || text.contains(&0) => Err(nfsstat3::NFS3ERR_INVAL),
        _ => directory,
    };
    let done = checked.and_then(|directory| store.make(DirOpArgs { directory, name: Name::new(name)? }, new));
    let done = done.map(|Made { handle, attributes, directory }| CREATE3resok {
        obj: made(handle),
        obj_attributes: Nfs3Option::Some(attributes),
        dir_wcc: directory,
    });
    answer(reply, done, || CREATE3resfail { dir_wcc: unchanged(store, directory) });
}

/// MKNOD: this server has files, directories and links only.
fn mknod(store: &dyn Store, arguments: &mut Arguments<'_>, reply: &mut Vec<u8>) -> Parsed {
    let (directory, _name) = arguments.place()?;
    let status = directory.err().unwrap_or(nfsstat3::NFS3ERR_NOTSUPP);
    let failed = || MKNOD3resfail { dir_wcc: unchanged(store, directory) };
    answer::<MKNOD3resok, _>(reply, Err(status), failed);
    Ok(())
}

fn remove(store: &dyn Store, what: Removed, arguments: &mut Arguments<'_>, reply: &mut Vec<u8>) -> Parsed {
    let (directory, name) = arguments.place()?;
    let done = directory.and_then(|directory| store.remove(DirOpArgs { directory, name: Name::new(name)? }, what));
    // The results of REMOVE and RMDIR are alike.
    let done = done.map(|dir_wcc| REMOVE3resok { dir_wcc });
    answer(reply, done, || REMOVE3resfail { dir_wcc: unchanged(store, directory) });
    Ok(())
}

fn rename(store: &dyn Store, arguments: &mut Arguments<'_>, reply: &mut Vec<u8>) -> Parsed {
    let ((from, old), (to, new)) = (arguments.place()?, arguments.place()?);
    let both = from.and_then(|from| Ok((from, to?)));
    let done = both.and_then(|(from, to)| {
        let from = DirOpArgs { directory: from, name: Name::new(old)? };
        store.rename(from, DirOpArgs { directory: to, name: Name::new(new)? })
    });
    let done = done.map(|(fromdir_wcc, todir_wcc)| RENAME3resok { fromdir_wcc, todir_wcc });
    let failed = || RENAME3resfail { fromdir_wcc: unchanged(store, from), todir_wcc: unchanged(store, to) };
    answer(reply, done, failed);
    Ok(())
}

/// LINK: a file of this server has one name.
fn link(store: &dyn Store, arguments: &mut Arguments<'_>, reply: &mut Vec<u8>) -> Parsed {
    let (file, (directory, _name)) = (arguments.handle()?, arguments.place()?);
    let status = file.err().or(directory.err()).unwrap_or(nfsstat3::NFS3ERR_NOTSUPP);
    let failed = || LINK3resfail { file_attributes: attributes(store, file), linkdir_wcc: unchanged(store, directory) };
    answer::<LINK3resok, _>(reply, Err(status), failed);
    Ok(())
}

fn fsstat(store: &dyn Store, arguments: &mut Arguments<'_>, reply: &mut Vec<u8>) -> Parsed {
    let root = arguments.handle()?;
    let done =
        root.and_then(|root| Ok((store.attributes(root)?, store.space()?))).map(|(attributes, space)| FSSTAT3resok {
            obj_attributes: Nfs3Option::Some(attributes),
            tbytes: space.bytes,
            fbytes: space.bytes_free,
            abytes: space.bytes_free,
            tfiles: space.files,
            ffiles: space.files_free,
            afiles: space.files_free,
            invarsec: 0,
        });
    answer(reply, done, || FSSTAT3resfail { obj_attributes: attributes(store, root) });
    Ok(())
}

fn fsinfo(store: &dyn Store, maximum: u32, arguments: &mut Arguments<'_>, reply: &mut Vec<u8>) -> Parsed {
    let root = arguments.handle()?;
    let done = root.and_then(|root| store.attributes(root)).map(|attributes| FSINFO3resok {
        obj_attributes: Nfs3Option::Some(attributes),
        rtmax: maximum,
        rtpref: maximum,
        rtmult: 1,
        wtmax: maximum,
        wtpref: maximum,
        wtmult: 1,
        dtpref: maximum,
        maxfilesize: crate::memory::FILE_MAXIMUM,
        time_delta: nfstime3 { seconds: 0, nseconds: 1 },
        properties: FSF3_SYMLINK | FSF3_HOMOGENEOUS | FSF3_CANSETTIME,
    });
    answer(reply, done, || FSINFO3resfail { obj_attributes: attributes(store, root) });
    Ok(())
}

fn pathconf(store: &dyn Store, arguments: &mut Arguments<'_>, reply: &mut Vec<u8>) -> Parsed {
    let object = arguments.handle()?;
    let done = object.and_then(|object| store.attributes(object)).map(|attributes| PATHCONF3resok {
        obj_attributes: Nfs3Option::Some(attributes),
        linkmax: 1,
        name_max: NAME_MAXIMUM as u32,
        no_trunc: true,
        chown_restricted: true,
        case_insensitive: false,
        case_preserving: true,
    });
    answer(reply, done, || PATHCONF3resfail { obj_attributes: attributes(store, object) });
    Ok(())
}
