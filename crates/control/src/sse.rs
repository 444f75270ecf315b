//! A decoder of server-sent events. It yields the `data` of each event, which is all that agents send.
//! <https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation>

/// Decodes a byte stream that arrives in pieces of any size.
#[derive(Debug, Default)]
pub(crate) struct Events {
    /// The current line.
    line: Vec<u8>,
    /// Data lines of the current event.
    data: Vec<u8>,
    /// Whether the last line ended with CR, to which a following LF belongs.
    after_return: bool,
}

/// An event or line is longer than any that agents send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {} bytes", Events::LONGEST)]
pub(crate) struct TooLong;

impl Events {
    /// Most bytes of one event. Bounds the memory that a peer can use.
    const LONGEST: usize = 64 << 10;

    /// Decodes the next piece. Returns the data of each event that ends in it.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<Vec<String>, TooLong> {
        let mut events = Vec::new();
        for &byte in piece {
            match byte {
                b'\n' if self.after_return => self.after_return = false,
                b'\n' | b'\r' => {
                    self.after_return = byte == b'\r';
                    events.extend(self.end_line());
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
        Ok(events)
    }

    /// Ends the current line. An empty line ends the event, and a `data` line adds to it. Other lines are ignored.
    fn end_line(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let mut data = std::mem::take(&mut self.data);
            // Every data line was added with an LF, and the last LF is not part of the data.
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
    fn every_form_of_the_standard_is_decoded() {
        assert_eq!(whole(b"data: {\"a\":1}\n\n"), ["{\"a\":1}"]);
        assert_eq!(whole(b":hello\n\ndata:one\r\n\r\ndata: two\r\rdata: half\n"), ["one", "two"]);
        assert_eq!(whole(b"event: x\ndata: a\ndata: b\nid: 7\n\n"), ["a\nb"]);
        assert_eq!(whole(b"data\n\n"), [""]);
        assert_eq!(whole(b"\n\n\n"), [""; 0]);
    }

    #[test]
    fn endless_lines_and_events_are_refused() {
        assert_eq!(Events::default().push(&[b'x'; Events::LONGEST + 1]), Err(TooLong));
        let mut events = Events::default();
        assert!((0..30_000).any(|_| events.push(b"data: xy\n").is_err()));
    }

    proptest! {
        /// The events do not depend on how the stream is divided into pieces.
        #[test]
        fn pieces_do_not_matter(data in prop::collection::vec("[ -~\u{e9}\u{4e00}]{0,20}", 0..6),
                                end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
                                cuts in prop::collection::vec(1usize..9, 1..80)) {
            let text: String = data.iter().map(|line| format!(": note{end}data: {line}{end}{end}")).collect();
            let mut events = Events::default();
            let mut seen = Vec::new();
            let mut rest = text.as_bytes();
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
