//! What answers: the embedded server of an agent, or an NFS server that is there already.

use linerate_model::HostName;

/// A target as given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::commands) enum Target {
    /// A host with an agent, whose embedded server answers.
    Agent,
    /// A server and one of its exports.
    Server {
        /// Its name or address.
        server: String,
        /// The exported directory.
        export: String,
    },
}

impl Target {
    /// Reads `SERVER:/export`, where `[::1]` is an IPv6 address, as mount(8) does. All else names an agent: an agent URL has
    /// `://`, a file that holds one begins with `@`, and no host's name has a slash.
    pub(in crate::commands) fn read(text: &str) -> Result<Self, String> {
        if text.split(',').any(|host| host.starts_with('@')) {
            return Ok(Self::Agent);
        }
        let Some((server, path)) = text.split_once(":/").filter(|_| !text.contains("://")) else {
            return match text.contains('/') && !text.contains("://") {
                true => Err(format!(
                    "`{text}` is neither a host nor an export: write SERVER:/export, as in 192.0.2.5:/srv/test, for a server \
                     that is there already; a host is given as for other commands"
                )),
                false => Ok(Self::Agent),
            };
        };
        let server = server.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(server);
        if server.is_empty() {
            return Err(format!("`{text}` names no server before `:/`, as in 192.0.2.5:/srv/test"));
        }
        Ok(Self::Server { server: server.to_owned(), export: format!("/{path}") })
    }
}

/// The name that an export goes by in a record.
pub(in crate::commands) fn named(server: &str, export: &str) -> HostName {
    match server.contains(':') {
        true => HostName(format!("[{server}]:{export}")),
        false => HostName(format!("{server}:{export}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server_address::resolve;
    use linerate_model::IpVersion;

    fn server(text: &str) -> Option<(String, String)> {
        match Target::read(text) {
            Ok(Target::Server { server, export }) => Some((server, export)),
            _ => None,
        }
    }

    #[test]
    fn an_export_is_told_from_a_host() {
        let pair = |server: &str, export: &str| Some((server.to_owned(), export.to_owned()));
        assert_eq!(server("192.0.2.5:/srv/test"), pair("192.0.2.5", "/srv/test"));
        assert_eq!(server("filer.example:/"), pair("filer.example", "/"));
        assert_eq!(server("[fe80::1]:/a:/b"), pair("fe80::1", "/a:/b"));
        let join = format!("linerate://192.0.2.1:4747#{}.{}", "0f".repeat(16), "ab".repeat(32));
        for host in ["b", "local", join.as_str()] {
            assert_eq!(Target::read(host), Ok(Target::Agent), "{host}");
        }
        assert!(Target::read(":/srv").is_err() && Target::read("/srv/test").is_err());
        assert_eq!(named("fe80::1", "/srv").0, "[fe80::1]:/srv");
    }

    #[test]
    fn the_family_is_that_asked_for() {
        assert_eq!(resolve("192.0.2.5", IpVersion::V4), Ok("192.0.2.5".parse().expect("an address")));
        assert!(resolve("192.0.2.5", IpVersion::V6).is_err_and(|why| why.contains("use -4")));
    }
}
