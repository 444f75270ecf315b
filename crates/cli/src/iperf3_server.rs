//! `iperf3://HOST[:PORT]`: a server of iperf3 in the place of a host with an agent.

use crate::exit::Failure;
use crate::prompt;
use crate::server_address::{ServerAddress, resolve};
use linerate_iperf3::public_key;
use linerate_model::{HostName, IpVersion, Iperf3Login, Iperf3Server, Password};
use std::env::{self, VarError};
use std::fs;
use std::path::PathBuf;
use tokio::sync::watch;

/// What the name of such a server begins with.
pub(crate) const SCHEME: &str = "iperf3://";

/// Returns the host and port of an iperf3 server. `None` if `text` names something else, or nothing at all.
pub(crate) fn host(text: &str) -> Option<(String, u16)> {
    Iperf3Target::read(text, None).ok().flatten().map(|target| (target.host, target.port))
}

/// Where the password is, for iperf3's own client too. It is never an argument: those can be seen by everybody on the machine.
const VARIABLE: &str = "IPERF3_PASSWORD";

/// Who logs in to an iperf3 server.
#[derive(Debug, clap::Args)]
pub(crate) struct Iperf3User {
    /// User to log in to an iperf3 server as. The password is read from IPERF3_PASSWORD, or asked for on the terminal
    #[arg(long, value_name = "NAME", requires = "rsa_public_key_path", hide_short_help = true)]
    username: Option<String>,

    /// File with the RSA public key of an iperf3 server, in PEM, which encrypts the login
    #[arg(long, value_name = "FILE", requires = "username", hide_short_help = true)]
    rsa_public_key_path: Option<PathBuf>,
}

impl Iperf3User {
    /// The first option given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        self.username.as_ref().map(|_| "--username")
    }

    /// The login without its password; none if no user is named.
    ///
    /// # Errors
    /// The file cannot be read, or holds no public key.
    pub(crate) fn login(&self) -> Result<Option<Iperf3Login>, String> {
        let (Some(user), Some(file)) = (&self.username, &self.rsa_public_key_path) else { return Ok(None) };
        let named = |why: String| format!("--rsa-public-key-path {}: {why}", file.display());
        let bytes = fs::read(file).map_err(|error| named(format!("it cannot be read: {error}")))?;
        let public_key = public_key(&String::from_utf8_lossy(&bytes)).map_err(|error| named(error.to_string()))?;
        Ok(Some(Iperf3Login { user: user.clone(), public_key }))
    }

    /// The user's password; none if no user is named.
    ///
    /// # Errors
    /// It is nowhere and nobody can be asked for it, or the user stops it with Ctrl-C.
    pub(crate) async fn password(&self, cancel: &mut watch::Receiver<bool>) -> Result<Option<Password>, Failure> {
        let Some(user) = &self.username else { return Ok(None) };
        let password = match env::var(VARIABLE) {
            Ok(password) => password,
            Err(VarError::NotPresent) if prompt::can_ask() => {
                prompt::ask(&format!("Password of {user}"), true, cancel).await?
            }
            Err(VarError::NotPresent) => {
                return Err(Failure::usage(format!(
                    "--username {user}: set the password in the environment variable {VARIABLE}"
                )));
            }
            Err(VarError::NotUnicode(_)) => {
                return Err(Failure::usage(format!("{VARIABLE}: the password is not UTF-8")));
            }
        };
        Ok(Some(Password(password)))
    }
}

/// An iperf3 server as given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Iperf3Target {
    host: String,
    port: u16,
}

impl Iperf3Target {
    /// Reads `iperf3://HOST[:PORT]`, where `[::1]` is an IPv6 address; none if `text` names something else. `given` is the port of an
    /// option, for a text without one.
    ///
    /// # Errors
    /// The host or the port is missing or wrong, or there are two ports.
    pub(crate) fn read(text: &str, given: Option<u16>) -> Result<Option<Self>, String> {
        let Some(address) = ServerAddress::read(SCHEME, text)? else { return Ok(None) };
        let port = match (address.port, given) {
            (Some(_), Some(given)) => return Err(format!("`{text}` has a port already: leave out -p {given}")),
            (port, given) => port.or(given).unwrap_or(Iperf3Server::PORT),
        };
        Ok(Some(Self { host: address.host, port }))
    }

    /// The name that it goes by in a record.
    pub(crate) fn name(&self) -> HostName {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let port = if self.port == Iperf3Server::PORT { String::new() } else { format!(":{}", self.port) };
        HostName(format!("{SCHEME}{host}{port}"))
    }

    /// Returns the zone of a link-local address: the interface of the client that leads to the server.
    pub(crate) fn zone(&self) -> Option<String> {
        self.host.split_once('%').map(|(_, zone)| zone.to_owned())
    }

    /// The server at its address of that family.
    ///
    /// # Errors
    /// It has none.
    pub(crate) fn server(&self, ip: IpVersion, report: bool) -> Result<Iperf3Server, String> {
        Ok(Iperf3Server { address: resolve(&self.host, ip)?, port: self.port, report, login: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_told_from_a_host() {
        let read = |text: &str| Iperf3Target::read(text, None).map(|target| target.map(|it| (it.name().0, it.port)));
        for (text, name, port) in [
            ("iperf3://box", "iperf3://box", 5_201),
            ("iperf3://192.0.2.1:5201/", "iperf3://192.0.2.1", 5_201),
            ("iperf3://box.example:5202", "iperf3://box.example:5202", 5_202),
            ("iperf3://[2001:db8::1]", "iperf3://[2001:db8::1]", 5_201),
            ("iperf3://[::1]:99", "iperf3://[::1]:99", 99),
        ] {
            assert_eq!(read(text), Ok(Some((name.to_owned(), port))), "{text}");
        }
        for text in ["b", "local", "linerate://192.0.2.1:4747#x", "iperf3"] {
            assert_eq!(read(text), Ok(None), "{text}");
        }
        for text in [
            "iperf3://",
            "iperf3://box:",
            "iperf3://box:0",
            "iperf3://box:70000",
            "iperf3://[::1",
            "iperf3://[::1]5",
            "iperf3://a,b",
            "iperf3://::1",
            "iperf3://box/path",
        ] {
            assert!(read(text).is_err_and(|error| error.contains("iperf3://HOST:PORT")), "{text}");
        }
    }

    #[test]
    fn the_port_may_be_an_option() {
        let read = |text: &str| Iperf3Target::read(text, Some(99)).map(|target| target.map(|it| it.port));
        assert_eq!((read("iperf3://box"), read("iperf3://[::1]")), (Ok(Some(99)), Ok(Some(99))));
        assert!(read("iperf3://box:5201").is_err_and(|error| error.contains("leave out -p 99")));
    }

    #[test]
    fn the_address_is_of_the_family_asked_for() {
        let target = Iperf3Target::read("iperf3://192.0.2.7", None).expect("valid").expect("a server");
        let server = target.server(IpVersion::V4, true).expect("an address");
        assert_eq!((server.address, server.port, server.report), ([192, 0, 2, 7].into(), 5_201, true));
        assert!(target.server(IpVersion::V6, false).is_err());
    }
}
