//! Pairing: a short code, read on one machine and typed on another, yields an agent URL that nobody types or sees.
//!
//! ```text
//! POST /v1/pair          message of the client                -> message of the agent
//! POST /v1/pair/confirm  proof of the client                  -> proof of the agent, and its token
//! ```
//!
//! The messages are those of SPAKE2 (Abdalla and Pointcheval, "Simple Password-Based Encrypted Key Exchange Protocols",
//! 2005) with the code as the password. Both ends have the same key afterwards if they had the same code. An
//! eavesdropper, or a peer without the code, learns nothing for trying codes offline. Each exchange is one guess, and
//! the agent counts them. The proofs cover the fingerprint of the certificate that each end sees, so that a man in the
//! middle cannot use another certificate.

use crate::client::Client;
use crate::{AgentError, pin};
use linerate_model::AgentUrl;
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spake2::{Ed25519Group, Identity, Password, Spake2};
use std::fmt;
use std::str::FromStr;

/// Number of digits of a code.
const DIGITS: usize = 6;
const OF_CLIENT: &[u8] = b"linerate pairing: client";
const OF_AGENT: &[u8] = b"linerate pairing: agent";
const TASK: &str = "pair";

/// Pairing code of six digits that both people have.
#[derive(Clone, PartialEq, Eq)]
pub struct PairingCode(String);

/// Error for a text that is not a pairing code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a pairing code has 6 digits, as in 417-293; `linerate serve --pair` shows it")]
pub struct BadPairingCode;

/// First message of an end.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PairingMessage {
    /// Message of SPAKE2.
    pub message: Vec<u8>,
}

/// Proof that an end has the same key, for the certificate that it sees.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PairingProof {
    /// HMAC-SHA256 (RFC 2104).
    pub proof: Vec<u8>,
}

/// Answer to a client with the code.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct Paired {
    /// Proof of the agent.
    pub proof: Vec<u8>,
    /// Secret of the agent URL.
    pub token: String,
}

/// End of a pairing that waits for the message of the other end.
pub struct PairingEnd(Spake2<Ed25519Group>);

/// Key of both ends, the same if their codes were the same.
pub struct PairingKey(hmac::Key);

impl PairingCode {
    /// Generates a random code.
    ///
    /// # Panics
    /// The system has no random bytes.
    pub fn generate() -> Self {
        let mut bytes = [0; 8];
        SystemRandom::new().fill(&mut bytes).expect("getrandom(2) does not fail");
        Self(format!("{:06}", u64::from_le_bytes(bytes) % 1_000_000))
    }
}

impl FromStr for PairingCode {
    type Err = BadPairingCode;

    /// Reads six digits; spaces and hyphens do not matter.
    fn from_str(text: &str) -> Result<Self, BadPairingCode> {
        let digits: String = text.chars().filter(|c| !c.is_whitespace() && *c != '-').collect();
        let is_code = digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_code.then_some(Self(digits)).ok_or(BadPairingCode)
    }
}

/// Formats the code in two groups.
impl fmt::Display for PairingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, second) = self.0.split_at(DIGITS / 2);
        write!(f, "{first}-{second}")
    }
}

/// Never shows the code.
impl fmt::Debug for PairingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PairingCode(...)")
    }
}

/// Never shows the token.
impl fmt::Debug for Paired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Paired(...)")
    }
}

/// Shows no secret.
impl fmt::Debug for PairingEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PairingEnd(...)")
    }
}

/// Shows no secret.
impl fmt::Debug for PairingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PairingKey(...)")
    }
}

impl PairingEnd {
    /// Begins as the agent. Returns the message for the client, too.
    pub fn agent(code: &PairingCode) -> (Self, Vec<u8>) {
        let (client, agent) = identities();
        let (end, message) = Spake2::start_b(&Password::new(&code.0), &client, &agent);
        (Self(end), message)
    }

    /// Begins as the client. Returns the message for the agent, too.
    pub fn client(code: &PairingCode) -> (Self, Vec<u8>) {
        let (client, agent) = identities();
        let (end, message) = Spake2::start_a(&Password::new(&code.0), &client, &agent);
        (Self(end), message)
    }

    /// Returns the key, from the other end's message. Returns `None` if the message is invalid.
    pub fn finish(self, message: &[u8]) -> Option<PairingKey> {
        let key = self.0.finish(message).ok()?;
        Some(PairingKey(hmac::Key::new(hmac::HMAC_SHA256, &key)))
    }
}

fn identities() -> (Identity, Identity) {
    (Identity::new(OF_CLIENT), Identity::new(OF_AGENT))
}

impl PairingKey {
    /// Returns the client's proof for a certificate of this fingerprint.
    pub fn of_client(&self, fingerprint: &str) -> Vec<u8> {
        self.proof(OF_CLIENT, fingerprint)
    }

    /// Returns the agent's proof for a certificate of this fingerprint.
    pub fn of_agent(&self, fingerprint: &str) -> Vec<u8> {
        self.proof(OF_AGENT, fingerprint)
    }

    /// Returns whether `proof` is the client's for a certificate of this fingerprint.
    pub fn is_of_client(&self, proof: &[u8], fingerprint: &str) -> bool {
        hmac::verify(&self.0, &signed(OF_CLIENT, fingerprint), proof).is_ok()
    }

    fn is_of_agent(&self, proof: &[u8], fingerprint: &str) -> bool {
        hmac::verify(&self.0, &signed(OF_AGENT, fingerprint), proof).is_ok()
    }

    fn proof(&self, end: &[u8], fingerprint: &str) -> Vec<u8> {
        hmac::sign(&self.0, &signed(end, fingerprint)).as_ref().to_vec()
    }
}

/// Returns the signed bytes. They are unambiguous: no name of an end is a prefix of another, and a fingerprint has a
/// fixed length.
fn signed(end: &[u8], fingerprint: &str) -> Vec<u8> {
    [end, fingerprint.as_bytes()].concat()
}

/// Pairs with the agent at `host` and `port` that shows `code`. Returns its URL.
///
/// # Errors
/// The agent cannot be reached, does not pair, shows another code, or there is a man in the middle.
pub async fn pair(host: &str, port: u16, code: &PairingCode) -> Result<AgentUrl, AgentError> {
    let mut url = AgentUrl { host: host.to_owned(), port, token: String::new(), fingerprint: String::new() };
    let address = url.address();
    let pinned = pin::Pinned::first_seen();
    let client = Client::unadmitted(&url, &pinned).await?;
    let (end, message) = PairingEnd::client(code);
    let theirs: PairingMessage = client.first(&["pair"], &PairingMessage { message }, TASK).await?;
    let not_an_agent = |reason: &str| AgentError::NotAnAgent { address: address.clone(), reason: reason.to_owned() };
    let key = end.finish(&theirs.message).ok_or_else(|| not_an_agent("its pairing message cannot be read"))?;
    let fingerprint = pinned.get().ok_or_else(|| not_an_agent("it showed no certificate"))?.to_owned();
    let proof = PairingProof { proof: key.of_client(&fingerprint) };
    let paired: Paired = client.first(&["pair", "confirm"], &proof, TASK).await?;
    if !key.is_of_agent(&paired.proof, &fingerprint) {
        return Err(AgentError::PairingNotProved { address });
    }
    url.token = paired.token;
    url.fingerprint = fingerprint;
    // Parsed again, so that a hostile agent's token is checked like any other.
    url.to_string().parse().map_err(|_| not_an_agent("its token cannot be read"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> PairingCode {
        text.parse().expect("a code")
    }

    /// Returns the keys of both ends.
    fn keys(of_client: &str, of_agent: &str) -> (PairingKey, PairingKey) {
        let (client, to_agent) = PairingEnd::client(&code(of_client));
        let (agent, to_client) = PairingEnd::agent(&code(of_agent));
        (client.finish(&to_client).expect("a key"), agent.finish(&to_agent).expect("a key"))
    }

    #[test]
    fn codes_are_read_as_people_write_them() {
        for text in ["417-293", "417293", " 417 293 ", "4-1-7-2-9-3"] {
            assert_eq!(text.parse(), Ok(code("417293")), "{text}");
        }
        assert_eq!(code("000001").to_string(), "000-001");
        for wrong in ["", "41729", "4172930", "41729a", "４１７２９３"] {
            assert_eq!(wrong.parse::<PairingCode>(), Err(BadPairingCode), "{wrong}");
        }
        let made = PairingCode::generate();
        assert_eq!(made.to_string().parse(), Ok(made.clone()));
        assert!(!format!("{made:?}").contains(&made.0));
    }

    #[test]
    fn both_ends_prove_the_same_code_for_the_same_certificate() {
        let (client, agent) = keys("417-293", "417-293");
        assert!(agent.is_of_client(&client.of_client("ab"), "ab"));
        assert!(client.is_of_agent(&agent.of_agent("ab"), "ab"));
        assert!(!agent.is_of_client(&client.of_client("cd"), "ab"), "somebody stands in between");
        assert!(!agent.is_of_client(&client.of_agent("ab"), "ab"), "a proof of the other end");
        assert!(!agent.is_of_client(&[], "ab"));
        let (client, agent) = keys("417-293", "417-294");
        assert!(!agent.is_of_client(&client.of_client("ab"), "ab"), "another code");
        let (other, _) = keys("417-293", "417-293");
        assert!(!agent.is_of_client(&other.of_client("ab"), "ab"), "a proof of another pairing");
    }

    #[test]
    fn messages_that_are_none_are_refused() {
        let (_, own) = PairingEnd::client(&code("417293"));
        for wrong in [&[][..], &[0; 33], &[255; 33], &own[..32], &own] {
            let (end, _) = PairingEnd::client(&code("417293"));
            assert!(end.finish(wrong).is_none(), "{wrong:?}");
        }
    }
}
