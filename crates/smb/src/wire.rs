//! Layout of message headers, and little-endian numbers in messages (MS-SMB2 2.2.1).

/// Size of a header, in bytes.
pub(crate) const HEADER: usize = 64;
/// Offsets of the fields of a header.
pub(crate) const CHARGE: usize = 6;
pub(crate) const STATUS: usize = 8;
pub(crate) const COMMAND: usize = 12;
pub(crate) const CREDITS: usize = 14;
pub(crate) const FLAGS: usize = 16;
/// Flag of messages that the server sends (MS-SMB2 2.2.1.2).
pub(crate) const FROM_SERVER: u32 = 1;
pub(crate) const MESSAGE_ID: usize = 24;
pub(crate) const TREE: usize = 36;
pub(crate) const SESSION: usize = 40;
pub(crate) const SIGNATURE: usize = 48;
/// Content that one credit pays for, in bytes (MS-SMB2 3.1.5.2).
pub(crate) const CREDIT: usize = 64 << 10;
/// Largest content of one message, in bytes.
pub(crate) const MAX_PIECE: usize = 1 << 20;
/// Size of the header of an encrypted message, in bytes (MS-SMB2 2.2.41).
pub(crate) const TRANSFORM: usize = 52;

fn at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

pub(crate) fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    at(bytes, offset).map(u16::from_le_bytes)
}

pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    at(bytes, offset).map(u32::from_le_bytes)
}

pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    at(bytes, offset).map(u64::from_le_bytes)
}

/// Returns `length` bytes of `message` from `offset` on.
pub(crate) fn part(message: &[u8], offset: usize, length: usize) -> Option<&[u8]> {
    message.get(offset..offset.checked_add(length)?)
}

/// Encodes a name in UTF-16.
pub(crate) fn utf16(name: &str) -> Vec<u8> {
    name.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// Decodes a name from UTF-16. Returns `None` if it is not UTF-16.
pub(crate) fn from_utf16(bytes: &[u8]) -> Option<String> {
    let (units, remainder) = bytes.as_chunks::<2>();
    if !remainder.is_empty() {
        return None;
    }
    String::from_utf16(&units.iter().map(|unit| u16::from_le_bytes(*unit)).collect::<Vec<_>>()).ok()
}

/// Appends numbers to a message.
pub(crate) trait Put {
    fn put(&mut self, bytes: &[u8]);

    fn u8(&mut self, number: u8) {
        self.put(&[number]);
    }

    fn u16(&mut self, number: u16) {
        self.put(&number.to_le_bytes());
    }

    fn u32(&mut self, number: u32) {
        self.put(&number.to_le_bytes());
    }

    fn u64(&mut self, number: u64) {
        self.put(&number.to_le_bytes());
    }
}

impl Put for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}
