//! Proofs that an end of a connection holds its session's key. The key itself never travels.
//!
//! The requester of a session chooses its key, and may choose where it connects to. If the key went on the wire, an
//! agent could be made to write 16 bytes of the requester's choice to any server (`\r\nFLUSHALL\r\n` to a Redis on
//! loopback). A proof is a keyed hash over a salt that this host has just drawn, so that nobody else can choose a bit
//! of it.

use linerate_model::{LinkId, SessionKey};
use ring::hmac;
use subtle::ConstantTimeEq as _;

/// Bytes of a salt.
pub const SALT: usize = 16;
/// Bytes of a proof.
pub const PROOF: usize = 16;

/// Purpose of the proof that is the key of a link.
const LINK: [u8; 8] = *b"lnrtlink";

/// Random bytes that make a proof differ from all others.
pub type Salt = [u8; SALT];

/// Returns the proof of `key` for `purpose` over `parts`, which must have fixed lengths: HMAC-SHA256 (RFC 2104), cut to
/// its first half (RFC 2104 section 5). A proof for one purpose is not valid for another.
pub fn proof(key: &SessionKey, purpose: [u8; 8], parts: &[&[u8]]) -> [u8; PROOF] {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &key.0));
    context.update(&purpose);
    parts.iter().for_each(|part| context.update(part));
    *context.sign().as_ref().first_chunk().expect("a hash of 32 bytes")
}

/// Returns the key that both ends of `link` prove. Each link of a session has its own key, so that a proof observed on
/// its way to one server is not valid for another server of the session.
pub fn link_key(session: &SessionKey, link: LinkId) -> SessionKey {
    SessionKey(proof(session, LINK, &[&link.0.to_be_bytes()]))
}

/// Returns whether two secrets are the same. All bytes are compared, so that the time reveals only their lengths.
pub fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.ct_eq(other).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proof_depends_on_the_key_the_purpose_and_each_part() {
        let key = SessionKey([1; 16]);
        let expected = proof(&key, *b"greeting", &[b"salt"]);
        assert!(is_same(&expected, &proof(&key, *b"greeting", &[b"sa", b"lt"])));
        for other in [
            proof(&SessionKey([2; 16]), *b"greeting", &[b"salt"]),
            proof(&key, *b"answer..", &[b"salt"]),
            proof(&key, *b"greeting", &[b"pepper"]),
        ] {
            assert!(!is_same(&expected, &other));
        }
        assert!(!is_same(&expected, &expected[..15]));
    }

    #[test]
    fn each_link_of_each_session_has_its_own_key() {
        let one = SessionKey([1; 16]);
        let other = SessionKey([2; 16]);
        let keys = [one, link_key(&one, LinkId(0)), link_key(&one, LinkId(1)), link_key(&other, LinkId(0))];
        for (index, key) in keys.iter().enumerate() {
            assert!(!keys[..index].contains(key), "{index}");
        }
        assert_eq!(link_key(&one, LinkId(1)), keys[2], "both ends find the same");
    }
}
