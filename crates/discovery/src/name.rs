//! Domain names (RFC 1035 sections 3.1 and 4.1.4).

/// Longest label, in bytes (RFC 1035 section 2.3.4).
pub(crate) const MAX_LABEL: usize = 63;
/// Longest name as it is encoded, in bytes.
const MAX_NAME: usize = 255;

/// A domain name. Names are equal if their labels are equal apart from the case of ASCII letters.
#[derive(Debug, Clone)]
pub(crate) struct Name(Vec<Vec<u8>>);

impl Name {
    /// Makes a name of labels; each is cut to [`MAX_LABEL`] bytes between two characters.
    pub(crate) fn new<'a>(labels: impl IntoIterator<Item = &'a str>) -> Self {
        Self(labels.into_iter().map(|label| cut(label, MAX_LABEL).as_bytes().to_vec()).collect())
    }

    /// Reads the name at `start`. Returns it with the position after it, or `None` if it is malformed.
    pub(crate) fn read(message: &[u8], start: usize) -> Option<(Self, usize)> {
        let mut labels = Vec::new();
        let mut length = 1;
        let mut position = start;
        let mut end = None;
        // A pointer leads to an earlier place than the piece that contains it, so that no message is read in a circle.
        let mut piece_start = start;
        loop {
            let byte = usize::from(*message.get(position)?);
            match byte >> 6 {
                0 if byte == 0 => return Some((Self(labels), end.unwrap_or(position + 1))),
                0 => {
                    length += byte + 1;
                    if length > MAX_NAME {
                        return None;
                    }
                    labels.push(message.get(position + 1..=position + byte)?.to_vec());
                    position += byte + 1;
                }
                3 => {
                    let target = (byte & 0x3f) << 8 | usize::from(*message.get(position + 1)?);
                    end.get_or_insert(position + 2);
                    if target >= piece_start {
                        return None;
                    }
                    (piece_start, position) = (target, target);
                }
                _ => return None,
            }
        }
    }

    /// Appends the name to `message`, without compression.
    pub(crate) fn write(&self, message: &mut Vec<u8>) {
        for label in &self.0 {
            message.push(label.len() as u8);
            message.extend(label);
        }
        message.push(0);
    }

    /// Returns whether the name has one label more than `parent` and otherwise equals it.
    pub(crate) fn is_child_of(&self, parent: &Self) -> bool {
        self.0.split_first().is_some_and(|(_, rest)| equal(rest, &parent.0))
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        equal(&self.0, &other.0)
    }
}

fn equal(one: &[Vec<u8>], other: &[Vec<u8>]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.eq_ignore_ascii_case(other))
}

/// Returns the beginning of `text` that has at most `bytes` bytes and ends between two characters.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(name: &Name) -> Vec<u8> {
        let mut message = Vec::new();
        name.write(&mut message);
        message
    }

    #[test]
    fn names_are_read_as_written_whatever_their_case() {
        let name = Name::new(["Rack 1", "_linerate", "_tcp", "local"]);
        let message = written(&name);
        let (read, end) = Name::read(&message, 0).expect("a name");
        assert_eq!(end, message.len());
        assert_eq!(read, Name::new(["rack 1", "_LINERATE", "_tcp", "local"]));
        assert!(read.is_child_of(&Name::new(["_linerate", "_tcp", "local"])) && !read.is_child_of(&name));
    }

    #[test]
    fn pointers_lead_backwards_only() {
        let mut message = written(&Name::new(["tcp", "local"]));
        let pointer = message.len();
        message.extend([1, b'a', 0xc0, 0]);
        let (read, end) = Name::read(&message, pointer).expect("a name");
        assert_eq!((read, end), (Name::new(["a", "tcp", "local"]), message.len()));
        for circle in [&[0xc0, 0][..], &[1, b'a', 0xc0, 0], &[0xc0, 2, 0xc0, 0], &[0x40, 0], &[0x80, 0], &[0xff, 0xff]]
        {
            assert!(Name::read(circle, 0).is_none(), "{circle:?}");
        }
    }

    #[test]
    fn names_have_at_most_255_bytes() {
        let labels = ["a".repeat(63), "b".repeat(63), "c".repeat(63), "d".repeat(61)];
        let longest = Name::new(labels.iter().map(String::as_str));
        assert!(Name::read(&written(&longest), 0).is_some());
        let too_long = Name::new(labels.iter().map(String::as_str).chain(["e"]));
        assert!(Name::read(&written(&too_long), 0).is_none());
    }

    #[test]
    fn a_long_label_is_cut_between_characters() {
        assert_eq!(Name::new([&*"ö".repeat(40)]), Name::new([&*"ö".repeat(31)]));
    }
}
