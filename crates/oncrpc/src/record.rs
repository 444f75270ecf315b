//! Record marking: how messages stand in a TCP stream (RFC 5531 section 11).
//!
//! A record is one message, sent as fragments. Four bytes before each give its length, and by their highest bit whether
//! it is the last. Memory for a record grows with the bytes that have come, never with the claimed length.

/// The highest bit of a fragment's head: it is the record's last.
const LAST: u32 = 1 << 31;
/// Bytes of a fragment's head.
const HEAD: usize = 4;
/// Initial room, and the least that is read in one call.
const CHUNK: usize = 64 << 10;

/// Appends a record of one fragment; `write` appends its message.
pub(crate) fn put_record<T>(into: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    let head = into.len();
    into.extend_from_slice(&[0; HEAD]);
    let written = write(into);
    let length = (into.len() - head - HEAD) as u32;
    into[head..head + HEAD].copy_from_slice(&(LAST | length).to_be_bytes());
    written
}

/// A record is longer than may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a record of {bytes} bytes or more, where at most {maximum} are taken")]
pub(crate) struct TooLong {
    pub(crate) bytes: usize,
    pub(crate) maximum: usize,
}

/// Cuts a stream into records.
#[derive(Debug)]
pub(crate) struct Records {
    /// Received bytes; those in `start..end` have not been taken.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Room at first, and the measure of what is read in one call.
    chunk: usize,
    /// The fragments of a record before its last.
    gathered: Vec<u8>,
    /// `gathered` was handed out whole and is to be emptied.
    handed_out: bool,
    maximum: usize,
}

impl Records {
    /// For records of at most `maximum` bytes.
    pub(crate) fn new(maximum: usize) -> Self {
        Self::within(CHUNK, maximum)
    }

    /// For records of at most `maximum` bytes, with `chunk` bytes of room. The room does not grow if a record and its
    /// head take less than half of it.
    pub(crate) fn within(chunk: usize, maximum: usize) -> Self {
        Self { buffer: vec![0; chunk], start: 0, end: 0, chunk, gathered: Vec::new(), handed_out: false, maximum }
    }

    /// Whether nothing has come that was not taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end && (self.handed_out || self.gathered.is_empty())
    }

    /// Returns the memory that it takes, bytes.
    pub(crate) fn memory(&self) -> usize {
        self.buffer.len() + self.gathered.capacity()
    }

    /// Returns the room to read into, which is never empty; to be followed by [`Records::filled`].
    pub(crate) fn room(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.buffer.len() - self.end < self.chunk / 4 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            // More than half is one fragment's: the bytes of it that are here call for as much again.
            if self.buffer.len() - self.end < self.chunk / 2 {
                self.buffer.resize(self.buffer.len() * 2, 0);
            }
        }
        &mut self.buffer[self.end..]
    }

    /// Notes that `bytes` bytes were read into [`Records::room`].
    pub(crate) fn filled(&mut self, bytes: usize) {
        self.end = (self.end + bytes).min(self.buffer.len());
    }

    /// The next whole record.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, TooLong> {
        if std::mem::take(&mut self.handed_out) {
            self.gathered.clear();
        }
        loop {
            let waiting = &self.buffer[self.start..self.end];
            let Some(head) = waiting.first_chunk::<HEAD>() else { return Ok(None) };
            let head = u32::from_be_bytes(*head);
            let length = (head & !LAST) as usize;
            let bytes = self.gathered.len() + length;
            if bytes > self.maximum {
                return Err(TooLong { bytes, maximum: self.maximum });
            }
            if waiting.len() < HEAD + length {
                return Ok(None);
            }
            let fragment = self.start + HEAD..self.start + HEAD + length;
            self.start = fragment.end;
            let is_last = head & LAST != 0;
            if is_last && self.gathered.is_empty() {
                return Ok(Some(&self.buffer[fragment]));
            }
            self.gathered.extend_from_slice(&self.buffer[fragment]);
            if is_last {
                self.handed_out = true;
                return Ok(Some(&self.gathered));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Feeds `stream` in pieces of `piece` bytes and gathers the records.
    fn cut(stream: &[u8], piece: usize, maximum: usize) -> (Result<Vec<Vec<u8>>, TooLong>, usize) {
        let mut records = Records::new(maximum);
        let mut gathered = Vec::new();
        let mut stream = stream;
        while !stream.is_empty() {
            let room = records.room();
            let length = stream.len().min(piece).min(room.len());
            room[..length].copy_from_slice(&stream[..length]);
            records.filled(length);
            stream = &stream[length..];
            loop {
                match records.next() {
                    Ok(Some(record)) => gathered.push(record.to_vec()),
                    Ok(None) => break,
                    Err(error) => return (Err(error), records.buffer.len()),
                }
            }
        }
        (Ok(gathered), records.buffer.len())
    }

    #[test]
    fn a_strangers_records_stay_within_their_room() {
        let mut records = Records::within(512, 240);
        for piece in [1, 7, 100, 244, 512] {
            let stream: Vec<u8> = (0..40).flat_map(|_| [&(LAST | 240).to_be_bytes()[..], &[1; 240]].concat()).collect();
            let mut rest = &stream[..];
            while !rest.is_empty() {
                let room = records.room();
                let length = rest.len().min(piece).min(room.len());
                room[..length].copy_from_slice(&rest[..length]);
                records.filled(length);
                rest = &rest[length..];
                while records.next().expect("short enough").is_some() {}
                assert!(records.buffer.len() + records.gathered.capacity() <= 1_024);
            }
            assert!(records.is_empty());
        }
    }

    #[test]
    fn a_length_alone_takes_no_room() {
        let claim = (LAST | 1_000_000).to_be_bytes();
        let (found, room) = cut(&claim, 4, 1 << 20);
        assert_eq!((found, room), (Ok(Vec::new()), CHUNK));
        let (found, room) = cut(&[0xff; 8], 8, 1 << 20);
        assert_eq!(found, Err(TooLong { bytes: 0x7fff_ffff, maximum: 1 << 20 }));
        assert_eq!(room, CHUNK);
        // In fragments, too.
        let mut stream = Vec::new();
        (0..3).for_each(|_| {
            stream.extend_from_slice(&400u32.to_be_bytes());
            stream.resize(stream.len() + 400, 1);
        });
        assert_eq!(cut(&stream, 100, 1_000).0, Err(TooLong { bytes: 1_200, maximum: 1_000 }));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn records_come_out_as_they_went_in(
            lengths in prop::collection::vec(0usize..200_000, 1..6),
            fragment in 1usize..70_000,
            piece in 1usize..100_000,
        ) {
            let sent: Vec<Vec<u8>> =
                lengths.iter().map(|length| (0..*length).map(|at| (at * 31 + length) as u8).collect()).collect();
            let mut stream = Vec::new();
            for (index, record) in sent.iter().enumerate() {
                if index % 2 == 0 {
                    put_record(&mut stream, |into| into.extend_from_slice(record));
                    continue;
                }
                for part in record.chunks(fragment) {
                    stream.extend_from_slice(&(part.len() as u32).to_be_bytes());
                    stream.extend_from_slice(part);
                }
                stream.extend_from_slice(&LAST.to_be_bytes());
            }
            let piece = piece.max(stream.len() / 5_000);
            prop_assert_eq!(cut(&stream, piece, 200_000).0, Ok(sent));
        }

        #[test]
        fn any_bytes_give_records_within_the_bound(bytes: Vec<u8>, piece in 1usize..50) {
            let (found, room) = cut(&bytes, piece, 64);
            if let Ok(found) = found {
                prop_assert!(found.iter().all(|record| record.len() <= 64));
            }
            prop_assert_eq!(room, CHUNK);
        }
    }
}
