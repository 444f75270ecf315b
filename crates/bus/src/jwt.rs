//! JSON Web Tokens of NATS: claims about operators, accounts and users, signed with Ed25519.
//!
//! The format is that of NATS 2.x ("JWT in Depth", algorithm `ed25519-nkey`, claims of version 2).

use crate::BusError;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nkeys::KeyPair;
use ring::digest;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Header of all tokens.
const HEADER: &str = r#"{"typ":"JWT","alg":"ed25519-nkey"}"#;

/// Subjects that a user may publish and subscribe to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permissions {
    /// Subjects to publish to, with wildcards.
    pub publish: Vec<String>,
    /// Subjects to subscribe to, with wildcards.
    pub subscribe: Vec<String>,
}

/// Claims about an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountClaims {
    /// Name of the account.
    pub name: String,
    /// Whether it may keep streams.
    pub jetstream: bool,
    /// Revoked users by public key: tokens issued up to that time (seconds since 1970) are refused.
    pub revocations: BTreeMap<String, u64>,
}

/// Claims about a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserClaims {
    /// Name of the user.
    pub name: String,
    /// Its subjects.
    pub permissions: Permissions,
    /// End of its life, in seconds since 1970.
    pub expires_unix_s: Option<u64>,
}

/// What a token claims of its subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claims {
    /// The operator of a server, and its account for system services.
    Operator {
        /// Name of the operator.
        name: String,
        /// Public key of the account for system services.
        system_account: String,
    },
    /// An account.
    Account(AccountClaims),
    /// A user of an account.
    User(UserClaims),
}

impl Claims {
    /// Signs the claims about `subject`, a public key, with the key of `issuer`.
    ///
    /// # Errors
    /// The issuer's key cannot sign.
    pub fn sign(&self, subject: &str, issuer: &KeyPair, issued_unix_s: u64) -> Result<String, BusError> {
        let mut claims = Map::new();
        claims.insert("iat".into(), issued_unix_s.into());
        claims.insert("iss".into(), issuer.public_key().into());
        claims.insert("sub".into(), subject.into());
        claims.insert("name".into(), self.name().into());
        if let Self::User(UserClaims { expires_unix_s: Some(expires), .. }) = self {
            claims.insert("exp".into(), (*expires).into());
        }
        claims.insert("nats".into(), self.nats());
        let digest = digest::digest(&digest::SHA256, Value::Object(claims.clone()).to_string().as_bytes());
        claims.insert("jti".into(), URL_SAFE_NO_PAD.encode(digest).into());
        let signed =
            format!("{}.{}", URL_SAFE_NO_PAD.encode(HEADER), URL_SAFE_NO_PAD.encode(Value::Object(claims).to_string()));
        let signature = issuer.sign(signed.as_bytes()).map_err(|error| BusError::Key(format!("signing: {error}")))?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    fn name(&self) -> &str {
        match self {
            Self::Operator { name, .. } => name,
            Self::Account(account) => &account.name,
            Self::User(user) => &user.name,
        }
    }

    fn nats(&self) -> Value {
        match self {
            Self::Operator { system_account, .. } => {
                json!({"type": "operator", "version": 2, "system_account": system_account})
            }
            Self::Account(account) => {
                let storage = if account.jetstream { -1 } else { 0 };
                json!({
                    "type": "account", "version": 2,
                    "limits": {
                        "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true,
                        "conn": -1, "leaf": -1, "mem_storage": storage, "disk_storage": storage, "streams": storage,
                        "consumer": storage,
                    },
                    "revocations": account.revocations,
                })
            }
            Self::User(user) => json!({
                "type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1,
                "pub": {"allow": user.permissions.publish},
                "sub": {"allow": user.permissions.subscribe},
            }),
        }
    }
}

/// Returns the claims of a token without checking its signature, which the server does.
///
/// # Errors
/// The text is not a token.
pub(crate) fn decoded(token: &str) -> Result<Value, BusError> {
    let malformed = || BusError::Key("the credentials hold no valid token".to_owned());
    let claims = token.split('.').nth(1).ok_or_else(malformed)?;
    let claims = URL_SAFE_NO_PAD.decode(claims).map_err(|_| malformed())?;
    serde_json::from_slice(&claims).map_err(|_| malformed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_carry_their_claims_and_a_valid_signature() {
        let account = KeyPair::new_account();
        let user = KeyPair::new_user();
        let permissions = Permissions { publish: vec!["a.>".into()], subscribe: vec!["b".into()] };
        let claims = Claims::User(UserClaims { name: "site-a".into(), permissions, expires_unix_s: Some(99) });
        let token = claims.sign(&user.public_key(), &account, 5).expect("an account signs");
        let parts: Vec<&str> = token.split('.').collect();
        let [header, body, signature] = parts[..] else { panic!("{token}") };
        let signature = URL_SAFE_NO_PAD.decode(signature).expect("base64");
        account.verify(format!("{header}.{body}").as_bytes(), &signature).expect("the account's signature");
        let claims = decoded(&token).expect("claims");
        assert_eq!(claims["sub"], user.public_key());
        assert_eq!(claims["iss"], account.public_key());
        assert_eq!((&claims["exp"], &claims["iat"]), (&json!(99), &json!(5)));
        assert_eq!(claims["nats"]["pub"]["allow"], json!(["a.>"]));
        assert!(decoded("no token").is_err());
    }
}
