//! From a connection to a session: the dialect, who it is, and the keys (MS-SMB2 3.2.4.2).

use crate::answer::{Answer, Negotiated};
use crate::connection::{Connection, Keys};
use crate::crypto::{Cipher, Sealer, Signer, Transcript, claims_signature, derive};
use crate::error::{CallError, SmbError, status};
use crate::file_time;
use crate::ntlm::{AuthenticationError, Chosen, Credentials};
use crate::request::{Offer, Request};
use crate::spnego;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Versions of SMB: 2.0.2, 2.1, 3.0, 3.0.2 and 3.1.1.
const DIALECTS: [u16; 5] = [0x202, 0x210, 0x300, 0x302, V3_1_1];
const V3: u16 = 0x300;
pub(crate) const V3_1_1: u16 = 0x311;
/// Signatures, best first: AES-GMAC, AES-CMAC.
const GMAC: u16 = 2;
const SIGNING: [u16; 2] = [GMAC, 1];
/// Encryption, best first: AES-128-GCM, AES-256-GCM, AES-128-CCM.
const CIPHERS: [u16; 3] = [2, 4, 1];
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

/// What a server is to whoever is logged in.
pub(crate) struct Welcome {
    pub(crate) negotiated: Negotiated,
    /// Of a guest nothing is signed: there are no keys.
    pub(crate) guest: bool,
    /// All is to be encrypted.
    pub(crate) sealed: bool,
}

/// Logs in to `server`.
pub(crate) fn log_in(connection: &Arc<Connection>, server: &str, login: &Login) -> Result<Welcome, SmbError> {
    let no_server = |error: CallError| SmbError::NoServer { server: server.to_owned(), why: error.to_string() };
    let refused =
        |why: String, remedy| SmbError::Refused { server: server.to_owned(), user: login.user.clone(), why, remedy };
    let unverified = |why: String| SmbError::Unverified { server: server.to_owned(), why };
    let mut transcript = Transcript::new();
    let negotiated = negotiate(connection, &mut transcript).map_err(no_server)?;

    let credentials = Credentials::parse(&login.user, &login.password)
        .map_err(|error| refused(error.to_string(), "write NAME, DOMAIN\\NAME or NAME@DOMAIN"))?;
    let not_ours =
        |error: AuthenticationError| refused(error.to_string(), "does it take NTLM? linerate has no Kerberos");
    let client = spnego::Client::new(credentials);
    let mut token = client.begin();
    let mut proved = None;
    let (mut last, flags) = loop {
        let request = Request::session_setup(&token);
        let answer = connection.submit_and(request, |sent| transcript.add(sent)).and_then(|asked| asked.wait_any());
        let answer = answer.map_err(no_server)?;
        connection.be_of(answer.session());
        let more = match answer.status() {
            status::MORE if proved.is_none() => true,
            0 => false,
            other => {
                let remedy = match other {
                    status::LOGON_FAILURE => {
                        "check --user, and the password in LINERATE_SMB_PASSWORD or --password-file"
                    }
                    _ => "the server's log may tell more",
                };
                return Err(refused(CallError::Status(other).to_string(), remedy));
            }
        };
        let (flags, server_token) = answer.set_up().map_err(no_server)?;
        if !more {
            break (answer, flags);
        }
        let (answer_token, proof) = client.prove(server_token, &chosen()).map_err(not_ours)?;
        (token, proved) = (answer_token, Some(proof));
        transcript.add(answer.message());
    };
    const GUEST: u16 = 1;
    const NOBODY: u16 = 2;
    const ENCRYPT: u16 = 4;
    let guest = flags & (GUEST | NOBODY) != 0;
    if guest {
        if !login.user.eq_ignore_ascii_case("guest") {
            return Err(refused(
                String::from("it would take this user for a guest"),
                "does the server know this user? Name one that it knows (on Samba, `smbpasswd -a NAME` adds one), or --user guest where \
                 a guest will do, whose messages nothing protects",
            ));
        }
        return Ok(Welcome { negotiated, guest, sealed: false });
    }
    let proved = proved.ok_or_else(|| unverified(String::from("it asked for no proof of the password")))?;
    let keys = keys(&negotiated, proved.key(), &transcript.0, last.session());
    if !verify(&mut last, &keys, negotiated.dialect) {
        return Err(unverified(String::from("its signature is wrong")));
    }
    let (_, token) = last.set_up().map_err(no_server)?;
    proved.verify(token).map_err(|error| unverified(error.to_string()))?;
    connection.protect(keys);
    Ok(Welcome { negotiated, guest, sealed: flags & ENCRYPT != 0 })
}

fn negotiate(connection: &Arc<Connection>, transcript: &mut Transcript) -> Result<Negotiated, CallError> {
    let (client, salt) = (rand::random(), rand::random());
    let offer = Offer { dialects: &DIALECTS, client, salt, signing: &SIGNING, ciphers: &CIPHERS };
    let asked = connection.submit_and(Request::negotiate(&offer), |sent| transcript.add(sent))?;
    let answer = asked.wait()?;
    transcript.add(answer.message());
    let negotiated = answer.negotiated()?;
    match DIALECTS.contains(&negotiated.dialect) {
        true => Ok(negotiated),
        false => Err(CallError::Malformed("a version of SMB that was not offered")),
    }
}

/// The answer that ends a login is signed by the key that only a server has which knows the password: always in 3.1.1, before that where it
/// says so.
fn verify(answer: &mut Answer, keys: &Keys, dialect: u16) -> bool {
    let begins = answer.begins;
    let signed = keys.signer.as_ref().is_some_and(|signer| signer.verify(&mut answer.bytes[begins..]));
    signed || dialect < V3_1_1 && !claims_signature(answer.message())
}

/// MS-SMB2 3.2.5.3.1.
fn keys(negotiated: &Negotiated, key: &[u8; 16], transcript: &[u8; 64], session: u64) -> Keys {
    if negotiated.dialect < V3 {
        return Keys { signer: Some(Signer::hmac(key)), sealer: None };
    }
    if negotiated.dialect < V3_1_1 {
        let sealer = || {
            let to_server = Cipher::ccm_128(&derive(key, b"SMB2AESCCM\0", b"ServerIn \0"));
            Sealer::new(session, to_server, Cipher::ccm_128(&derive(key, b"SMB2AESCCM\0", b"ServerOut\0")))
        };
        let signer = Signer::cmac(&derive(key, b"SMB2AESCMAC\0", b"SmbSign\0"));
        return Keys { signer: Some(signer), sealer: (negotiated.capabilities & ENCRYPTION != 0).then(sealer) };
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
    let (to_server, from_server) = (cipher(b"SMBC2SCipherKey\0"), cipher(b"SMBS2CCipherKey\0"));
    let sealer =
        to_server.zip(from_server).map(|(to_server, from_server)| Sealer::new(session, to_server, from_server));
    Keys { signer, sealer }
}

/// What the client chooses for this login.
fn chosen() -> Chosen {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i64);
    Chosen { challenge: rand::random(), session_key: rand::random(), time: file_time(now) }
}
