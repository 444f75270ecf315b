//! Handles to sessions that were opened on an agent.

use crate::AgentError;
use futures_util::Stream;
use futures_util::stream::BoxStream;
use linerate_model::{SessionId, Stage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The stream of stages that one session enters. The last is [`Stage::Done`] or [`Stage::Failed`]. A stage that needs
/// no order may be omitted. Dropping the handle stops the session.
pub struct SessionHandle {
    id: SessionId,
    stages: BoxStream<'static, Result<Stage, AgentError>>,
}

impl SessionHandle {
    pub(crate) fn new(id: SessionId, stages: BoxStream<'static, Result<Stage, AgentError>>) -> Self {
        Self { id, stages }
    }

    /// Returns the name of the session.
    pub fn id(&self) -> &SessionId {
        &self.id
    }
}

impl Stream for SessionHandle {
    type Item = Result<Stage, AgentError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.stages.as_mut().poll_next(context)
    }
}

impl fmt::Debug for SessionHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SessionHandle").field(&self.id).finish()
    }
}

/// An agent's answer to a request for its clock: `CLOCK_MONOTONIC` of its host, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClockReading {
    /// Time at which the request arrived.
    pub receive_ns: u64,
    /// Time at which the answer left.
    pub transmit_ns: u64,
}

/// An agent's answer to a request to close a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Closed {
    /// Whether the session has released everything. If not, ask again: it is still closing.
    pub over: bool,
    /// Descriptions of what the agent could not remove and the user must remove.
    pub remains: Vec<String>,
}
