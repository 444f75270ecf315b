//! Who asks, and what that credential lets its holder do.

use crate::invitation::{Invitation, InvitationState, Invitations, TokenHash};
use crate::{Limits, Token};
use ipnet::IpNet;
use linerate_control::{ApiError, ErrorKind};
use linerate_engine::AllowedPeers;
use linerate_model::{Capability, Endpoints, Power, Powers};
use linerate_sys::file_identity::FileState;
use linerate_units::BitRate;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Names a credential: none is the agent's own token, else the invitation of this name.
pub(crate) type CredentialId = Option<String>;

/// Rights of one credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) credential: CredentialId,
    /// Within what the agent's options allow.
    pub(crate) powers: Powers,
    /// Limit of all its sessions together, in addition to the agent's own limit.
    pub(crate) max_rate: Option<BitRate>,
    /// Hosts that may use it and that its sessions may connect to; empty is no bound.
    pub(crate) peers: Vec<IpNet>,
}

impl Grant {
    /// Makes the grant of the agent's own token.
    pub(crate) fn of_owner(limits: &Limits) -> Self {
        Self { credential: None, powers: limits.powers(), max_rate: None, peers: Vec::new() }
    }

    fn of(invitation: &Invitation, limits: &Limits) -> Self {
        Self {
            credential: Some(invitation.id.clone()),
            powers: invitation.allows.powers.and(&limits.powers()),
            max_rate: invitation.allows.max_rate,
            peers: invitation.allows.peers.clone(),
        }
    }

    /// Checks that it grants `powers`.
    ///
    /// # Errors
    /// It lacks one, which is named with the remedy.
    pub(crate) fn check_powers(&self, powers: &Powers) -> Result<(), ApiError> {
        let missing = powers.missing_in(&self.powers);
        if missing.is_empty() {
            return Ok(());
        }
        let remedy = match &self.credential {
            None => String::from("the options of this agent do not allow it"),
            Some(id) => format!(
                "this agent URL (invitation {id}) allows {}; ask the agent's owner for another, made by `linerate serve \
                 invite --can {missing}`",
                self.powers
            ),
        };
        Err(refused(format!("this needs the power {missing}, and {remedy}")))
    }

    /// Checks that a host at `address` may use it.
    ///
    /// # Errors
    /// The host is not among its peers.
    pub(crate) fn check_peer(&self, address: IpAddr) -> Result<(), ApiError> {
        let address = address.to_canonical();
        if self.data_peers().allow(address) {
            return Ok(());
        }
        Err(refused(format!("this agent URL is for hosts in {}, and the request came from {address}", self.networks())))
    }

    /// Checks that sessions may connect to each of `endpoints`.
    ///
    /// # Errors
    /// One of them is not among its peers.
    pub(crate) fn check_endpoints(&self, endpoints: &Endpoints) -> Result<(), ApiError> {
        endpoints.values().try_for_each(|endpoint| self.check_target(endpoint.ip()))
    }

    /// Checks that sessions may connect to `address`: of a peer, or of a file server of others.
    ///
    /// # Errors
    /// It is not among its peers.
    pub(crate) fn check_target(&self, address: IpAddr) -> Result<(), ApiError> {
        let address = address.to_canonical();
        if self.data_peers().allow(address) {
            return Ok(());
        }
        Err(refused(format!(
            "this agent URL is for trials with hosts in {}, and the session is to connect to {address}",
            self.networks()
        )))
    }

    /// Returns the peers that may open data connections to its sessions.
    pub(crate) fn data_peers(&self) -> AllowedPeers {
        AllowedPeers::bounded_by(&self.peers)
    }

    /// Returns whether it may see and lead sessions of `other`: each credential its own, and the agent's owner all.
    pub(crate) fn leads_sessions_of(&self, other: &CredentialId) -> bool {
        self.credential.is_none() || self.credential == *other
    }

    /// Lists its powers as capabilities of the host.
    pub(crate) fn capabilities(&self) -> impl Iterator<Item = Capability> {
        Power::ALL
            .map(|power| {
                let purpose = match power {
                    Power::Stream => "bulk streams by this agent URL",
                    Power::Transact => "transactions by this agent URL",
                    Power::Rpc => "calls of linerate's RPC program by this agent URL",
                    Power::Frames => "raw frames by this agent URL",
                    Power::Files => "copies, and NFS servers of linerate's own, by this agent URL",
                    Power::Servers => "connections to file servers of others by this agent URL",
                };
                let text = match self.check_powers(&power.into()) {
                    Ok(()) => purpose.to_owned(),
                    Err(error) => format!("{purpose}: {}", error.message),
                };
                Capability { name: format!("power-{power}"), available: self.powers.has(power), text }
            })
            .into_iter()
    }

    fn networks(&self) -> String {
        self.peers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }
}

fn refused(message: String) -> ApiError {
    ApiError::new(ErrorKind::Limit, message)
}

/// The credentials that an agent knows.
#[derive(Debug)]
pub(crate) struct Credentials {
    token: Token,
    /// `None` for an agent that keeps no identity.
    invitations: Option<Invitations>,
    known: Mutex<Known>,
}

/// The invitations as they were read last.
#[derive(Debug, Default)]
struct Known {
    version: Option<FileState>,
    invitations: Vec<Invitation>,
}

impl Credentials {
    pub(crate) fn new(token: Token, invitations: Option<Invitations>) -> Self {
        Self { token, invitations, known: Mutex::default() }
    }

    /// Finds the grant of the credential with this token on an agent with `limits`.
    ///
    /// # Errors
    /// There is none with this token, or it has expired or was revoked.
    pub(crate) fn find(&self, token: Option<&[u8]>, limits: &Limits) -> Result<Grant, ApiError> {
        let denied = |message: String| ApiError::new(ErrorKind::Unauthorized, message);
        let unknown =
            || denied(String::from("the token is missing or wrong; it is in the agent URL that the agent printed"));
        let token = token.ok_or_else(unknown)?;
        if self.token.is(token) {
            return Ok(Grant::of_owner(limits));
        }
        let hash = TokenHash::of(token);
        let known = self.known();
        let invitation = known.invitations.iter().find(|invitation| invitation.has_token(&hash)).ok_or_else(unknown)?;
        match over(invitation) {
            Some(how) => Err(denied(format!(
                "the invitation {} {how}; ask the agent's owner for another agent URL",
                invitation.id
            ))),
            None => Ok(Grant::of(invitation, limits)),
        }
    }

    /// Returns how `credential` has ended. `None` if it can be used.
    pub(crate) fn ended(&self, credential: &CredentialId) -> Option<&'static str> {
        let id = credential.as_ref()?;
        match self.known().invitations.iter().find(|invitation| invitation.id == *id) {
            Some(invitation) => over(invitation),
            None => Some("was removed"),
        }
    }

    /// The invitations as they stand in their file now. One that cannot be read invites nobody.
    fn known(&self) -> MutexGuard<'_, Known> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(invitations) = &self.invitations {
            let version = invitations.version();
            if version != known.version {
                // What cannot be read now may be read the next time.
                *known = match invitations.list() {
                    Ok(invitations) => Known { version, invitations },
                    Err(_) => Known::default(),
                };
            }
        }
        known
    }
}

fn over(invitation: &Invitation) -> Option<&'static str> {
    match invitation.state() {
        InvitationState::Open(_) => None,
        InvitationState::Expired => Some("has expired"),
        InvitationState::Revoked => Some("was revoked"),
    }
}
