//! An [`ApiError`] as an HTTP answer.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use linerate_control::{ApiError, ErrorKind};

/// The answer to a request that was not done as asked.
#[derive(Debug)]
pub(crate) struct ErrorResponse(pub(crate) ApiError);

impl ErrorResponse {
    pub(crate) fn new(error: ErrorKind, message: impl Into<String>) -> Self {
        Self(ApiError::new(error, message))
    }
}

impl From<ApiError> for ErrorResponse {
    fn from(error: ApiError) -> Self {
        Self(error)
    }
}

impl IntoResponse for ErrorResponse {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (status, Json(self.0)).into_response()
    }
}
