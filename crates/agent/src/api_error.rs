//! Error answers of the API.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Kind of an [`ApiError`], for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorKind {
    /// The token is missing or wrong.
    Unauthorized,
    /// The caller speaks another version of the protocol.
    Protocol,
    /// A limit of the agent forbids it.
    Limit,
    /// The route or the trial does not exist.
    NotFound,
    /// The route has no such HTTP method.
    Method,
    /// The trial's state does not allow it, or its name is taken.
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
    /// Returns the HTTP status of the answer.
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
pub struct ApiError {
    /// The kind, for programs.
    pub error: ErrorKind,
    /// What failed, why, and what to do about it, for people.
    pub message: String,
}

impl ApiError {
    pub(crate) fn new(error: ErrorKind, message: impl Into<String>) -> Self {
        Self { error, message: message.into() }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        (self.error.status(), Json(self)).into_response()
    }
}
