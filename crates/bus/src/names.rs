//! Names that are part of subjects.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Longest name in bytes.
const LONGEST: usize = 63;

/// A name that cannot be part of a subject.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no name of {what}: use 1 to {LONGEST} letters, digits, dashes and underscores")]
pub struct BadName {
    name: String,
    what: &'static str,
}

fn check(name: &str, what: &'static str) -> Result<String, BadName> {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if is_plain && (1..=LONGEST).contains(&name.len()) {
        return Ok(name.to_owned());
    }
    Err(BadName { name: name.chars().take(LONGEST).collect(), what })
}

macro_rules! name {
    ($(#[$comment:meta])* $name:ident, $what:literal) => {
        $(#[$comment])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Returns the name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = BadName;

            fn from_str(name: &str) -> Result<Self, BadName> {
                check(name, $what).map(Self)
            }
        }

        impl TryFrom<String> for $name {
            type Error = BadName;

            fn try_from(name: String) -> Result<Self, BadName> {
                name.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    };
}

name!(
    /// Name of a fleet: the second token of all its subjects.
    FleetName,
    "a fleet"
);
name!(
    /// Name of an agent within its fleet.
    AgentName,
    "an agent of a fleet"
);

impl AgentName {
    /// Makes a name of a host's name: other characters become dashes.
    ///
    /// # Errors
    /// Nothing is left of it.
    pub fn of_host(host: &str) -> Result<Self, BadName> {
        let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '-' };
        let name: String = host.chars().map(plain).take(LONGEST).collect();
        name.trim_matches('-').parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_token_of_a_subject() {
        for good in ["a", "site-a", "Rack_7", &"x".repeat(63)] {
            assert_eq!(good.parse::<AgentName>().map(|name| name.to_string()), Ok(good.to_owned()));
        }
        for bad in ["", "a.b", "a b", "*", ">", "ä", &"x".repeat(64)] {
            let error = bad.parse::<FleetName>().expect_err(bad).to_string();
            assert!(error.contains("is no name of a fleet"), "{error}");
        }
    }

    #[test]
    fn host_names_become_agent_names() {
        assert_eq!(AgentName::of_host("node-1.example.org").map(String::from), Ok("node-1-example-org".to_owned()));
        assert!(AgentName::of_host("...").is_err());
    }
}
