//! Why a run ended before its time.

use linerate_agent::AgentError;
use linerate_model::HostName;
use linerate_store::StoreError;

/// A run that could not go on, or could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// An agent refused, failed or was lost.
    #[error("{host}: {source}")]
    Agent {
        /// Which host.
        host: HostName,
        /// What happened.
        source: AgentError,
    },
    /// The plan names a host that no agent was given for.
    #[error("no agent is known for host `{0}`; name a lab host, `local`, or give the join line its agent printed")]
    UnknownHost(HostName),
    /// The listening host has no address of the family asked for.
    #[error(
        "{listener} has no {family} address that {opener} could send to; use {other}, or give its agent --data-address"
    )]
    NoAddress {
        /// The host that would listen.
        listener: HostName,
        /// The host that would connect.
        opener: HostName,
        /// The family asked for.
        family: &'static str,
        /// The option for the other family.
        other: &'static str,
    },
    /// A trial stayed spoilt by the tester.
    #[error("the results could not be kept: {0}")]
    Store(#[from] StoreError),
    /// The user stopped it.
    #[error("interrupted; what was measured until then is kept")]
    Interrupted,
}

/// Names the host that an agent's error belongs to.
pub(crate) fn at(name: &HostName) -> impl Fn(AgentError) -> RunError + use<> {
    let host = name.clone();
    move |source| RunError::Agent { host: host.clone(), source }
}
