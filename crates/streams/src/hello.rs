//! The greeting that opens every data connection, and its answer: see [`linerate_engine::greeting`].
//!
//! A datagram's source can be forged. Over UDP the answer therefore holds a random nonce, which the client sends back to the
//! flow's own port: only who reads the answers at an address is sent a flow.

use linerate_engine::greeting::{self, FIELDS};
use linerate_engine::proof::Salt;
use linerate_model::SessionKey;

/// Bytes of a greeting and of its answer.
pub(crate) const BYTES: usize = greeting::GREETING;

const HELLO: [u8; 8] = *b"lnrt-hi2";
const ANSWER: [u8; 8] = *b"lnrt-ok2";

/// Which flow of a trial a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

/// A greeting as a server reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Greeted {
    /// Which flow it is for.
    pub(crate) hello: Hello,
    /// The nonce of the answer that was read; zero before.
    pub(crate) nonce: u64,
    salt: Salt,
}

impl Hello {
    /// The greeting with the trial's key; `salt` is new for each flow.
    pub(crate) fn encode(self, key: &SessionKey, salt: &Salt) -> [u8; BYTES] {
        self.confirmation(key, salt, 0)
    }

    /// The greeting that proves that the answer with `nonce` was read.
    pub(crate) fn confirmation(self, key: &SessionKey, salt: &Salt, nonce: u64) -> [u8; BYTES] {
        greeting::seal(key, HELLO, salt, fields(self, Answer { port: 0, nonce }))
    }

    /// Reads a greeting; none if it is not one of this trial.
    pub(crate) fn decode(bytes: &[u8], key: &SessionKey) -> Option<Greeted> {
        let (salt, fields) = greeting::unseal(key, HELLO, bytes)?;
        let (hello, Answer { nonce, .. }) = read(fields)?;
        Some(Greeted { hello, nonce, salt })
    }

    /// The answer to this greeting with `salt`; none if it is anything else.
    pub(crate) fn decode_answer(self, bytes: &[u8], key: &SessionKey, salt: &Salt) -> Option<Answer> {
        let (answered, fields) = greeting::unseal(key, ANSWER, bytes)?;
        let (hello, answer) = read(fields)?;
        (hello == self && answered == *salt).then_some(answer)
    }
}

impl Greeted {
    /// The answer to it.
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
    let number = |at: usize| u16::from_be_bytes([fields[at], fields[at + 1]]);
    let nonce = u64::from_be_bytes(fields[8..].try_into().expect("eight bytes"));
    let hello = Hello { path: number(0), flow: number(2), backward: fields[4] == 1 };
    (fields[4] <= 1).then_some((hello, Answer { port: number(6), nonce }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: SessionKey = SessionKey([7; 16]);
    const SALT: Salt = [5; 16];

    #[test]
    fn only_this_trials_greeting_is_read() {
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
