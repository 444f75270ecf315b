//! The first frame of a capture file: pcap (draft-ietf-opsawg-pcap) and pcapng (draft-ietf-opsawg-pcapng), in either
//! byte order. Only bytes are parsed here, which may come from an untrusted source.

/// LINKTYPE_ETHERNET.
const ETHERNET: u16 = 1;
/// Magic numbers of classic pcap: with microseconds, with nanoseconds.
const PCAP: [u32; 2] = [0xa1b2_c3d4, 0xa1b2_3c4d];
/// Types of pcapng's blocks.
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
/// The byte-order magic in a section's header.
const ORDER: u32 = 0x1a2b_3c4d;

/// Reason that a file has no frame that can be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadCapture {
    /// The file is neither pcap nor pcapng.
    #[error("not a capture file: it begins neither as pcap nor as pcapng does")]
    Unknown,
    /// The file ends within the first frame, or before it.
    #[error("the capture file ends before its first frame does: capture again, or give a file with a frame in it")]
    Short,
    /// The frame is of another link type.
    #[error("the first frame was captured on a link of type {0}, not on Ethernet (type 1)")]
    NotEthernet(u16),
    /// The capture kept only a part of each frame.
    #[error("only {kept} bytes of the first frame's {whole} were captured: capture whole frames (tcpdump -s 0)")]
    Cut {
        /// Bytes in the file.
        kept: u32,
        /// Bytes that the frame had.
        whole: u32,
    },
}

/// Reader of numbers in the file's byte order.
#[derive(Clone, Copy)]
struct Reader<'a> {
    bytes: &'a [u8],
    big: bool,
}

impl<'a> Reader<'a> {
    fn word(&self, at: usize) -> Result<u32, BadCapture> {
        let word = self.bytes.get(at..).and_then(|rest| rest.first_chunk()).ok_or(BadCapture::Short)?;
        Ok(if self.big { u32::from_be_bytes(*word) } else { u32::from_le_bytes(*word) })
    }

    fn short(&self, at: usize) -> Result<u16, BadCapture> {
        let short = self.bytes.get(at..).and_then(|rest| rest.first_chunk()).ok_or(BadCapture::Short)?;
        Ok(if self.big { u16::from_be_bytes(*short) } else { u16::from_le_bytes(*short) })
    }

    /// Returns a frame of `whole` bytes. By its header, the file has `kept` of them.
    fn frame(&self, at: usize, kept: u32, whole: u32) -> Result<&'a [u8], BadCapture> {
        if kept < whole {
            return Err(BadCapture::Cut { kept, whole });
        }
        self.bytes.get(at..).and_then(|rest| rest.get(..kept as usize)).ok_or(BadCapture::Short)
    }
}

/// Returns the first frame in the capture file `bytes`.
pub fn first_frame(bytes: &[u8]) -> Result<&[u8], BadCapture> {
    for big in [false, true] {
        let file = Reader { bytes, big };
        match file.word(0).map_err(|_| BadCapture::Unknown)? {
            magic if PCAP.contains(&magic) => return of_pcap(file),
            SECTION => return of_pcapng(bytes),
            _ => {}
        }
    }
    Err(BadCapture::Unknown)
}

/// Reads the file header of 24 bytes with the link type in its last word, the packet header of 16 bytes, and the frame.
fn of_pcap(file: Reader<'_>) -> Result<&[u8], BadCapture> {
    // The upper bits describe the check sequence of the frames.
    link_type(file.word(20)? as u16)?;
    file.frame(40, file.word(32)?, file.word(36)?)
}

/// Reads blocks, each after its type and length, up to one with a frame.
fn of_pcapng(bytes: &[u8]) -> Result<&[u8], BadCapture> {
    let mut section = Reader { bytes, big: false };
    // Link type and snapshot length of each interface.
    let mut links: Vec<(u16, u32)> = Vec::new();
    let mut at = 0;
    loop {
        if section.word(at)? == SECTION {
            section.big = section.word(at + 8)? != ORDER;
            links.clear();
        }
        let length = section.word(at + 4)? as usize;
        if length < 12 {
            return Err(BadCapture::Short);
        }
        match section.word(at)? {
            INTERFACE => links.push((section.short(at + 8)?, section.word(at + 12)?)),
            ENHANCED_PACKET => {
                let interface = section.word(at + 8)? as usize;
                link_type(links.get(interface).ok_or(BadCapture::Short)?.0)?;
                return section.frame(at + 28, section.word(at + 20)?, section.word(at + 24)?);
            }
            SIMPLE_PACKET => {
                let (kind, snapshot) = *links.first().ok_or(BadCapture::Short)?;
                link_type(kind)?;
                let whole = section.word(at + 8)?;
                // Zero is unlimited.
                let kept = if snapshot == 0 { whole } else { whole.min(snapshot) };
                return section.frame(at + 12, kept, whole);
            }
            _ => {}
        }
        at = at.checked_add(length).ok_or(BadCapture::Short)?;
    }
}

fn link_type(kind: u16) -> Result<(), BadCapture> {
    if kind == ETHERNET { Ok(()) } else { Err(BadCapture::NotEthernet(kind)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FRAME: [u8; 20] = [7; 20];

    fn words(big: bool, words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| if big { word.to_be_bytes() } else { word.to_le_bytes() }).collect()
    }

    fn pcap(big: bool, link: u32, kept: u32) -> Vec<u8> {
        let version = if big { 2 << 16 | 4 } else { 4 << 16 | 2 };
        let mut file = words(big, &[PCAP[usize::from(big)], version, 0, 0, 65_535, link, 0, 0, kept, 20]);
        file.extend(FRAME);
        file
    }

    fn pcapng(big: bool, packet: &[u32]) -> Vec<u8> {
        let kind = if big { 1 << 16 } else { 1 };
        let mut file = words(big, &[SECTION, 28, ORDER, 1, u32::MAX, u32::MAX, 28, INTERFACE, 20, kind, 0, 20]);
        // A block of another type is skipped.
        file.extend(words(big, &[5, 16, 0, 16]));
        file.extend(words(big, packet));
        file.extend(FRAME);
        file
    }

    #[test]
    fn first_frame_is_found() {
        for big in [false, true] {
            assert_eq!(first_frame(&pcap(big, 1, 20)), Ok(&FRAME[..]));
            assert_eq!(first_frame(&pcap(big, 1 | 0x1000_0000, 20)), Ok(&FRAME[..]));
            assert_eq!(first_frame(&pcapng(big, &[ENHANCED_PACKET, 52, 0, 0, 0, 20, 20])), Ok(&FRAME[..]));
            assert_eq!(first_frame(&pcapng(big, &[SIMPLE_PACKET, 36, 20])), Ok(&FRAME[..]));
        }
    }

    #[test]
    fn unusable_captures_are_refused() {
        assert_eq!(first_frame(b"GET "), Err(BadCapture::Unknown));
        assert_eq!(first_frame(&[]), Err(BadCapture::Unknown));
        assert_eq!(first_frame(&pcap(false, 113, 20)), Err(BadCapture::NotEthernet(113)));
        assert_eq!(first_frame(&pcap(false, 1, 19)), Err(BadCapture::Cut { kept: 19, whole: 20 }));
        assert_eq!(first_frame(&pcap(true, 1, 20)[..59]), Err(BadCapture::Short));
        assert_eq!(first_frame(&pcap(true, 1, 20)[..24]), Err(BadCapture::Short));
        assert_eq!(first_frame(&pcapng(false, &[7, 0, 0])), Err(BadCapture::Short), "a block of no length");
        assert_eq!(first_frame(&pcapng(false, &[ENHANCED_PACKET, 52, 3, 0, 0, 20, 20])), Err(BadCapture::Short));
    }

    proptest! {
        #[test]
        fn no_file_panics(kind in 0usize..5, mut tail in prop::collection::vec(any::<u8>(), 0..200), cut in 0usize..120) {
            let mut file = match kind {
                0 => Vec::new(),
                1 => pcap(false, 1, 20),
                2 => pcap(true, 1, 20),
                3 => pcapng(false, &[ENHANCED_PACKET, 52, 0, 0, 0, 20, 20]),
                _ => pcapng(true, &[SIMPLE_PACKET, 36, 20]),
            };
            file.truncate(cut.max(4));
            file.append(&mut tail);
            let _ = first_frame(&file);
        }
    }
}
