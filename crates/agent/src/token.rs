//! The secret that admits to an agent.

use crate::{StartError, private_file};
use std::fmt::{self, Write as _};
use std::path::Path;
use std::str::FromStr;
use subtle::ConstantTimeEq as _;

/// 128 random bits as 32 hexadecimal digits.
#[derive(Clone)]
pub struct Token(String);

/// A text that is no token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a token is 32 hexadecimal digits")]
pub struct BadToken;

impl Token {
    /// A new one.
    pub fn generate() -> Self {
        let mut text = String::with_capacity(32);
        for byte in rand::random::<[u8; 16]>() {
            write!(text, "{byte:02x}").expect("a string can be written to");
        }
        Self(text)
    }

    /// The one kept in `directory`, made on first use: a standing agent keeps its URL.
    pub fn load_or_create(directory: &Path) -> Result<Self, StartError> {
        let path = directory.join("agent.token");
        let text = private_file::read_or_create(&path, || Ok(format!("{}\n", Self::generate().0)))?;
        text.parse().map_err(|error: BadToken| StartError::Corrupt {
            path,
            expected: "a token",
            problem: error.to_string(),
        })
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// `text` is this token. Takes the same time wherever they differ.
    pub fn is(&self, text: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(text).into()
    }
}

/// Never shows the token.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(...)")
    }
}

impl FromStr for Token {
    type Err = BadToken;

    fn from_str(text: &str) -> Result<Self, BadToken> {
        let text = text.trim();
        if text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            Ok(Self(text.to_owned()))
        } else {
            Err(BadToken)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_and_match_themselves_only() {
        let (one, two) = (Token::generate(), Token::generate());
        assert!(one.is(one.as_str().as_bytes()));
        assert!(!one.is(two.as_str().as_bytes()) && !one.is(b"") && !one.is(&one.as_str().as_bytes()[..31]));
        assert_eq!(format!("{one:?}"), "Token(...)");
    }

    #[test]
    fn a_kept_token_stays_and_a_broken_file_is_named() {
        let directory = tempfile::tempdir().expect("a directory");
        let first = Token::load_or_create(directory.path()).expect("created");
        assert!(first.is(Token::load_or_create(directory.path()).expect("read").as_str().as_bytes()));
        std::fs::write(directory.path().join("agent.token"), "short").expect("write");
        let error = Token::load_or_create(directory.path()).expect_err("broken").to_string();
        assert!(
            error.contains("agent.token") && error.contains("32 hexadecimal") && error.contains("delete"),
            "{error}"
        );
    }
}
