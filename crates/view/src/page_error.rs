//! A page that cannot be shown, and why.

use crate::page::Page;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use linerate_report::{Language, plain, said};
use linerate_store::StoreError;
use maud::html;

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
            Self::Store(error) => said!(lang, "message-in-english", "{text}", text = error),
        }
    }

    /// What a reader can mend is not a fault of ours, or of the disk.
    fn status(&self) -> StatusCode {
        match self {
            Self::NoPage | Self::NoRecord(_) => StatusCode::NOT_FOUND,
            Self::NotTwo(_) | Self::Same | Self::Tolerance { .. } | Self::Confidence(_) | Self::Ambiguous { .. } => {
                StatusCode::BAD_REQUEST
            }
            Self::TooMany => StatusCode::SERVICE_UNAVAILABLE,
            Self::Broken | Self::Store(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The page that says so.
    pub(crate) fn page(&self, lang: Language) -> Response {
        let status = self.status();
        let title = match status {
            StatusCode::NOT_FOUND => said!(lang, "view-error-title-not-found", "Not found"),
            StatusCode::BAD_REQUEST => said!(lang, "view-error-title-unclear", "Not clear"),
            _ => said!(lang, "view-error-title-failed", "Failed"),
        };
        let main = html! { p role="alert" { (plain(&self.said(lang))) } };
        Page { lang, title: &title, back: true, refresh: false, main }.answer(status)
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
            PageError::Store(text()),
        ] {
            let [english, japanese] = Language::ALL.map(|lang| error.said(lang));
            assert!(english.is_ascii() && !english.starts_with("view-"), "{english}");
            assert!(!japanese.is_ascii() && !japanese.contains(['{', '}']), "{japanese}");
        }
    }
}
