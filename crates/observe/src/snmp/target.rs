//! Which device to ask, and as whom.

use std::fmt::{self, Write as _};
use std::str::FromStr;

/// The port of SNMP services.
const PORT: u16 = 161;
/// Community that most devices let read.
const PUBLIC: &str = "public";
/// The least length of a password, RFC 3414 section 11.2.
const SHORTEST_PASSWORD: usize = 8;
/// Stands for a password in what is displayed, as long as one must be.
const HIDDEN: &str = "********";

/// A device that answers SNMP.
///
/// Reads `snmp://[COMMUNITY@]HOST[:PORT]` (version 2c, community `public` if none is given) and
/// `snmp+v3://USER@HOST[:PORT][?auth=PROTOCOL:PASSWORD[&priv=PROTOCOL:PASSWORD]]`. An IPv6 address stands in brackets.
/// A character that has a meaning here is written as `%` and two hexadecimal digits, as `%40` for `@`.
///
/// `Display` and `Debug` hide community and passwords; what is displayed reads as a target, but not as the same one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Name or address of the device.
    pub host: String,
    /// UDP port of the device.
    pub port: u16,
    /// Credentials for reading.
    pub access: Access,
}

/// Credentials for reading a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// SNMP version 2c: whoever knows the community.
    Community(Secret),
    /// SNMP version 3: a user of the device.
    User {
        /// Name of the user.
        name: String,
        /// Signing of messages. `None` for noAuthNoPriv.
        auth: Option<(AuthProtocol, Secret)>,
        /// Encryption of messages. `None` for authNoPriv, and always without `auth`.
        privacy: Option<(PrivacyProtocol, Secret)>,
    },
}

/// Algorithm that signs messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum AuthProtocol {
    Md5,
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

/// Algorithm that encrypts messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum PrivacyProtocol {
    Des,
    Aes128,
    Aes192,
    Aes256,
    /// With the key lengthened as Cisco does (Reeder); `Aes192` and `Aes256` do as net-snmp (Blumenthal).
    Aes192Cisco,
    /// See [`PrivacyProtocol::Aes192Cisco`].
    Aes256Cisco,
}

impl AuthProtocol {
    const ALL: [(&str, Self); 7] = [
        ("md5", Self::Md5),
        ("sha1", Self::Sha1),
        ("sha224", Self::Sha224),
        ("sha256", Self::Sha256),
        ("sha384", Self::Sha384),
        ("sha512", Self::Sha512),
        ("sha", Self::Sha1),
    ];
}

impl PrivacyProtocol {
    const ALL: [(&str, Self); 7] = [
        ("des", Self::Des),
        ("aes128", Self::Aes128),
        ("aes192", Self::Aes192),
        ("aes256", Self::Aes256),
        ("aes192c", Self::Aes192Cisco),
        ("aes256c", Self::Aes256Cisco),
        ("aes", Self::Aes128),
    ];
}

/// Something that must appear in no message, log or record.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The secret itself.
    #[cfg(feature = "snmp")]
    pub(super) fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl From<String> for Secret {
    fn from(secret: String) -> Self {
        Self(secret)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Reason why a text names no device. It quotes no part that may be secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0}; write it as snmp://public@192.0.2.1 or snmp+v3://reader@192.0.2.1?auth=sha256:PASSWORD&priv=aes128:PASSWORD"
)]
pub struct TargetError(String);

impl TargetError {
    fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        if let Some(rest) = text.strip_prefix("snmp+v3://") {
            let (place, options) = rest.split_once('?').map_or((rest, None), |(place, options)| (place, Some(options)));
            let Some((name, place)) = place.rsplit_once('@').filter(|(name, _)| !name.is_empty()) else {
                return Err(TargetError::new("SNMP version 3 needs a user before `@`"));
            };
            let (host, port) = host_and_port(place)?;
            let (auth, privacy) = protocols(options)?;
            Ok(Self { host, port, access: Access::User { name: decoded(name)?, auth, privacy } })
        } else if let Some(place) = text.strip_prefix("snmp://") {
            let (community, place) = match place.rsplit_once('@') {
                Some((community, place)) => (decoded(community)?, place),
                None => (PUBLIC.to_owned(), place),
            };
            if place.contains('?') {
                return Err(TargetError::new("only snmp+v3:// takes options after `?`"));
            }
            let (host, port) = host_and_port(place)?;
            Ok(Self { host, port, access: Access::Community(Secret(community)) })
        } else {
            Err(TargetError::new("a device to read by SNMP begins with snmp:// (version 2c) or snmp+v3://"))
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.access {
            Access::Community(community) if community.0 == PUBLIC => f.write_str("snmp://")?,
            Access::Community(_) => f.write_str("snmp://***@")?,
            Access::User { name, .. } => write!(f, "snmp+v3://{}@", encoded(name))?,
        }
        if self.host.contains(':') { write!(f, "[{}]", self.host) } else { f.write_str(&self.host) }?;
        if self.port != PORT {
            write!(f, ":{}", self.port)?;
        }
        if let Access::User { auth, privacy, .. } = &self.access {
            if let Some((protocol, _)) = auth {
                write!(f, "?auth={}:{HIDDEN}", name_of(&AuthProtocol::ALL, *protocol))?;
            }
            if let Some((protocol, _)) = privacy {
                write!(f, "&priv={}:{HIDDEN}", name_of(&PrivacyProtocol::ALL, *protocol))?;
            }
        }
        Ok(())
    }
}

/// `HOST`, `HOST:PORT`, `[IPV6]`, `[IPV6]:PORT`.
fn host_and_port(text: &str) -> Result<(String, u16), TargetError> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, port) =
                rest.split_once(']').ok_or_else(|| TargetError::new("an IPv6 address stands between `[` and `]`"))?;
            match port.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if port.is_empty() => (host, None),
                None => return Err(TargetError::new("after `]` only `:PORT` may follow")),
            }
        }
        None => match text.split_once(':') {
            Some((_, port)) if port.contains(':') => {
                return Err(TargetError::new("an IPv6 address stands between `[` and `]`"));
            }
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    // Names and addresses, the zone of a link-local one included (RFC 4007).
    if host.is_empty() || !host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-:%".contains(&byte)) {
        return Err(TargetError::new("it names no host"));
    }
    let port = match port {
        Some(port) => match port.parse() {
            Ok(port) if port > 0 => port,
            _ => return Err(TargetError::new("the port is a number from 1 to 65535")),
        },
        None => PORT,
    };
    Ok((host.to_owned(), port))
}

type Protocols = (Option<(AuthProtocol, Secret)>, Option<(PrivacyProtocol, Secret)>);

/// `auth=PROTOCOL:PASSWORD&priv=PROTOCOL:PASSWORD`.
fn protocols(options: Option<&str>) -> Result<Protocols, TargetError> {
    let (mut auth, mut privacy) = (None, None);
    for option in options.into_iter().flat_map(|options| options.split('&')) {
        match option.split_once('=') {
            Some(("auth", value)) => auth = Some(protocol(&AuthProtocol::ALL, "auth", value)?),
            Some(("priv", value)) => privacy = Some(protocol(&PrivacyProtocol::ALL, "priv", value)?),
            _ => {
                return Err(TargetError::new(
                    "the options are auth= and priv=, parted by `&` (a `&` in a password is %26)",
                ));
            }
        }
    }
    if privacy.is_some() && auth.is_none() {
        return Err(TargetError::new("SNMP version 3 encrypts only signed messages: priv= needs auth="));
    }
    Ok((auth, privacy))
}

/// `PROTOCOL:PASSWORD`.
fn protocol<P: Copy>(all: &[(&str, P)], option: &str, value: &str) -> Result<(P, Secret), TargetError> {
    let known = || all.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let (protocol, password) = value
        .split_once(':')
        .ok_or_else(|| TargetError::new(format!("{option}= is PROTOCOL:PASSWORD, with PROTOCOL one of {}", known())))?;
    let protocol = all
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(protocol))
        .ok_or_else(|| TargetError::new(format!("the protocol of {option}= is one of {}", known())))?
        .1;
    let password = decoded(password)?;
    if password.len() < SHORTEST_PASSWORD {
        return Err(TargetError::new(format!(
            "the password of {option}= is shorter than {SHORTEST_PASSWORD} characters, which SNMP version 3 forbids"
        )));
    }
    Ok((protocol, Secret(password)))
}

fn name_of<P: Copy + PartialEq>(all: &[(&'static str, P)], protocol: P) -> &'static str {
    all.iter().find(|(_, one)| *one == protocol).map_or("", |(name, _)| name)
}

/// With `%XX` replaced by the byte it stands for.
fn decoded(text: &str) -> Result<String, TargetError> {
    let bad = || TargetError::new("a `%` is followed by two hexadecimal digits, and a `%` itself is %25");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let mut digit = || {
                rest.next().and_then(|digit| char::from(digit).to_digit(16)).and_then(|digit| u8::try_from(digit).ok())
            };
            let (high, low) = (digit().ok_or_else(bad)?, digit().ok_or_else(bad)?);
            bytes.push(high << 4 | low);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).map_err(|_| bad())
}

/// With what has a meaning in a target written as `%XX`.
fn encoded(text: &str) -> String {
    text.chars().fold(String::new(), |mut out, character| {
        if "%@:/?&#[] ".contains(character) {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{:02X}", u32::from(character));
        } else {
            out.push(character);
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> Target {
        text.parse().expect(text)
    }

    fn community(secret: &str) -> Access {
        Access::Community(Secret(secret.into()))
    }

    #[test]
    fn reads_version_2c() {
        let read = |text| {
            let Target { host, port, access } = target(text);
            (host, port, access)
        };
        assert_eq!(read("snmp://192.0.2.1"), ("192.0.2.1".into(), 161, community("public")));
        assert_eq!(read("snmp://s3cret@dut:1161"), ("dut".into(), 1161, community("s3cret")));
        assert_eq!(read("snmp://a%40b@[2001:2::1]:99"), ("2001:2::1".into(), 99, community("a@b")));
        assert_eq!(read("snmp://a@b@[2001:2::1]"), ("2001:2::1".into(), 161, community("a@b")));
    }

    #[test]
    fn reads_version_3() {
        let full = target("snmp+v3://reader@dut?auth=SHA256:pass:word&priv=aes128:%26ampersand");
        let Access::User { name, auth, privacy } = full.access else { panic!("a user") };
        assert_eq!(name, "reader");
        assert_eq!(auth, Some((AuthProtocol::Sha256, Secret("pass:word".into()))));
        assert_eq!(privacy, Some((PrivacyProtocol::Aes128, Secret("&ampersand".into()))));
        let open = target("snmp+v3://reader@dut");
        assert_eq!(open.access, Access::User { name: "reader".into(), auth: None, privacy: None });
    }

    #[test]
    fn shows_no_secret() {
        let shown = [
            ("snmp://192.0.2.1:161", "snmp://192.0.2.1"),
            ("snmp://hidden-word@[2001:2::1]:99", "snmp://***@[2001:2::1]:99"),
            ("snmp+v3://read%40er@dut", "snmp+v3://read%40er@dut"),
            (
                "snmp+v3://reader@dut?auth=sha:hidden-word&priv=aes256c:hidden-word",
                "snmp+v3://reader@dut?auth=sha1:********&priv=aes256c:********",
            ),
        ];
        for (given, expected) in shown {
            let target = target(given);
            assert_eq!(target.to_string(), expected);
            assert!(!format!("{target:?}").contains("hidden"), "{target:?}");
            assert!(expected.parse::<Target>().is_ok(), "{expected} reads as a target");
        }
    }

    #[test]
    fn says_what_is_wrong_without_telling_secrets() {
        let cases = [
            ("192.0.2.1", "begins with snmp://"),
            ("snmp://hidden@", "names no host"),
            ("snmp://hidden@dut:0", "port"),
            ("snmp://2001:2::1", "between `[` and `]`"),
            ("snmp://hidden@[2001:2::1", "between `[` and `]`"),
            ("snmp://dut?auth=sha:hidden-word", "only snmp+v3://"),
            ("snmp://hid%4@dut", "hexadecimal"),
            ("snmp+v3://dut", "needs a user"),
            ("snmp+v3://reader@dut?auth=sha3:hidden-word", "md5, sha1, sha224"),
            ("snmp+v3://reader@dut?auth=hidden-word", "PROTOCOL:PASSWORD"),
            ("snmp+v3://reader@dut?auth=sha:hidden", "shorter than 8"),
            ("snmp+v3://reader@dut?priv=aes:hidden-word", "needs auth="),
            ("snmp+v3://reader@dut?hidden=1", "auth= and priv="),
        ];
        for (given, expected) in cases {
            let error = given.parse::<Target>().expect_err(given).to_string();
            assert!(error.contains(expected), "{given}: {error}");
            assert!(error.contains("snmp+v3://reader@192.0.2.1"), "{error}");
            assert!(!error.contains("hidden"), "{error}");
        }
    }
}
