//! A page that cannot be shown, and why.

use crate::events::MOST_FOLLOWERS;
use crate::page::Page;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use linerate_report::{Language, plain};
use linerate_store::StoreError;
use maud::html;

/// Why there is no such page; as an answer a page that says so.
#[derive(Debug)]
pub(crate) struct PageError {
    status: StatusCode,
    said: String,
}

impl PageError {
    /// What was asked for is not there.
    pub(crate) fn not_found(said: impl Into<String>) -> Self {
        Self { status: StatusCode::NOT_FOUND, said: said.into() }
    }

    /// What was asked for is not clear, or cannot be.
    pub(crate) fn unclear(said: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, said: said.into() }
    }

    /// More pages follow runs than can be served.
    pub(crate) fn too_many() -> Self {
        let said = format!("{MOST_FOLLOWERS} pages follow runs already: close some of them.");
        Self { status: StatusCode::SERVICE_UNAVAILABLE, said }
    }

    /// The fault is ours, or the disk's.
    pub(crate) fn failed(said: impl Into<String>) -> Self {
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, said: said.into() }
    }
}

/// A name that fits no record is the reader's to mend; what is wrong with the store is not.
impl From<StoreError> for PageError {
    fn from(error: StoreError) -> Self {
        let said = error.to_string();
        match error {
            StoreError::Unknown { .. } => Self::not_found(said),
            StoreError::Ambiguous { .. } => Self::unclear(said),
            _ => Self::failed(said),
        }
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let title = match self.status {
            StatusCode::NOT_FOUND => "Not found",
            StatusCode::BAD_REQUEST => "Not clear",
            _ => "Failed",
        };
        let main = html! { p role="alert" { (plain(&self.said)) } };
        Page { lang: Language::English, title, back: true, refresh: false, main }.answer(self.status)
    }
}
