//! Negotiates the version of SMB, and verifies that nobody on the way lowered it.
//!
//! From 3.1.1 on the keys of a session follow from all that was negotiated (MS-SMB2 3.2.5.3.1), and a share is asked
//! for under a signature. Before that, the server is asked under a signature what it was asked and what it answered
//! (MS-SMB2 3.2.5.5).

use crate::answer::Negotiated;
use crate::connection::{Connection, Ticket};
use crate::crypto::Transcript;
use crate::error::{CallError, SmbError, status};
use crate::request::{Offer, Protection, Request, security_mode};
use crate::version::Version;
use std::sync::Arc;

/// AES-GMAC (MS-SMB2 2.2.3.1.7).
pub(crate) const GMAC: u16 = 2;
/// Signatures, best first: AES-GMAC, AES-CMAC.
const SIGNING: [u16; 2] = [GMAC, 1];
/// Encryption, best first: AES-128-GCM, AES-256-GCM, AES-128-CCM.
const CIPHERS: [u16; 3] = [2, 4, 1];
/// The client takes large messages, and can encrypt (MS-SMB2 2.2.3, Capabilities).
const CAPABILITIES: u32 = 0x4 | 0x40;

/// Requirements of a client on a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Terms {
    /// Earliest accepted version of SMB.
    pub minimum: Version,
    /// Whether every message must be signed.
    pub sign: bool,
}

/// Offered and negotiated values.
pub(crate) struct Negotiation {
    dialects: Vec<u16>,
    client: [u8; 16],
    salt: [u8; 32],
    pub(crate) security_mode: u16,
    pub(crate) negotiated: Negotiated,
}

impl Negotiation {
    /// Offers the versions that `terms` allow. `transcript` takes all messages.
    ///
    /// # Errors
    /// Fails if the server speaks no offered version, or is no SMB server.
    pub(crate) fn new(
        connection: &Arc<Connection>,
        server: &str,
        terms: Terms,
        transcript: &mut Transcript,
    ) -> Result<Self, SmbError> {
        let allowed = Version::ALL.into_iter().filter(|version| *version >= terms.minimum);
        let dialects: Vec<u16> = allowed.map(Version::number).collect();
        let security_mode = if terms.sign { security_mode::REQUIRED } else { security_mode::ENABLED };
        let client = rand::random();
        let salt = rand::random();
        let request = Request::negotiate(&offer(&dialects, client, salt, security_mode));
        let no_server = |error: CallError| SmbError::NoServer { server: server.to_owned(), why: error.to_string() };
        let asked = connection.submit_and(request, |sent| transcript.add(sent)).map_err(no_server)?;
        let answer = asked.wait().map_err(|error| match error {
            CallError::Status(status::NOT_SUPPORTED) => {
                SmbError::TooOld { server: server.to_owned(), minimum: terms.minimum }
            }
            other => no_server(other),
        })?;
        transcript.add(answer.message());
        let negotiated = answer.negotiated().map_err(no_server)?;
        if !dialects.contains(&negotiated.server.dialect) {
            return Err(no_server(CallError::Malformed("a version of SMB that was not offered")));
        }
        Ok(Self { dialects, client, salt, security_mode, negotiated })
    }

    /// Whether the login itself binds what was negotiated.
    pub(crate) fn is_bound(&self) -> bool {
        self.negotiated.server.dialect == Version::V3_1_1.number()
    }

    /// Asks the server by FSCTL_VALIDATE_NEGOTIATE_INFO whether it negotiated what the client saw. `protection` signs
    /// or encrypts. A server that does not know the question has not denied it.
    ///
    /// # Errors
    /// The question failed, or the answer is not protected.
    pub(crate) fn validate(
        &self,
        connection: &Arc<Connection>,
        tree: u32,
        protection: Protection,
    ) -> Result<bool, CallError> {
        let offer = offer(&self.dialects, self.client, self.salt, self.security_mode);
        let request = Request { tree, protection, ..Request::validate_negotiation(&offer) };
        match connection.submit(request).and_then(Ticket::wait) {
            Ok(answer) => Ok(answer.validated()? == self.negotiated.server),
            // A server that has never heard of it says so under its signature: nobody on the way can (MS-SMB2 3.2.5.5).
            Err(CallError::Status(status::NOT_SUPPORTED | status::INVALID_DEVICE_REQUEST | status::FILE_CLOSED)) => {
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }
}

fn offer(dialects: &[u16], client: [u8; 16], salt: [u8; 32], security_mode: u16) -> Offer<'_> {
    Offer { dialects, client, salt, signing: &SIGNING, ciphers: &CIPHERS, capabilities: CAPABILITIES, security_mode }
}
