//! What an agent answers when it does not do as asked.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
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
    /// There is no such route or trial.
    NotFound,
    /// The route knows other methods only.
    Method,
    /// The trial is not in the state for it, or its name is taken.
    Conflict,
    /// The request cannot be understood.
    BadRequest,
    /// The request's body is too large.
    TooLarge,
    /// The trial failed, or the host could not be described.
    TrialFailed,
    /// The trial was aborted.
    Aborted,
}

impl ErrorKind {
    /// The HTTP status that goes with it.
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Limit => StatusCode::FORBIDDEN,
            Self::Protocol => StatusCode::UPGRADE_REQUIRED,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Conflict => StatusCode::CONFLICT,
            Self::BadRequest => StatusCode::BAD_REQUEST,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TrialFailed => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Aborted => StatusCode::GONE,
        }
    }
}

/// The body of every answer that is not a success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    /// Why, for programs.
    pub error: ErrorKind,
    /// Why and what to do about it, for people.
    pub message: String,
}

/// An error on its way to the caller.
pub(crate) type Refusal = ErrorBody;

impl ErrorBody {
    pub(crate) fn new(error: ErrorKind, message: impl Into<String>) -> Self {
        Self { error, message: message.into() }
    }
}

impl IntoResponse for ErrorBody {
    fn into_response(self) -> Response {
        (self.error.status(), Json(self)).into_response()
    }
}
