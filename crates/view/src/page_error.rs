//! A page that cannot be shown, and why.

use crate::page::Page;
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use linerate_report::{Language, plain, said};
use linerate_store::StoreError;
use maud::html;
use serde_json::json;

/// Pages that can follow runs at the same time.
pub(crate) const MOST_FOLLOWERS: usize = 32;

/// Why there is no such page; as an answer a page that says so.
#[derive(Debug, Clone)]
pub(crate) enum PageError {
    /// No page has this address.
    NoPage,
    /// The page could not be made.
    Broken,
    /// More pages follow runs than can be served.
    TooMany,
    /// So many records were ticked, and not two.
    NotTwo(usize),
    /// The records to compare are one.
    Same,
    /// What was typed is no tolerance.
    Tolerance { typed: String, error: String },
    /// What was typed is no confidence.
    Confidence(String),
    /// No record has this name.
    NoRecord(String),
    /// Two records, and maybe more, have names that begin so.
    Ambiguous { name: String, first: String, second: String },
    /// The store has no results of this test.
    NoTest(String),
    /// No host of this site has results.
    NoSite(String),
    /// This host has no results.
    NoHost(String),
    /// The pair has no results of the test.
    NoPair { from: String, to: String },
    /// The text is not a number of hours from 1 to 8,760.
    Hours(String),
    /// The text is not a time.
    Since(String),
    /// The choice of rows is neither sites nor hosts.
    Level(String),
    /// Only operators may do this.
    NotOperator,
    /// The form does not come from a page of this server.
    FormExpired,
    /// The record is being measured.
    RecordRunning(String),
    /// What is wrong with the store, in English.
    Store(String),
}

impl From<StoreError> for PageError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unknown { name, .. } => Self::NoRecord(name),
            StoreError::Ambiguous { name, first, second } => Self::Ambiguous { name, first: first.0, second: second.0 },
            _ => Self::Store(error.to_string()),
        }
    }
}

impl PageError {
    /// What the reader is told.
    fn said(&self, lang: Language) -> String {
        match self {
            Self::NoPage => said!(lang, "view-error-no-page", "There is no such page."),
            Self::Broken => said!(lang, "view-error-broken", "This page could not be made: its record may be broken."),
            Self::TooMany => said!(
                lang,
                "view-error-too-many",
                "{most} pages follow runs already: close some of them.",
                most = MOST_FOLLOWERS
            ),
            Self::NotTwo(ticked) => said!(
                lang,
                "view-error-not-two",
                "Tick two records to compare, not {ticked}.",
                ticked = ticked.to_string()
            ),
            Self::Same => said!(lang, "view-error-same", "Both are the same record: tick two."),
            Self::Tolerance { typed, error } => said!(
                lang,
                "view-error-tolerance",
                "The tolerance `{typed}` is none: {error}",
                typed = typed,
                error = error
            ),
            Self::Confidence(typed) => said!(
                lang,
                "view-error-confidence",
                "`{typed}` is not a percentage from 50 to below 100, as in 95.",
                typed = typed
            ),
            Self::NoRecord(name) => {
                said!(lang, "view-error-no-record", "No record is called {name}: choose one of the list.", name = name)
            }
            Self::Ambiguous { name, first, second } => {
                said!(
                    lang,
                    "view-error-ambiguous",
                    "{name} could be {first}, {second} or more: give more of the name.",
                    name = name,
                    first = first,
                    second = second
                )
            }
            Self::NoTest(typed) => said!(
                lang,
                "view-error-test",
                "The store has no results of the test `{typed}`: choose a test of the list.",
                typed = typed
            ),
            Self::NoSite(typed) => said!(
                lang,
                "view-error-site",
                "No host of the site `{typed}` has results of this test: choose a site of the matrix.",
                typed = typed
            ),
            Self::NoHost(typed) => said!(
                lang,
                "view-error-host",
                "No host with results of this test is called `{typed}`: choose a host of the matrix.",
                typed = typed
            ),
            Self::NoPair { from, to } => said!(
                lang,
                "view-error-pair",
                "There are no results from `{from}` to `{to}` of this test: choose a cell of the matrix.",
                from = from,
                to = to
            ),
            Self::Hours(typed) => said!(
                lang,
                "view-error-hours",
                "`{typed}` is not a number of hours from 1 to 8760, as in 24.",
                typed = typed
            ),
            Self::Since(typed) => said!(
                lang,
                "view-error-since",
                "`{typed}` is not a time: write it like 2026-11-21T13:00 or, for the last six hours, 6h.",
                typed = typed
            ),
            Self::Level(typed) => said!(
                lang,
                "view-error-level",
                "`{typed}` is not a choice of rows: choose site or host.",
                typed = typed
            ),
            Self::NotOperator => said!(
                lang,
                "view-error-operator",
                "Only operators may change the store: name the user with --operators when `linerate view` starts."
            ),
            Self::FormExpired => said!(
                lang,
                "view-error-form",
                "This form is not from a page of the running program: open the page again."
            ),
            Self::RecordRunning(id) => said!(
                lang,
                "view-error-running",
                "Record {id} is being measured: wait for its end, then delete it.",
                id = id
            ),
            Self::Store(error) => said!(lang, "message-in-english", "{text}", text = error),
        }
    }

    /// What a reader can mend is not a fault of ours, or of the disk.
    fn status(&self) -> StatusCode {
        match self {
            Self::NoPage
            | Self::NoRecord(_)
            | Self::NoTest(_)
            | Self::NoSite(_)
            | Self::NoHost(_)
            | Self::NoPair { .. } => StatusCode::NOT_FOUND,
            Self::Hours(_) | Self::Since(_) | Self::Level(_) => StatusCode::BAD_REQUEST,
            Self::NotOperator | Self::FormExpired => StatusCode::FORBIDDEN,
            Self::RecordRunning(_) => StatusCode::CONFLICT,
            Self::NotTwo(_) | Self::Same | Self::Tolerance { .. } | Self::Confidence(_) | Self::Ambiguous { .. } => {
                StatusCode::BAD_REQUEST
            }
            Self::TooMany => StatusCode::SERVICE_UNAVAILABLE,
            Self::Broken | Self::Store(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The page that says so.
    pub(crate) fn page(&self, lang: Language, root: &'static str) -> Response {
        let status = self.status();
        let title = match status {
            StatusCode::NOT_FOUND => said!(lang, "view-error-title-not-found", "Not found"),
            StatusCode::BAD_REQUEST => said!(lang, "view-error-title-unclear", "Not clear"),
            StatusCode::FORBIDDEN => said!(lang, "view-error-title-forbidden", "Not allowed"),
            _ => said!(lang, "view-error-title-failed", "Failed"),
        };
        let main = html! { p role="alert" { (plain(&self.said(lang))) } };
        Page { root, ..Page::new(lang, &title, main) }.answer(status)
    }

    /// The same as JSON.
    pub(crate) fn json(&self, lang: Language) -> Response {
        (self.status(), Json(json!({ "error": plain(&self.said(lang)) }))).into_response()
    }
}

/// An answer that [`crate::serve`], which knows the reader's language, makes a page of.
impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_told_in_both_languages() {
        let text = || "x".to_owned();
        for error in [
            PageError::NoPage,
            PageError::Broken,
            PageError::TooMany,
            PageError::NotTwo(3),
            PageError::Same,
            PageError::Tolerance { typed: text(), error: text() },
            PageError::Confidence(text()),
            PageError::NoRecord(text()),
            PageError::Ambiguous { name: text(), first: text(), second: text() },
            PageError::NoTest(text()),
            PageError::NoSite(text()),
            PageError::NoHost(text()),
            PageError::NoPair { from: text(), to: text() },
            PageError::Hours(text()),
            PageError::Since(text()),
            PageError::Level(text()),
            PageError::NotOperator,
            PageError::FormExpired,
            PageError::RecordRunning(text()),
            PageError::Store(text()),
        ] {
            let [english, japanese] = Language::ALL.map(|lang| error.said(lang));
            assert!(english.is_ascii() && !english.starts_with("view-"), "{english}");
            assert!(!japanese.is_ascii() && !japanese.contains(['{', '}']), "{japanese}");
        }
    }
}
