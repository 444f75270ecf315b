//! File handles: the number of an object, and of the store that gave it.

use nfs3_types::nfs3::nfsstat3;

/// A file handle. Numbers are never used twice within a store, and the store's own is drawn by chance: a handle of a
/// removed file, or of a server that is gone, is known to be stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Handle {
    /// The store's number.
    pub(crate) generation: u64,
    /// The object's.
    pub(crate) id: u64,
}

impl Handle {
    /// Its length in calls and replies, bytes.
    pub(crate) const BYTES: usize = 16;

    /// Returns the form in calls and replies.
    pub(crate) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.generation.to_be_bytes());
        bytes[8..].copy_from_slice(&self.id.to_be_bytes());
        bytes
    }

    /// The handle that a caller showed.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, nfsstat3> {
        let (generation, id) = bytes.split_at_checked(8).ok_or(nfsstat3::NFS3ERR_BADHANDLE)?;
        let number = |half: &[u8]| half.try_into().map(u64::from_be_bytes).map_err(|_| nfsstat3::NFS3ERR_BADHANDLE);
        Ok(Self { generation: number(generation)?, id: number(id)? })
    }

    /// Its object's number, if this store gave it.
    pub(crate) fn of(self, generation: u64) -> Result<u64, nfsstat3> {
        if self.generation == generation { Ok(self.id) } else { Err(nfsstat3::NFS3ERR_STALE) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_read_as_it_was_written() {
        let handle = Handle { generation: 0x0102_0304_0506_0708, id: 9 };
        assert_eq!(Handle::from_bytes(&handle.to_bytes()), Ok(handle));
        for wrong in [&[][..], &[0; 8], &[0; 15], &[0; 17], &[0; 64]] {
            assert_eq!(Handle::from_bytes(wrong), Err(nfsstat3::NFS3ERR_BADHANDLE), "{} bytes", wrong.len());
        }
        assert_eq!(handle.of(handle.generation), Ok(9));
        assert_eq!(handle.of(1), Err(nfsstat3::NFS3ERR_STALE));
    }
}
