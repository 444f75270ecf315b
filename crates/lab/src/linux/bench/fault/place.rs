//! Direction of a link, as a planted loss names it.

use linerate_model::HostName;
use linerate_units::ParseError;
use std::fmt;
use std::str::FromStr;

/// Direction of a link: `a` for the frames that host a sends, `device:a` for the frames that the device sends to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultPlace {
    /// From the host.
    From(HostName),
    /// From the device to the host.
    To(HostName),
}

impl FaultPlace {
    /// Returns the host of the link.
    pub fn host(&self) -> &HostName {
        match self {
            Self::From(host) | Self::To(host) => host,
        }
    }
}

impl fmt::Display for FaultPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::From(host) => write!(f, "{host}"),
            Self::To(host) => write!(f, "device:{host}"),
        }
    }
}

impl FromStr for FaultPlace {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (place, host): (fn(HostName) -> Self, _) = match text.strip_prefix("device:") {
            Some(host) => (Self::To, host),
            None => (Self::From, text),
        };
        if host.is_empty() || host.contains(':') {
            let expected = "a place on a link";
            return Err(ParseError {
                text: text.to_owned(),
                expected,
                example: "a, or device:a for what the device sends to a",
            });
        }
        Ok(place(HostName::from(host)))
    }
}
