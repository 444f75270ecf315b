//! Invitations: credentials beside the agent's own token, each with powers and a life of its own.
//!
//! They stand in a private file of the identity folder, with the hash of their tokens. The file is replaced as a whole,
//! so that a running agent, which reads it again when it changes, never sees half of it.

use crate::{StartError, Token, private_file};
use ipnet::IpNet;
use linerate_model::Powers;
use linerate_sys::clock;
use linerate_sys::file_identity::FileState;
use linerate_units::{BitRate, Nanos};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use subtle::ConstantTimeEq as _;

/// Invitations that are over are kept for so long, so that who still uses one is told what became of it.
const REMEMBERED: u64 = 30 * 24 * 3_600;

/// One credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Invitation {
    /// Its name in lists, eight hexadecimal digits; no secret.
    pub id: String,
    /// SHA-256 of its token, in hexadecimal digits. A token has 128 random bits, so that its hash needs no salt.
    token_sha256: String,
    /// What it allows.
    pub allows: Allowance,
    /// When it ends, seconds since 1970.
    pub ends_unix_s: u64,
    /// When it was revoked, seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_unix_s: Option<u64>,
}

/// Rights of an invitation, within the agent's options.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allowance {
    /// Kinds of work.
    pub powers: Powers,
    /// The most that its sessions together may send, and receive, per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rate: Option<BitRate>,
    /// Networks whose hosts may use it, and that its sessions may connect to; empty is no bound.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<IpNet>,
}

/// State of an invitation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvitationState {
    /// It can be used for this time.
    Open(Nanos),
    /// Its life is over.
    Expired,
    /// It was revoked.
    Revoked,
}

impl Invitation {
    /// Returns whether its token is the one that `hash` is of. Takes the same time wherever they differ.
    pub(crate) fn has_token(&self, hash: &TokenHash) -> bool {
        self.token_sha256.as_bytes().ct_eq(hash.0.as_bytes()).into()
    }

    /// Returns how it stands now.
    pub fn state(&self) -> InvitationState {
        self.state_at(now_unix_s())
    }

    fn state_at(&self, now_unix_s: u64) -> InvitationState {
        match self.ends_unix_s.checked_sub(now_unix_s) {
            _ if self.revoked_unix_s.is_some() => InvitationState::Revoked,
            None | Some(0) => InvitationState::Expired,
            Some(left) => InvitationState::Open(Nanos::new(left.saturating_mul(1_000_000_000))),
        }
    }
}

/// SHA-256 of a token, in hexadecimal digits.
#[derive(Debug)]
pub(crate) struct TokenHash(String);

impl TokenHash {
    /// Hashes `token`, which may be any bytes.
    pub(crate) fn of(token: &[u8]) -> Self {
        Self(digest(&SHA256, token).as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// The invitations of one identity folder.
#[derive(Debug, Clone)]
pub struct Invitations {
    directory: PathBuf,
}

impl Invitations {
    /// Opens the invitations kept in `directory`.
    pub fn of(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    /// Makes an invitation that allows so much for `life`, and returns it with its token, which is kept nowhere.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn invite(&self, allows: Allowance, life: Nanos) -> Result<(Invitation, Token), StartError> {
        let (token, now) = (Token::generate(), now_unix_s());
        let invitation = Invitation {
            id: format!("{:08x}", rand::random::<u32>()),
            token_sha256: TokenHash::of(token.as_str().as_bytes()).0,
            allows,
            ends_unix_s: now.saturating_add(life.get().div_ceil(1_000_000_000)),
            revoked_unix_s: None,
        };
        self.change(|invitations| invitations.push(invitation.clone()))?;
        Ok((invitation, token))
    }

    /// Revokes the invitation of this name; false if there is none that could still be used.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn revoke(&self, id: &str) -> Result<bool, StartError> {
        let (mut found, now) = (false, now_unix_s());
        self.change(|invitations| {
            let usable = |invitation: &&mut Invitation| matches!(invitation.state_at(now), InvitationState::Open(_));
            for invitation in invitations.iter_mut().filter(|invitation| invitation.id == id).filter(usable) {
                invitation.revoked_unix_s = Some(now);
                found = true;
            }
        })?;
        Ok(found)
    }

    /// Lists all invitations, the oldest first, including those that ended within the last 30 days.
    ///
    /// # Errors
    /// The file cannot be read, others can read it, or it holds something else.
    pub fn list(&self) -> Result<Vec<Invitation>, StartError> {
        let path = self.path();
        let Some(text) = private_file::read(&path)? else { return Ok(Vec::new()) };
        serde_json::from_str(&text).map_err(|error| StartError::Corrupt {
            path,
            expected: "invitations",
            problem: error.to_string(),
        })
    }

    /// Checks that invitations can be read as long as the agent runs: else it would refuse each of them without saying
    /// why.
    ///
    /// # Errors
    /// As [`Invitations::list`]; where this process has no right to read the folder, the remedy is told.
    pub(crate) fn check_readable(&self) -> Result<(), StartError> {
        match self.list() {
            Err(StartError::File { path, source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => {
                Err(StartError::OfAnotherUser { path, source })
            }
            read => read.map(drop),
        }
    }

    /// Returns the version of the file. `None` if there is no file.
    pub(crate) fn version(&self) -> Option<FileState> {
        FileState::of(&self.path()).ok()
    }

    /// Notes where the agent of this identity is reached, for the URLs of invitations.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn note_address(&self, address: &str) -> Result<(), StartError> {
        private_file::replace(&self.directory.join("agent.address"), &format!("{address}\n"))
    }

    /// Returns the address of the agent of this identity when it was last started, if it ever was.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn address(&self) -> Result<Option<String>, StartError> {
        let text = private_file::read(&self.directory.join("agent.address"))?;
        Ok(text.map(|text| text.trim().to_owned()))
    }

    /// Changes the file, alone: of two programs that change it at once, neither undoes what the other did.
    fn change(&self, change: impl FnOnce(&mut Vec<Invitation>)) -> Result<(), StartError> {
        let _alone = private_file::lock(&self.directory.join("invitations.lock"))?;
        let mut invitations = self.list()?;
        change(&mut invitations);
        let oldest = now_unix_s().saturating_sub(REMEMBERED);
        invitations.retain(|invitation| invitation.revoked_unix_s.unwrap_or(invitation.ends_unix_s) >= oldest);
        let text = serde_json::to_string_pretty(&invitations).expect("plain data becomes JSON");
        private_file::replace(&self.path(), &text)
    }

    fn path(&self) -> PathBuf {
        self.directory.join("invitations.json")
    }
}

fn now_unix_s() -> u64 {
    clock::unix_now() / 1_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_testsuite::files::{mode, set_mode};
    use std::fs;

    fn allowance() -> Allowance {
        Allowance { powers: Powers::of_an_invitation(), ..Allowance::default() }
    }

    #[test]
    fn the_file_is_private_and_holds_no_token() {
        let directory = tempfile::tempdir().expect("a directory");
        let invitations = Invitations::of(directory.path());
        let (one, token) = invitations.invite(allowance(), Nanos::from_secs(60)).expect("written");
        let text = fs::read_to_string(invitations.path()).expect("a file");
        assert!(!text.contains(token.as_str()), "{text}");
        assert_eq!(mode(&invitations.path()), 0o600);
        let (two, other) = invitations.invite(allowance(), Nanos::from_secs(60)).expect("written");
        assert_eq!(invitations.list().expect("read"), [one.clone(), two]);
        let [hash, other] = [token, other].map(|token| TokenHash::of(token.as_str().as_bytes()));
        assert!(one.has_token(&hash) && !one.has_token(&other));
        // As a running agent notices them: what it may not read now, and what it may read again.
        let before = invitations.version();
        set_mode(&invitations.path(), 0o644);
        assert_ne!(invitations.version(), before, "a change of the mode is noticed");
        let error = invitations.list().expect_err("others can read it").to_string();
        assert!(error.contains("invitations.json") && error.contains("chmod 600"), "{error}");
    }

    #[test]
    fn one_that_was_revoked_or_is_over_is_remembered_for_a_while() {
        let directory = tempfile::tempdir().expect("a directory");
        let invitations = Invitations::of(directory.path());
        let (invitation, _) = invitations.invite(allowance(), Nanos::from_secs(60)).expect("written");
        let now = now_unix_s();
        assert!(matches!(invitation.state_at(now), InvitationState::Open(left) if left <= Nanos::from_secs(61)));
        assert_eq!(invitation.state_at(invitation.ends_unix_s), InvitationState::Expired);
        assert!(!invitations.revoke("00000000").expect("read"), "there is none of that name");
        assert!(invitations.revoke(&invitation.id).expect("written"));
        assert!(!invitations.revoke(&invitation.id).expect("read"), "it is revoked already");
        assert_eq!(invitations.list().expect("read")[0].state_at(now), InvitationState::Revoked);
        let before = invitations.version();
        invitations
            .change(|all| all.iter_mut().for_each(|one| one.revoked_unix_s = Some(now - REMEMBERED - 1)))
            .expect("written");
        assert_eq!(invitations.list().expect("read"), []);
        assert_ne!(invitations.version(), before);
    }
}
