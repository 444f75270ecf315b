//! Kind, size and time of files and folders.

/// Resolution of SMB times, in nanoseconds (MS-DTYP 2.3.3, FILETIME).
pub const TIME_STEP: i64 = 100;

/// Attributes of a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileInfo {
    /// File, folder or link.
    pub kind: Kind,
    /// Size in bytes; only files have one.
    pub size: u64,
    /// Time of the last change of the content, in nanoseconds since 1970.
    pub modified: i64,
}

/// Kinds of objects on a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A reparse point that leads to another object: a link.
    Reparse,
}

/// Time from 1601, the epoch of SMB, to 1970, in units of [`TIME_STEP`].
const EPOCH: i64 = 116_444_736_000_000_000;

/// Converts a time to SMB's format. A time out of its range becomes the nearest one within it.
pub(crate) fn file_time(unix_ns: i64) -> u64 {
    // 0 leaves the time unchanged.
    u64::try_from(unix_ns.div_euclid(TIME_STEP) + EPOCH).unwrap_or_default().max(1)
}

/// Converts a time of SMB's format to nanoseconds since 1970.
pub(crate) fn unix_ns(file_time: u64) -> i64 {
    i64::try_from(file_time).unwrap_or(i64::MAX).saturating_sub(EPOCH).saturating_mul(TIME_STEP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_converted_both_ways() {
        assert_eq!(file_time(0), 116_444_736_000_000_000);
        for time in [0, 100, -100, 1_700_000_000_123_456_700] {
            assert_eq!(unix_ns(file_time(time)), time);
        }
        assert_eq!(unix_ns(file_time(1_234_567_890_123_456_789)), 1_234_567_890_123_456_700);
        assert_eq!(file_time(i64::MIN), EPOCH as u64 - 92_233_720_368_547_759);
    }
}
