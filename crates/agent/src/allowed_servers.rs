//! File servers of others that an agent may reach, and the users that it may call them as.
//!
//! An agent often stands where its client does not: behind a firewall, with a name or address that servers trust, as
//! root with ports below 1024. None of that is lent unless the agent's owner names the server.

use ipnet::IpNet;
use linerate_engine::ForeignServer;
use linerate_model::shell_word;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// File servers, and users and groups of NFS calls. By default there are none of either.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedServers {
    /// Servers, and what of them.
    pub servers: Vec<AllowedServer>,
    /// Users that NFS calls may be made as (AUTH_SYS, RFC 5531 appendix A).
    pub users: Vec<AllowedUser>,
}

/// File servers that may be reached, at any port. NFS servers are called from ports below 1024 where the agent may bind
/// them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedServer {
    /// Every one: written `any`.
    Any,
    /// Servers in a network.
    In {
        /// The network; that of one address is one server.
        network: IpNet,
        /// The NFS export (from `/` on) or SMB share that may be used, with all below it. If it is missing, all may be
        /// used.
        export: Option<String>,
    },
}

/// A user and a group that NFS calls may be made as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowedUser {
    /// Every one: written `any`.
    Any,
    /// These.
    Is {
        /// The user's number.
        uid: u32,
        /// The group's number.
        gid: u32,
    },
}

impl AllowedServers {
    /// Allows every server, as any user: for users who could reach them with other programs of this host as well.
    pub fn any() -> Self {
        Self { servers: vec![AllowedServer::Any], users: vec![AllowedUser::Any] }
    }

    /// Returns whether there are none.
    pub fn is_none(&self) -> bool {
        self.servers.is_empty()
    }

    /// Checks that `server` may be reached as its user.
    ///
    /// # Errors
    /// It may not; the message says what would allow it.
    pub(crate) fn check(&self, server: &ForeignServer) -> Result<(), String> {
        let ForeignServer { address, export, user } = server;
        let at = if address.is_ipv6() { format!("[{address}]:{export}") } else { format!("{address}:{export}") };
        if !self.servers.iter().any(|allowed| allowed.holds(server)) {
            let at = shell_word(&at);
            return Err(format!(
                "this agent does not reach the file server {at}; start it with `linerate serve --allow-server {at}`"
            ));
        }
        match user {
            Some((uid, gid)) if !self.users.iter().any(|allowed| allowed.is(*uid, *gid)) => Err(format!(
                "this agent makes no NFS calls as user {uid} and group {gid}; choose others with `--uid` and `--gid`, or start it \
                 with `linerate serve --allow-uid {uid}:{gid}`"
            )),
            _ => Ok(()),
        }
    }
}

impl AllowedServer {
    fn holds(&self, server: &ForeignServer) -> bool {
        let Self::In { network, export } = self else { return true };
        network.contains(&server.address.to_canonical())
            && export.as_ref().is_none_or(|allowed| is_below(&server.export, allowed))
    }
}

impl AllowedUser {
    fn is(self, uid: u32, gid: u32) -> bool {
        self == Self::Any || self == Self::Is { uid, gid }
    }
}

/// Returns whether `export` is `allowed` or below it, name by name. A share's name has no case (MS-SMB2 section
/// 3.3.5.7). A path that could lead up, or that a server may read in another way, is below nothing.
fn is_below(export: &str, allowed: &str) -> bool {
    let names = |path: &str| path.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    let (wanted, within, is_share) = (names(export), names(allowed), !export.starts_with('/'));
    let odd = |name: &String| name == "." || name == ".." || (is_share && name.contains('\\'));
    let same = |index: usize, left: &String, right: &String| match is_share && index == 0 {
        true => left.eq_ignore_ascii_case(right),
        false => left == right,
    };
    is_share != allowed.starts_with('/')
        && wanted.len() >= within.len()
        && !wanted.iter().any(odd)
        && within.iter().zip(&wanted).enumerate().all(|(index, (left, right))| same(index, left, right))
}

/// A text that names no server or no user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("write it like {0}")]
pub struct BadAllowance(&'static str);

impl FromStr for AllowedServer {
    type Err = BadAllowance;

    /// `any`, or an address or network and perhaps an export: `192.0.2.5`, `192.0.2.0/24`, `192.0.2.5:/srv/data`, `[2001:db8::5]:data`.
    fn from_str(text: &str) -> Result<Self, BadAllowance> {
        const LIKE: &str = "192.0.2.5, 192.0.2.0/24, 192.0.2.5:/export, [2001:db8::5]:share, or any";
        let network = |text: &str| {
            text.parse::<IpNet>().ok().or_else(|| text.parse::<IpAddr>().ok().map(|ip| ip.to_canonical().into()))
        };
        if text == "any" {
            return Ok(Self::Any);
        }
        if let Some(network) = network(text) {
            return Ok(Self::In { network, export: None });
        }
        let cut = match text.strip_prefix('[') {
            Some(rest) => rest.split_once(']').and_then(|(host, rest)| {
                let address: Ipv6Addr = host.parse().ok()?;
                Some((IpNet::from(IpAddr::from(address).to_canonical()), rest.strip_prefix(':')?))
            }),
            None => text.split_once(':').and_then(|(host, export)| Some((network(host)?, export))),
        };
        match cut {
            Some((network, export)) if !export.is_empty() => Ok(Self::In { network, export: Some(export.to_owned()) }),
            _ => Err(BadAllowance(LIKE)),
        }
    }
}

impl FromStr for AllowedUser {
    type Err = BadAllowance;

    /// `any`, `UID:GID`, or a `UID` whose group has the same number.
    fn from_str(text: &str) -> Result<Self, BadAllowance> {
        if text == "any" {
            return Ok(Self::Any);
        }
        let (uid, gid) = text.split_once(':').unwrap_or((text, text));
        match (uid.parse(), gid.parse()) {
            (Ok(uid), Ok(gid)) => Ok(Self::Is { uid, gid }),
            _ => Err(BadAllowance("1000, 1000:100, or any")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowing(servers: &[&str], users: &[&str]) -> AllowedServers {
        AllowedServers {
            servers: servers.iter().map(|text| text.parse().expect("a server")).collect(),
            users: users.iter().map(|text| text.parse().expect("a user")).collect(),
        }
    }

    fn server(address: &str, export: &str, user: Option<(u32, u32)>) -> ForeignServer {
        ForeignServer { address: address.parse().expect("an address"), export: export.to_owned(), user }
    }

    #[test]
    fn only_named_servers_and_exports_are_reached() {
        let reached = |allowed: &str, address: &str, export: &str| {
            allowing(&[allowed], &[]).check(&server(address, export, None)).is_ok()
        };
        for (allowed, address, export) in [
            ("any", "2001:db8::5", "/srv"),
            ("192.0.2.5", "192.0.2.5", "/srv"),
            ("192.0.2.5", "::ffff:192.0.2.5", "/srv"),
            ("192.0.2.0/24", "192.0.2.9", "share"),
            ("192.0.2.5:/srv", "192.0.2.5", "/srv/data/x"),
            ("192.0.2.5:/srv/", "192.0.2.5", "/srv"),
            ("192.0.2.5:/", "192.0.2.5", "/srv"),
            ("192.0.2.5:Data", "192.0.2.5", "data/new"),
            ("[2001:db8::5]:/srv", "2001:db8::5", "/srv"),
        ] {
            assert!(reached(allowed, address, export), "{allowed} has {address}:{export}");
        }
        for (allowed, address, export) in [
            ("192.0.2.5", "192.0.2.6", "/srv"),
            ("192.0.2.5:/srv", "192.0.2.5", "/srv-other"),
            ("192.0.2.5:/srv", "192.0.2.5", "/"),
            ("192.0.2.5:/srv", "192.0.2.5", "/srv/../etc"),
            ("192.0.2.5:/srv", "192.0.2.5", "srv"),
            ("192.0.2.5:srv", "192.0.2.5", "/srv"),
            ("192.0.2.5:data", "192.0.2.5", "data/..\\other"),
            ("192.0.2.5:data/new", "192.0.2.5", "data/NEW"),
        ] {
            assert!(!reached(allowed, address, export), "{allowed} has not {address}:{export}");
        }
    }

    #[test]
    fn nfs_calls_are_made_as_named_users_only() {
        let refused =
            |users: &[&str], user| allowing(&["192.0.2.5"], users).check(&server("192.0.2.5", "/srv", user)).err();
        for (users, user) in [(["any"], (0, 0)), (["1000"], (1000, 1000)), (["1000:100"], (1000, 100))] {
            assert_eq!(refused(&users, Some(user)), None);
        }
        for (users, user) in [(["1000"], (0, 0)), (["1000"], (1000, 0)), (["1000:100"], (1000, 1000))] {
            let message = refused(&users, Some(user)).expect("another user");
            assert!(message.contains(&format!("--allow-uid {}:{}", user.0, user.1)), "{message}");
        }
        assert!(refused(&[], Some((1000, 1000))).is_some());
        assert_eq!(refused(&[], None), None, "a login decides");
    }

    #[test]
    fn what_is_no_allowance_is_refused_with_what_is() {
        for text in ["", "filer", "filer:/srv", "192.0.2.5:", "192.0.2.0/33", "[192.0.2.5]:/srv", "[2001:db8::5]"] {
            let error = text.parse::<AllowedServer>().expect_err(text).to_string();
            assert!(error.contains("192.0.2.5:/export"), "{text}: {error}");
        }
        for text in ["", "root", "-1", "1:", ":1", "1:2:3"] {
            assert!(text.parse::<AllowedUser>().is_err(), "{text}");
        }
    }
}
