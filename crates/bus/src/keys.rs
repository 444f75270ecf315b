//! The keys of a fleet's owner: they sign its members.

use crate::{AccountClaims, AgentName, BusError, Claims, Credentials, FleetName, Role, Subjects, UserClaims};
use nkeys::KeyPair;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Keys of a fleet: of the server's operator, of its account for system services, and of the fleet's own account.
#[derive(Clone, Serialize, Deserialize)]
pub struct FleetKeys {
    /// The fleet.
    pub fleet: FleetName,
    /// Addresses of the NATS servers, as members reach them.
    pub servers: Vec<String>,
    /// Certificate authority of the servers, in PEM. `None` for the system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<String>,
    operator_seed: String,
    system_seed: String,
    account_seed: String,
    /// Revoked users by public key, with the time in seconds since 1970.
    #[serde(default)]
    pub revocations: BTreeMap<String, u64>,
}

/// A member to be signed.
#[derive(Debug, Clone)]
pub struct NewUser {
    /// Name of the member.
    pub name: AgentName,
    /// Its role.
    pub role: Role,
    /// Its public key.
    pub public_key: String,
    /// End of its life, in seconds since 1970.
    pub expires_unix_s: Option<u64>,
}

/// Shows no secret.
impl fmt::Debug for FleetKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FleetKeys({})", self.fleet)
    }
}

fn seed(pair: &KeyPair) -> Result<String, BusError> {
    pair.seed().map_err(|error| BusError::Key(error.to_string()))
}

fn pair(seed: &str) -> Result<KeyPair, BusError> {
    KeyPair::from_seed(seed).map_err(|error| BusError::Key(format!("the fleet's keys are damaged: {error}")))
}

impl FleetKeys {
    /// Name of the file in the owner's folder.
    pub const FILE: &'static str = "fleet-keys.json";

    /// Makes the keys of a new fleet on servers of its own, or on those of `neighbour`.
    ///
    /// # Errors
    /// The neighbour's keys are damaged.
    pub fn generate(fleet: FleetName, servers: Vec<String>, neighbour: Option<&Self>) -> Result<Self, BusError> {
        let (operator_seed, system_seed) = match neighbour {
            Some(neighbour) => (neighbour.operator_seed.clone(), neighbour.system_seed.clone()),
            None => (seed(&KeyPair::new_operator())?, seed(&KeyPair::new_account())?),
        };
        let account_seed = seed(&KeyPair::new_account())?;
        let authority = neighbour.and_then(|neighbour| neighbour.authority.clone());
        Ok(Self { fleet, servers, authority, operator_seed, system_seed, account_seed, revocations: BTreeMap::new() })
    }

    /// Returns the public key of the fleet's account.
    ///
    /// # Errors
    /// The keys are damaged.
    pub fn account(&self) -> Result<String, BusError> {
        Ok(pair(&self.account_seed)?.public_key())
    }

    /// Signs the token of the fleet's account, with its revocations.
    ///
    /// # Errors
    /// The keys are damaged.
    pub fn account_token(&self, now_unix_s: u64) -> Result<String, BusError> {
        let claims = Claims::Account(AccountClaims {
            name: self.fleet.to_string(),
            jetstream: true,
            revocations: self.revocations.clone(),
        });
        claims.sign(&self.account()?, &pair(&self.operator_seed)?, now_unix_s)
    }

    /// Signs the credentials of a new member with a key pair made here.
    ///
    /// # Errors
    /// The keys are damaged.
    pub fn credentials(
        &self,
        name: AgentName,
        role: Role,
        expires_unix_s: Option<u64>,
        now_unix_s: u64,
    ) -> Result<Credentials, BusError> {
        let key = KeyPair::new_user();
        let user = NewUser { name: name.clone(), role, public_key: key.public_key(), expires_unix_s };
        Ok(Credentials {
            fleet: self.fleet.clone(),
            name,
            role,
            servers: self.servers.clone(),
            authority: self.authority.clone(),
            labels: BTreeMap::new(),
            token: self.user_token(&user, now_unix_s)?,
            seed: seed(&key)?,
        })
    }

    /// Signs the token of a member.
    ///
    /// # Errors
    /// The public key is none of a user, or the fleet's keys are damaged.
    pub fn user_token(&self, user: &NewUser, now_unix_s: u64) -> Result<String, BusError> {
        let is_user = user.public_key.starts_with('U') && KeyPair::from_public_key(&user.public_key).is_ok();
        if !is_user {
            return Err(BusError::Key("the public key does not belong to a NATS user".to_owned()));
        }
        let permissions = Subjects::of(self.fleet.clone()).permissions(user.role, user.name.as_str());
        let claims =
            Claims::User(UserClaims { name: user.name.to_string(), permissions, expires_unix_s: user.expires_unix_s });
        claims.sign(&user.public_key, &pair(&self.account_seed)?, now_unix_s)
    }

    /// Signs credentials for the services of the NATS server itself, for a few minutes: they push account tokens.
    ///
    /// # Errors
    /// The keys are damaged.
    pub fn system_credentials(&self, now_unix_s: u64) -> Result<Credentials, BusError> {
        const LIFE_S: u64 = 300;
        let key = KeyPair::new_user();
        let name: AgentName = "system".parse().expect("a plain name");
        let permissions = crate::Permissions {
            publish: vec!["$SYS.REQ.CLAIMS.UPDATE".to_owned()],
            subscribe: vec!["_INBOX.>".to_owned()],
        };
        let expires_unix_s = Some(now_unix_s + LIFE_S);
        let claims = Claims::User(UserClaims { name: name.to_string(), permissions, expires_unix_s });
        let token = claims.sign(&key.public_key(), &pair(&self.system_seed)?, now_unix_s)?;
        Ok(Credentials {
            fleet: self.fleet.clone(),
            name,
            role: Role::Controller,
            servers: self.servers.clone(),
            authority: self.authority.clone(),
            labels: BTreeMap::new(),
            token,
            seed: seed(&key)?,
        })
    }

    /// Returns a configuration of nats-server for the fleet. Accounts and streams are kept below `folder`.
    ///
    /// # Errors
    /// The keys are damaged.
    pub fn server_configuration(&self, listen: &str, folder: &str, now_unix_s: u64) -> Result<String, BusError> {
        let operator = pair(&self.operator_seed)?;
        let system = pair(&self.system_seed)?.public_key();
        let operator_claims = Claims::Operator { name: "linerate".to_owned(), system_account: system.clone() };
        let operator_token = operator_claims.sign(&operator.public_key(), &operator, now_unix_s)?;
        let system_claims =
            Claims::Account(AccountClaims { name: "SYS".to_owned(), jetstream: false, revocations: BTreeMap::new() });
        let system_token = system_claims.sign(&system, &operator, now_unix_s)?;
        let account = self.account()?;
        let account_token = self.account_token(now_unix_s)?;
        Ok(format!(
            "# nats-server for the fleet {fleet}: nats-server -c FILE\n\
             # Beyond a private network, add tls {{ cert_file: ..., key_file: ... }}.\n\
             listen: {listen}\n\
             max_payload: 8MB\n\
             max_pending: 256MB\n\
             operator: {operator_token}\n\
             system_account: {system}\n\
             resolver: {{ type: full, dir: {accounts:?}, allow_delete: false, interval: \"2m\" }}\n\
             resolver_preload: {{\n  {system}: {system_token}\n  {account}: {account_token}\n}}\n\
             jetstream {{ store_dir: {streams:?} }}\n",
            fleet = self.fleet,
            accounts = format!("{folder}/accounts"),
            streams = format!("{folder}/streams"),
        ))
    }
}
