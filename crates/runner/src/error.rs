//! Why a run ended before its time.

use linerate_control::AgentError;
use linerate_model::{FailureKind, HostName, SessionFailure};
use linerate_store::StoreError;

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
    /// A session came to nothing at its agent.
    #[error("{host}: {}", told(failure))]
    Session {
        /// Which host.
        host: HostName,
        /// What the agent said.
        failure: SessionFailure,
    },
    /// The plan names a host that no agent was given for.
    #[error("no agent is known for host `{0}`; name a lab host, `local`, or give the agent URL that its agent printed")]
    UnknownHost(HostName),
    /// The trial cannot be shared out between the hosts, or what they counted does not fit together.
    #[error("{0}")]
    Plan(String),
    /// The results could not be kept.
    #[error("the results could not be kept: {0}")]
    Store(#[from] StoreError),
    /// The user stopped it.
    #[error("interrupted; what was measured until then is kept")]
    Interrupted,
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
