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
    Agent { host: HostName, source: AgentError },
    /// A trial failed at one of its hosts.
    #[error("{host}: {source} (at stage `{stage}`)")]
    Host {
        host: HostName,
        /// Last stage that the host's session reported; `opening` before the first.
        stage: &'static str,
        source: HostFailure,
    },
    /// A trial failed, and nothing can stand in for it.
    #[error("{trial}: {source}")]
    Trial { trial: String, source: Box<RunError> },
    /// The plan names a host without an agent.
    #[error("no agent is known for host `{0}`; name a lab host, `local`, or give the agent URL that its agent printed")]
    UnknownHost(HostName),
    /// The trial cannot be divided among the hosts.
    #[error("{0}")]
    Plan(String),
    /// The counts of the hosts contradict each other, or are impossible.
    #[error("{0} (at stage `done`)")]
    Counts(String),
    /// The results could not be kept.
    #[error("the results could not be kept: {0}")]
    Store(#[from] StoreError),
    /// The run ended early, and could not be kept either.
    #[error("{}; what was measured could not be kept: {source}", in_short(.why))]
    Unkept { why: Box<RunError>, source: Box<StoreError> },
    /// The user stopped it.
    #[error("interrupted; what was measured until then is kept")]
    Interrupted,
}

impl RunError {
    /// Returns whether an agent could not be reached any more.
    pub(crate) fn is_loss(&self) -> bool {
        let source = match self {
            Self::Agent { source, .. } | Self::Host { source: HostFailure::Agent(source), .. } => source,
            _ => return false,
        };
        matches!(source, AgentError::Lost { .. } | AgentError::Unreachable { .. })
    }

    /// Adds the stage of the trial to an agent's error.
    pub(crate) fn in_stage(self, stage: &'static str) -> Self {
        match self {
            Self::Agent { host, source } => Self::Host { host, stage, source: source.into() },
            other => other,
        }
    }
}

/// Returns the error's text without the assurance that the measurements are kept.
fn in_short(error: &RunError) -> String {
    if matches!(error, RunError::Interrupted) { "interrupted".to_owned() } else { error.to_string() }
}

/// Reason for the failure of a session.
#[derive(Debug, thiserror::Error)]
pub enum HostFailure {
    /// Its agent refused or was lost.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The session failed at its agent.
    #[error("{}", failure_text(.0))]
    Session(SessionFailure),
    /// The agent reported a stage that is not due: its orders do not permit the stage yet, or the session had passed
    /// it.
    #[error("its agent reports the stage `{reported}`, which is not due; use the same linerate on all hosts")]
    OutOfOrder { reported: &'static str },
    /// The agent reports another address than the requested one. No peer is sent there: it may be the address of a
    /// third party.
    #[error(
        "its agent reports that it listens on link {link} at {reported}, but it was asked to listen at a port of {requested}; \
         this address was not passed to any other agent; check whether this agent can be trusted"
    )]
    ListensElsewhere { link: u16, reported: SocketAddr, requested: IpAddr },
    /// The agent reports that it listens on a link of another host.
    #[error(
        "its agent reports that it listens on link {link} at {reported}, but that link is not one of its own; \
         this address was not passed to any other agent; check whether this agent can be trusted"
    )]
    ListensUnasked { link: u16, reported: SocketAddr },
}

impl From<SessionFailure> for HostFailure {
    fn from(failure: SessionFailure) -> Self {
        Self::Session(failure)
    }
}

fn failure_text(failure: &SessionFailure) -> String {
    match failure.kind {
        FailureKind::Panic => format!("{}; this is a fault of linerate", failure.message),
        FailureKind::Task | FailureKind::Limit | FailureKind::Stopped => failure.message.clone(),
    }
}

/// Returns a function that adds the host's name to an agent's error.
pub(crate) fn at(name: &HostName) -> impl Fn(AgentError) -> RunError + use<> {
    let host = name.clone();
    move |source| RunError::Agent { host: host.clone(), source }
}
