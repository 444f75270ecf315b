//! How hosts join a fleet.
//!
//! An invitation is a user of the fleet's account that may publish one subject: the request to join. Whoever holds the
//! invitation makes a key pair and sends the public key; a process with the fleet's keys signs a token for it. The key
//! pair never leaves its host.

use async_nats::jetstream::kv::{self, Operation};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::StreamExt as _;
use linerate_bus::{AgentName, Bus, BusError, Credentials, FleetKeys, KeyPair, Member, NewUser, Role};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Beginning of an invitation's code; the digit is the version of its format.
const PREFIX: &str = "lrf1-";

/// Time for an answer to a request to join.
const ANSWER: Duration = Duration::from_secs(10);

/// Time for which a revocation holds. Tokens name the time of their issue by the clock of the host that signed them, so a
/// revocation lies far ahead.
const REVOKED_FOR_S: u64 = 100 * 365 * 24 * 3_600;

/// An invitation, as kept in the fleet's bucket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitation {
    /// Role of those who join with it.
    pub role: Role,
    /// Members that may still join with it.
    pub uses: u32,
    /// Labels that it gives.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// End of its life, in seconds since 1970.
    pub expires_unix_s: u64,
}

/// A request to join.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinRequest {
    /// Name that the member wants.
    pub name: AgentName,
    /// Public key of the member.
    pub public_key: String,
    /// Labels of the host. Those of the invitation win.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Version of linerate.
    pub version: String,
}

/// The answer to a request to join.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum JoinAnswer {
    /// The member is admitted.
    Admitted {
        /// Its role.
        role: Role,
        /// Token for its key.
        token: String,
        /// Its labels.
        labels: BTreeMap<String, String>,
    },
    /// The member is not admitted.
    Refused {
        /// Cause and remedy.
        reason: String,
    },
}

/// Makes an invitation and returns its code, which is a secret.
///
/// # Errors
/// The keys are damaged, or the fleet's bucket cannot be written.
pub async fn invite(bus: &Bus, keys: &FleetKeys, invitation: &Invitation, now_unix_s: u64) -> Result<String, BusError> {
    let id: AgentName = format!("i{:016x}", rand::random::<u64>()).parse().expect("a plain name");
    let credentials = keys.credentials(id.clone(), Role::Invited, Some(invitation.expires_unix_s), now_unix_s)?;
    put(bus, &invitation_key(id.as_str()), invitation).await?;
    Ok(code_of(&credentials))
}

/// Returns the code of an invitation's credentials.
fn code_of(credentials: &Credentials) -> String {
    let json = serde_json::to_vec(credentials).expect("credentials have text keys only");
    format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(json))
}

/// Reads the code of an invitation.
///
/// # Errors
/// The text is no invitation.
pub fn invited(code: &str) -> Result<Credentials, BusError> {
    let malformed = || {
        BusError::Key(format!(
            "this is no invitation to a fleet: its code begins with {PREFIX} and is one word; copy all of what `linerate \
             fleet invite` printed"
        ))
    };
    let json = code.trim().strip_prefix(PREFIX).ok_or_else(malformed)?;
    let json = URL_SAFE_NO_PAD.decode(json).map_err(|_| malformed())?;
    let text = String::from_utf8(json).map_err(|_| malformed())?;
    let credentials = Credentials::parse(&text, Path::new("the invitation")).map_err(|_| malformed())?;
    if credentials.role == Role::Invited { Ok(credentials) } else { Err(malformed()) }
}

/// Joins the fleet of `invitation` as `name` with `key`, and returns the credentials of the new member.
///
/// # Errors
/// The invitation has expired or was used up, the name is taken, or nobody who can sign answers.
pub async fn join(
    invitation: Credentials,
    name: AgentName,
    key: &KeyPair,
    labels: BTreeMap<String, String>,
) -> Result<Credentials, BusError> {
    let expired = || BusError::Failed {
        task: "enrolling".to_owned(),
        reason: "this invitation has expired; ask the fleet's owner for a new invitation".to_owned(),
    };
    let has_expired = || invitation.expires_unix_s().is_some_and(|expires| expires <= now_unix_s());
    let connected = Bus::connect(invitation.clone()).await;
    let bus = connected.map_err(|error| if has_expired() { expired() } else { error })?;
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let request = JoinRequest { name: name.clone(), public_key: key.public_key(), labels, version };
    let subject = bus.subjects().enrol(invitation.name.as_str());
    let payload = serde_json::to_vec(&request).map_err(|error| BusError::failed("enrolling", error))?;
    let nobody = || {
        // The server ends the connection of an invitation that expires.
        if has_expired() {
            return expired();
        }
        let reason = format!(
            "nobody who may admit members of {} answers: check that `linerate fleet serve` runs with the fleet's keys",
            invitation.fleet
        );
        BusError::Failed { task: "enrolling".to_owned(), reason }
    };
    let answer = tokio::time::timeout(ANSWER, bus.client().request(subject, payload.into())).await;
    let answer = answer.map_err(|_| nobody())?.map_err(|_| nobody())?;
    match serde_json::from_slice(&answer.payload).map_err(|error| BusError::failed("enrolling", error))? {
        JoinAnswer::Admitted { role, token, labels } => Ok(Credentials {
            name,
            role,
            labels,
            token,
            seed: key.seed().map_err(|error| BusError::Key(error.to_string()))?,
            ..invitation
        }),
        JoinAnswer::Refused { reason } => Err(BusError::Failed { task: format!("enrolling as {name}"), reason }),
    }
}

/// Admits those who were invited, until the connection is closed.
///
/// # Errors
/// The subject cannot be subscribed to.
pub async fn admit_members(bus: Bus, keys: FleetKeys) -> Result<(), BusError> {
    let subject = bus.subjects().enrol("*");
    let subscribed = bus.client().queue_subscribe(subject.clone(), "enrolment".to_owned()).await;
    let mut requests = subscribed.map_err(|error| BusError::failed(format!("subscribing to {subject}"), error))?;
    while let Some(message) = requests.next().await {
        let invitation = message.subject.rsplit('.').next().unwrap_or_default().to_owned();
        let answer = match serde_json::from_slice::<JoinRequest>(&message.payload) {
            Ok(request) => admit(&bus, &keys, &invitation, request).await,
            Err(error) => Err(format!("the request cannot be read: {error}; use a newer linerate")),
        };
        let answer = answer.unwrap_or_else(|reason| JoinAnswer::Refused { reason });
        if let (Some(reply), Ok(payload)) = (message.reply, serde_json::to_vec(&answer)) {
            // One who does not hear the answer asks again.
            let _ = bus.client().publish(reply, payload.into()).await;
        }
    }
    Ok(())
}

async fn admit(bus: &Bus, keys: &FleetKeys, id: &str, request: JoinRequest) -> Result<JoinAnswer, String> {
    let bucket = bus.state().await.map_err(|error| error.to_string())?;
    let now_unix_s = now_unix_s();
    let ask_again = "ask the fleet's owner for a new invitation";
    let entry = current(&bucket, &invitation_key(id)).await.map_err(|error| error.to_string())?;
    let (revision, mut invitation) = entry.ok_or_else(|| format!("this invitation was withdrawn; {ask_again}"))?;
    let invitation: &mut Invitation = &mut invitation;
    if invitation.expires_unix_s <= now_unix_s {
        return Err(format!("this invitation has expired; {ask_again}"));
    }
    let mut labels = request.labels.clone();
    labels.extend(invitation.labels.clone());
    let key = member_key(request.name.as_str());
    let member: Option<(u64, Member)> = current(&bucket, &key).await.map_err(|error| error.to_string())?;
    let is_known = member.as_ref().is_some_and(|(_, member)| member.public_key == request.public_key);
    if let Some((_, member)) = &member
        && !is_known
    {
        let since = jiff::Timestamp::from_second(i64::try_from(member.enrolled_unix_s).unwrap_or_default());
        let since = since.map_or_else(|_| String::new(), |since| format!(" since {since:.0}"));
        return Err(format!(
            "the fleet has a member called {}{since} with another key: choose another name with --name, or revoke that one \
             first (`linerate fleet revoke {}`)",
            member.name, member.name
        ));
    }
    let user = NewUser {
        name: request.name.clone(),
        role: invitation.role,
        public_key: request.public_key.clone(),
        expires_unix_s: None,
    };
    let token = keys.user_token(&user, now_unix_s).map_err(|error| error.to_string())?;
    if !is_known {
        let left = invitation.uses.checked_sub(1);
        invitation.uses = left.ok_or_else(|| format!("this invitation was used up; {ask_again}"))?;
        let value = serde_json::to_vec(invitation).map_err(|error| error.to_string())?;
        let updated = bucket.update(invitation_key(id), value.into(), revision).await;
        updated.map_err(|_| "another host joined with this invitation at the same moment; try again".to_owned())?;
        let member = Member {
            name: request.name,
            role: invitation.role,
            public_key: request.public_key,
            labels: labels.clone(),
            invitation: id.to_owned(),
            enrolled_unix_s: now_unix_s,
        };
        let value = serde_json::to_vec(&member).map_err(|error| error.to_string())?;
        bucket.put(key, value.into()).await.map_err(|error| error.to_string())?;
    }
    Ok(JoinAnswer::Admitted { role: invitation.role, token, labels })
}

/// Revokes a member: its connections are closed at once, and its key is refused from now on. The caller keeps the changed
/// `keys`.
///
/// # Errors
/// The fleet has no such member, or the server does not take the new token of the account.
pub async fn revoke(bus: &Bus, keys: &mut FleetKeys, name: &AgentName, now_unix_s: u64) -> Result<Member, BusError> {
    let bucket = bus.state().await?;
    let key = member_key(name.as_str());
    let entry: Option<(u64, Member)> = current(&bucket, &key).await?;
    let (_, member) = entry.ok_or_else(|| BusError::Failed {
        task: format!("revoking {name}"),
        reason: "the fleet has no such member; `linerate fleet list` shows all".to_owned(),
    })?;
    keys.revocations.insert(member.public_key.clone(), now_unix_s + REVOKED_FOR_S);
    push_account(keys, now_unix_s).await?;
    bucket.delete(&key).await.map_err(|error| BusError::failed(format!("removing {key}"), error))?;
    Ok(member)
}

/// Gives the server the current token of the fleet's account.
///
/// # Errors
/// The server cannot be reached or does not take the token.
pub async fn push_account(keys: &FleetKeys, now_unix_s: u64) -> Result<(), BusError> {
    let bus = Bus::connect(keys.system_credentials(now_unix_s)?).await?;
    let token = keys.account_token(now_unix_s)?;
    let answer = bus.client().request("$SYS.REQ.CLAIMS.UPDATE", token.into()).await;
    let answer = answer.map_err(|error| BusError::failed("updating the fleet's account", error))?;
    let answer: serde_json::Value = serde_json::from_slice(&answer.payload).unwrap_or_default();
    if answer["data"]["code"] == 200 {
        return Ok(());
    }
    Err(BusError::failed("updating the fleet's account", answer["error"]["description"].as_str().unwrap_or("refused")))
}

fn now_unix_s() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_second()).unwrap_or_default()
}

fn invitation_key(id: &str) -> String {
    format!("invitation.{id}")
}

fn member_key(name: &str) -> String {
    format!("member.{name}")
}

/// Returns the value of a key and its revision. `None` if there is none.
async fn current<T: for<'de> Deserialize<'de>>(bucket: &kv::Store, key: &str) -> Result<Option<(u64, T)>, BusError> {
    let failed = |error: &dyn std::fmt::Display| BusError::failed(format!("reading {key}"), error);
    let entry = bucket.entry(key).await.map_err(|error| failed(&error))?;
    let Some(entry) = entry.filter(|entry| entry.operation == Operation::Put) else { return Ok(None) };
    let value = serde_json::from_slice(&entry.value).map_err(|error| failed(&error))?;
    Ok(Some((entry.revision, value)))
}

async fn put<T: Serialize>(bus: &Bus, key: &str, value: &T) -> Result<(), BusError> {
    let failed = |error: &dyn std::fmt::Display| BusError::failed(format!("writing {key}"), error);
    let value = serde_json::to_vec(value).map_err(|error| failed(&error))?;
    bus.state().await?.put(key, value.into()).await.map_err(|error| failed(&error)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invitations_travel_as_one_word() {
        let keys = FleetKeys::generate("f".parse().expect("a name"), vec!["nats://127.0.0.1:4222".into()], None);
        let keys = keys.expect("keys");
        let name: AgentName = "i7".parse().expect("a name");
        let invitation = keys.credentials(name.clone(), Role::Invited, Some(9), 1).expect("credentials");
        let code = code_of(&invitation);
        assert!(!code.contains(char::is_whitespace));
        let read = invited(&format!(" {code}\n")).expect("an invitation");
        assert_eq!((read.name, read.token), (name.clone(), invitation.token));
        let agent = keys.credentials(name, Role::Agent, None, 1).expect("credentials");
        for wrong in ["", "lrf1-", "lrf1-AAAA", &code[..code.len() / 2], &code_of(&agent)] {
            let error = invited(wrong).expect_err(wrong).to_string();
            assert!(error.contains("linerate fleet invite"), "{error}");
        }
    }
}
