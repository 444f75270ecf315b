//! Files of `/proc` that are read again and again.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// A file kept open, so that reading it anew costs one call, and shows the network namespace it was opened in.
pub(crate) struct ProcFile(Option<File>);

/// Enough for most of these files at once.
const PIECE: usize = 16 << 10;

impl ProcFile {
    /// Opens `path`; a file that this kernel does not have reads as nothing.
    pub(crate) fn open(path: &str) -> Self {
        Self(File::open(path).ok())
    }

    /// Reads the text. `None` if the file is missing or cannot be read.
    pub(crate) fn read(&self) -> Option<String> {
        let mut buffer = Vec::new();
        let length = fill(self.0.as_ref()?, &mut buffer).ok()?;
        Some(String::from_utf8_lossy(&buffer[..length]).into_owned())
    }

    /// The same, in `buffer`, which is used again from one reading to the next.
    pub(crate) fn read_into<'a>(&self, buffer: &'a mut Vec<u8>) -> Option<&'a str> {
        let length = fill(self.0.as_ref()?, buffer).ok()?;
        std::str::from_utf8(&buffer[..length]).ok()
    }
}

/// Reads a whole file into `buffer`, which grows as it must, and returns the file's length.
fn fill(file: &File, buffer: &mut Vec<u8>) -> io::Result<usize> {
    let mut length = 0;
    loop {
        if length == buffer.len() {
            buffer.resize((2 * length).max(PIECE), 0);
        }
        match file.read_at(&mut buffer[length..], length as u64)? {
            0 => return Ok(length),
            read => length += read,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_file_longer_than_a_piece_anew_each_time() {
        let file = ProcFile::open("/proc/self/status");
        let (first, second) = (file.read().expect("status"), file.read().expect("status"));
        assert!(first.starts_with("Name:") && second.starts_with("Name:"));
        let maps = ProcFile::open("/proc/self/smaps").read().expect("smaps");
        assert!(maps.len() > PIECE && maps.ends_with('\n'), "{}", maps.len());
        assert_eq!(ProcFile::open("/proc/nonesuch").read(), None);
    }

    #[test]
    fn a_buffer_that_is_used_again_holds_the_latest_text_only() {
        let mut buffer = Vec::new();
        let long = ProcFile::open("/proc/self/smaps").read_into(&mut buffer).expect("smaps").len();
        let short = ProcFile::open("/proc/self/comm");
        let text = short.read_into(&mut buffer).expect("comm").to_owned();
        assert!(long > PIECE && text.len() < 20 && text.ends_with('\n'), "{long} then {text:?}");
        assert_eq!(short.read(), Some(text));
    }
}
