//! The arguments of NFS version 3 procedures: RFC 1813 section 3.3, packed by nfs3_types.

use linerate_model::NfsOperation;
use linerate_oncrpc::message::Procedure;
use nfs3_types::nfs3::{
    ACCESS3args, COMMIT3args, CREATE3args, FSINFO3args, FSSTAT3args, GETATTR3args, LOOKUP3args, MKDIR3args,
    NFS_PROGRAM, Nfs3Option, PATHCONF3args, PROGRAM, READ3args, READDIR3args, READDIRPLUS3args, READLINK3args,
    REMOVE3args, RENAME3args, RMDIR3args, SETATTR3args, SYMLINK3args, VERSION, WRITE3args, cookieverf3, createhow3,
    diropargs3, nfs_fh3, nfstime3, sattr3, set_mtime, stable_how, symlinkdata3,
};
use nfs3_types::xdr_codec::{Opaque, Pack};

/// Identifier of a file or directory at its server.
pub(crate) type Handle = nfs_fh3;

/// Bytes of a directory that one READDIR or READDIRPLUS asks for, as Linux's client does.
const DIRECTORY_BYTES: u32 = 4096;
const DIRECTORY_BYTES_PLUS: u32 = 32 << 10;
/// Mode of new files: their owner may read and write them.
const FILE_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;
/// Every right that ACCESS can ask about.
const ALL_ACCESS: u32 = 0x3f;

/// Attributes to set on a file, directory or link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) mode: Option<u32>,
    pub(crate) size: Option<u64>,
    /// Seconds and nanoseconds since 1970.
    pub(crate) modified: Option<(u32, u32)>,
}

impl Settings {
    fn packed(self) -> sattr3 {
        let mtime = self.modified.map_or(set_mtime::DONT_CHANGE, |(seconds, nseconds)| {
            set_mtime::SET_TO_CLIENT_TIME(nfstime3 { seconds, nseconds })
        });
        sattr3 {
            mode: self.mode.map_or(Nfs3Option::None, Nfs3Option::Some),
            size: self.size.map_or(Nfs3Option::None, Nfs3Option::Some),
            mtime,
            ..sattr3::default()
        }
    }
}

/// Call, ready to be packed.
#[derive(Debug)]
pub(crate) enum Ask<'a> {
    Null,
    Getattr(&'a Handle),
    /// Sets a file's time of modification to the server's time.
    Touch(&'a Handle),
    Set(&'a Handle, Settings),
    Lookup(&'a Handle, &'a [u8]),
    Access(&'a Handle),
    Readlink(&'a Handle),
    Read {
        file: &'a Handle,
        offset: u64,
        count: u32,
    },
    Write {
        file: &'a Handle,
        offset: u64,
        data: &'a [u8],
        stable: bool,
    },
    /// Makes a file that must not be there yet.
    Create(&'a Handle, &'a [u8]),
    Mkdir(&'a Handle, &'a [u8]),
    Symlink {
        directory: &'a Handle,
        name: &'a [u8],
        to: &'a [u8],
    },
    Remove(&'a Handle, &'a [u8]),
    Rmdir(&'a Handle, &'a [u8]),
    /// Within one directory.
    Rename {
        directory: &'a Handle,
        from: &'a [u8],
        to: &'a [u8],
    },
    /// The directory's beginning.
    Readdir(&'a Handle),
    /// Lists a directory with attributes and handles.
    Readdirplus(&'a Handle),
    /// Lists a directory with attributes and handles after the entry with this cookie.
    ReaddirplusFrom {
        directory: &'a Handle,
        cookie: u64,
        verifier: [u8; 8],
    },
    /// Names alone from there on.
    ReaddirFrom {
        directory: &'a Handle,
        cookie: u64,
        verifier: [u8; 8],
    },
    Fsstat(&'a Handle),
    Fsinfo(&'a Handle),
    Pathconf(&'a Handle),
    /// Makes a whole file stable.
    Commit(&'a Handle),
}

impl Ask<'_> {
    fn operation(&self) -> NfsOperation {
        match self {
            Self::Null => NfsOperation::Null,
            Self::Getattr(_) => NfsOperation::Getattr,
            Self::Touch(_) | Self::Set(..) => NfsOperation::Setattr,
            Self::Lookup(..) => NfsOperation::Lookup,
            Self::Access(_) => NfsOperation::Access,
            Self::Readlink(_) => NfsOperation::Readlink,
            Self::Read { .. } => NfsOperation::Read,
            Self::Write { .. } => NfsOperation::Write,
            Self::Create(..) => NfsOperation::Create,
            Self::Mkdir(..) => NfsOperation::Mkdir,
            Self::Symlink { .. } => NfsOperation::Symlink,
            Self::Remove(..) => NfsOperation::Remove,
            Self::Rmdir(..) => NfsOperation::Rmdir,
            Self::Rename { .. } => NfsOperation::Rename,
            Self::Readdir(_) | Self::ReaddirFrom { .. } => NfsOperation::Readdir,
            Self::Readdirplus(_) | Self::ReaddirplusFrom { .. } => NfsOperation::Readdirplus,
            Self::Fsstat(_) => NfsOperation::Fsstat,
            Self::Fsinfo(_) => NfsOperation::Fsinfo,
            Self::Pathconf(_) => NfsOperation::Pathconf,
            Self::Commit(_) => NfsOperation::Commit,
        }
    }

    /// Writes its arguments, and nothing else, to `into`; returns the operation it is.
    pub(crate) fn pack(&self, into: &mut Vec<u8>) -> NfsOperation {
        into.clear();
        match *self {
            Self::Null => {}
            Self::Getattr(object) => put(&GETATTR3args { object: object.clone() }, into),
            Self::Touch(object) => {
                let new_attributes = sattr3 { mtime: set_mtime::SET_TO_SERVER_TIME, ..sattr3::default() };
                put(&SETATTR3args { object: object.clone(), new_attributes, guard: Nfs3Option::None }, into);
            }
            Self::Set(object, settings) => {
                let object = object.clone();
                let new_attributes = settings.packed();
                put(&SETATTR3args { object, new_attributes, guard: Nfs3Option::None }, into);
            }
            Self::Lookup(directory, name) => put(&LOOKUP3args { what: at(directory, name) }, into),
            Self::Access(object) => put(&ACCESS3args { object: object.clone(), access: ALL_ACCESS }, into),
            Self::Readlink(symlink) => put(&READLINK3args { symlink: symlink.clone() }, into),
            Self::Read { file, offset, count } => put(&READ3args { file: file.clone(), offset, count }, into),
            Self::Write { file, offset, data, stable } => {
                let file = file.clone();
                let count = data.len() as u32;
                let data = Opaque::borrowed(data);
                let stable = if stable { stable_how::FILE_SYNC } else { stable_how::UNSTABLE };
                put(&WRITE3args { file, offset, count, stable, data }, into);
            }
            Self::Create(directory, name) => {
                put(&CREATE3args { where_: at(directory, name), how: createhow3::GUARDED(mode(FILE_MODE)) }, into);
            }
            Self::Mkdir(directory, name) => {
                put(&MKDIR3args { where_: at(directory, name), attributes: mode(DIRECTORY_MODE) }, into);
            }
            Self::Symlink { directory, name, to } => {
                let symlink = symlinkdata3 { symlink_attributes: mode(FILE_MODE), symlink_data: to.into() };
                put(&SYMLINK3args { where_: at(directory, name), symlink }, into);
            }
            Self::Remove(directory, name) => put(&REMOVE3args { object: at(directory, name) }, into),
            Self::Rmdir(directory, name) => put(&RMDIR3args { object: at(directory, name) }, into),
            Self::Rename { directory, from, to } => {
                put(&RENAME3args { from: at(directory, from), to: at(directory, to) }, into);
            }
            Self::Readdir(directory) => {
                Self::ReaddirFrom { directory, cookie: 0, verifier: [0; 8] }.pack(into);
            }
            Self::ReaddirFrom { directory, cookie, verifier } => {
                let dir = directory.clone();
                let cookieverf = cookieverf3(verifier);
                put(&READDIR3args { dir, cookie, cookieverf, count: DIRECTORY_BYTES }, into);
            }
            Self::Readdirplus(directory) => {
                Self::ReaddirplusFrom { directory, cookie: 0, verifier: [0; 8] }.pack(into);
            }
            Self::ReaddirplusFrom { directory, cookie, verifier } => {
                let dir = directory.clone();
                let cookieverf = cookieverf3(verifier);
                let dircount = DIRECTORY_BYTES;
                let maxcount = DIRECTORY_BYTES_PLUS;
                put(&READDIRPLUS3args { dir, cookie, cookieverf, dircount, maxcount }, into);
            }
            Self::Fsstat(fsroot) => put(&FSSTAT3args { fsroot: fsroot.clone() }, into),
            Self::Fsinfo(fsroot) => put(&FSINFO3args { fsroot: fsroot.clone() }, into),
            Self::Pathconf(object) => put(&PATHCONF3args { object: object.clone() }, into),
            Self::Commit(file) => put(&COMMIT3args { file: file.clone(), offset: 0, count: 0 }, into),
        }
        self.operation()
    }
}

/// The procedure of an operation.
pub(crate) fn procedure(operation: NfsOperation) -> Procedure {
    use NFS_PROGRAM as P;
    let procedure = match operation {
        NfsOperation::Null => P::NFSPROC3_NULL,
        NfsOperation::Getattr => P::NFSPROC3_GETATTR,
        NfsOperation::Setattr => P::NFSPROC3_SETATTR,
        NfsOperation::Lookup => P::NFSPROC3_LOOKUP,
        NfsOperation::Access => P::NFSPROC3_ACCESS,
        NfsOperation::Readlink => P::NFSPROC3_READLINK,
        NfsOperation::Read => P::NFSPROC3_READ,
        NfsOperation::Write => P::NFSPROC3_WRITE,
        NfsOperation::Create => P::NFSPROC3_CREATE,
        NfsOperation::Mkdir => P::NFSPROC3_MKDIR,
        NfsOperation::Symlink => P::NFSPROC3_SYMLINK,
        NfsOperation::Remove => P::NFSPROC3_REMOVE,
        NfsOperation::Rmdir => P::NFSPROC3_RMDIR,
        NfsOperation::Rename => P::NFSPROC3_RENAME,
        NfsOperation::Readdir => P::NFSPROC3_READDIR,
        NfsOperation::Readdirplus => P::NFSPROC3_READDIRPLUS,
        NfsOperation::Fsstat => P::NFSPROC3_FSSTAT,
        NfsOperation::Fsinfo => P::NFSPROC3_FSINFO,
        NfsOperation::Pathconf => P::NFSPROC3_PATHCONF,
        NfsOperation::Commit => P::NFSPROC3_COMMIT,
    };
    Procedure { program: PROGRAM, version: VERSION, procedure: procedure as u32 }
}

/// The handle that a server gave.
pub(crate) fn handle(bytes: &[u8]) -> Handle {
    nfs_fh3 { data: Opaque::owned(bytes.to_vec()) }
}

fn at<'a>(directory: &Handle, name: &'a [u8]) -> diropargs3<'a> {
    diropargs3 { dir: directory.clone(), name: name.into() }
}

fn mode(mode: u32) -> sattr3 {
    sattr3 { mode: Nfs3Option::Some(mode), ..sattr3::default() }
}

fn put(arguments: &impl Pack, into: &mut Vec<u8>) {
    arguments.pack(into).expect("a Vec takes whatever is written, and nothing here is 4 GiB long");
}
