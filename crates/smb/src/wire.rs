//! Bytes of messages: where their header has what, and numbers in them (MS-SMB2 2.2.1; all little-endian).

/// Bytes of a header.
pub(crate) const HEADER: usize = 64;
/// Where it has what.
pub(crate) const CHARGE: usize = 6;
pub(crate) const STATUS: usize = 8;
pub(crate) const COMMAND: usize = 12;
pub(crate) const CREDITS: usize = 14;
pub(crate) const FLAGS: usize = 16;
/// Of what the server sends (MS-SMB2 2.2.1.2).
pub(crate) const FROM_SERVER: u32 = 1;
pub(crate) const MESSAGE_ID: usize = 24;
pub(crate) const TREE: usize = 36;
pub(crate) const SESSION: usize = 40;
pub(crate) const SIGNATURE: usize = 48;
/// Bytes of the head of an encrypted message (MS-SMB2 2.2.41).
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

/// The bytes of `message` from `offset` on, so many.
pub(crate) fn part(message: &[u8], offset: usize, length: usize) -> Option<&[u8]> {
    message.get(offset..offset.checked_add(length)?)
}

/// A name, as UTF-16.
pub(crate) fn utf16(name: &str) -> Vec<u8> {
    name.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// A name from UTF-16; none if it is none.
pub(crate) fn from_utf16(bytes: &[u8]) -> Option<String> {
    let units = bytes.as_chunks::<2>();
    if !units.1.is_empty() {
        return None;
    }
    String::from_utf16(&units.0.iter().map(|unit| u16::from_le_bytes(*unit)).collect::<Vec<_>>()).ok()
}

/// Numbers at the end of a message.
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
