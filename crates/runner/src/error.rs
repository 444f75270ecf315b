//! Why a run ended before its time.

use linerate_control::AgentError;
use linerate_model::{FailureKind, HostName, SessionFailure};
use linerate_store::StoreError;
use std::net::{IpAddr, SocketAddr};

/// A run that could not go on, or could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// An agent refused or was lost.
    #[error("{host}: {source}")]
    Agent {
        /// Which host.
        host: HostName,
        /// What happened.
        source: AgentError,
    },
    /// A trial failed at one of its hosts.
    #[error("{host}: {source} (at stage `{stage}`)")]
    Host {
        /// Which host.
        host: HostName,
        /// The last stage that the host's session told; `opening` before the first.
        stage: &'static str,
        /// What happened.
        source: HostFailure,
    },
    /// A trial failed, and nothing can stand in for it.
    #[error("{trial}: {source}")]
    Trial {
        /// The trial's name.
        trial: String,
        /// What happened.
        source: Box<RunError>,
    },
    /// The plan names a host that no agent was given for.
    #[error("no agent is known for host `{0}`; name a lab host, `local`, or give the agent URL that its agent printed")]
    UnknownHost(HostName),
    /// The trial cannot be shared out between the hosts.
    #[error("{0}")]
    Plan(String),
    /// What the hosts counted does not fit together, or cannot be.
    #[error("{0} (at stage `done`)")]
    Counts(String),
    /// The results could not be kept.
    #[error("the results could not be kept: {0}")]
    Store(#[from] StoreError),
    /// It ended early, and could not be kept either.
    #[error("{}; what was measured could not be kept: {source}", in_short(.why))]
    Unkept {
        /// Why it ended early.
        why: Box<RunError>,
        /// Why it could not be kept.
        source: StoreError,
    },
    /// The user stopped it.
    #[error("interrupted; what was measured until then is kept")]
    Interrupted,
}

impl RunError {
    /// The same, named as what happened in a stage of a trial where it is an agent's.
    pub(crate) fn in_stage(self, stage: &'static str) -> Self {
        match self {
            Self::Agent { host, source } => Self::Host { host, stage, source: source.into() },
            other => other,
        }
    }
}

/// Without the assurance that what was measured is kept.
fn in_short(error: &RunError) -> String {
    if matches!(error, RunError::Interrupted) { "interrupted".to_owned() } else { error.to_string() }
}

/// What happened to a session.
#[derive(Debug, thiserror::Error)]
pub enum HostFailure {
    /// Its agent refused or was lost.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// It came to nothing at its agent.
    #[error("{}", told(.0))]
    Session(SessionFailure),
    /// Its agent told a stage that is not due: it was ordered no further, or had passed it.
    #[error("its agent tells the stage `{told}`, which is not due; use the same linerate on all hosts")]
    OutOfOrder {
        /// The stage.
        told: &'static str,
    },
    /// Its agent says that it listens where it was not asked to. Nobody is sent there: it may be an address of anybody.
    #[error(
        "its agent reports that it listens on link {link} at {told}, but it was asked to listen at a port of {asked}; no other \
         agent was told this address; check whether this agent can be trusted"
    )]
    ListensElsewhere {
        /// The link.
        link: u16,
        /// Where it says it listens.
        told: SocketAddr,
        /// Where it was asked to.
        asked: IpAddr,
    },
    /// Its agent says that it listens on a link of another host.
    #[error(
        "its agent reports that it listens on link {link} at {told}, but that link is not one of its own; no other agent was \
         told this address; check whether this agent can be trusted"
    )]
    ListensUnasked {
        /// The link.
        link: u16,
        /// Where it says it listens.
        told: SocketAddr,
    },
}

impl From<SessionFailure> for HostFailure {
    fn from(failure: SessionFailure) -> Self {
        Self::Session(failure)
    }
}

fn told(failure: &SessionFailure) -> String {
    match failure.kind {
        FailureKind::Panic => format!("{}; this is a fault of linerate", failure.message),
        FailureKind::Task | FailureKind::Limit | FailureKind::Stopped => failure.message.clone(),
    }
}

/// Names the host that an agent's error belongs to.
pub(crate) fn at(name: &HostName) -> impl Fn(AgentError) -> RunError + use<> {
    let host = name.clone();
    move |source| RunError::Agent { host: host.clone(), source }
}
