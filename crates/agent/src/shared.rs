//! State that all requests to an agent share.

use crate::grant::Credentials;
use crate::pairing::Pairing;
use crate::sessions::Sessions;
use crate::{Limits, Timeouts};
use linerate_observe::HostOptions;
use std::sync::Arc;

/// State shared by all requests.
pub(crate) struct Shared {
    pub(crate) limits: Limits,
    pub(crate) timeouts: Timeouts,
    pub(crate) host: HostOptions,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) pairing: Option<Pairing>,
    pub(crate) credentials: Arc<Credentials>,
}
