//! The keyed greeting that opens every data connection, and its answer. Both are 40 bytes, so that the answer to a
//! datagram is never longer than what asked for it.
//!
//! A datagram's source can be forged. Over UDP the answer therefore holds a random nonce, which the client sends back to the
//! flow's own port: only who reads the answers at an address is sent a flow.

use linerate_model::SessionKey;

/// Bytes of a greeting and of its answer.
pub(crate) const BYTES: usize = 40;

const HELLO: [u8; 8] = *b"lnrt-hi1";
const ANSWER: [u8; 8] = *b"lnrt-ok1";

/// Which flow of a trial a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Hello {
    /// The path's index.
    pub(crate) path: u16,
    /// The flow's index in its direction.
    pub(crate) flow: u16,
    /// Data flow from the server to the client.
    pub(crate) backward: bool,
}

/// What an answer tells. Both are zero over TCP, where the connection itself proves that the other end is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Answer {
    /// Where the flow's own socket is; zero in what comes from that socket itself.
    pub(crate) port: u16,
    /// To be sent there, to prove that this was read.
    pub(crate) nonce: u64,
}

impl Hello {
    /// The greeting with the trial's key.
    pub(crate) fn encode(self, key: &SessionKey) -> [u8; BYTES] {
        self.confirmation(key, 0)
    }

    /// The greeting that proves that the answer with `nonce` was read.
    pub(crate) fn confirmation(self, key: &SessionKey, nonce: u64) -> [u8; BYTES] {
        self.message(HELLO, key, Answer { port: 0, nonce })
    }

    /// The answer to a greeting.
    pub(crate) fn answer(self, key: &SessionKey, answer: Answer) -> [u8; BYTES] {
        self.message(ANSWER, key, answer)
    }

    /// Reads a greeting; none if it is not one of this trial.
    pub(crate) fn decode(bytes: &[u8], key: &SessionKey) -> Option<Self> {
        Some(read(bytes, HELLO, key)?.0)
    }

    /// Whether this greeting came, with the nonce of its answer.
    pub(crate) fn is_confirmed(self, bytes: &[u8], key: &SessionKey, nonce: u64) -> bool {
        read(bytes, HELLO, key).is_some_and(|(hello, read)| hello == self && read.nonce == nonce)
    }

    /// The answer to this greeting; none if it is anything else.
    pub(crate) fn decode_answer(self, bytes: &[u8], key: &SessionKey) -> Option<Answer> {
        let (hello, answer) = read(bytes, ANSWER, key)?;
        (hello == self).then_some(answer)
    }

    fn message(self, magic: [u8; 8], key: &SessionKey, answer: Answer) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(&magic);
        bytes[8..24].copy_from_slice(&key.0);
        bytes[24..26].copy_from_slice(&self.path.to_be_bytes());
        bytes[26..28].copy_from_slice(&self.flow.to_be_bytes());
        bytes[28] = self.backward.into();
        bytes[30..32].copy_from_slice(&answer.port.to_be_bytes());
        bytes[32..].copy_from_slice(&answer.nonce.to_be_bytes());
        bytes
    }
}

fn read(bytes: &[u8], magic: [u8; 8], key: &SessionKey) -> Option<(Hello, Answer)> {
    let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
    // All bytes of the key are compared, so that the time taken does not depend on it.
    let differs = bytes[8..24].iter().zip(key.0).fold(0, |differs, (a, b)| differs | (a ^ b));
    if bytes[..8] != magic || differs != 0 || bytes[28] > 1 {
        return None;
    }
    let number = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let nonce = u64::from_be_bytes(bytes[32..].try_into().expect("eight bytes"));
    let hello = Hello { path: number(24), flow: number(26), backward: bytes[28] == 1 };
    Some((hello, Answer { port: number(30), nonce }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: SessionKey = SessionKey([7; 16]);

    #[test]
    fn only_this_trials_greeting_is_read() {
        let hello = Hello { path: 3, flow: 513, backward: true };
        assert_eq!(Hello::decode(&hello.encode(&KEY), &KEY), Some(hello));
        assert_eq!(Hello::decode(&hello.encode(&SessionKey([8; 16])), &KEY), None);
        let answer = Answer { port: 40_000, nonce: 77 };
        assert_eq!(Hello::decode(&hello.answer(&KEY, answer), &KEY), None);
        assert_eq!(Hello::decode(&hello.encode(&KEY)[..BYTES - 1], &KEY), None);
        assert_eq!(hello.decode_answer(&hello.answer(&KEY, answer), &KEY), Some(answer));
        assert_eq!(Hello { flow: 1, ..hello }.decode_answer(&hello.answer(&KEY, answer), &KEY), None);
        assert!(hello.is_confirmed(&hello.confirmation(&KEY, 77), &KEY, 77));
        assert!(!hello.is_confirmed(&hello.confirmation(&KEY, 76), &KEY, 77));
        assert!(!hello.is_confirmed(&hello.answer(&KEY, answer), &KEY, 77));
    }
}
