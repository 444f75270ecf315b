//! The messages of an exchange: their headers and payload.

use async_nats::{HeaderMap, HeaderValue};
use bytes::Bytes;

const METHOD: &str = "Linerate-Method";
const PATH: &str = "Linerate-Path";
const STATUS: &str = "Linerate-Status";
const NUMBER: &str = "Linerate-Part";
const END: &str = "Linerate-End";

/// Value of [`END`] in the last part of a whole answer.
const WHOLE: &str = "whole";
/// Value of [`END`] in the last part of an answer that the agent could not complete.
const BROKEN: &str = "broken";

/// Most headers of a message.
const MAX_HEADERS: usize = 32;
/// Most bytes of a header's name or value, and of a path.
const MAX_HEADER: usize = 4 << 10;

/// A request to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Method, as in HTTP.
    pub method: String,
    /// Path, which begins with `/`.
    pub path: String,
    /// Headers with their names in lower case.
    pub headers: Vec<(String, String)>,
    /// Body; empty if there is none.
    pub body: Bytes,
}

/// Status and headers of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// Status, as in HTTP.
    pub status: u16,
    /// Headers with their names in lower case.
    pub headers: Vec<(String, String)>,
}

impl Head {
    /// Returns the value of the header `name`, which is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}

/// End of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Whole,
    Broken,
}

/// One message of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// Number of the part in its answer, from 0.
    pub(super) number: u64,
    /// Head of the answer, in its first part.
    pub(super) head: Option<Head>,
    /// End of the answer, in its last part.
    pub(super) end: Option<End>,
}

/// A message without the headers of an exchange.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the message {0}")]
pub struct BadMessage(&'static str);

impl Request {
    /// Returns the headers of the message.
    pub(super) fn to_headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(METHOD, sendable(&self.method));
        headers.insert(PATH, sendable(&self.path));
        append(&mut headers, &self.headers);
        headers
    }

    /// Reads a request.
    ///
    /// # Errors
    /// The headers lack the method or the path, or are too long.
    pub(super) fn of(headers: Option<&HeaderMap>, body: Bytes) -> Result<Self, BadMessage> {
        let fields = Fields::of(headers)?;
        let method = fields.own(METHOD).ok_or(BadMessage("names no method"))?.to_owned();
        let path = fields.own(PATH).ok_or(BadMessage("names no path"))?.to_owned();
        if method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return Err(BadMessage("names no method of HTTP"));
        }
        if !path.starts_with('/') || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(BadMessage("names no path"));
        }
        Ok(Self { method, path, headers: fields.others(), body })
    }
}

impl Part {
    /// Returns the headers of the message.
    pub(super) fn to_headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(NUMBER, self.number.to_string().as_str());
        if let Some(head) = &self.head {
            headers.insert(STATUS, head.status.to_string().as_str());
            append(&mut headers, &head.headers);
        }
        match self.end {
            Some(End::Whole) => headers.insert(END, WHOLE),
            Some(End::Broken) => headers.insert(END, BROKEN),
            None => {}
        }
        headers
    }

    /// Reads the headers of a part.
    ///
    /// # Errors
    /// The headers lack the number or the status, or are too long.
    pub(super) fn of(headers: Option<&HeaderMap>) -> Result<Self, BadMessage> {
        let fields = Fields::of(headers)?;
        let number = fields.own(NUMBER).and_then(|text| text.parse().ok()).ok_or(BadMessage("has no part number"))?;
        let head = match fields.own(STATUS) {
            Some(text) => {
                let status = text.parse().ok().filter(|status| (100..1_000).contains(status));
                Some(Head { status: status.ok_or(BadMessage("has no status of HTTP"))?, headers: fields.others() })
            }
            None => None,
        };
        let end = match fields.own(END) {
            Some(WHOLE) => Some(End::Whole),
            Some(_) => Some(End::Broken),
            None => None,
        };
        Ok(Self { number, head, end })
    }
}

/// Headers of a message as text, with their names in lower case.
struct Fields(Vec<(String, String)>);

impl Fields {
    fn of(headers: Option<&HeaderMap>) -> Result<Self, BadMessage> {
        let mut fields = Vec::new();
        for (name, values) in headers.into_iter().flat_map(HeaderMap::iter) {
            let name: &str = name.as_ref();
            for value in values {
                let value = value.as_str();
                if fields.len() >= MAX_HEADERS || name.len() > MAX_HEADER || value.len() > MAX_HEADER {
                    return Err(BadMessage("has more or longer headers than any of linerate"));
                }
                fields.push((name.to_ascii_lowercase(), value.to_owned()));
            }
        }
        fields.sort();
        Ok(Self(fields))
    }

    /// Returns the value of a header of the exchange itself.
    fn own(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Returns the headers that are none of the exchange itself.
    fn others(&self) -> Vec<(String, String)> {
        let is_own = |name: &str| [METHOD, PATH, STATUS, NUMBER, END].iter().any(|own| own.eq_ignore_ascii_case(name));
        self.0.iter().filter(|(name, _)| !is_own(name)).cloned().collect()
    }
}

fn append(headers: &mut HeaderMap, fields: &[(String, String)]) {
    for (name, value) in fields {
        // A name that NATS does not carry is none of the API's.
        if let Ok(name) = name.parse::<async_nats::HeaderName>() {
            headers.append(name, sendable(value));
        }
    }
}

/// Returns a header's value, without the line breaks that NATS does not carry.
fn sendable(text: &str) -> HeaderValue {
    text.replace(['\r', '\n'], " ").as_str().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fields() -> impl Strategy<Value = Vec<(String, String)>> {
        prop::collection::vec(("x-[a-z]{1,8}", "[ -~]{0,20}"), 0..4).prop_map(|mut fields| {
            fields.sort();
            fields
        })
    }

    proptest! {
        #[test]
        fn requests_survive_the_wire(path in "/[!-~]{0,30}", headers in fields(), body in "[a-z]{0,9}") {
            let request = Request { method: "POST".into(), path, headers, body: body.into() };
            let read = Request::of(Some(&request.to_headers()), request.body.clone());
            prop_assert_eq!(read, Ok(request));
        }

        #[test]
        fn parts_survive_the_wire(number in any::<u64>(), status in 100_u16..1_000, headers in fields(), kind in 0..4_usize) {
            let head = (kind % 2 == 0).then_some(Head { status, headers });
            let end = [None, Some(End::Whole), Some(End::Broken), None][kind];
            let part = Part { number, head, end };
            prop_assert_eq!(Part::of(Some(&part.to_headers())), Ok(part));
        }

        #[test]
        fn no_headers_panic(names in prop::collection::vec("[A-Za-z-]{1,20}", 0..40), value in "\\PC{0,30}") {
            let mut headers = HeaderMap::new();
            for name in names.iter().map(String::as_str).chain([METHOD, PATH, STATUS, NUMBER]) {
                headers.append(name, sendable(&value));
            }
            let _ = (Request::of(Some(&headers), Bytes::new()), Part::of(Some(&headers)));
        }
    }

    #[test]
    fn messages_that_are_none_of_an_exchange_are_refused() {
        let headers = |fields: &[(&str, &str)]| {
            let mut headers = HeaderMap::new();
            fields.iter().for_each(|(name, value)| headers.append(*name, *value));
            headers
        };
        let request = |fields: &[(&str, &str)]| Request::of(Some(&headers(fields)), Bytes::new());
        assert!(Request::of(None, Bytes::new()).is_err() && Part::of(None).is_err());
        assert!(request(&[(METHOD, "GET")]).is_err() && request(&[(METHOD, "GET"), (PATH, "v1/host")]).is_err());
        assert!(request(&[(METHOD, "G T"), (PATH, "/v1/host")]).is_err());
        assert!(request(&[(METHOD, "GET"), (PATH, "/v1/host"), ("x", &"-".repeat(MAX_HEADER + 1))]).is_err());
        assert!(request(&[(METHOD, "GET"), (PATH, "/v1/host")]).is_ok());
        assert!(Part::of(Some(&headers(&[(NUMBER, "-1")]))).is_err());
        assert!(Part::of(Some(&headers(&[(NUMBER, "0"), (STATUS, "99999")]))).is_err());
    }
}
