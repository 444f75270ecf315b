//! Interfaces that raw frames may be sent from.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::str::FromStr;

/// Interfaces of this host that raw frames may be sent from and received at; by default none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedInterfaces {
    /// Every one: written `all`, a name that Linux gives to no interface.
    All,
    /// These.
    Named(BTreeSet<String>),
}

impl AllowedInterfaces {
    /// Returns whether there are none.
    pub fn is_none(&self) -> bool {
        matches!(self, Self::Named(names) if names.is_empty())
    }

    /// Returns whether `interface` is one of them.
    pub fn allow(&self, interface: &str) -> bool {
        match self {
            Self::All => true,
            Self::Named(names) => names.contains(interface),
        }
    }
}

impl Default for AllowedInterfaces {
    fn default() -> Self {
        Self::Named(BTreeSet::new())
    }
}

impl FromStr for AllowedInterfaces {
    type Err = Infallible;

    /// Names with commas between; `all` among them allows every interface.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        let names: BTreeSet<String> =
            text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
        Ok(if names.contains("all") { Self::All } else { Self::Named(names) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_are_allowed_by_name_or_all() {
        let parsed = |text: &str| text.parse::<AllowedInterfaces>().unwrap_or_default();
        for (text, eth1, eth2) in
            [("eth1", true, false), ("eth1, eth2", true, true), ("all", true, true), ("", false, false)]
        {
            let allowed = parsed(text);
            assert_eq!((allowed.allow("eth1"), allowed.allow("eth2")), (eth1, eth2), "{text}");
            assert_eq!(allowed.is_none(), !eth1, "{text}");
        }
        assert!(AllowedInterfaces::default().is_none());
    }
}
