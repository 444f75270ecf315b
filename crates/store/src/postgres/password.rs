//! Passwords from the environment and from password files.
//!
//! A password in the URL counts first, then `PGPASSWORD`, then the password file: `passfile` of the URL, `PGPASSFILE`, or
//! `~/.pgpass`.

use super::url::{PostgresUrl, host_name};
use std::env;
use std::path::PathBuf;

/// Returns the password for `url`, if there is one outside the URL.
pub(super) fn find(url: &PostgresUrl) -> Option<Vec<u8>> {
    if url.config.get_password().is_some() {
        return None;
    }
    if let Some(password) = env::var_os("PGPASSWORD").filter(|password| !password.is_empty()) {
        return Some(password.into_encoded_bytes());
    }
    let file = url.password_file.clone().or_else(default_file)?;
    let text = std::fs::read_to_string(file).ok()?;
    let config = &url.config;
    let host = config.get_hosts().first().map(host_name)?;
    let port = config.get_ports().first().copied().unwrap_or(5432).to_string();
    let database = config.get_dbname().unwrap_or_default();
    let user = config.get_user().unwrap_or_default();
    in_file(&text, [&host, &port, database, user]).map(String::into_bytes)
}

fn default_file() -> Option<PathBuf> {
    match env::var_os("PGPASSFILE") {
        Some(file) => Some(file.into()),
        None => etcetera::home_dir().ok().map(|home| home.join(".pgpass")),
    }
}

/// Returns the password of the first line that fits: `host:port:database:user:password`, with `*` for any value and `\` before
/// a colon or a backslash.
fn in_file(text: &str, wanted: [&str; 4]) -> Option<String> {
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let (password, keys) = fields.split_last()?;
        let fits = keys.len() == wanted.len() && keys.iter().zip(wanted).all(|(key, value)| key == "*" || key == value);
        fits.then(|| password.clone())
    })
}

fn fields(line: &str) -> Vec<String> {
    let mut fields = Vec::new();
    let mut field = String::new();
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => field.extend(characters.next()),
            ':' if fields.len() < 4 => fields.push(std::mem::take(&mut field)),
            other => field.push(other),
        }
    }
    fields.push(field);
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_line_that_fits_has_the_password() {
        let file = "# comment\ndb:5432:other:ann:wrong\ndb:*:fleet:ann:p\\:q:r\n*:*:*:*:any\n";
        assert_eq!(in_file(file, ["db", "5433", "fleet", "ann"]).as_deref(), Some("p:q:r"));
        assert_eq!(in_file(file, ["else", "5432", "fleet", "bob"]).as_deref(), Some("any"));
        assert_eq!(in_file("db:5432:fleet:ann:x", ["db", "5432", "fleet", "bob"]), None);
        assert_eq!(in_file("damaged", ["db", "5432", "fleet", "bob"]), None);
    }
}
