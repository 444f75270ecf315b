//! The greeting that opens a data connection, and its answer: a few fields that only holders of the session's key can
//! make, read or answer. Both have 56 bytes, so that the answer to a datagram is never longer than the datagram.
//!
//! ```text
//! 0       8               24              40              56
//! | kind  | salt          | fields, masked | proof         |
//! ```
//!
//! The fields are masked because the requester of the session chooses some of them. After the fixed kind, nobody can
//! choose a byte that an opener sends: see [`crate::proof`].

use crate::proof::{PROOF, SALT, Salt, is_same, proof};
use linerate_model::SessionKey;

/// Bytes of the fields.
pub const FIELDS: usize = 16;
/// Bytes of a greeting and of its answer.
pub const GREETING: usize = KIND + SALT + FIELDS + PROOF;

const KIND: usize = 8;
/// Purpose of the proof that masks the fields.
const MASK: [u8; 8] = *b"lnrtmask";

/// Returns the greeting or answer of `kind` with these fields. An answer repeats the salt of its greeting.
pub fn seal(key: &SessionKey, kind: [u8; 8], salt: &Salt, fields: [u8; FIELDS]) -> [u8; GREETING] {
    let fields = masked(key, kind, salt, fields);
    let mut bytes = [0; GREETING];
    bytes[..8].copy_from_slice(&kind);
    bytes[8..24].copy_from_slice(salt);
    bytes[24..40].copy_from_slice(&fields);
    bytes[40..].copy_from_slice(&proof(key, kind, &[salt, &fields]));
    bytes
}

/// Reads a greeting or answer of `kind`. Returns `None` if it is anything else or was made without the key.
pub fn unseal(key: &SessionKey, kind: [u8; 8], bytes: &[u8]) -> Option<(Salt, [u8; FIELDS])> {
    let bytes: &[u8; GREETING] = bytes.try_into().ok()?;
    let salt: Salt = bytes[8..24].try_into().expect("16 bytes");
    let fields: [u8; FIELDS] = bytes[24..40].try_into().expect("16 bytes");
    let is_proved = bytes[..8] == kind && is_same(&bytes[40..], &proof(key, kind, &[&salt, &fields]));
    is_proved.then(|| (salt, masked(key, kind, &salt, fields)))
}

/// Masks fields, or unmasks them.
fn masked(key: &SessionKey, kind: [u8; 8], salt: &Salt, fields: [u8; FIELDS]) -> [u8; FIELDS] {
    let mask = proof(key, MASK, &[&kind, salt]);
    std::array::from_fn(|at| fields[at] ^ mask[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: [u8; 8] = *b"lnrttest";

    #[test]
    fn only_the_key_makes_and_reads_a_greeting() {
        let key = SessionKey([7; 16]);
        let salt = [3; SALT];
        let fields = *b"sixteen bytes...";
        let sealed = seal(&key, KIND, &salt, fields);
        assert_eq!(unseal(&key, KIND, &sealed), Some((salt, fields)));
        assert_eq!(unseal(&SessionKey([8; 16]), KIND, &sealed), None);
        assert_eq!(unseal(&key, *b"lnrtelse", &sealed), None);
        assert_eq!(unseal(&key, KIND, &sealed[..GREETING - 1]), None);
        for at in 0..GREETING {
            let mut changed = sealed;
            changed[at] ^= 1;
            assert_eq!(unseal(&key, KIND, &changed), None, "byte {at}");
        }
    }

    /// Attack: a session's key and fields contain a command for a server that is not part of the trial.
    #[test]
    fn chosen_key_cannot_forge_requests_to_third_parties() {
        let command = *b"\r\nFLUSHALL\r\nEXIT";
        let sealed = seal(&SessionKey(command), KIND, &[9; SALT], command);
        for part in command.windows(4) {
            assert!(!sealed.windows(4).any(|window| window == part), "{}", sealed.escape_ascii());
        }
        let again = seal(&SessionKey(command), KIND, &[10; SALT], command);
        let same = sealed[8..].iter().zip(&again[8..]).filter(|(one, other)| one == other).count();
        assert!(same < 12, "{same} of 48 bytes do not depend on the salt");
    }
}
