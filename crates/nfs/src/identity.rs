//! Identity of a caller: the session's key for linerate's own server, a user for a foreign one.

use linerate_model::SessionKey;
use linerate_oncrpc::RpcError;
use linerate_oncrpc::client::Caller;
use linerate_oncrpc::message::Credential;

/// Identity of a caller.
#[derive(Debug, Clone)]
pub(crate) enum CallerIdentity {
    /// A holder of the session's key.
    KeyHolder(SessionKey),
    /// A user, as AUTH_SYS has it.
    User(Credential),
}

impl CallerIdentity {
    /// Returns what the calls of `caller` are to show. A server of linerate's own gives it out for each connection.
    ///
    /// # Errors
    /// A server of linerate's own does not answer, or does not hold the key.
    pub(crate) fn credential(&self, caller: &mut Caller) -> Result<Credential, RpcError> {
        match self {
            Self::KeyHolder(key) => caller.greet(key),
            Self::User(credential) => Ok(credential.clone()),
        }
    }
}
