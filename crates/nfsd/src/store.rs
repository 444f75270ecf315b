//! Storage of the server: a tree of files in memory or in a directory.
//!
//! A store knows files and directories and nothing of calls and replies. Its words are RFC 1813's.

use crate::handle::Handle;
use nfs3_types::nfs3::{createverf3, fattr3, nfsstat3, nfstime3, sattr3, stable_how, wcc_data};

/// Result of an operation; errors are those of the protocol.
pub(crate) type Result<T> = std::result::Result<T, nfsstat3>;

/// The longest name of a file or directory, bytes.
pub(crate) const NAME_MAXIMUM: usize = 255;
/// The longest text of a symbolic link, bytes (Linux: PATH_MAX less the final zero).
pub(crate) const LINK_MAXIMUM: usize = 4095;

/// A name in a directory: not empty, not too long, without `/` and zero bytes, and neither `.` nor `..`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Name<'a>(&'a [u8]);

impl<'a> Name<'a> {
    /// The name that a caller gave.
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self> {
        match bytes {
            b"" | b"." | b".." => Err(nfsstat3::NFS3ERR_INVAL),
            _ if bytes.len() > NAME_MAXIMUM => Err(nfsstat3::NFS3ERR_NAMETOOLONG),
            _ if bytes.iter().any(|byte| matches!(byte, b'/' | 0)) => Err(nfsstat3::NFS3ERR_INVAL),
            _ => Ok(Self(bytes)),
        }
    }

    /// Its bytes.
    pub(crate) fn bytes(self) -> &'a [u8] {
        self.0
    }
}

/// A name in a directory of this store: `diropargs3` of RFC 1813.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DirOpArgs<'a> {
    pub(crate) directory: Handle,
    pub(crate) name: Name<'a>,
}

/// Kind of object to create.
#[derive(Debug, Clone, Copy)]
pub(crate) enum New<'a> {
    /// A file, or the one that is there, which `attributes` then change (UNCHECKED).
    Unchecked { attributes: &'a sattr3 },
    /// A file where nothing is (GUARDED).
    Guarded { attributes: &'a sattr3 },
    /// A file where nothing is, or the one that was made with this very number (EXCLUSIVE).
    Exclusive { number: createverf3 },
    /// A directory.
    Directory { attributes: &'a sattr3 },
    /// A symbolic link.
    Link { attributes: &'a sattr3, text: &'a [u8] },
}

/// Object that was created or looked up.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) handle: Handle,
    pub(crate) attributes: fattr3,
    /// Its directory.
    pub(crate) directory: wcc_data,
}

/// Kind of object that a REMOVE or RMDIR expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Removed {
    /// Anything but a directory.
    File,
    /// An empty directory.
    Directory,
}

/// Entry of a directory.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) file_id: u64,
    /// Cookie of the next entry. It stays valid when entries are created or removed.
    pub(crate) cookie: u64,
}

/// Bytes and files, in all and free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Space {
    pub(crate) bytes: u64,
    pub(crate) bytes_free: u64,
    pub(crate) files: u64,
    pub(crate) files_free: u64,
}

/// A tree of files. Every call may come from any thread at any time.
pub(crate) trait Store: Send + Sync {
    /// The directory that is exported.
    fn root(&self) -> Handle;

    /// The number that changes when unstable data may have been lost (RFC 1813 section 3.3.7), and that cookies and
    /// handles go with.
    fn verifier(&self) -> [u8; 8];

    /// Attributes of anything.
    fn attributes(&self, object: Handle) -> Result<fattr3>;

    /// Changes attributes; with a `guard`, only if that was when the object changed last.
    fn set_attributes(&self, object: Handle, to: &sattr3, guard: Option<nfstime3>) -> Result<wcc_data>;

    /// Looks up a name.
    fn lookup(&self, place: DirOpArgs<'_>) -> Result<(Handle, fattr3)>;

    /// The directory that holds a directory; the exported one holds itself.
    fn parent(&self, directory: Handle) -> Result<(Handle, fattr3)>;

    /// Reads the target of a symbolic link.
    fn link_text(&self, link: Handle) -> Result<(Vec<u8>, fattr3)>;

    /// Appends at most `count` bytes of a file to `data`, and says whether they reach its end.
    fn read(&self, file: Handle, offset: u64, count: u32, data: &mut Vec<u8>) -> Result<(bool, fattr3)>;

    /// Writes all of `data`, as safely as asked.
    fn write(&self, file: Handle, offset: u64, data: &[u8], stable: stable_how) -> Result<wcc_data>;

    /// Brings what was written to a file to where it is safe.
    fn commit(&self, file: Handle) -> Result<wcc_data>;

    /// Makes a file, a directory or a link.
    fn make(&self, place: DirOpArgs<'_>, new: New<'_>) -> Result<Made>;

    /// Removes a name.
    fn remove(&self, place: DirOpArgs<'_>, what: Removed) -> Result<wcc_data>;

    /// Moves a name, over another one if need be; both directories.
    fn rename(&self, from: DirOpArgs<'_>, to: DirOpArgs<'_>) -> Result<(wcc_data, wcc_data)>;

    /// Lists the names of a directory after `cookie` (0: all, `.` and `..` first), until `each` returns false. Returns
    /// the directory's attributes, and whether all names were listed.
    fn list(&self, directory: Handle, cookie: u64, each: &mut dyn FnMut(Entry<'_>) -> bool) -> Result<(fattr3, bool)>;

    /// Returns the total and free space.
    fn space(&self) -> Result<Space>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_step_down() {
        for good in [&b"a"[..], b"...", b"a b", "\u{e9}".as_bytes(), &[b'x'; 255]] {
            assert_eq!(Name::new(good).expect("a name").bytes(), good);
        }
        for bad in [&b""[..], b".", b"..", b"a/b", b"/", b"a\0"] {
            assert_eq!(Name::new(bad), Err(nfsstat3::NFS3ERR_INVAL), "{bad:?}");
        }
        assert_eq!(Name::new(&[b'x'; 256]), Err(nfsstat3::NFS3ERR_NAMETOOLONG));
    }
}
