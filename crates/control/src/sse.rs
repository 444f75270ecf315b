//! Server-sent events, as far as agents send them: the `data` of each event.
//! <https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation>

/// Takes a byte stream in pieces of any size and gives the data of each whole event.
#[derive(Debug, Default)]
pub(crate) struct Events {
    /// The line that has not ended yet.
    line: Vec<u8>,
    /// Data lines of the event that has not ended yet.
    data: Vec<u8>,
    /// The last line ended with CR: an LF that follows belongs to it.
    after_return: bool,
}

/// An event or line longer than any agent sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {} bytes", Events::LONGEST)]
pub(crate) struct TooLong;

impl Events {
    /// The longest event accepted, so that a peer cannot fill our memory.
    const LONGEST: usize = 64 << 10;

    /// Takes the next piece; gives the data of each event that ended in it.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<Vec<String>, TooLong> {
        let mut ended = Vec::new();
        for &byte in piece {
            match byte {
                b'\n' if self.after_return => self.after_return = false,
                b'\n' | b'\r' => {
                    self.after_return = byte == b'\r';
                    ended.extend(self.end_line());
                }
                _ => {
                    self.after_return = false;
                    self.line.push(byte);
                }
            }
            if self.line.len() + self.data.len() > Self::LONGEST {
                return Err(TooLong);
            }
        }
        Ok(ended)
    }

    /// An empty line ends an event; a `data` line adds to it; comments and other fields are passed over.
    fn end_line(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let mut data = std::mem::take(&mut self.data);
            // Each data line was added with its LF; the last one does not count.
            return data.pop().map(|_| String::from_utf8_lossy(&data).into_owned());
        }
        if let Some(value) = line.strip_prefix(b"data:") {
            self.data.extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
            self.data.push(b'\n');
        } else if line == b"data" {
            self.data.push(b'\n');
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn whole(text: &[u8]) -> Vec<String> {
        Events::default().push(text).expect("short")
    }

    #[test]
    fn reads_what_the_standard_allows() {
        assert_eq!(whole(b"data: {\"a\":1}\n\n"), ["{\"a\":1}"]);
        assert_eq!(whole(b":hello\n\ndata:one\r\n\r\ndata: two\r\rdata: half\n"), ["one", "two"]);
        assert_eq!(whole(b"event: x\ndata: a\ndata: b\nid: 7\n\n"), ["a\nb"]);
        assert_eq!(whole(b"data\n\n"), [""]);
        assert_eq!(whole(b"\n\n\n"), [""; 0]);
    }

    #[test]
    fn an_endless_line_or_event_is_refused() {
        assert_eq!(Events::default().push(&[b'x'; Events::LONGEST + 1]), Err(TooLong));
        let mut events = Events::default();
        assert!((0..30_000).any(|_| events.push(b"data: xy\n").is_err()));
    }

    proptest! {
        /// Wherever the stream is cut into pieces, the events are the same.
        #[test]
        fn pieces_do_not_matter(data in prop::collection::vec("[ -~\u{e9}\u{4e00}]{0,20}", 0..6),
                                end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
                                cuts in prop::collection::vec(1usize..9, 1..80)) {
            let text: String = data.iter().map(|line| format!(": note{end}data: {line}{end}{end}")).collect();
            let (mut events, mut seen, mut rest) = (Events::default(), Vec::new(), text.as_bytes());
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break }
                let (piece, later) = rest.split_at((*cut).min(rest.len()));
                seen.extend(events.push(piece).expect("short"));
                rest = later;
            }
            prop_assert_eq!(seen, data);
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Events::default().push(&bytes);
        }
    }
}
