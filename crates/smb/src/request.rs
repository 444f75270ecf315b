//! Requests to a server, message by message (MS-SMB2 2.2).

use crate::wire::{COMMAND, HEADER, Put, TRANSFORM, utf16};

/// Room before a message: its length, and the head it has when it is encrypted.
pub(crate) const ROOM: usize = 4 + TRANSFORM;

/// A message to be sent: room, header and body, and content after it.
pub(crate) struct Request<'d> {
    pub(crate) message: Vec<u8>,
    pub(crate) data: &'d [u8],
    /// The most bytes that it or its answer carries, which is what it costs.
    pub(crate) carries: usize,
    /// Tree of the request.
    pub(crate) tree: u32,
    pub(crate) protection: Protection,
}

/// Protection of a message and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Protection {
    None,
    Signed,
    Sealed,
}

/// Access rights of a handle (MS-SMB2 2.2.13.1).
pub(crate) mod access {
    pub(crate) const READ: u32 = 0x1;
    pub(crate) const WRITE: u32 = 0x2;
    pub(crate) const READ_ATTRIBUTES: u32 = 0x80;
    pub(crate) const WRITE_ATTRIBUTES: u32 = 0x100;
    pub(crate) const DELETE: u32 = 0x1_0000;
}

/// Treatment of an existing or missing file (MS-SMB2 2.2.13).
#[derive(Debug, Clone, Copy)]
pub(crate) enum Disposition {
    /// Opens an existing file.
    Open = 1,
    /// Creates a new file.
    Create = 2,
    /// Opens or creates a file.
    OpenOrCreate = 3,
}

/// Kind of object and way to open it (MS-SMB2 2.2.13, CreateOptions).
pub(crate) mod options {
    pub(crate) const ANY: u32 = 0;
    pub(crate) const FOLDER: u32 = 0x1;
    pub(crate) const FILE: u32 = 0x40;
    pub(crate) const DELETE_ON_CLOSE: u32 = 0x1000;
}

/// An open file or folder at the server.
pub(crate) type FileId = [u8; 16];

/// Classes of what is known of a file (MS-FSCC 2.4).
mod class {
    pub(super) const FULL_DIRECTORY: u8 = 2;
    pub(super) const BASIC: u8 = 4;
    pub(super) const RENAME: u8 = 10;
    pub(super) const DISPOSITION: u8 = 13;
    pub(super) const END_OF_FILE: u8 = 20;
    pub(super) const NETWORK_OPEN: u8 = 34;
}

/// Commands (MS-SMB2 2.2.1.2).
#[derive(Debug, Clone, Copy)]
enum Command {
    Negotiate = 0,
    SessionSetup = 1,
    Logoff = 2,
    TreeConnect = 3,
    Create = 5,
    Close = 6,
    Flush = 7,
    Read = 8,
    Write = 9,
    Ioctl = 11,
    Echo = 13,
    QueryDirectory = 14,
    QueryInfo = 16,
    SetInfo = 17,
}

/// A negotiation offers at most what it says here (MS-SMB2 2.2.3).
pub(crate) struct Offer<'a> {
    pub(crate) dialects: &'a [u16],
    pub(crate) client: [u8; 16],
    pub(crate) salt: [u8; 32],
    pub(crate) signing: &'a [u16],
    pub(crate) ciphers: &'a [u16],
    pub(crate) capabilities: u32,
    pub(crate) security_mode: u16,
}

/// Signing modes of a client (MS-SMB2 2.2.3, SecurityMode): it can sign, or it requires signatures.
pub(crate) mod security_mode {
    pub(crate) const ENABLED: u16 = 1;
    pub(crate) const REQUIRED: u16 = 2;
}

/// Placeholder for the file in requests about the connection (MS-SMB2 2.2.31).
const NO_FILE: FileId = [0xff; 16];

impl<'d> Request<'d> {
    fn new(command: Command) -> Self {
        let mut message = vec![0; ROOM + HEADER];
        message[ROOM..ROOM + 4].copy_from_slice(b"\xfeSMB");
        message[ROOM + 4] = HEADER as u8;
        message[ROOM + COMMAND] = command as u8;
        Self { message, data: &[], carries: 0, tree: 0, protection: Protection::None }
    }

    fn with(mut self, body: impl FnOnce(&mut Vec<u8>)) -> Self {
        body(&mut self.message);
        self
    }

    /// Offers dialects and means of protection.
    pub(crate) fn negotiate(offer: &Offer<'_>) -> Self {
        let aligned = |length: usize| length.next_multiple_of(8);
        let contexts_at = aligned(HEADER + 36 + offer.dialects.len() * 2);
        let list = |numbers: &[u16]| {
            let mut list = (numbers.len() as u16).to_le_bytes().to_vec();
            numbers.iter().for_each(|number| list.u16(*number));
            list
        };
        // One hash, SHA-512, and the salt.
        let mut hashes = [1_u16, offer.salt.len() as u16, 1].iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<_>>();
        hashes.put(&offer.salt);
        let contexts = [(1_u16, hashes), (2, list(offer.ciphers)), (8, list(offer.signing))];
        Self::new(Command::Negotiate).with(|body| {
            body.u16(36);
            body.u16(offer.dialects.len() as u16);
            body.u16(offer.security_mode);
            body.u16(0);
            body.u32(offer.capabilities);
            body.put(&offer.client);
            body.u32(contexts_at as u32);
            body.u16(contexts.len() as u16);
            body.u16(0);
            offer.dialects.iter().for_each(|dialect| body.u16(*dialect));
            for (kind, context) in contexts {
                let at = aligned(body.len() - ROOM);
                body.resize(ROOM + at, 0);
                body.u16(kind);
                body.u16(context.len() as u16);
                body.u32(0);
                body.put(&context);
            }
        })
    }

    /// A step of the login (MS-SMB2 2.2.5).
    pub(crate) fn session_setup(token: &[u8], security_mode: u16) -> Self {
        Self::new(Command::SessionSetup).with(|body| {
            body.u16(25);
            body.u8(0);
            body.u8(security_mode as u8);
            body.u32(0);
            body.u32(0);
            body.u16(HEADER as u16 + 24);
            body.u16(token.len() as u16);
            body.u64(0);
            body.put(token);
        })
    }

    /// Repeats the offer, for the server to compare with the one that it received (MS-SMB2 2.2.31.4).
    pub(crate) fn validate_negotiation(offer: &Offer<'_>) -> Self {
        const FSCTL_VALIDATE_NEGOTIATE_INFO: u32 = 0x0014_0204;
        const IS_FSCTL: u32 = 1;
        /// Bytes of what is answered (MS-SMB2 2.2.32.6).
        const ANSWER: u32 = 24;
        Self::new(Command::Ioctl).with(|body| {
            body.u16(57);
            body.u16(0);
            body.u32(FSCTL_VALIDATE_NEGOTIATE_INFO);
            body.put(&NO_FILE);
            body.u32(HEADER as u32 + 56);
            body.u32(24 + 2 * offer.dialects.len() as u32);
            body.u32(0);
            body.u32(0);
            body.u32(0);
            body.u32(ANSWER);
            body.u32(IS_FSCTL);
            body.u32(0);
            body.u32(offer.capabilities);
            body.put(&offer.client);
            body.u16(offer.security_mode);
            body.u16(offer.dialects.len() as u16);
            offer.dialects.iter().for_each(|dialect| body.u16(*dialect));
        })
    }

    /// The end of the session.
    pub(crate) fn log_off() -> Self {
        Self::new(Command::Logoff).with(|body| body.u32(4))
    }

    /// Whether the server is there (MS-SMB2 2.2.28).
    pub(crate) fn echo() -> Self {
        Self::new(Command::Echo).with(|body| body.u32(4))
    }

    /// A share, as in `\\server\share` (MS-SMB2 2.2.9).
    pub(crate) fn tree_connect(share: &str) -> Self {
        let name = utf16(share);
        Self::new(Command::TreeConnect).with(|body| {
            body.u16(9);
            body.u16(0);
            body.u16(HEADER as u16 + 8);
            body.u16(name.len() as u16);
            body.put(&name);
        })
    }

    /// Opens what is at `path`, below the share (MS-SMB2 2.2.13).
    pub(crate) fn create(path: &str, access: u32, disposition: Disposition, options: u32) -> Self {
        const IMPERSONATION: u32 = 2;
        const SHARED: u32 = 7;
        let name = utf16(path);
        Self::new(Command::Create).with(|body| {
            body.u16(57);
            body.u16(0);
            body.u32(IMPERSONATION);
            body.u64(0);
            body.u64(0);
            body.u32(access);
            body.u32(0);
            body.u32(SHARED);
            body.u32(disposition as u32);
            body.u32(options);
            body.u16(HEADER as u16 + 56);
            body.u16(name.len() as u16);
            body.u64(0);
            body.put(&name);
            if name.is_empty() {
                body.u64(0);
            }
        })
    }

    /// Closes it.
    pub(crate) fn close(file: &FileId) -> Self {
        Self::new(Command::Close).with(|body| {
            body.u16(24);
            body.u16(0);
            body.u32(0);
            body.put(file);
        })
    }

    /// Makes what was written durable.
    pub(crate) fn flush(file: &FileId) -> Self {
        Self::new(Command::Flush).with(|body| {
            body.u16(24);
            body.u16(0);
            body.u32(0);
            body.put(file);
        })
    }

    /// Bytes from `offset` on (MS-SMB2 2.2.19).
    pub(crate) fn read(file: &FileId, offset: u64, bytes: usize) -> Self {
        /// Offset at which the data is to begin in the answer: right after its body.
        const DATA_AT: u8 = HEADER as u8 + 16;
        let request = Self::new(Command::Read).with(|body| {
            body.u16(49);
            body.u8(DATA_AT);
            body.u8(0);
            body.u32(bytes as u32);
            body.u64(offset);
            body.put(file);
            body.u32(0);
            body.u32(0);
            body.u32(0);
            body.u32(0);
            body.u8(0);
        });
        Self { carries: bytes, ..request }
    }

    /// Writes `data` at `offset` (MS-SMB2 2.2.21).
    pub(crate) fn write(file: &FileId, offset: u64, data: &'d [u8]) -> Self {
        let request = Self::new(Command::Write).with(|body| {
            body.u16(49);
            body.u16(HEADER as u16 + 48);
            body.u32(data.len() as u32);
            body.u64(offset);
            body.put(file);
            body.u64(0);
            body.u32(0);
            body.u32(0);
        });
        Self { data, carries: data.len(), ..request }
    }

    /// Requests the next names in a folder that fit `pattern`, in at most `bytes` bytes (MS-SMB2 2.2.33).
    pub(crate) fn query_directory(folder: &FileId, pattern: &str, bytes: usize) -> Self {
        let pattern = utf16(pattern);
        let request = Self::new(Command::QueryDirectory).with(|body| {
            body.u16(33);
            body.u8(class::FULL_DIRECTORY);
            body.u8(0);
            body.u32(0);
            body.put(folder);
            body.u16(HEADER as u16 + 32);
            body.u16(pattern.len() as u16);
            body.u32(bytes as u32);
            body.put(&pattern);
        });
        Self { carries: bytes, ..request }
    }

    /// Requests the attributes of an open file (MS-SMB2 2.2.37, MS-FSCC 2.4.29).
    pub(crate) fn about(file: &FileId) -> Self {
        Self::new(Command::QueryInfo).with(|body| {
            body.u16(41);
            body.u8(1);
            body.u8(class::NETWORK_OPEN);
            body.u32(56);
            body.u64(0);
            body.u32(0);
            body.u32(0);
            body.put(file);
            body.u8(0);
        })
    }

    /// Gives it a time of change and leaves the other times as they are (MS-FSCC 2.4.7).
    pub(crate) fn set_time(file: &FileId, modified: u64) -> Self {
        let mut times = Vec::new();
        [0, 0, modified, 0, 0].iter().for_each(|time| times.u64(*time));
        Self::set_info(file, class::BASIC, &times)
    }

    /// Gives it its length.
    pub(crate) fn set_length(file: &FileId, length: u64) -> Self {
        Self::set_info(file, class::END_OF_FILE, &length.to_le_bytes())
    }

    /// Gives it a name (MS-FSCC 2.4.43).
    pub(crate) fn rename(file: &FileId, to: &str, replace: bool) -> Self {
        let name = utf16(to);
        let mut info = Vec::new();
        info.u64(u64::from(replace));
        info.u64(0);
        info.u32(name.len() as u32);
        info.put(&name);
        // No shorter than the structure with its padding.
        info.resize(info.len().max(24), 0);
        Self::set_info(file, class::RENAME, &info)
    }

    /// Has it removed when it is closed.
    pub(crate) fn remove(file: &FileId) -> Self {
        Self::set_info(file, class::DISPOSITION, &[1])
    }

    fn set_info(file: &FileId, class: u8, info: &[u8]) -> Self {
        Self::new(Command::SetInfo).with(|body| {
            body.u16(33);
            body.u8(1);
            body.u8(class);
            body.u32(info.len() as u32);
            body.u16(HEADER as u16 + 32);
            body.u16(0);
            body.u32(0);
            body.put(file);
            body.put(info);
        })
    }
}
