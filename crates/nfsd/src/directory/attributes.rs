//! Attributes as the kernel has them, in NFS's words, and errors likewise.

use crate::store::Result;
use nfs3_types::nfs3::{Nfs3Option, fattr3, ftype3, nfsstat3, nfstime3, specdata3, wcc_attr, wcc_data};
use nix::errno::Errno;
use std::fs::{File, Metadata};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};

/// The attributes of an open object.
pub(super) fn of(file: &File) -> Result<Metadata> {
    file.metadata().map_err(|error| status(&error))
}

/// Returns the type of an object.
pub(super) fn kind(metadata: &Metadata) -> ftype3 {
    let kind = metadata.file_type();
    match () {
        () if kind.is_dir() => ftype3::NF3DIR,
        () if kind.is_symlink() => ftype3::NF3LNK,
        () if kind.is_file() => ftype3::NF3REG,
        () if kind.is_fifo() => ftype3::NF3FIFO,
        () if kind.is_socket() => ftype3::NF3SOCK,
        () if kind.is_block_device() => ftype3::NF3BLK,
        () => ftype3::NF3CHR,
    }
}

/// Returns all attributes.
pub(super) fn all(metadata: &Metadata) -> fattr3 {
    let device = metadata.rdev();
    fattr3 {
        type_: kind(metadata),
        mode: metadata.mode() & 0o7777,
        nlink: u32::try_from(metadata.nlink()).unwrap_or(u32::MAX),
        uid: metadata.uid(),
        gid: metadata.gid(),
        size: metadata.len(),
        used: metadata.blocks().saturating_mul(512),
        rdev: specdata3 { specdata1: (device >> 8) as u32 & 0xfff, specdata2: device as u32 & 0xff },
        fsid: metadata.dev(),
        fileid: metadata.ino(),
        atime: time(metadata.atime(), metadata.atime_nsec()),
        mtime: time(metadata.mtime(), metadata.mtime_nsec()),
        ctime: changed(metadata),
    }
}

/// When it changed last.
pub(super) fn changed(metadata: &Metadata) -> nfstime3 {
    time(metadata.ctime(), metadata.ctime_nsec())
}

/// Returns the attributes before and after a change.
pub(super) fn change(before: &Metadata, after: &Metadata) -> wcc_data {
    let size_and_times =
        wcc_attr { size: before.len(), mtime: time(before.mtime(), before.mtime_nsec()), ctime: changed(before) };
    wcc_data { before: Nfs3Option::Some(size_and_times), after: Nfs3Option::Some(all(after)) }
}

/// NFS has no times before 1970 and after 2106.
fn time(seconds: i64, nanoseconds: i64) -> nfstime3 {
    let seconds = u32::try_from(seconds).unwrap_or(if seconds < 0 { 0 } else { u32::MAX });
    nfstime3 { seconds, nseconds: nanoseconds as u32 }
}

/// The protocol's name for an error of the kernel.
pub(super) fn status(error: &std::io::Error) -> nfsstat3 {
    errno(error.raw_os_error().map_or(Errno::EIO, Errno::from_raw))
}

/// Converts an error number.
pub(super) fn errno(error: Errno) -> nfsstat3 {
    match error {
        Errno::EPERM => nfsstat3::NFS3ERR_PERM,
        Errno::ENOENT => nfsstat3::NFS3ERR_NOENT,
        Errno::ENXIO => nfsstat3::NFS3ERR_NXIO,
        Errno::EACCES => nfsstat3::NFS3ERR_ACCES,
        Errno::EEXIST => nfsstat3::NFS3ERR_EXIST,
        Errno::EXDEV => nfsstat3::NFS3ERR_XDEV,
        Errno::ENOTDIR => nfsstat3::NFS3ERR_NOTDIR,
        Errno::EISDIR => nfsstat3::NFS3ERR_ISDIR,
        Errno::EINVAL => nfsstat3::NFS3ERR_INVAL,
        Errno::EFBIG => nfsstat3::NFS3ERR_FBIG,
        Errno::ENOSPC => nfsstat3::NFS3ERR_NOSPC,
        Errno::EROFS => nfsstat3::NFS3ERR_ROFS,
        Errno::EMLINK => nfsstat3::NFS3ERR_MLINK,
        Errno::ENAMETOOLONG => nfsstat3::NFS3ERR_NAMETOOLONG,
        Errno::ENOTEMPTY => nfsstat3::NFS3ERR_NOTEMPTY,
        Errno::EDQUOT => nfsstat3::NFS3ERR_DQUOT,
        // A symbolic link where a directory was: it was replaced.
        Errno::ESTALE | Errno::ELOOP => nfsstat3::NFS3ERR_STALE,
        _ => nfsstat3::NFS3ERR_IO,
    }
}
