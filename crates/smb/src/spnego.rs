//! NTLM within SPNEGO (RFC 4178), as SMB has it: NTLM is the one mechanism that the client offers.
//!
//! The tokens are DER. The list of mechanisms is signed with the new session key, since servers that see a MIC in
//! NTLM's messages expect that (MS-SPNG 3.2.5.1).

use crate::ntlm::{Authenticate, AuthenticationError, Chosen, Credentials, SessionKey, Side, negotiate_message};
use subtle::ConstantTimeEq as _;

/// Tags of DER.
const OCTETS: u8 = 0x04;
const OID: u8 = 0x06;
const ENUMERATED: u8 = 0x0a;
const SEQUENCE: u8 = 0x30;
const APPLICATION: u8 = 0x60;
/// A tag of the context: `[0]` and so on.
const CONTEXT: u8 = 0xa0;

/// 1.3.6.1.5.5.2, SPNEGO.
const SPNEGO: &[u8] = &[0x2b, 6, 1, 5, 5, 2];
/// 1.3.6.1.4.1.311.2.2.10, NTLM.
const NTLM: &[u8] = &[0x2b, 6, 1, 4, 1, 0x82, 0x37, 2, 2, 10];

/// States of a negotiation (RFC 4178 section 4.2.2).
const ACCEPT_INCOMPLETE: u8 = 1;
const REJECT: u8 = 2;

/// A client that has sent its first token.
pub(crate) struct Client {
    credentials: Credentials,
    negotiate: Vec<u8>,
}

/// A client that has proved who it is, as far as it can.
pub(crate) struct Proved {
    session: SessionKey,
}

impl Client {
    pub(crate) fn new(credentials: Credentials) -> Self {
        Self { credentials, negotiate: negotiate_message() }
    }

    /// The first token.
    pub(crate) fn begin(&self) -> Vec<u8> {
        let offer = [element(CONTEXT, &mechanisms()), element(CONTEXT + 2, &element(OCTETS, &self.negotiate))];
        let init = element(CONTEXT, &element(SEQUENCE, &offer.concat()));
        element(APPLICATION, &[element(OID, SPNEGO), init].concat())
    }

    /// Answers the server's token with the last one of the client.
    ///
    /// # Errors
    /// The server does not take NTLM, or its challenge cannot be answered.
    pub(crate) fn prove(&self, token: &[u8], chosen: &Chosen) -> Result<(Vec<u8>, Proved), AuthenticationError> {
        let challenge = Reply::parse(token)?.token.ok_or(AuthenticationError("it sent no NTLM challenge"))?;
        let Authenticate { message, session } =
            Authenticate::to(challenge, &self.negotiate, &self.credentials, chosen)?;
        let signature = session.signature(Side::Client, &mechanisms());
        let parts = [
            element(CONTEXT, &element(ENUMERATED, &[ACCEPT_INCOMPLETE])),
            element(CONTEXT + 2, &element(OCTETS, &message)),
            element(CONTEXT + 3, &element(OCTETS, &signature)),
        ];
        Ok((element(CONTEXT + 1, &element(SEQUENCE, &parts.concat())), Proved { session }))
    }
}

impl Proved {
    /// The session's key.
    pub(crate) fn key(&self) -> &[u8; 16] {
        &self.session.key
    }

    /// Checks the server's last token, which may be empty and may have a signature.
    ///
    /// # Errors
    /// Fails if it is no token, or its signature is wrong.
    pub(crate) fn verify(&self, token: &[u8]) -> Result<(), AuthenticationError> {
        if token.is_empty() {
            return Ok(());
        }
        let expected = self.session.signature(Side::Server, &mechanisms());
        match Reply::parse(token)?.signature {
            Some(signature) if !bool::from(signature.ct_eq(&expected)) => {
                Err(AuthenticationError("its signature of the mechanisms is wrong"))
            }
            _ => Ok(()),
        }
    }
}

/// A token of the server (RFC 4178 section 4.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reply<'a> {
    state: Option<&'a [u8]>,
    mechanism: Option<&'a [u8]>,
    token: Option<&'a [u8]>,
    signature: Option<&'a [u8]>,
}

impl<'a> Reply<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Self, AuthenticationError> {
        let reply = Self::read(bytes).ok_or(AuthenticationError("its SPNEGO token is not understood"))?;
        if reply.state == Some(&[REJECT]) || reply.mechanism.is_some_and(|mechanism| mechanism != NTLM) {
            return Err(AuthenticationError("it does not take NTLM"));
        }
        Ok(reply)
    }

    fn read(mut bytes: &'a [u8]) -> Option<Self> {
        let mut body = take(CONTEXT + 1, &mut bytes)?;
        let mut parts = take(SEQUENCE, &mut body)?;
        let mut part = |number, tag| match parts.first() {
            Some(&first) if first == CONTEXT + number => take(tag, &mut take(first, &mut parts)?).map(Some),
            _ => Some(None),
        };
        let reply = Self {
            state: part(0, ENUMERATED)?,
            mechanism: part(1, OID)?,
            token: part(2, OCTETS)?,
            signature: part(3, OCTETS)?,
        };
        parts.is_empty().then_some(reply)
    }
}

/// The list of mechanisms, which is also what is signed.
fn mechanisms() -> Vec<u8> {
    element(SEQUENCE, &element(OID, NTLM))
}

/// An element of DER.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let significant = &length[length.iter().take_while(|byte| **byte == 0).count()..];
    let mut element = vec![tag];
    match significant {
        [] => element.push(0),
        [short] if *short < 0x80 => element.push(*short),
        long => {
            element.push(0x80 | long.len() as u8);
            element.extend_from_slice(long);
        }
    }
    element.extend_from_slice(content);
    element
}

/// Takes an element with this tag from `bytes` and returns its content.
fn take<'a>(tag: u8, bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (&[found, first], mut rest) = bytes.split_first_chunk()?;
    let length = match usize::from(first) {
        short if short < 0x80 => short,
        long => {
            let (digits, content) = rest.split_at_checked(long - 0x80)?;
            rest = content;
            match digits.len() {
                1..=4 => digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)),
                _ => return None,
            }
        }
    };
    let (content, after) = rest.split_at_checked(length)?;
    *bytes = after;
    (found == tag).then_some(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Put as _;
    use proptest::prelude::*;

    const CHOSEN: Chosen = Chosen { challenge: [1; 8], session_key: [2; 16], time: 0 };

    fn client() -> Client {
        Client::new(Credentials::parse("anna", "secret").expect("a user"))
    }

    /// A challenge which grants what the client asks for, without target information.
    fn challenge() -> Vec<u8> {
        let mut message = b"NTLMSSP\0\x02\0\0\0\0\0\0\0\x30\0\0\0".to_vec();
        message.u32(0xe288_8237);
        message.put(b"8 bytes.");
        message.u64(0);
        message.put(&[4, 0, 4, 0, 48, 0, 0, 0]);
        message.u32(0);
        message
    }

    /// A server's token of these parts.
    fn reply(parts: &[(u8, u8, &[u8])]) -> Vec<u8> {
        let parts: Vec<u8> = parts
            .iter()
            .flat_map(|(number, tag, content)| element(CONTEXT + number, &element(*tag, content)))
            .collect();
        element(CONTEXT + 1, &element(SEQUENCE, &parts))
    }

    /// The bytes in front of NTLM's message are those of other clients that offer NTLM alone.
    #[test]
    fn the_first_token_offers_ntlm_alone() {
        let token = client().begin();
        let front = b"\x60\x48\x06\x06\x2b\x06\x01\x05\x05\x02\xa0\x3e\x30\x3c\xa0\x0e\x30\x0c\x06\x0a\x2b\x06\x01\x04\x01\x82\x37\
                      \x02\x02\x0a\xa2\x2a\x04\x28NTLMSSP\0\x01\0\0\0";
        assert_eq!(token[..front.len()], front[..]);
        assert_eq!(token.len(), 2 + 0x48);
    }

    #[test]
    fn both_ends_sign_the_mechanisms() {
        let (token, proved) = client()
            .prove(&reply(&[(0, ENUMERATED, &[1]), (1, OID, NTLM), (2, OCTETS, &challenge())]), &CHOSEN)
            .expect("NTLM");
        assert_eq!(proved.key(), &CHOSEN.session_key);
        let sent = Reply::parse(&token).expect("a token");
        assert!(sent.token.expect("a message").starts_with(b"NTLMSSP\0\x03"));
        assert_eq!(sent.signature, Some(&proved.session.signature(Side::Client, &mechanisms())[..]));

        let signature = proved.session.signature(Side::Server, &mechanisms());
        let last = |signature: &[u8]| reply(&[(0, ENUMERATED, &[0]), (3, OCTETS, signature)]);
        assert_eq!(proved.verify(&last(&signature)), Ok(()));
        assert_eq!(proved.verify(&reply(&[(0, ENUMERATED, &[0])])), Ok(()));
        assert_eq!(proved.verify(b""), Ok(()));
        for byte in 0..signature.len() {
            let mut wrong = signature;
            wrong[byte] ^= 1;
            assert_eq!(
                proved.verify(&last(&wrong)),
                Err(AuthenticationError("its signature of the mechanisms is wrong")),
                "byte {byte}"
            );
        }
        assert!(proved.verify(&last(&signature[..8])).is_err(), "half a signature");
    }

    #[test]
    fn a_server_without_ntlm_is_named() {
        let refused = |parts: &[(u8, u8, &[u8])]| client().prove(&reply(parts), &CHOSEN).map(|_| ()).unwrap_err().0;
        let kerberos = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 1, 2, 2];
        assert_eq!(refused(&[(0, ENUMERATED, &[1]), (1, OID, kerberos)]), "it does not take NTLM");
        assert_eq!(refused(&[(0, ENUMERATED, &[REJECT])]), "it does not take NTLM");
        assert_eq!(refused(&[(0, ENUMERATED, &[1]), (1, OID, NTLM)]), "it sent no NTLM challenge");
        assert_eq!(refused(&[(2, OID, NTLM)]), "its SPNEGO token is not understood");
    }

    #[test]
    fn elements_of_every_length_are_read_back() {
        for length in [0, 1, 0x7f, 0x80, 0xff, 0x100, 0xffff, 0x1_0000] {
            let content = vec![7; length];
            let whole = element(OCTETS, &content);
            let mut rest = &whole[..];
            assert_eq!(take(OCTETS, &mut rest), Some(&content[..]), "{length} bytes");
            assert_eq!(rest, b"");
            assert_eq!(take(OCTETS, &mut &whole[..whole.len() - 1]), None, "{length} bytes less one");
            assert_eq!(take(OID, &mut &whole[..]), None);
        }
        assert_eq!(take(OCTETS, &mut &[OCTETS, 0x80, 0, 0][..]), None, "DER has no indefinite lengths");
    }

    proptest! {
        #[test]
        fn no_token_panics(token in prop::collection::vec(any::<u8>(), 0..80), changed in 0_usize..40, to in any::<u8>()) {
            let _ = client().prove(&token, &CHOSEN);
            let mut near = reply(&[(0, ENUMERATED, &[1]), (1, OID, NTLM), (2, OCTETS, &challenge())]);
            near[changed] = to;
            let _ = client().prove(&near, &CHOSEN);
        }
    }
}
