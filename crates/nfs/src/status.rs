//! NFS version 3 status codes by name.

use nfs3_types::nfs3::nfsstat3;
use nfs3_types::xdr_codec::Unpack as _;

/// Success.
pub(crate) const OK: u32 = nfsstat3::NFS3_OK as u32;
/// The server is busy with it: it must be asked again later.
pub(crate) const JUKEBOX: u32 = nfsstat3::NFS3ERR_JUKEBOX as u32;

/// The server does not have this call.
pub(crate) const NOTSUPP: u32 = nfsstat3::NFS3ERR_NOTSUPP as u32;

/// The name of a status: RFC 1813 section 2.6.
pub(crate) fn name(status: u32) -> String {
    match nfsstat3::unpack(&mut &status.to_be_bytes()[..]) {
        Ok((known, _)) => known.to_string(),
        Err(_) => format!("status {status}"),
    }
}

/// Returns the remedy if the file set cannot be created because of `status`.
pub(crate) fn remedy(status: u32) -> &'static str {
    const PERM: u32 = nfsstat3::NFS3ERR_PERM as u32;
    const ACCES: u32 = nfsstat3::NFS3ERR_ACCES as u32;
    const ROFS: u32 = nfsstat3::NFS3ERR_ROFS as u32;
    const NOSPC: u32 = nfsstat3::NFS3ERR_NOSPC as u32;
    const DQUOT: u32 = nfsstat3::NFS3ERR_DQUOT as u32;
    match status {
        PERM | ACCES => {
            "; the export must let this user write: use another user, or see the server's options of the export"
        }
        ROFS => "; the export must be writable",
        NOSPC | DQUOT => "; ask for fewer or smaller files",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_have_the_names_of_the_standard() {
        for (status, expected) in
            [(0, "NFS3_OK"), (13, "NFS3ERR_ACCES"), (70, "NFS3ERR_STALE"), (10_008, "NFS3ERR_JUKEBOX"), (4, "status 4")]
        {
            assert_eq!(name(status), expected);
        }
        assert!(remedy(13).contains("let this user write"));
    }
}
