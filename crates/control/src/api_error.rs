//! What an agent answers when it does not do as asked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why an agent did not do as asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorKind {
    /// The token is missing or wrong.
    Unauthorized,
    /// The caller speaks another version of the protocol.
    Protocol,
    /// One of the agent's limits forbids it.
    Limit,
    /// There is no such route or session.
    NotFound,
    /// The route has other methods only.
    Method,
    /// The session is at another stage, or its name is taken.
    Conflict,
    /// The request cannot be understood.
    BadRequest,
    /// The request's body is too large.
    TooLarge,
    /// The session or the host failed at it.
    Failed,
}

impl ErrorKind {
    /// The HTTP status that goes with it.
    pub fn status(self) -> u16 {
        match self {
            Self::Unauthorized => 401,
            Self::Limit => 403,
            Self::NotFound => 404,
            Self::Method => 405,
            Self::Conflict => 409,
            Self::BadRequest => 400,
            Self::TooLarge => 413,
            Self::Failed => 422,
            Self::Protocol => 426,
        }
    }
}

/// The body of every answer that is not a success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApiError {
    /// Why, for programs.
    pub error: ErrorKind,
    /// Why and what to do about it, for people.
    pub message: String,
}

impl ApiError {
    /// An error of kind `error` that says `message`.
    pub fn new(error: ErrorKind, message: impl Into<String>) -> Self {
        Self { error, message: message.into() }
    }
}
