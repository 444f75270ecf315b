//! From a connection to a session: who it is, and the keys (MS-SMB2 3.2.4.2.3).

use crate::answer::{Answer, Negotiated};
use crate::connection::{Connection, Keys};
use crate::crypto::{Cipher, Sealer, Signer, Transcript, derive};
use crate::error::{CallError, LoginError, SmbError, status};
use crate::file_info::file_time;
use crate::negotiation::{GMAC, Negotiation, Terms};
use crate::ntlm::{Chosen, Credentials};
use crate::request::Request;
use crate::spnego;
use crate::version::Version;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// A server of version 3.0 that can encrypt.
const ENCRYPTION: u32 = 0x40;

/// A user of a server. `guest` is one that needs no password, where the server lets guests in.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// `NAME`, `DOMAIN\NAME` or `NAME@DOMAIN`.
    pub user: String,
    /// The password.
    pub password: String,
}

/// The password stays out of what is printed.
impl std::fmt::Debug for Login {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "user `{}`", self.user)
    }
}

/// Result of a login.
pub(crate) struct Welcome {
    pub(crate) negotiation: Negotiation,
    /// Whether the user is a guest. A guest has no keys, so nothing is signed.
    pub(crate) guest: bool,
    /// Whether the server demands encryption.
    pub(crate) sealed: bool,
}

/// Logs in to `server`.
pub(crate) fn log_in(
    connection: &Arc<Connection>,
    server: &str,
    login: &Login,
    terms: Terms,
) -> Result<Welcome, SmbError> {
    let no_server = |error: CallError| SmbError::NoServer { server: server.to_owned(), why: error.to_string() };
    let refused =
        |why: String, cause| SmbError::Refused { server: server.to_owned(), user: login.user.clone(), why, cause };
    let unverified = |why: String| SmbError::Unverified { server: server.to_owned(), why };
    let mut transcript = Transcript::new();
    let negotiation = Negotiation::new(connection, server, terms, &mut transcript)?;

    let credentials = Credentials::parse(&login.user, &login.password)
        .map_err(|error| refused(error.to_string(), LoginError::BadName))?;
    let client = spnego::Client::new(credentials);
    let mut token = client.begin();
    let mut proved = None;
    let (mut last, flags) = loop {
        let request = Request::session_setup(&token, negotiation.security_mode);
        let answer = connection.submit_and(request, |sent| transcript.add(sent)).and_then(|asked| asked.wait_any());
        let answer = answer.map_err(no_server)?;
        connection.be_of(answer.session());
        let more = match answer.status() {
            status::MORE if proved.is_none() => true,
            0 => false,
            other => {
                let cause = match other {
                    status::LOGON_FAILURE => LoginError::UserOrPassword,
                    _ => LoginError::Other,
                };
                return Err(refused(CallError::Status(other).to_string(), cause));
            }
        };
        let (flags, server_token) = answer.set_up().map_err(no_server)?;
        if !more {
            break (answer, flags);
        }
        let (answer_token, proof) = client
            .prove(server_token, &random_values())
            .map_err(|error| refused(error.to_string(), LoginError::NoNtlm))?;
        (token, proved) = (answer_token, Some(proof));
        transcript.add(answer.message());
    };
    const GUEST: u16 = 1;
    const NOBODY: u16 = 2;
    const ENCRYPT: u16 = 4;
    let guest = flags & (GUEST | NOBODY) != 0;
    if guest {
        if !login.user.eq_ignore_ascii_case("guest") {
            let why = String::from("it would take this user for a guest");
            return Err(refused(why, LoginError::TakenForGuest));
        }
        if terms.sign {
            let why = String::from("a guest has no key to sign messages with");
            return Err(refused(why, LoginError::GuestCannotSign));
        }
        return Ok(Welcome { negotiation, guest, sealed: false });
    }
    let proved = proved.ok_or_else(|| unverified(String::from("it asked for no proof of the password")))?;
    let keys = keys(&negotiation.negotiated, proved.key(), &transcript.0, last.session());
    if !verify(&mut last, &keys) {
        return Err(unverified(String::from("it is not signed, or its signature is wrong")));
    }
    let (_, token) = last.set_up().map_err(no_server)?;
    proved.verify(token).map_err(|error| unverified(error.to_string()))?;
    connection.protect(keys);
    Ok(Welcome { negotiation, guest, sealed: flags & ENCRYPT != 0 })
}

/// The answer that ends a login is signed by the key that only a server has which knows the password. A server may
/// leave the signature out before 3.1.1, and so could whoever is on the way: it is not taken then.
fn verify(answer: &mut Answer, keys: &Keys) -> bool {
    let begins = answer.begins;
    keys.signer.as_ref().is_some_and(|signer| signer.verify(&mut answer.bytes[begins..]))
}

/// MS-SMB2 3.2.5.3.1.
fn keys(negotiated: &Negotiated, key: &[u8; 16], transcript: &[u8; 64], session: u64) -> Keys {
    let dialect = negotiated.server.dialect;
    if dialect < Version::V3_0.number() {
        return Keys { signer: Some(Signer::hmac(key)), sealer: None };
    }
    if dialect < Version::V3_1_1.number() {
        let has_encryption = negotiated.server.capabilities & ENCRYPTION != 0;
        let sealer = has_encryption.then(|| {
            let to_server = Cipher::ccm_128(&derive(key, b"SMB2AESCCM\0", b"ServerIn \0"));
            Sealer::new(session, to_server, Cipher::ccm_128(&derive(key, b"SMB2AESCCM\0", b"ServerOut\0")))
        });
        let signer = Signer::cmac(&derive(key, b"SMB2AESCMAC\0", b"SmbSign\0"));
        return Keys { signer: Some(signer), sealer };
    }
    let signing = derive(key, b"SMBSigningKey\0", transcript);
    let signer = match negotiated.signing {
        Some(GMAC) => Signer::gmac(&signing),
        _ => Some(Signer::cmac(&signing)),
    };
    let cipher = |label: &[u8]| match negotiated.cipher? {
        1 => Some(Cipher::ccm_128(&derive(key, label, transcript))),
        2 => Cipher::gcm_128(&derive(key, label, transcript)),
        4 => Cipher::gcm_256(&derive(key, label, transcript)),
        _ => None,
    };
    let to_server = cipher(b"SMBC2SCipherKey\0");
    let from_server = cipher(b"SMBS2CCipherKey\0");
    let sealer =
        to_server.zip(from_server).map(|(to_server, from_server)| Sealer::new(session, to_server, from_server));
    Keys { signer, sealer }
}

/// Returns the client's random values of this login.
fn random_values() -> Chosen {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i64);
    Chosen { challenge: rand::random(), session_key: rand::random(), time: file_time(now) }
}

#[cfg(test)]
mod tests;
