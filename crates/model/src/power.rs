//! What a credential of an agent lets its holder do there.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// One kind of work on an agent's host that a credential may grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Power {
    /// Bulk streams over TCP and UDP.
    Stream,
    /// Requests and responses over TCP and UDP.
    Transact,
    /// Calls of linerate's own RPC program between agents.
    Rpc,
    /// Raw frames from the interfaces that the agent allows.
    Frames,
    /// Copies, within the folders that the agent allows, and NFS servers of linerate's own.
    Files,
    /// Connections to file servers of others (NFS, SMB) that the agent allows.
    Servers,
}

/// A text that names no power.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not a power; choose from {list}, with commas between", list = Powers::all())]
pub struct UnknownPower {
    name: String,
}

impl Power {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Stream, Self::Transact, Self::Rpc, Self::Frames, Self::Files, Self::Servers];

    /// The name in files and options, as in `stream`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Transact => "transact",
            Self::Rpc => "rpc",
            Self::Frames => "frames",
            Self::Files => "files",
            Self::Servers => "servers",
        }
    }
}

impl fmt::Display for Power {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Power {
    type Err = UnknownPower;

    fn from_str(name: &str) -> Result<Self, UnknownPower> {
        let named = Self::ALL.into_iter().find(|power| power.name() == name);
        named.ok_or_else(|| UnknownPower { name: name.to_owned() })
    }
}

/// A set of powers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Powers(BTreeSet<Power>);

impl Powers {
    /// Every power.
    pub fn all() -> Self {
        Power::ALL.into_iter().collect()
    }

    /// What an invitation grants that names none: streams and transactions, which touch nothing but the network.
    pub fn of_an_invitation() -> Self {
        [Power::Stream, Power::Transact].into_iter().collect()
    }

    /// Whether `power` is one of them.
    pub fn has(&self, power: Power) -> bool {
        self.0.contains(&power)
    }

    /// Returns those of them that `others` lacks.
    pub fn missing_in(&self, others: &Self) -> Self {
        Self(self.0.difference(&others.0).copied().collect())
    }

    /// Returns those that both have.
    pub fn and(&self, others: &Self) -> Self {
        Self(self.0.intersection(&others.0).copied().collect())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each of them, in the order of [`Power::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = Power> {
        self.0.iter().copied()
    }
}

impl From<Power> for Powers {
    fn from(power: Power) -> Self {
        Self(BTreeSet::from([power]))
    }
}

impl FromIterator<Power> for Powers {
    fn from_iter<I: IntoIterator<Item = Power>>(powers: I) -> Self {
        Self(powers.into_iter().collect())
    }
}

impl fmt::Display for Powers {
    /// Their names with commas between, as they are read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().map(Power::name).collect();
        f.pad(&if names.is_empty() { String::from("none") } else { names.join(",") })
    }
}

impl FromStr for Powers {
    type Err = UnknownPower;

    fn from_str(text: &str) -> Result<Self, UnknownPower> {
        text.split(',').map(|name| name.trim().parse()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_read_as_they_are_written_in_text_and_in_json() {
        let all = Powers::all();
        assert_eq!(all.to_string(), "stream,transact,rpc,frames,files,servers");
        assert_eq!(all.to_string().parse(), Ok(all.clone()));
        let json = serde_json::to_string(&all).expect("plain data");
        assert_eq!(json, r#"["stream","transact","rpc","frames","files","servers"]"#);
        assert_eq!(serde_json::from_str::<Powers>(&json).expect("as written"), all);
        assert_eq!("transact, stream".parse(), Ok(Powers::of_an_invitation()));
    }

    #[test]
    fn an_unknown_power_is_refused_with_the_list() {
        for text in ["", "streams", "stream,", "Stream"] {
            let error = text.parse::<Powers>().expect_err(text).to_string();
            assert!(error.contains("stream,transact,rpc,frames,files,servers"), "{error}");
        }
    }
}
