//! A session that was opened on an agent, as its stages are told.

use crate::AgentError;
use futures_util::Stream;
use futures_util::stream::BoxStream;
use linerate_model::{SessionId, Stage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The stages of one session, as the agent tells them; the last is [`Stage::Done`] or [`Stage::Failed`]. A stage that passes
/// without an order may be left out. Dropping the handle stops the session.
pub struct SessionHandle {
    id: SessionId,
    stages: BoxStream<'static, Result<Stage, AgentError>>,
}

impl SessionHandle {
    pub(crate) fn new(id: SessionId, stages: BoxStream<'static, Result<Stage, AgentError>>) -> Self {
        Self { id, stages }
    }

    /// The session's name.
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

/// What an agent answers when it is asked for its clock: CLOCK_MONOTONIC of its host, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClockReading {
    /// When the request arrived.
    pub receive_ns: u64,
    /// When the answer left.
    pub transmit_ns: u64,
}

/// What an agent answers when it is asked to close a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Closed {
    /// Whether the session has let go of everything. If not, it is still at it: ask again.
    pub over: bool,
    /// What could not be removed, and must be by hand.
    pub remains: Vec<String>,
}
