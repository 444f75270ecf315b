//! Users that a trusted reverse proxy has logged in.

use axum::http::{HeaderMap, HeaderName};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// A reverse proxy that logs users in and names them in a header.
#[derive(Debug, Clone)]
pub struct TrustedProxy {
    /// Header with the user's name.
    header: HeaderName,
    /// Addresses that the proxy connects from.
    addresses: Vec<IpAddr>,
    /// Users who may read. Empty for every user that the proxy lets through.
    viewers: BTreeSet<String>,
    /// Users who may read and delete.
    operators: BTreeSet<String>,
}

/// A name that no HTTP header can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the name of an HTTP header: give one like X-Forwarded-User")]
pub struct BadHeaderName(String);

/// What a request may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Reads.
    Viewer,
    /// Reads and deletes.
    Operator,
}

/// Reason to refuse a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The header came from an address that is not the proxy's.
    Forged(IpAddr),
    /// The proxy sent the header twice, or a name that is not text.
    Malformed,
    /// The user has no role.
    NoRole(String),
}

impl TrustedProxy {
    /// Returns a proxy that connects from `addresses` and names its users in `header`. The proxy must replace a header of that name
    /// that a browser sends. Without viewers, every user that the proxy lets through may read.
    ///
    /// # Errors
    /// No header can have this name.
    pub fn new(
        header: &str,
        addresses: Vec<IpAddr>,
        viewers: Vec<String>,
        operators: Vec<String>,
    ) -> Result<Self, BadHeaderName> {
        let name = header.parse().map_err(|_| BadHeaderName(header.to_owned()))?;
        let viewers = viewers.into_iter().collect();
        let operators = operators.into_iter().collect();
        Ok(Self { header: name, addresses, viewers, operators })
    }

    /// Returns the role of a request from `peer`. Returns `None` if the request names no user, so that it needs the key.
    ///
    /// # Errors
    /// The header does not come from the proxy, is malformed, or names a user without a role.
    pub(crate) fn role(&self, peer: IpAddr, headers: &HeaderMap) -> Result<Option<Role>, Refusal> {
        let mut values = headers.get_all(&self.header).iter();
        let Some(value) = values.next() else { return Ok(None) };
        let peer = peer.to_canonical();
        if !self.addresses.iter().any(|address| address.to_canonical() == peer) {
            return Err(Refusal::Forged(peer));
        }
        let user = value.to_str().map_err(|_| Refusal::Malformed)?;
        // A proxy that appends to the header of a browser sends two values, in one line or in two.
        if values.next().is_some() || user.contains(',') || user.trim().is_empty() {
            return Err(Refusal::Malformed);
        }
        let user = user.trim();
        if self.operators.contains(user) {
            Ok(Some(Role::Operator))
        } else if self.viewers.is_empty() || self.viewers.contains(user) {
            Ok(Some(Role::Viewer))
        } else {
            Err(Refusal::NoRole(user.to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn role(viewers: &[&str], peer: &str, users: &[&str]) -> Result<Option<Role>, Refusal> {
        let addresses = ["192.0.2.1", "::1"].map(|address| address.parse().expect("an address"));
        let viewers = viewers.iter().map(|name| (*name).to_owned()).collect();
        let proxy = TrustedProxy::new("X-Forwarded-User", addresses.into(), viewers, vec!["olga".to_owned()]);
        let proxy = proxy.expect("a header");
        let mut headers = HeaderMap::new();
        for user in users {
            headers.append("X-Forwarded-User", HeaderValue::from_bytes(user.as_bytes()).expect("a value"));
        }
        proxy.role(peer.parse().expect("an address"), &headers)
    }

    #[test]
    fn header_names_are_checked() {
        let error = TrustedProxy::new("X Forwarded", Vec::new(), Vec::new(), Vec::new()).expect_err("a space");
        assert!(error.to_string().contains("`X Forwarded`"));
    }

    #[test]
    fn proxy_names_viewers_and_operators() {
        for peer in ["192.0.2.1", "::ffff:192.0.2.1", "::1"] {
            assert_eq!(role(&[], peer, &["olga"]), Ok(Some(Role::Operator)), "{peer}");
            assert_eq!(role(&[], peer, &["vera"]), Ok(Some(Role::Viewer)), "{peer}");
        }
        assert_eq!(role(&["vera"], "::1", &["vera"]), Ok(Some(Role::Viewer)));
        assert_eq!(role(&["vera"], "::1", &["olga"]), Ok(Some(Role::Operator)), "operators need no second entry");
        assert_eq!(role(&["vera"], "::1", &["Vera"]), Err(Refusal::NoRole("Vera".to_owned())));
        assert_eq!(role(&[], "::1", &[]), Ok(None), "the key is needed");
    }

    #[test]
    fn header_from_elsewhere_is_refused() {
        for peer in ["192.0.2.2", "127.0.0.1", "::2", "::ffff:192.0.2.2"] {
            assert!(matches!(role(&[], peer, &["olga"]), Err(Refusal::Forged(_))), "{peer}");
            assert_eq!(role(&[], peer, &[]), Ok(None), "{peer}");
        }
    }

    #[test]
    fn ambiguous_names_are_refused() {
        for users in [&["vera", "olga"][..], &["vera, olga"], &["olga,"], &[""], &["  "], &["ol\u{e9}"]] {
            assert_eq!(role(&[], "::1", users), Err(Refusal::Malformed), "{users:?}");
        }
    }
}
