//! JSON texts on the control connection: four bytes of length, big-endian, then the text.

use serde_json::Value;

/// Longest accepted text. iperf3's results of 256 flows have 40 kB; a server's report of a long test has more.
pub(crate) const LONGEST: u32 = 8 << 20;

/// Encodes a text with its length before it.
pub(crate) fn encode(value: &Value) -> Vec<u8> {
    let text = value.to_string();
    let mut message = (text.len() as u32).to_be_bytes().to_vec();
    message.extend_from_slice(text.as_bytes());
    message
}

/// Returns the length of a text, from the bytes before it.
///
/// # Errors
/// The text is empty, or longer than `longest`.
pub(crate) fn length(bytes: [u8; 4], longest: u32) -> Result<usize, String> {
    match u32::from_be_bytes(bytes) {
        0 => Err("it announced an empty JSON text".to_owned()),
        length if length > longest => {
            Err(format!("it announced a JSON text of {length} bytes, more than the {longest} that are taken"))
        }
        length => Ok(length as usize),
    }
}

/// Reads a text.
///
/// # Errors
/// The text is not a JSON object.
pub(crate) fn decode(text: &[u8]) -> Result<Value, String> {
    // Older versions of iperf3 end a text with a zero byte.
    let text = text.strip_suffix(&[0]).unwrap_or(text);
    match serde_json::from_slice(text) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err("it sent a JSON text that is no object".to_owned()),
        Err(error) => Err(format!("it sent no JSON text: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn text_is_read_back() {
        let value = json!({"tcp": true, "time": 10});
        let message = encode(&value);
        let (head, text) = message.split_first_chunk().expect("a length");
        assert_eq!((length(*head, LONGEST), decode(text)), (Ok(text.len()), Ok(value)));
    }

    #[test]
    fn invalid_lengths_and_texts_are_refused() {
        assert!(length([0xff; 4], LONGEST).expect_err("4 GB").contains("4294967295 bytes"));
        assert!(length([0; 4], LONGEST).is_err());
        assert_eq!(length(LONGEST.to_be_bytes(), LONGEST), Ok(LONGEST as usize));
        for text in [&b"[1]"[..], b"{", b"", b"\xff\xfe", b"{}x"] {
            assert!(decode(text).is_err(), "{text:?}");
        }
        assert_eq!(decode(b"{}\0"), Ok(json!({})));
        // Depth is bounded by the parser.
        assert!(decode("[".repeat(1 << 20).as_bytes()).is_err());
    }
}
