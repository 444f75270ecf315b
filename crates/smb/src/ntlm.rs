//! NTLM version 2, the client's side (MS-NLMP).
//!
//! Three messages prove that the client knows the password, without sending it: the client's abilities, the server's
//! challenge, and the response to it. They also give both ends a session key. A message integrity code (MIC) covers all
//! three, so nothing on the way can weaken what the ends agree on.

use crate::wire::{Put as _, part, u16_at, u32_at, u64_at, utf16};
use hmac::{Hmac, KeyInit as _, Mac as _};
use md4::{Digest as _, Md4};
use md5::Md5;
use rc4::{Rc4, StreamCipher as _};

/// Flags that the client asks for (MS-NLMP 2.2.2.5).
const FLAGS: u32 = REQUIRED
    | flag::REQUEST_TARGET
    | flag::SIGN
    | flag::SEAL
    | flag::NTLM
    | flag::ALWAYS_SIGN
    | flag::VERSION
    | flag::KEY_EXCHANGE
    | flag::KEYS_OF_56_BITS;
/// Flags that the server must grant: without them, texts and keys would have another form.
const REQUIRED: u32 = flag::UNICODE | flag::EXTENDED_SESSION_SECURITY | flag::KEYS_OF_128_BITS;

/// MS-NLMP 2.2.2.5.
mod flag {
    pub(super) const UNICODE: u32 = 0x1;
    pub(super) const REQUEST_TARGET: u32 = 0x4;
    pub(super) const SIGN: u32 = 0x10;
    pub(super) const SEAL: u32 = 0x20;
    pub(super) const NTLM: u32 = 0x200;
    pub(super) const ALWAYS_SIGN: u32 = 0x8000;
    pub(super) const EXTENDED_SESSION_SECURITY: u32 = 0x8_0000;
    pub(super) const TARGET_INFO: u32 = 0x80_0000;
    pub(super) const VERSION: u32 = 0x200_0000;
    pub(super) const KEYS_OF_128_BITS: u32 = 0x2000_0000;
    pub(super) const KEY_EXCHANGE: u32 = 0x4000_0000;
    pub(super) const KEYS_OF_56_BITS: u32 = 0x8000_0000;
}

const SIGNATURE: &[u8; 8] = b"NTLMSSP\0";
/// Windows 10 and NTLM revision 15 (MS-NLMP 2.2.2.10). Servers use it for their logs only.
const VERSION: [u8; 8] = [10, 0, 0, 0, 0, 0, 0, 15];
/// Offsets of the MIC and of the variable fields of the third message (MS-NLMP 2.2.1.3).
const MIC: usize = 72;
const PAYLOAD: usize = 88;
/// Kinds of entries in the server's target information (MS-NLMP 2.2.2.1), and the flag for the MIC.
const AV_END: u16 = 0;
const AV_FLAGS: u16 = 6;
const AV_TIMESTAMP: u16 = 7;
const AV_FLAG_MIC: u32 = 2;

/// A server that is not understood, or with which the client must not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct AuthenticationError(pub(crate) &'static str);

/// A user and the password.
#[derive(Clone)]
pub(crate) struct Credentials {
    user: String,
    domain: String,
    password: String,
}

impl Credentials {
    /// Reads `NAME`, `DOMAIN\NAME` or `NAME@DOMAIN`. The last form is sent whole, and the server looks for the domain
    /// in it.
    ///
    /// # Errors
    /// The name is empty, or has both separators or one of them twice.
    pub(crate) fn parse(user: &str, password: &str) -> Result<Self, AuthenticationError> {
        let (domain, name) = user.split_once('\\').unwrap_or(("", user));
        let has_domain = name.len() < user.len();
        if name.is_empty() || name.contains('\\') || has_domain && user.contains('@') {
            return Err(AuthenticationError("it is no user name"));
        }
        Ok(Self { user: name.to_owned(), domain: domain.to_owned(), password: password.to_owned() })
    }

    /// NTOWFv2: the key of the user's responses (MS-NLMP 3.3.2).
    fn response_key(&self) -> [u8; 16] {
        // Windows maps each letter to one letter: a letter without a single capital stays.
        let mut user = String::new();
        for letter in self.user.chars() {
            let mut upper = letter.to_uppercase();
            user.push(if upper.len() == 1 { upper.next().unwrap_or(letter) } else { letter });
        }
        hmac_md5(&Md4::digest(utf16(&self.password)), &[&utf16(&user), &utf16(&self.domain)])
    }
}

/// Random values that the client chooses for one login, and the time.
pub(crate) struct Chosen {
    pub(crate) challenge: [u8; 8],
    pub(crate) session_key: [u8; 16],
    /// Time in 100 ns since 1601, for servers that do not send theirs.
    pub(crate) time: u64,
}

/// The first message (MS-NLMP 2.2.1.1).
pub(crate) fn negotiate_message() -> Vec<u8> {
    let mut message = SIGNATURE.to_vec();
    message.u32(1);
    message.u32(FLAGS);
    // Neither domain nor workstation is sent.
    message.put(&[0; 16]);
    message.put(&VERSION);
    message
}

/// The second message, of the server (MS-NLMP 2.2.1.2).
#[derive(Debug, PartialEq, Eq)]
struct Challenge<'a> {
    flags: u32,
    challenge: [u8; 8],
    /// Target information of the server, in its own encoding and order, without the end and without flags.
    target_info: Vec<u8>,
    target_flags: u32,
    time: Option<u64>,
    message: &'a [u8],
}

impl<'a> Challenge<'a> {
    fn parse(message: &'a [u8]) -> Result<Self, AuthenticationError> {
        let read = || {
            let typed = message.starts_with(SIGNATURE) && u32_at(message, 8)? == 2;
            let flags = u32_at(message, 20)?;
            let challenge = part(message, 24, 8)?.try_into().ok()?;
            let info = part(message, u32_at(message, 44)? as usize, u16_at(message, 40)?.into())?;
            let mut challenge =
                Self { flags, challenge, target_info: Vec::new(), target_flags: 0, time: None, message };
            challenge.take_target_info(info)?;
            typed.then_some(challenge)
        };
        let challenge = read().ok_or(AuthenticationError("its NTLM challenge is not understood"))?;
        if challenge.flags & REQUIRED != REQUIRED {
            return Err(AuthenticationError("it has no NTLM version 2 with 128-bit keys"));
        }
        Ok(challenge)
    }

    /// Takes the list of target information. Returns `None` if it has no end.
    fn take_target_info(&mut self, mut list: &[u8]) -> Option<()> {
        loop {
            let kind = u16_at(list, 0)?;
            let length = usize::from(u16_at(list, 2)?);
            let (pair, rest) = list.split_at_checked(4 + length)?;
            match kind {
                AV_END => return Some(()),
                AV_FLAGS => self.target_flags = u32_at(pair, 4)?,
                _ => {
                    if kind == AV_TIMESTAMP {
                        self.time = Some(u64_at(pair, 4)?);
                    }
                    self.target_info.put(pair);
                }
            }
            list = rest;
        }
    }
}

/// The third message (MS-NLMP 2.2.1.3), and what follows from it.
pub(crate) struct Authenticate {
    pub(crate) message: Vec<u8>,
    pub(crate) session: SessionKey,
}

impl Authenticate {
    /// Answers the server's `challenge` to the message `negotiate`.
    ///
    /// # Errors
    /// Fails if the message is no challenge, or does not grant the required flags.
    pub(crate) fn to(
        challenge: &[u8],
        negotiate: &[u8],
        credentials: &Credentials,
        chosen: &Chosen,
    ) -> Result<Self, AuthenticationError> {
        let challenge = Challenge::parse(challenge)?;
        let key = credentials.response_key();
        let mut target_info = challenge.target_info.clone();
        target_info.u16(AV_FLAGS);
        target_info.u16(4);
        target_info.u32(challenge.target_flags | AV_FLAG_MIC);
        target_info.put(&[0; 4]);
        let time = challenge.time.unwrap_or(chosen.time);
        let response = Response::new(&key, &challenge.challenge, &chosen.challenge, time, &target_info);
        // A server that sends its time wants no LMv2 response (MS-NLMP 3.1.5.1.2).
        let lm_response = match challenge.time {
            Some(_) => [0; 24],
            None => lm_response(&key, &challenge.challenge, &chosen.challenge),
        };
        let exchanges = challenge.flags & flag::KEY_EXCHANGE != 0;
        let (session_key, encrypted) = if exchanges {
            (chosen.session_key, rc4(&response.base_key, chosen.session_key).to_vec())
        } else {
            (response.base_key, Vec::new())
        };

        let mut message = SIGNATURE.to_vec();
        message.u32(3);
        let user = utf16(&credentials.user);
        let domain = utf16(&credentials.domain);
        let fields = [&lm_response[..], &response.bytes, &domain, &user, &[], &encrypted];
        let mut offset = PAYLOAD;
        for field in fields {
            let length = u16::try_from(field.len()).map_err(|_| AuthenticationError("the user's name is too long"))?;
            message.u16(length);
            message.u16(length);
            message.u32(offset as u32);
            offset += field.len();
        }
        message.u32(FLAGS & (challenge.flags | flag::VERSION) | flag::TARGET_INFO);
        message.put(&VERSION);
        message.put(&[0; PAYLOAD - MIC]);
        fields.iter().for_each(|field| message.put(field));
        // MS-NLMP 3.1.5.1.2: over all three messages, the third one with zeros in the MIC's place.
        let mic = hmac_md5(&session_key, &[negotiate, challenge.message, &message]);
        message[MIC..PAYLOAD].copy_from_slice(&mic);
        Ok(Self { message, session: SessionKey { key: session_key, exchanged: exchanges } })
    }
}

/// The response of NTLM version 2 (MS-NLMP 2.2.2.8, 3.3.2).
struct Response {
    bytes: Vec<u8>,
    base_key: [u8; 16],
}

impl Response {
    fn new(key: &[u8; 16], server: &[u8; 8], client: &[u8; 8], time: u64, target_info: &[u8]) -> Self {
        let mut temp = vec![1, 1, 0, 0, 0, 0, 0, 0];
        temp.u64(time);
        temp.put(client);
        temp.put(&[0; 4]);
        temp.put(target_info);
        temp.put(&[0; 4]);
        let proof = hmac_md5(key, &[server, &temp]);
        Self { bytes: [&proof[..], &temp].concat(), base_key: hmac_md5(key, &[&proof]) }
    }
}

/// The response of LM version 2 (MS-NLMP 3.3.2).
fn lm_response(key: &[u8; 16], server: &[u8; 8], client: &[u8; 8]) -> [u8; 24] {
    let mut response = [0; 24];
    response[..16].copy_from_slice(&hmac_md5(key, &[server, client]));
    response[16..].copy_from_slice(client);
    response
}

/// End that signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// The key that both ends have after a login.
pub(crate) struct SessionKey {
    pub(crate) key: [u8; 16],
    /// Whether the client chose it, and not the password.
    exchanged: bool,
}

impl SessionKey {
    /// The signature of the first text that `side` signs (MS-NLMP 3.4.4.2).
    pub(crate) fn signature(&self, side: Side, text: &[u8]) -> [u8; 16] {
        const FIRST: [u8; 4] = [0; 4];
        let digest = hmac_md5(&self.derived(side, "sign"), &[&FIRST, text]);
        let mut checksum = [0; 8];
        checksum.copy_from_slice(&digest[..8]);
        if self.exchanged {
            checksum = rc4(&self.derived(side, "seal"), checksum);
        }
        let mut signature = [0; 16];
        signature[0] = 1;
        signature[4..12].copy_from_slice(&checksum);
        signature
    }

    /// SIGNKEY and SEALKEY (MS-NLMP 3.4.5.2, 3.4.5.3).
    fn derived(&self, side: Side, purpose: &str) -> [u8; 16] {
        let way = match side {
            Side::Client => "client-to-server",
            Side::Server => "server-to-client",
        };
        let magic = format!("session key to {way} {purpose}ing key magic constant\0");
        Md5::new().chain_update(self.key).chain_update(magic).finalize().into()
    }
}

fn hmac_md5(key: &[u8], parts: &[&[u8]]) -> [u8; 16] {
    let mut hmac = Hmac::<Md5>::new_from_slice(key).expect("HMAC takes keys of any length");
    parts.iter().for_each(|part| hmac.update(part));
    hmac.finalize().into_bytes().into()
}

fn rc4<const N: usize>(key: &[u8; 16], mut bytes: [u8; N]) -> [u8; N] {
    Rc4::new_from_slice(key).expect("RC4 takes keys of 16 bytes").apply_keystream(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests;
