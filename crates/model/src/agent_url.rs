//! The one line that carries all it takes to reach an agent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

/// Where an agent is, the secret that admits to it, and the fingerprint of its certificate:
/// `linerate://host:port#TOKEN.FINGERPRINT`. The secrets stand behind `#`, which no program sends on.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct AgentUrl {
    /// Host name or address; an IPv6 address without brackets.
    pub host: String,
    /// TCP port of the agent's API.
    pub port: u16,
    /// The secret, 32 hexadecimal digits.
    pub token: String,
    /// SHA-256 of the agent's certificate (DER), 64 hexadecimal digits.
    pub fingerprint: String,
}

/// A text that is not an agent URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{shown}` is not an agent URL: {problem}; copy the whole line `linerate serve` printed (linerate://host:port#...)"
)]
pub struct BadAgentUrl {
    /// The text up to the secrets.
    shown: String,
    /// What is wrong with it.
    problem: &'static str,
}

impl AgentUrl {
    /// The port that agents listen on unless told otherwise, TCP and UDP.
    pub const PORT: u16 = 4747;

    /// The host that a text names: a name or an address, one of IPv6 in brackets or without. None if it names none, or a port as well.
    pub fn host_of(text: &str) -> Option<String> {
        let host = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        is_host(host).then(|| host.to_owned())
    }

    /// Whether a text may be one, with its secrets, or a part of one.
    pub fn is_meant(text: &str) -> bool {
        text.contains("://") || text.contains('#')
    }

    /// host:port, for messages; without secrets.
    pub fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for AgentUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "linerate://{}#{}.{}", self.address(), self.token, self.fingerprint)
    }
}

/// Never shows the token.
impl fmt::Debug for AgentUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "linerate://{}#....{}", self.address(), self.fingerprint)
    }
}

impl From<AgentUrl> for String {
    fn from(join: AgentUrl) -> Self {
        join.to_string()
    }
}

impl TryFrom<String> for AgentUrl {
    type Error = BadAgentUrl;

    fn try_from(text: String) -> Result<Self, BadAgentUrl> {
        text.parse()
    }
}

impl FromStr for AgentUrl {
    type Err = BadAgentUrl;

    fn from_str(text: &str) -> Result<Self, BadAgentUrl> {
        let text = text.trim();
        let shown = text.split_once('#').map_or_else(|| without_secrets(text), |(address, _)| address.to_owned());
        let fail = |problem| BadAgentUrl { shown: shown.clone(), problem };
        let rest = text.strip_prefix("linerate://").ok_or_else(|| fail("it does not begin with linerate://"))?;
        let (address, secrets) = rest.split_once('#').ok_or_else(|| fail("the part behind # is missing"))?;
        let (host, port) = address.rsplit_once(':').ok_or_else(|| fail("the port is missing"))?;
        let port = port.parse().map_err(|_| fail("the port is not a number from 1 to 65535"))?;
        let (token, fingerprint) = secrets.split_once('.').ok_or_else(|| fail("the fingerprint is missing"))?;
        let hex = |text: &str, digits| text.len() == digits && text.bytes().all(|b| b.is_ascii_hexdigit());
        match () {
            () if host.is_empty() => Err(fail("the host is missing")),
            () if port == 0 => Err(fail("the port is not a number from 1 to 65535")),
            () if !hex(token, 32) => Err(fail("the token is not 32 hexadecimal digits")),
            () if !hex(fingerprint, 64) => Err(fail("the fingerprint is not 64 hexadecimal digits")),
            () => {
                let host = Self::host_of(host).ok_or_else(|| fail("the host is no name and no address"))?;
                Ok(Self { host, port, token: token.to_owned(), fingerprint: fingerprint.to_owned() })
            }
        }
    }
}

/// Whether a name or an address may be written so, the zone of a link-local one (RFC 4007) included.
fn is_host(text: &str) -> bool {
    let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-:%".contains(&byte));
    let address = text.split_once('%').map_or(text, |(address, _)| address);
    plain && !text.is_empty() && (!text.contains(':') || address.parse::<Ipv6Addr>().is_ok())
}

/// A text without `#`, of which the part behind host and port may be the secrets: that part is not shown.
fn without_secrets(text: &str) -> String {
    const PORT_DIGITS: usize = 5;
    /// Shorter than either secret: none is shown whole as the name of a host.
    const LONGEST_NAME: usize = 24;
    let (scheme, address) = text.split_at(text.find("://").map_or(0, |at| at + 3));
    let host = address.rfind(':').map_or(address.len(), |at| at + 1);
    let digits = address[host..].bytes().take(PORT_DIGITS).take_while(u8::is_ascii_digit).count();
    let plain = |c: &char| c.is_ascii_alphanumeric() || "._-:[]".contains(*c);
    let shown: String = address[..host].chars().take_while(plain).take(LONGEST_NAME).collect();
    let shown = if shown.len() == host { format!("{shown}{}", &address[host..host + digits]) } else { shown };
    let cut = if shown.len() < address.len() { "..." } else { "" };
    format!("{scheme}{shown}{cut}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join(host: &str) -> AgentUrl {
        AgentUrl { host: host.to_owned(), port: 4747, token: "0f".repeat(16), fingerprint: "a1".repeat(32) }
    }

    #[test]
    fn survives_text_with_names_and_both_families() {
        for host in ["lab-3.example", "192.0.2.7", "2001:db8::7"] {
            assert_eq!(join(host).to_string().parse(), Ok(join(host)));
        }
    }

    #[test]
    fn a_host_is_a_name_or_an_address() {
        let secrets = join("h").to_string();
        let secrets = secrets.split_once('#').expect("secrets").1;
        for host in ["a\u{1b}[2J", "a b", "[fe80::1]:2/x", "a/b", "us\u{202e}er"] {
            let error = format!("linerate://{host}:4747#{secrets}").parse::<AgentUrl>().expect_err(host);
            assert!(error.to_string().contains("no name and no address"), "{error:?}");
        }
        assert_eq!(join("fe80::1%eth0").to_string().parse(), Ok(join("fe80::1%eth0")));
        assert_eq!(AgentUrl::host_of("[2001:db8::7]"), Some("2001:db8::7".to_owned()));
        for text in ["", "[]", "192.0.2.7:5000", "lab-3:5000", "[2001:db8::7]:5000"] {
            assert_eq!(AgentUrl::host_of(text), None, "{text}");
        }
    }

    #[test]
    fn an_address_without_its_key_is_shown_whole() {
        for text in ["linerate://198.18.77.2:4747", "linerate://[2001:db8::7]:4747", "linerate://lab-3.example:65535"] {
            let error = text.parse::<AgentUrl>().expect_err(text).to_string();
            assert!(error.contains(&format!("`{text}`")), "{error}");
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
            let error = text.parse::<AgentUrl>().expect_err(&text).to_string();
            assert!(error.contains(problem) && !error.contains(&"0f".repeat(15)), "{error}");
        }
        assert!(!format!("{:?}", join("h")).contains("0f0f"));
    }
}
