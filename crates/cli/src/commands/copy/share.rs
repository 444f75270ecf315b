//! A share of an SMB server, as it is typed, and who logs in.

use crate::server_address::resolve;
use linerate_model::{IpVersion, Password, SMB_PORT, SmbServer, SmbVersion};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Where the password is, if it is in no file. It is never an argument: those can be seen by everybody on the machine.
const VARIABLE: &str = "LINERATE_SMB_PASSWORD";

/// The options for `//SERVER/SHARE`.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "SMB server")]
pub(super) struct SmbUser {
    /// User to log in as: NAME, DOMAIN\NAME or NAME@DOMAIN; the password is read from LINERATE_SMB_PASSWORD
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    user: Option<String>,

    /// File whose first line is the password
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    password_file: Option<PathBuf>,

    /// Earliest version of SMB to speak: 2.0.2, 2.1, 3.0, 3.0.2 or 3.1.1 [default: 3.1.1]
    #[arg(long, value_name = "VERSION", hide_short_help = true)]
    smb_min: Option<SmbVersion>,

    /// Sign every message, also where the server does not require it
    #[arg(long, hide_short_help = true)]
    smb_sign: bool,
}

impl SmbUser {
    /// The first option given.
    pub(super) fn given(&self) -> Option<&'static str> {
        let given = [
            ("--user", self.user.is_some()),
            ("--password-file", self.password_file.is_some()),
            ("--smb-min", self.smb_min.is_some()),
            ("--smb-sign", self.smb_sign),
        ];
        given.into_iter().find_map(|(option, given)| given.then_some(option))
    }

    /// The user's password; none is an empty one.
    pub(super) fn password(&self) -> Result<Option<Password>, String> {
        let Some(file) = &self.password_file else {
            return match std::env::var(VARIABLE) {
                Ok(password) => Ok(Some(Password(password))),
                Err(std::env::VarError::NotPresent) => Ok(None),
                Err(error) => Err(format!("{VARIABLE}: {error}")),
            };
        };
        let text = std::fs::read_to_string(file).map_err(|error| format!("reading {}: {error}", file.display()))?;
        Ok(Some(Password(text.lines().next().unwrap_or_default().to_owned())))
    }

    /// The share that `text` names.
    pub(super) fn at(&self, text: &str, ip: IpVersion) -> Result<SmbServer, String> {
        let Typed { server, port, share, folder } = Typed::read(text)?;
        let user = self.user.clone().ok_or_else(|| {
            format!(
                "{text}: name the user with --user, or `--user guest` where the server takes guests (on Samba, `smbpasswd -a NAME` adds a \
                 user)"
            )
        })?;
        super::ends::without_zone(&server)?;
        let address = SocketAddr::new(resolve(&server, ip)?, port);
        let minimum = self.smb_min.unwrap_or_default();
        Ok(SmbServer { address, name: server, share, folder, user, minimum, sign: self.smb_sign })
    }
}

/// Whether it is meant as a share.
pub(super) fn is_share(text: &str) -> bool {
    text.starts_with("//")
}

/// What is typed.
#[derive(Debug, PartialEq, Eq)]
struct Typed {
    server: String,
    port: u16,
    share: String,
    folder: String,
}

impl Typed {
    /// Reads `//SERVER[:PORT]/SHARE[/FOLDER]`, where `[::1]` is an IPv6 address.
    fn read(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("`{text}` names no share: write //SERVER/SHARE, as in //192.0.2.5/data or //filer:4450/data/new")
        };
        let (server, path) = text.strip_prefix("//").and_then(|rest| rest.split_once('/')).ok_or_else(wrong)?;
        let (server, port) = match server.strip_prefix('[') {
            Some(inner) => {
                let (address, rest) = inner.split_once(']').ok_or_else(wrong)?;
                (address, rest.strip_prefix(':').or(rest.is_empty().then_some("")).ok_or_else(wrong)?)
            }
            None => server.split_once(':').unwrap_or((server, "")),
        };
        let port = if port.is_empty() { SMB_PORT } else { port.parse().map_err(|_| wrong())? };
        let (share, folder) = path.split_once('/').unwrap_or((path, ""));
        let folder = folder.trim_end_matches('/');
        if server.is_empty() || share.is_empty() || port == 0 {
            return Err(wrong());
        }
        let owned = str::to_owned;
        Ok(Self { server: owned(server), port, share: owned(share), folder: owned(folder) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_has_a_server_and_may_have_a_port_and_a_folder() {
        let typed = |server: &str, port, share: &str, folder: &str| {
            Ok(Typed { server: server.into(), port, share: share.into(), folder: folder.into() })
        };
        assert_eq!(Typed::read("//filer/data"), typed("filer", 445, "data", ""));
        assert_eq!(Typed::read("//192.0.2.5:4450/data/a b/c/"), typed("192.0.2.5", 4450, "data", "a b/c"));
        assert_eq!(Typed::read("//[fe80::1]:4450/data/x"), typed("fe80::1", 4450, "data", "x"));
        assert_eq!(Typed::read("//[fe80::1]/data"), typed("fe80::1", 445, "data", ""));
        for wrong in
            ["//filer", "//filer/", "///data", "//filer:x/data", "//filer:0/data", "//[::1/data", "//[::1]x/data"]
        {
            assert!(Typed::read(wrong).is_err_and(|why| why.contains("//SERVER/SHARE")), "{wrong}");
        }
    }

    #[test]
    fn a_password_is_the_first_line_of_its_file() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "a secret \nnot this\n").expect("written");
        let user = |file: PathBuf| SmbUser { user: None, password_file: Some(file), smb_min: None, smb_sign: false };
        assert_eq!(user(file.path().to_owned()).password(), Ok(Some(Password(String::from("a secret ")))));
        assert!(user(PathBuf::from("/none")).password().is_err_and(|why| why.contains("/none")));
    }
}
