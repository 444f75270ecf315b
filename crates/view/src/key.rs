//! The word that admits to the pages.

use std::fmt::{self, Write as _};
use subtle::ConstantTimeEq as _;

/// 128 random bits as 32 hexadecimal digits, the first part of every page's path.
///
/// In the path and not in a cookie, because cookies know no ports: a page of another user's server on the same address
/// would be sent ours. Pages send no referrer, so the path stays between browser and server.
#[derive(Clone)]
pub struct Key(String);

impl Key {
    /// A new one.
    pub fn generate() -> Self {
        let mut digits = String::with_capacity(32);
        for byte in rand::random::<[u8; 16]>() {
            write!(digits, "{byte:02x}").expect("a string can be written to");
        }
        Self(digits)
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// `path` begins with the key. Takes the same time wherever they differ.
    pub(crate) fn opens(&self, path: &str) -> bool {
        let first = path.strip_prefix('/').and_then(|rest| rest.split('/').next()).unwrap_or_default();
        self.equals(first)
    }

    /// Returns whether `text` is the key. Takes the same time wherever they differ.
    pub(crate) fn equals(&self, text: &str) -> bool {
        self.0.as_bytes().ct_eq(text.as_bytes()).into()
    }
}

/// Never shows the key.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(...)")
    }
}

#[cfg(test)]
mod tests {
    use super::Key;

    #[test]
    fn only_the_whole_key_as_first_part_opens() {
        let key = Key::generate();
        let digits = key.as_str();
        assert!(key.opens(&format!("/{digits}/")) && key.opens(&format!("/{digits}/record")));
        for path in [
            String::new(),
            "/".into(),
            "//".into(),
            format!("/{}/", &digits[..31]),
            format!("/{digits}0/"),
            format!("//{digits}/"),
            digits.to_owned(),
            format!("/x/{digits}/"),
        ] {
            assert!(!key.opens(&path), "{path}");
        }
        assert_ne!(digits, Key::generate().as_str());
        assert_eq!(format!("{key:?}"), "Key(...)");
    }
}
