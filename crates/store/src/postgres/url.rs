//! URLs of PostgreSQL databases.

use percent_encoding::percent_decode_str;
use std::path::PathBuf;
use std::{fmt, str::FromStr};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

/// A URL of a PostgreSQL store that is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{shown}` is not the URL of a PostgreSQL store: {problem}; expected postgres://USER@HOST:PORT/DATABASE")]
pub struct BadStoreUrl {
    /// The URL without its password.
    shown: String,
    /// Reason why it is not valid.
    problem: String,
}

/// URL of a PostgreSQL database: `postgres://USER@HOST:PORT/DATABASE?OPTIONS`, with the options of libpq.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl {
    pub(super) config: Box<Config>,
    /// File with passwords, in the format of `~/.pgpass`.
    pub(super) password_file: Option<PathBuf>,
    /// File with the certificates of authorities.
    pub(super) root_certificates: Option<PathBuf>,
    /// The URL without its password.
    shown: String,
}

impl PostgresUrl {
    /// Returns whether a text is meant as such a URL.
    pub(crate) fn is_meant(text: &str) -> bool {
        text.starts_with("postgres://") || text.starts_with("postgresql://")
    }

    /// Returns whether the connection must be encrypted.
    pub(super) fn is_encrypted(&self) -> bool {
        self.config.get_ssl_mode() == SslMode::Require
    }
}

impl FromStr for PostgresUrl {
    type Err = BadStoreUrl;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let shown = without_password(text);
        let bad = |problem: &str| BadStoreUrl { shown: shown.clone(), problem: problem.to_owned() };
        let (address, options) = text.split_once('?').unwrap_or((text, ""));
        let mut password_file = None;
        let mut root_certificates = None;
        let mut kept = Vec::new();
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').ok_or_else(|| bad("an option has no value"))?;
            let decoded = || percent_decode_str(value).decode_utf8().map_err(|_| bad("an option is not UTF-8"));
            match (name, value) {
                ("passfile", _) => password_file = Some(PathBuf::from(&*decoded()?)),
                ("sslrootcert", _) => root_certificates = Some(PathBuf::from(&*decoded()?)),
                // The certificate is always verified.
                ("sslmode", "verify-ca" | "verify-full") => kept.push("sslmode=require".to_owned()),
                ("sslmode", "allow") => kept.push("sslmode=prefer".to_owned()),
                _ => kept.push(option.to_owned()),
            }
        }
        let config: Config =
            format!("{address}?{}", kept.join("&")).parse().map_err(|error: tokio_postgres::Error| {
                let source = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
                bad(&source)
            })?;
        if config.get_hosts().is_empty() {
            return Err(bad("it names no host"));
        }
        if config.get_dbname().is_none() {
            return Err(bad("it names no database"));
        }
        Ok(Self { config: Box::new(config), password_file, root_certificates, shown })
    }
}

/// Shows the URL without its password.
impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.shown)
    }
}

/// Shows the URL without its password.
impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresUrl").field(&self.shown).finish()
    }
}

/// Returns a URL without its password, whether before the host or among the options.
fn without_password(text: &str) -> String {
    let (address, options) = text.split_once('?').map_or((text, None), |(address, options)| (address, Some(options)));
    let mut shown = match address.split_once("://") {
        // A password may contain `@` if it is not encoded; the last one ends it.
        Some((scheme, rest)) => match rest.rsplit_once('@') {
            Some((login, host)) => format!("{scheme}://{}@{host}", login.split(':').next().unwrap_or_default()),
            None => address.to_owned(),
        },
        None => address.to_owned(),
    };
    let options = options.unwrap_or_default().split('&').filter(|option| {
        let name = option.split('=').next().unwrap_or_default();
        !name.is_empty() && !percent_decode_str(name).decode_utf8_lossy().eq_ignore_ascii_case("password")
    });
    let options = options.collect::<Vec<_>>().join("&");
    if !options.is_empty() {
        shown = format!("{shown}?{options}");
    }
    shown
}

/// Returns the name of a host as password files have it.
pub(super) fn host_name(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        // A socket of this machine, which not every system has.
        #[allow(unreachable_patterns)]
        _ => "localhost".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_never_shown() {
        for (text, shown) in [
            ("postgres://ann:s3cret@db.example:5433/fleet", "postgres://ann@db.example:5433/fleet"),
            ("postgresql://ann:p@ss@db/fleet?sslmode=require", "postgresql://ann@db/fleet?sslmode=require"),
            ("postgres://ann@db/fleet?password=s3cret&sslmode=require", "postgres://ann@db/fleet?sslmode=require"),
            ("postgres://db/fleet", "postgres://db/fleet"),
        ] {
            let url: PostgresUrl = text.parse().expect(text);
            assert_eq!(url.to_string(), shown);
            assert!(!format!("{url:?}").contains("s3cret"), "{url:?}");
        }
        for bad in ["postgres://ann:s3cret@/fleet?nonsense=1", "postgres://ann:s3cret@db?sslmode=maybe"] {
            let error = bad.parse::<PostgresUrl>().expect_err(bad).to_string();
            assert!(!error.contains("s3cret") && error.contains("postgres://USER@HOST"), "{error}");
        }
    }

    #[test]
    fn options_of_libpq_are_understood() {
        let url: PostgresUrl = "postgres://ann@db/fleet?sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem&passfile=/x/y"
            .parse()
            .expect("a URL");
        assert!(url.is_encrypted());
        assert_eq!(url.root_certificates, Some("/etc/ca.pem".into()));
        assert_eq!(url.password_file, Some("/x/y".into()));
    }

    #[test]
    fn host_and_database_are_needed() {
        for (text, problem) in [("postgres:///fleet", "no host"), ("postgres://ann@db", "no database")] {
            let error = text.parse::<PostgresUrl>().expect_err(text).to_string();
            assert!(error.contains(problem), "{error}");
        }
    }
}
