//! Signatures, encryption and their keys.
//!
//! MS-SMB2 3.1.4.1 (signing), 3.1.4.2 (keys: the counter mode of NIST SP 800-108 with HMAC-SHA256), 3.1.4.3
//! (encryption).

use crate::wire::{COMMAND, FLAGS, FROM_SERVER, HEADER, MESSAGE_ID, SIGNATURE, TRANSFORM, u16_at, u32_at, u64_at};
use aes::Aes128;
use ccm::Ccm;
use ccm::aead::AeadInOut as _;
use ccm::consts::{U11, U16};
use cmac::{Cmac, KeyInit as _, Mac as _};
use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::{digest, hmac};
use std::sync::atomic::{AtomicU64, Ordering};
use subtle::ConstantTimeEq as _;

/// Flag of a signed message.
const SIGNED: u32 = 8;
const CANCEL: u16 = 12;
/// Offset of the nonce of an encrypted message; the authenticated data begins there (MS-SMB2 2.2.41).
const NONCE: usize = 20;
const SIZE: usize = 36;
const SESSION: usize = 44;
const CCM_NONCE: usize = 11;

/// The hash that binds a session's keys to all that was said before there were any (MS-SMB2 3.2.5.2, dialect 3.1.1):
/// SHA-512 of the hash so far and the next message.
#[derive(Clone, Copy)]
pub(crate) struct Transcript(pub(crate) [u8; 64]);

impl Transcript {
    pub(crate) fn new() -> Self {
        Self([0; 64])
    }

    pub(crate) fn add(&mut self, message: &[u8]) {
        let mut hash = digest::Context::new(&digest::SHA512);
        hash.update(&self.0);
        hash.update(message);
        self.0.copy_from_slice(hash.finish().as_ref());
    }
}

/// A key of `N` bytes, 32 at most, for one purpose.
pub(crate) fn derive<const N: usize>(key: &[u8], label: &[u8], context: &[u8]) -> [u8; N] {
    let mut hmac = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
    for part in [&1_u32.to_be_bytes()[..], label, &[0], context, &(8 * N as u32).to_be_bytes()] {
        hmac.update(part);
    }
    let mut derived = [0; N];
    derived.copy_from_slice(&hmac.sign().as_ref()[..N]);
    derived
}

/// Whether a message says that it is signed.
fn claims_signature(message: &[u8]) -> bool {
    u32_at(message, FLAGS).unwrap_or_default() & SIGNED != 0
}

/// Signs messages, and verifies their signatures.
pub(crate) enum Signer {
    Hmac(hmac::Key),
    Cmac(Box<Cmac<Aes128>>),
    Gmac(Box<LessSafeKey>),
}

impl Signer {
    pub(crate) fn hmac(key: &[u8; 16]) -> Self {
        Self::Hmac(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    pub(crate) fn cmac(key: &[u8; 16]) -> Self {
        Self::Cmac(Box::new(Cmac::new(&(*key).into())))
    }

    /// Returns `None` if the cryptography library refuses the key.
    pub(crate) fn gmac(key: &[u8; 16]) -> Option<Self> {
        Some(Self::Gmac(Box::new(LessSafeKey::new(UnboundKey::new(&AES_128_GCM, key).ok()?))))
    }

    /// Signs `message`, which begins with its header.
    pub(crate) fn sign(&self, message: &mut [u8]) {
        let flags = u32_at(message, FLAGS).unwrap_or_default() | SIGNED;
        message[FLAGS..FLAGS + 4].copy_from_slice(&flags.to_le_bytes());
        message[SIGNATURE..HEADER].fill(0);
        let signature = self.signature(message);
        message[SIGNATURE..HEADER].copy_from_slice(&signature);
    }

    /// Whether `message` has its signature, which it loses.
    pub(crate) fn verify(&self, message: &mut [u8]) -> bool {
        if message.len() < HEADER || !claims_signature(message) {
            return false;
        }
        let mut claimed = [0; HEADER - SIGNATURE];
        claimed.copy_from_slice(&message[SIGNATURE..HEADER]);
        message[SIGNATURE..HEADER].fill(0);
        self.signature(message).ct_eq(&claimed).into()
    }

    fn signature(&self, message: &[u8]) -> [u8; 16] {
        let mut signature = [0; 16];
        match self {
            Self::Hmac(key) => signature.copy_from_slice(&hmac::sign(key, message).as_ref()[..16]),
            Self::Cmac(fresh) => {
                let mut mac = fresh.clone();
                mac.update(message);
                signature.copy_from_slice(&mac.finalize().into_bytes());
            }
            Self::Gmac(key) => {
                // MS-SMB2 3.1.4.1: the message's number, who sent it, and whether it cancels another one.
                let sent = u32_at(message, FLAGS).unwrap_or_default() & FROM_SERVER;
                let cancels = u32::from(u16_at(message, COMMAND) == Some(CANCEL)) << 1;
                let mut nonce = [0; NONCE_LEN];
                nonce[..8].copy_from_slice(&u64_at(message, MESSAGE_ID).unwrap_or_default().to_le_bytes());
                nonce[8..].copy_from_slice(&(sent | cancels).to_le_bytes());
                let nonce = Nonce::assume_unique_for_key(nonce);
                if let Ok(tag) = key.seal_in_place_separate_tag(nonce, Aad::from(message), &mut []) {
                    signature.copy_from_slice(tag.as_ref());
                }
            }
        }
        signature
    }
}

/// Encrypts and decrypts messages.
pub(crate) struct Sealer {
    session: u64,
    to_server: Cipher,
    from_server: Cipher,
    /// Messages encrypted: no two have the same nonce.
    sealed: AtomicU64,
}

pub(crate) enum Cipher {
    Gcm(Box<LessSafeKey>),
    Ccm(Box<Ccm<Aes128, U16, U11>>),
}

impl Cipher {
    pub(crate) fn gcm_128(key: &[u8; 16]) -> Option<Self> {
        Some(Self::Gcm(Box::new(LessSafeKey::new(UnboundKey::new(&AES_128_GCM, key).ok()?))))
    }

    pub(crate) fn gcm_256(key: &[u8; 32]) -> Option<Self> {
        Some(Self::Gcm(Box::new(LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).ok()?))))
    }

    pub(crate) fn ccm_128(key: &[u8; 16]) -> Self {
        Self::Ccm(Box::new(Ccm::new(&(*key).into())))
    }

    /// Encrypts `message` and gives its tag.
    fn seal(&self, nonce: &[u8; 16], head: &[u8], message: &mut [u8]) -> Option<[u8; 16]> {
        let mut tag = [0; 16];
        match self {
            Self::Gcm(key) => {
                let nonce = Nonce::try_assume_unique_for_key(&nonce[..NONCE_LEN]).ok()?;
                tag.copy_from_slice(key.seal_in_place_separate_tag(nonce, Aad::from(head), message).ok()?.as_ref());
            }
            Self::Ccm(key) => {
                let nonce = nonce[..CCM_NONCE].try_into().ok()?;
                tag.copy_from_slice(&key.encrypt_inout_detached(&nonce, head, message.into()).ok()?);
            }
        }
        Some(tag)
    }

    /// Decrypts `message`, if it has its tag.
    fn open(&self, nonce: &[u8], tag: &[u8], head: &[u8], message: &mut [u8]) -> Option<()> {
        match self {
            Self::Gcm(key) => {
                let nonce = Nonce::try_assume_unique_for_key(&nonce[..NONCE_LEN]).ok()?;
                let tag = ring::aead::Tag::try_from(tag).ok()?;
                key.open_in_place_separate_tag(nonce, Aad::from(head), tag, message, 0..).ok()?;
            }
            Self::Ccm(key) => {
                let nonce = nonce[..CCM_NONCE].try_into().ok()?;
                key.decrypt_inout_detached(&nonce, head, message.into(), tag.try_into().ok()?).ok()?;
            }
        }
        Some(())
    }
}

impl Sealer {
    pub(crate) fn new(session: u64, to_server: Cipher, from_server: Cipher) -> Self {
        Self { session, to_server, from_server, sealed: AtomicU64::default() }
    }

    /// Encrypts `room`: [`TRANSFORM`] bytes of room for the head, then the message.
    pub(crate) fn seal(&self, room: &mut [u8]) -> Option<()> {
        let (head, message) = room.split_at_mut_checked(TRANSFORM)?;
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&self.sealed.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        head.fill(0);
        head[..4].copy_from_slice(b"\xfdSMB");
        head[NONCE..NONCE + 16].copy_from_slice(&nonce);
        head[SIZE..SIZE + 4].copy_from_slice(&u32::try_from(message.len()).ok()?.to_le_bytes());
        head[SESSION - 2] = 1;
        head[SESSION..].copy_from_slice(&self.session.to_le_bytes());
        let tag = self.to_server.seal(&nonce, &head[NONCE..], message)?;
        head[4..NONCE].copy_from_slice(&tag);
        Some(())
    }

    /// Decrypts the message after the head of `sealed`, if the server encrypted it for this session.
    pub(crate) fn open(&self, sealed: &mut [u8]) -> Option<()> {
        let (head, message) = sealed.split_at_mut_checked(TRANSFORM)?;
        if u64_at(head, SESSION)? != self.session || u32_at(head, SIZE)? as usize != message.len() {
            return None;
        }
        let (front, authenticated) = head.split_at(NONCE);
        self.from_server.open(&authenticated[..16], &front[4..], authenticated, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Vec<u8> {
        let mut message = vec![0; HEADER];
        message[..4].copy_from_slice(b"\xfeSMB");
        message[MESSAGE_ID] = 7;
        message.extend(b"what is said");
        message
    }

    #[test]
    fn a_signature_is_verified_and_nothing_else() {
        let key = [0x42; 16];
        for signer in [Signer::hmac(&key), Signer::cmac(&key), Signer::gmac(&key).expect("a key")] {
            let mut signed = message();
            signer.sign(&mut signed);
            assert!(signer.verify(&mut signed.clone()));
            for changed in [MESSAGE_ID, SIGNATURE, HEADER + 3] {
                let mut spoilt = signed.clone();
                spoilt[changed] ^= 1;
                assert!(!signer.verify(&mut spoilt), "byte {changed}");
            }
            assert!(!signer.verify(&mut message()), "an unsigned one");
        }
    }

    /// RFC 4493 section 4, example 2 (AES-CMAC of 16 bytes), by way of the messages' own code.
    #[test]
    fn cmac_is_that_of_its_rfc() {
        let key = 0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c_u128.to_be_bytes();
        let block = 0x6bc1_bee2_2e40_9f96_e93d_7e11_7393_172a_u128.to_be_bytes();
        let found = Signer::cmac(&key).signature(&block);
        assert_eq!(u128::from_be_bytes(found), 0x070a_16b4_6b4d_4144_f79b_dd9d_d04a_287c);
    }

    #[test]
    fn what_is_sealed_opens_with_the_same_keys_only() {
        let one = [1; 16];
        let other = [2; 16];
        let pairs: [fn(&[u8; 16]) -> Cipher; 3] = [
            Cipher::ccm_128,
            |key| Cipher::gcm_128(key).expect("a key"),
            |key| Cipher::gcm_256(&[key[0]; 32]).expect("a key"),
        ];
        for cipher in pairs {
            let ours = Sealer::new(9, cipher(&one), cipher(&other));
            let theirs = Sealer::new(9, cipher(&other), cipher(&one));
            let mut sealed = vec![0; TRANSFORM];
            sealed.extend(message());
            ours.seal(&mut sealed).expect("sealed");
            assert_ne!(sealed[TRANSFORM..], message());
            let mut opened = sealed.clone();
            theirs.open(&mut opened).expect("opened");
            assert_eq!(opened[TRANSFORM..], message());
            assert!(ours.open(&mut sealed.clone()).is_none(), "it is not from the server");
            for changed in [5, NONCE, SESSION, TRANSFORM + 1] {
                let mut spoilt = sealed.clone();
                spoilt[changed] ^= 1;
                assert!(theirs.open(&mut spoilt).is_none(), "byte {changed}");
            }
            assert!(theirs.open(&mut sealed[..20]).is_none());
        }
    }
}
