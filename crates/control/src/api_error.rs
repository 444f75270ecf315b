//! Error answers of an agent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Kind of a failed request to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorKind {
    /// The token is missing or wrong.
    Unauthorized,
    /// The caller speaks another version of the protocol.
    Protocol,
    /// One of the agent's limits forbids it.
    Limit,
    /// The route or session does not exist.
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
    /// Returns the HTTP status of the error.
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

/// Body of every answer that is not a success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApiError {
    /// Kind of the error, for programs.
    pub error: ErrorKind,
    /// Cause and remedy, for people.
    pub message: String,
}

impl ApiError {
    /// Creates an error of kind `error` with this message.
    pub fn new(error: ErrorKind, message: impl Into<String>) -> Self {
        Self { error, message: message.into() }
    }
}
