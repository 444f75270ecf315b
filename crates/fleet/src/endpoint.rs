//! HTTP endpoints of others that a fleet sends to: webhooks, Alertmanager, remote write.

use reqwest::header::HeaderMap;
use reqwest::{Client, StatusCode, Url};
use rustls::{ClientConfig, RootCertStore};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Time for a whole request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Characters of an endpoint's answer that an error repeats.
const MAX_QUOTED: usize = 200;

/// An endpoint cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The text is no URL.
    #[error("`{text}` is not a URL: {problem}; write it as https://host:port/path")]
    NotAUrl {
        /// The text.
        text: String,
        /// The reason.
        problem: String,
    },
    /// The URL contains a user name or a password.
    #[error(
        "the URL of {host} contains a user name or a password; give a bearer token instead, or use a proxy that logs in"
    )]
    HasPassword {
        /// Host of the URL.
        host: String,
    },
    /// The HTTP client cannot be set up.
    #[error("cannot set up HTTPS: {0}")]
    Client(String),
}

/// A URL to send to, and a token.
#[derive(Clone)]
pub struct Endpoint {
    url: Url,
    bearer: Option<String>,
}

impl Endpoint {
    /// Takes a URL with `http` or `https`, and the bearer token that requests carry.
    ///
    /// # Errors
    /// The text is no such URL, or contains a password.
    pub fn new(text: &str, bearer: Option<String>) -> Result<Self, EndpointError> {
        let url = Url::parse(text)
            .map_err(|error| EndpointError::NotAUrl { text: text.to_owned(), problem: error.to_string() })?;
        if !matches!(url.scheme(), "http" | "https") {
            let problem = format!("its scheme is `{}`", url.scheme());
            return Err(EndpointError::NotAUrl { text: text.to_owned(), problem });
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(EndpointError::HasPassword { host: url.host_str().unwrap_or_default().to_owned() });
        }
        Ok(Self { url, bearer })
    }

    /// Returns the endpoint at `path` below the URL's path.
    pub(crate) fn below(&self, path: &str) -> Self {
        let mut url = self.url.clone();
        url.set_path(&format!("{}/{path}", self.url.path().trim_end_matches('/')));
        Self { url, bearer: self.bearer.clone() }
    }
}

/// Prints scheme, host, port and path. A query may hold a key.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut url = self.url.clone();
        url.set_query(None);
        url.set_fragment(None);
        write!(f, "{url}")
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({self})")
    }
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// The endpoint accepted it.
    Accepted,
    /// The endpoint could not be reached or is overloaded; the same request may succeed later.
    Unavailable(String),
    /// The endpoint refused it; the same request would be refused again.
    Refused(String),
}

/// An HTTP client with the roots that the system trusts. It follows no redirects.
#[derive(Debug, Clone)]
pub(crate) struct HttpClient(Client);

impl HttpClient {
    /// Loads the system's roots.
    ///
    /// # Errors
    /// TLS or the client cannot be set up. A system without roots is no error: plain HTTP works.
    pub(crate) fn new() -> Result<Self, EndpointError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| EndpointError::Client(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Client::builder()
            .tls_backend_preconfigured(tls)
            .timeout(REQUEST_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("linerate/", env!("CARGO_PKG_VERSION")))
            .build()
            .map(Self)
            .map_err(|error| EndpointError::Client(error.to_string()))
    }

    /// Sends `body` by POST.
    pub(crate) async fn post(&self, endpoint: &Endpoint, headers: HeaderMap, body: Vec<u8>) -> Delivery {
        let mut request = self.0.post(endpoint.url.clone()).headers(headers).body(body);
        if let Some(token) = &endpoint.bearer {
            request = request.bearer_auth(token);
        }
        match request.send().await {
            Ok(response) if response.status().is_success() => Delivery::Accepted,
            Ok(response) => {
                let status = response.status();
                let answer = response.text().await.unwrap_or_default();
                let reason = format!("{status}: {}", quoted(&answer));
                let overloaded = matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT);
                if status.is_server_error() || overloaded {
                    Delivery::Unavailable(reason)
                } else {
                    Delivery::Refused(reason)
                }
            }
            Err(error) => Delivery::Unavailable(chain(&error.without_url())),
        }
    }
}

/// Returns the start of an answer on one line.
fn quoted(answer: &str) -> String {
    let line: String = answer.trim().chars().take(MAX_QUOTED).collect();
    line.replace(['\r', '\n'], " ")
}

/// Returns the text of an error and its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_urls_are_refused_with_the_reason() {
        for (text, expected) in [
            ("alerts", "`alerts` is not a URL"),
            ("ftp://host/", "its scheme is `ftp`"),
            ("https://user:secret@host/hook", "the URL of host contains a user name or a password"),
        ] {
            let error = Endpoint::new(text, None).expect_err(text).to_string();
            assert!(error.contains(expected) && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn path_is_added_below_that_of_the_url() {
        let endpoint = Endpoint::new("http://127.0.0.1:9093/am/?key=1", None).expect("a URL");
        assert_eq!(endpoint.below("api/v2/alerts").to_string(), "http://127.0.0.1:9093/am/api/v2/alerts");
        assert_eq!(endpoint.below("x").url.query(), Some("key=1"));
    }
}
