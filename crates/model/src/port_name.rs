//! What a port is called.

use crate::HostName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A port by its interface, as in `eth1`; where the ports of a test are of several hosts, with the host it is of, as in
/// `a:eth1`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(from = "String", into = "String")]
#[schemars(with = "String")]
pub struct PortName {
    /// Its host; none if that goes without saying.
    pub host: Option<HostName>,
    /// The interface.
    pub interface: String,
}

impl fmt::Display for PortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Some(host) => write!(f, "{host}:{}", self.interface),
            None => f.pad(&self.interface),
        }
    }
}

impl From<&str> for PortName {
    /// What stands before the last colon is the host: no interface has a colon in its name.
    fn from(name: &str) -> Self {
        match name.rsplit_once(':') {
            Some((host, interface)) => Self { host: Some(host.into()), interface: interface.to_owned() },
            None => Self { host: None, interface: name.to_owned() },
        }
    }
}

impl From<String> for PortName {
    fn from(name: String) -> Self {
        name.as_str().into()
    }
}

impl From<PortName> for String {
    fn from(name: PortName) -> Self {
        name.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_as_it_is_written() {
        for (text, host, interface) in [
            ("eth1", None, "eth1"),
            ("a:eth1", Some("a"), "eth1"),
            ("192.0.2.1:4747:eth1", Some("192.0.2.1:4747"), "eth1"),
            ("[2001:db8::1]:4747:eth1.7", Some("[2001:db8::1]:4747"), "eth1.7"),
        ] {
            let name = PortName::from(text);
            assert_eq!((name.host.as_ref().map(|host| host.0.as_str()), name.interface.as_str()), (host, interface));
            assert_eq!(serde_json::to_string(&name).expect("a string"), format!("\"{text}\""));
        }
    }
}
