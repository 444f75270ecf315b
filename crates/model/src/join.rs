//! The one line that carries all it takes to reach an agent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Where an agent is, the secret that admits to it, and the fingerprint of its certificate:
/// `linerate://host:port#TOKEN.FINGERPRINT`. The secrets stand behind `#`, which no program sends on.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Join {
    /// Host name or address; an IPv6 address without brackets.
    pub host: String,
    /// TCP port of the agent's API.
    pub port: u16,
    /// The secret, 32 hexadecimal digits.
    pub token: String,
    /// SHA-256 of the agent's certificate (DER), 64 hexadecimal digits.
    pub fingerprint: String,
}

/// A text that is no join line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{shown}` is not a join line: {problem}; copy the whole line `linerate agent` printed (linerate://host:port#...)"
)]
pub struct BadJoin {
    /// The text up to the secrets.
    shown: String,
    /// What is wrong with it.
    problem: &'static str,
}

impl Join {
    /// host:port, for messages; without secrets.
    pub fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for Join {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "linerate://{}#{}.{}", self.address(), self.token, self.fingerprint)
    }
}

/// Never shows the token.
impl fmt::Debug for Join {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "linerate://{}#....{}", self.address(), self.fingerprint)
    }
}

impl From<Join> for String {
    fn from(join: Join) -> Self {
        join.to_string()
    }
}

impl TryFrom<String> for Join {
    type Error = BadJoin;

    fn try_from(text: String) -> Result<Self, BadJoin> {
        text.parse()
    }
}

impl FromStr for Join {
    type Err = BadJoin;

    fn from_str(text: &str) -> Result<Self, BadJoin> {
        let text = text.trim();
        // Without a `#` the secrets may stand anywhere: show no more than the start.
        let shown =
            text.split_once('#').map_or_else(|| text.chars().take(24).collect(), |(address, _)| address.to_owned());
        let fail = |problem| BadJoin { shown: shown.clone(), problem };
        let rest = text.strip_prefix("linerate://").ok_or_else(|| fail("it does not begin with linerate://"))?;
        let (address, secrets) = rest.split_once('#').ok_or_else(|| fail("the part behind # is missing"))?;
        let (host, port) = address.rsplit_once(':').ok_or_else(|| fail("the port is missing"))?;
        let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        let port = port.parse().map_err(|_| fail("the port is not a number from 1 to 65535"))?;
        let (token, fingerprint) = secrets.split_once('.').ok_or_else(|| fail("the fingerprint is missing"))?;
        let hex = |text: &str, digits| text.len() == digits && text.bytes().all(|b| b.is_ascii_hexdigit());
        match () {
            () if host.is_empty() => Err(fail("the host is missing")),
            () if port == 0 => Err(fail("the port is not a number from 1 to 65535")),
            () if !hex(token, 32) => Err(fail("the token is not 32 hexadecimal digits")),
            () if !hex(fingerprint, 64) => Err(fail("the fingerprint is not 64 hexadecimal digits")),
            () => {
                Ok(Self { host: host.to_owned(), port, token: token.to_owned(), fingerprint: fingerprint.to_owned() })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join(host: &str) -> Join {
        Join { host: host.to_owned(), port: 4747, token: "0f".repeat(16), fingerprint: "a1".repeat(32) }
    }

    #[test]
    fn survives_text_with_names_and_both_families() {
        for host in ["lab-3.example", "192.0.2.7", "2001:db8::7"] {
            assert_eq!(join(host).to_string().parse(), Ok(join(host)));
        }
    }

    #[test]
    fn says_what_is_wrong_and_keeps_the_secrets_to_itself() {
        let good = join("h").to_string();
        for (text, problem) in [
            (good.replace("linerate", "http"), "does not begin"),
            (good.replace(":4747", ""), "port"),
            (good.replace('#', "?"), "behind #"),
            (good.replace('.', ""), "fingerprint"),
            (good.replacen("0f", "xx", 1), "token"),
        ] {
            let error = text.parse::<Join>().expect_err(&text).to_string();
            assert!(error.contains(problem) && !error.contains(&"0f".repeat(15)), "{error}");
        }
        assert!(!format!("{:?}", join("h")).contains("0f0f"));
    }
}
