//! The keyed greeting that opens every data connection, and its answer. Both are 32 bytes, so that the answer to a
//! datagram is never longer than what asked for it.

use linerate_model::TrialKey;

/// Bytes of a greeting and of its answer.
pub(crate) const BYTES: usize = 32;

const HELLO: [u8; 8] = *b"lnrt-hi1";
const ANSWER: [u8; 8] = *b"lnrt-ok1";

/// Which flow of a trial a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Hello {
    /// The path's index.
    pub(crate) path: u16,
    /// The flow's index in its direction.
    pub(crate) flow: u16,
    /// Data flow from the listener to the opener.
    pub(crate) backward: bool,
}

impl Hello {
    /// The greeting with the trial's key.
    pub(crate) fn encode(self, key: &TrialKey) -> [u8; BYTES] {
        self.message(HELLO, key, 0)
    }

    /// The answer: for UDP, `port` is where the flow's own socket is.
    pub(crate) fn answer(self, key: &TrialKey, port: u16) -> [u8; BYTES] {
        self.message(ANSWER, key, port)
    }

    /// Reads a greeting; none if it is not one of this trial.
    pub(crate) fn decode(bytes: &[u8], key: &TrialKey) -> Option<Self> {
        Some(read(bytes, HELLO, key)?.0)
    }

    /// The port in the answer to this greeting; none if it is anything else.
    pub(crate) fn decode_answer(self, bytes: &[u8], key: &TrialKey) -> Option<u16> {
        let (hello, port) = read(bytes, ANSWER, key)?;
        (hello == self).then_some(port)
    }

    fn message(self, magic: [u8; 8], key: &TrialKey, port: u16) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(&magic);
        bytes[8..24].copy_from_slice(&key.0);
        bytes[24..26].copy_from_slice(&self.path.to_be_bytes());
        bytes[26..28].copy_from_slice(&self.flow.to_be_bytes());
        bytes[28] = self.backward.into();
        bytes[30..32].copy_from_slice(&port.to_be_bytes());
        bytes
    }
}

fn read(bytes: &[u8], magic: [u8; 8], key: &TrialKey) -> Option<(Hello, u16)> {
    let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
    // All bytes of the key are compared, so that the time taken tells nothing of it.
    let differs = bytes[8..24].iter().zip(key.0).fold(0, |differs, (a, b)| differs | (a ^ b));
    if bytes[..8] != magic || differs != 0 || bytes[28] > 1 {
        return None;
    }
    let number = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    Some((Hello { path: number(24), flow: number(26), backward: bytes[28] == 1 }, number(30)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: TrialKey = TrialKey([7; 16]);

    #[test]
    fn only_this_trials_greeting_is_read() {
        let hello = Hello { path: 3, flow: 513, backward: true };
        assert_eq!(Hello::decode(&hello.encode(&KEY), &KEY), Some(hello));
        assert_eq!(Hello::decode(&hello.encode(&TrialKey([8; 16])), &KEY), None);
        assert_eq!(Hello::decode(&hello.answer(&KEY, 1), &KEY), None);
        assert_eq!(Hello::decode(&hello.encode(&KEY)[..31], &KEY), None);
        assert_eq!(hello.decode_answer(&hello.answer(&KEY, 40_000), &KEY), Some(40_000));
        assert_eq!(Hello { flow: 1, ..hello }.decode_answer(&hello.answer(&KEY, 40_000), &KEY), None);
    }
}
