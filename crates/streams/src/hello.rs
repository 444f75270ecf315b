//! The greeting that opens every data connection, and its answer: see [`linerate_engine::greeting`].
//!
//! A datagram's source can be forged. Over UDP the answer therefore carries a random nonce, which the client sends back
//! to the flow's own port. So a flow is sent only to an address at which the answers are read.

use linerate_engine::greeting::{self, FIELDS};
use linerate_engine::proof::Salt;
use linerate_model::SessionKey;

/// Bytes of a greeting and of its answer.
pub(crate) const BYTES: usize = greeting::GREETING;

const HELLO: [u8; 8] = *b"lnrt-hi2";
const ANSWER: [u8; 8] = *b"lnrt-ok2";

/// Identity of a flow in a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Hello {
    /// Index of the path.
    pub(crate) path: u16,
    /// Index of the flow in its direction.
    pub(crate) flow: u16,
    /// Whether data flow from the server to the client.
    pub(crate) backward: bool,
}

/// Fields of an answer. Both are zero over TCP, where the connection itself proves that the other end exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Answer {
    /// Port of the flow's own socket; zero in answers from that socket.
    pub(crate) port: u16,
    /// Number to be sent to that port as a proof that the answer was read.
    pub(crate) nonce: u64,
}

/// Greeting as a server reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Greeted {
    /// Flow of the greeting.
    pub(crate) hello: Hello,
    /// Nonce of the answer that was read; zero before.
    pub(crate) nonce: u64,
    salt: Salt,
}

impl Hello {
    /// Encodes the greeting with the trial's key. `salt` is new for each flow.
    pub(crate) fn encode(self, key: &SessionKey, salt: &Salt) -> [u8; BYTES] {
        self.confirmation(key, salt, 0)
    }

    /// Encodes the greeting that proves that the answer with `nonce` was read.
    pub(crate) fn confirmation(self, key: &SessionKey, salt: &Salt, nonce: u64) -> [u8; BYTES] {
        greeting::seal(key, HELLO, salt, fields(self, Answer { port: 0, nonce }))
    }

    /// Reads a greeting. Returns `None` if it does not belong to this trial.
    pub(crate) fn decode(bytes: &[u8], key: &SessionKey) -> Option<Greeted> {
        let (salt, fields) = greeting::unseal(key, HELLO, bytes)?;
        let (hello, Answer { nonce, .. }) = read(fields)?;
        Some(Greeted { hello, nonce, salt })
    }

    /// Reads the answer to this greeting with `salt`. Returns `None` for anything else.
    pub(crate) fn decode_answer(self, bytes: &[u8], key: &SessionKey, salt: &Salt) -> Option<Answer> {
        let (answered, fields) = greeting::unseal(key, ANSWER, bytes)?;
        let (hello, answer) = read(fields)?;
        (hello == self && answered == *salt).then_some(answer)
    }
}

impl Greeted {
    /// Encodes the answer to this greeting.
    pub(crate) fn answer(&self, key: &SessionKey, answer: Answer) -> [u8; BYTES] {
        greeting::seal(key, ANSWER, &self.salt, fields(self.hello, answer))
    }
}

fn fields(hello: Hello, answer: Answer) -> [u8; FIELDS] {
    let mut fields = [0; FIELDS];
    fields[..2].copy_from_slice(&hello.path.to_be_bytes());
    fields[2..4].copy_from_slice(&hello.flow.to_be_bytes());
    fields[4] = hello.backward.into();
    fields[6..8].copy_from_slice(&answer.port.to_be_bytes());
    fields[8..].copy_from_slice(&answer.nonce.to_be_bytes());
    fields
}

fn read(fields: [u8; FIELDS]) -> Option<(Hello, Answer)> {
    let nonce = u64::from_be_bytes(fields[8..].try_into().expect("eight bytes"));
    let hello = Hello { path: u16_at(&fields, 0), flow: u16_at(&fields, 2), backward: fields[4] == 1 };
    (fields[4] <= 1).then_some((hello, Answer { port: u16_at(&fields, 6), nonce }))
}

fn u16_at(fields: &[u8; FIELDS], offset: usize) -> u16 {
    u16::from_be_bytes([fields[offset], fields[offset + 1]])
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: SessionKey = SessionKey([7; 16]);
    const SALT: Salt = [5; 16];

    #[test]
    fn greetings_of_other_trials_are_rejected() {
        let hello = Hello { path: 3, flow: 513, backward: true };
        let greeted = Hello::decode(&hello.encode(&KEY, &SALT), &KEY).expect("it is one");
        assert_eq!(greeted, Greeted { hello, nonce: 0, salt: SALT });
        assert_eq!(Hello::decode(&hello.encode(&SessionKey([8; 16]), &SALT), &KEY), None);
        assert_eq!(Hello::decode(&hello.confirmation(&KEY, &SALT, 77), &KEY).map(|greeted| greeted.nonce), Some(77));
        let answer = Answer { port: 40_000, nonce: 77 };
        let answered = greeted.answer(&KEY, answer);
        assert_eq!(Hello::decode(&answered, &KEY), None);
        assert_eq!(hello.decode_answer(&answered, &KEY, &SALT), Some(answer));
        assert_eq!(Hello { flow: 1, ..hello }.decode_answer(&answered, &KEY, &SALT), None);
        assert_eq!(hello.decode_answer(&answered, &KEY, &[6; 16]), None, "the answer to another greeting");
        assert_eq!(answered.len(), hello.encode(&KEY, &SALT).len(), "an answer is never longer");
    }
}
