//! Answers of a server (MS-SMB2 2.2).

use crate::error::CallError;
use crate::file_info::{FileInfo, Kind, unix_ns};
use crate::request::{FileId, Protection};
use crate::wire::{FLAGS, HEADER, SESSION, STATUS, TREE, from_utf16, part, u16_at, u32_at, u64_at};
use std::ops::Range;

/// An answer, as it came.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) bytes: Vec<u8>,
    /// Offset of its header: after the transform header if it was encrypted.
    pub(crate) begins: usize,
    /// Encrypted, or not yet known to be protected.
    pub(crate) protection: Protection,
}

/// Result of a negotiation.
pub(crate) struct Negotiated {
    /// The server's values. Before 3.1.1 they are requested again under a signature.
    pub(crate) server: ServerInfo,
    /// Bytes that one message may read and write.
    pub(crate) max_read: usize,
    pub(crate) max_write: usize,
    /// Chosen of those offered, by the dialects that choose.
    pub(crate) cipher: Option<u16>,
    pub(crate) signing: Option<u16>,
}

/// Values of a server, in its answer to a negotiation and to its validation (MS-SMB2 2.2.4, 2.2.32.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServerInfo {
    pub(crate) capabilities: u32,
    pub(crate) id: [u8; 16],
    pub(crate) security_mode: u16,
    pub(crate) dialect: u16,
}

impl Answer {
    /// Header and body.
    pub(crate) fn message(&self) -> &[u8] {
        &self.bytes[self.begins..]
    }

    fn body(&self) -> &[u8] {
        self.message().get(HEADER..).unwrap_or_default()
    }

    pub(crate) fn status(&self) -> u32 {
        u32_at(self.message(), STATUS).unwrap_or(u32::MAX)
    }

    pub(crate) fn session(&self) -> u64 {
        u64_at(self.message(), SESSION).unwrap_or_default()
    }

    pub(crate) fn tree(&self) -> u32 {
        u32_at(self.message(), TREE).unwrap_or_default()
    }

    /// Returns whether the final answer comes later (MS-SMB2 3.2.5.1.5).
    pub(crate) fn is_interim(&self) -> bool {
        const PENDING: u32 = 0x103;
        const ASYNC: u32 = 2;
        self.status() == PENDING && u32_at(self.message(), FLAGS).unwrap_or_default() & ASYNC != 0
    }

    pub(crate) fn negotiated(&self) -> Result<Negotiated, CallError> {
        self.try_negotiated().ok_or(CallError::Malformed("its answer to the negotiation"))
    }

    fn try_negotiated(&self) -> Option<Negotiated> {
        let message = self.message();
        let body = self.body();
        let mut cipher = None;
        let mut signing = None;
        let dialect = u16_at(body, 4)?;
        if dialect == 0x311 {
            let mut at = u32_at(body, 60)? as usize;
            for _ in 0..u16_at(body, 6)? {
                at = at.next_multiple_of(8);
                let context = part(message, at.checked_add(8)?, u16_at(message, at.checked_add(2)?)?.into())?;
                match u16_at(message, at)? {
                    2 => cipher = u16_at(context, 2),
                    8 => signing = u16_at(context, 2),
                    _ => {}
                }
                at += 8 + context.len();
            }
        }
        Some(Negotiated {
            server: ServerInfo {
                capabilities: u32_at(body, 24)?,
                id: part(body, 8, 16)?.try_into().ok()?,
                security_mode: u16_at(body, 2)?,
                dialect,
            },
            max_read: u32_at(body, 32)? as usize,
            max_write: u32_at(body, 36)? as usize,
            cipher,
            signing,
        })
    }

    /// The flags of a session that is set up, or is being so, and the server's token.
    pub(crate) fn set_up(&self) -> Result<(u16, &[u8]), CallError> {
        let body = self.body();
        let parse = || {
            let token = part(self.message(), u16_at(body, 4)?.into(), u16_at(body, 6)?.into())?;
            Some((u16_at(body, 2)?, token))
        };
        parse().ok_or(CallError::Malformed("its answer to the login"))
    }

    /// Reads the values that the server confirms to have negotiated.
    pub(crate) fn validated(&self) -> Result<ServerInfo, CallError> {
        let body = self.body();
        let parse = || {
            let info = part(self.message(), u32_at(body, 32)? as usize, u32_at(body, 36)? as usize)?;
            Some(ServerInfo {
                capabilities: u32_at(info, 0)?,
                id: part(info, 4, 16)?.try_into().ok()?,
                security_mode: u16_at(info, 20)?,
                dialect: u16_at(info, 22)?,
            })
        };
        parse().ok_or(CallError::Malformed("its validation of the negotiation"))
    }

    /// The flags of a share.
    pub(crate) fn share_flags(&self) -> Result<u32, CallError> {
        u32_at(self.body(), 4).ok_or(CallError::Malformed("its answer about the share"))
    }

    /// A handle, and what is known of it.
    pub(crate) fn created(&self) -> Result<(FileId, FileInfo), CallError> {
        let body = self.body();
        let parse = || {
            let about = FileInfo {
                kind: kind(u32_at(body, 56)?),
                size: u64_at(body, 48)?,
                modified: unix_ns(u64_at(body, 24)?),
            };
            Some((part(body, 64, 16)?.try_into().ok()?, about))
        };
        parse().ok_or(CallError::Malformed("its answer to an opening"))
    }

    /// Returns the range of the read data in [`Self::bytes`].
    pub(crate) fn read(&self) -> Result<Range<usize>, CallError> {
        let body = self.body();
        let parse = || {
            let at = usize::from(*body.get(2)?);
            let length = u32_at(body, 4)? as usize;
            part(self.message(), at, length)?;
            Some(self.begins + at..self.begins + at + length)
        };
        parse().ok_or(CallError::Malformed("its answer to a reading"))
    }

    /// Bytes that were written.
    pub(crate) fn written(&self) -> Result<usize, CallError> {
        u32_at(self.body(), 4).map(|bytes| bytes as usize).ok_or(CallError::Malformed("its answer to a writing"))
    }

    /// Reads the attributes of a file (MS-FSCC 2.4.29).
    pub(crate) fn about(&self) -> Result<FileInfo, CallError> {
        let parse = || {
            let info = self.information()?;
            let size = u64_at(info, 40)?;
            let modified = unix_ns(u64_at(info, 16)?);
            Some(FileInfo { kind: kind(u32_at(info, 48)?), size, modified })
        };
        parse().ok_or(CallError::Malformed("what it knows of a file"))
    }

    /// Names in a folder, in their order (MS-FSCC 2.4.14); one that is no UTF-16 is none.
    pub(crate) fn names(&self) -> Result<Vec<(Option<String>, FileInfo)>, CallError> {
        const NAME: usize = 68;
        let parse = || {
            let mut names = Vec::new();
            let mut rest = self.information()?;
            loop {
                let length = u32_at(rest, 60)? as usize;
                let about = FileInfo {
                    kind: listed(u32_at(rest, 56)?, u32_at(rest, 64)?),
                    size: u64_at(rest, 40)?,
                    modified: unix_ns(u64_at(rest, 24)?),
                };
                names.push((from_utf16(part(rest, NAME, length)?), about));
                match u32_at(rest, 0)? as usize {
                    0 => return Some(names),
                    // Each name has its own bytes.
                    next if next >= NAME + length => rest = rest.get(next..)?,
                    _ => return None,
                }
            }
        };
        parse().ok_or(CallError::Malformed("what it lists"))
    }

    fn information(&self) -> Option<&[u8]> {
        part(self.message(), u16_at(self.body(), 2)?.into(), u32_at(self.body(), 4)? as usize)
    }
}

/// Returns the kind of an open object by its attributes (MS-FSCC 2.6). The server has followed reparse points.
fn kind(attributes: u32) -> Kind {
    const FOLDER: u32 = 0x10;
    if attributes & FOLDER != 0 { Kind::Folder } else { Kind::File }
}

/// Returns the kind of a listed object. A reparse point has a tag in place of the size of extended attributes.
fn listed(attributes: u32, tag: u32) -> Kind {
    const REPARSE: u32 = 0x400;
    /// Flag of a tag that stands for another file (MS-FSCC 2.1.2.1).
    const SURROGATE: u32 = 0x2000_0000;
    /// Links of a distributed file system, and its replication's.
    const DFS: [u32; 2] = [0x8000_000A, 0x8000_0012];
    // Others read as any file: deduplicated ones, and those that come from an archive or a cloud.
    let leads_away = tag == 0 || tag & SURROGATE != 0 || DFS.contains(&tag);
    if attributes & REPARSE != 0 && leads_away { Kind::Reparse } else { kind(attributes) }
}

#[cfg(any(test, feature = "fuzzing"))]
impl Answer {
    /// Reads it as every kind of answer: none may panic.
    pub(crate) fn read_as_all(&self) {
        let _ = (self.status(), self.session(), self.tree(), self.is_interim());
        let _ =
            (self.negotiated().is_ok(), self.set_up().is_ok(), self.share_flags().is_ok(), self.validated().is_ok());
        let _ = (self.created().is_ok(), self.read().is_ok(), self.written().is_ok());
        let _ = (self.about().is_ok(), self.names().is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_leads_away_is_told_from_what_reads_as_a_file() {
        let file = 0x20;
        let folder = 0x10;
        let reparse = 0x400;
        assert_eq!((listed(file, 7), listed(folder, 0)), (Kind::File, Kind::Folder));
        // A symbolic link, a mount point, a link of DFS, one without a tag.
        for tag in [0xA000_000C, 0xA000_0003, 0x8000_000A, 0] {
            assert_eq!(listed(file | reparse, tag), Kind::Reparse, "{tag:#x}");
        }
        assert_eq!(listed(file | reparse, 0x8000_0013), Kind::File, "a deduplicated one");
    }

    proptest! {
        /// Whatever a server sends is refused or understood.
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), dialect in any::<bool>()) {
            let mut bytes = bytes;
            if dialect && bytes.len() > HEADER + 8 {
                bytes[HEADER + 4..HEADER + 6].copy_from_slice(&[0x11, 3]);
            }
            let answer = Answer { bytes, begins: 0, protection: Protection::None };
            answer.read_as_all();
        }
    }
}
