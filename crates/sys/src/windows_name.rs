//! Names that a folder of Windows can hold, so that every program there can open what has them.

use std::fmt;

/// Characters that no name has, control characters aside (Naming Files, Paths, and Namespaces, learn.microsoft.com).
const RESERVED: &str = "<>:\"/\\|?*";
/// Names of devices, also with an extension.
const DEVICES: &[&str] = &["AUX", "CON", "CONIN$", "CONOUT$", "NUL", "PRN"];
/// Names of devices that a digit follows.
const NUMBERED_DEVICES: &[&str] = &["COM", "LPT"];
/// Digits in them. Windows takes the superscripts of Latin-1 for digits.
const DIGITS: &str = "123456789\u{b9}\u{b2}\u{b3}";
/// Units of UTF-16 in a name, at most.
const LONGEST: usize = 255;

/// Why Windows cannot hold a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameFault {
    /// The name is not UTF-8.
    NotUtf8,
    /// The name is empty, `.` or `..`.
    NoName,
    /// A character that no name has.
    Character(char),
    /// The end is a dot or a space, which programs leave out.
    End,
    /// The name of a device.
    Device,
    /// The name has too many characters.
    TooLong,
}

/// Checks `name`, and returns it as text.
///
/// # Errors
/// Windows cannot hold the name.
pub fn check(name: &[u8]) -> Result<&str, NameFault> {
    let text = component(name)?;
    if let Some(bad) = text.chars().find(|letter| RESERVED.contains(*letter) || *letter < ' ') {
        return Err(NameFault::Character(bad));
    }
    if text.ends_with(['.', ' ']) {
        return Err(NameFault::End);
    }
    if is_device(text) {
        return Err(NameFault::Device);
    }
    if text.encode_utf16().count() > LONGEST {
        return Err(NameFault::TooLong);
    }
    Ok(text)
}

/// Checks that `name` is a component of a path, which leads to an entry of the same folder if to any. Returns it as text.
///
/// # Errors
/// No entry can have the name, or it leads elsewhere.
pub fn component(name: &[u8]) -> Result<&str, NameFault> {
    let text = str::from_utf8(name).map_err(|_| NameFault::NotUtf8)?;
    if matches!(text, "" | "." | "..") {
        return Err(NameFault::NoName);
    }
    // A colon separates the name of a stream.
    match text.chars().find(|letter| matches!(letter, '/' | '\\' | ':' | '\0')) {
        Some(bad) => Err(NameFault::Character(bad)),
        None => Ok(text),
    }
}

/// Returns whether Windows takes a name for a device, as it does `nul.txt` and `COM1 .x`.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end_matches(' ').to_ascii_uppercase();
    let mut digits = NUMBERED_DEVICES.iter().filter_map(|device| stem.strip_prefix(device));
    DEVICES.contains(&stem.as_str()) || digits.any(|digit| digit.chars().count() == 1 && DIGITS.contains(digit))
}

impl fmt::Display for NameFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotUtf8 => out.write_str("Windows cannot hold a name that is not UTF-8; rename it"),
            Self::NoName => out.write_str("it has no name"),
            Self::Character(bad) => write!(out, "Windows cannot hold a name with {bad:?}; rename it"),
            Self::End => out.write_str("Windows cannot hold a name that ends in a dot or a space; rename it"),
            Self::Device => out.write_str("Windows cannot hold a file with the name of a device; rename it"),
            Self::TooLong => write!(out, "Windows cannot hold a name of more than {LONGEST} UTF-16 units; rename it"),
        }
    }
}

impl std::error::Error for NameFault {}

impl From<NameFault> for std::io::Error {
    fn from(fault: NameFault) -> Self {
        Self::new(std::io::ErrorKind::InvalidFilename, fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_windows_holds_pass() {
        for good in [
            "a",
            ".hidden",
            "a b",
            " a",
            "a..b",
            "\u{e4}\u{65e5}",
            "console",
            "con1",
            "com",
            "com10",
            "COM0",
            "lpt12",
            "nul-",
            "a.nul",
            "x\u{7f}",
            "~1",
            "com\u{b5}",
        ] {
            assert_eq!(check(good.as_bytes()), Ok(good));
        }
        assert!(check(&[b'x'; 255]).is_ok());
    }

    #[test]
    fn names_that_windows_does_not_hold_are_refused() {
        for (bad, fault) in [
            ("", NameFault::NoName),
            (".", NameFault::NoName),
            ("..", NameFault::NoName),
            ("a/b", NameFault::Character('/')),
            ("a\\b", NameFault::Character('\\')),
            ("stream:x", NameFault::Character(':')),
            ("what?", NameFault::Character('?')),
            ("a*", NameFault::Character('*')),
            ("<a", NameFault::Character('<')),
            ("a>", NameFault::Character('>')),
            ("a\"", NameFault::Character('"')),
            ("a|b", NameFault::Character('|')),
            ("new\nline", NameFault::Character('\n')),
            ("nil\0", NameFault::Character('\0')),
            ("end.", NameFault::End),
            ("end ", NameFault::End),
            ("...", NameFault::End),
            ("CON", NameFault::Device),
            ("nul", NameFault::Device),
            ("Aux.txt", NameFault::Device),
            ("prn.tar.gz", NameFault::Device),
            ("com1", NameFault::Device),
            ("LPT9.x", NameFault::Device),
            ("com\u{b2}", NameFault::Device),
            ("nul .x", NameFault::Device),
            ("conout$", NameFault::Device),
        ] {
            assert_eq!(check(bad.as_bytes()), Err(fault), "{bad}");
        }
        assert_eq!(check(b"no \xff UTF-8"), Err(NameFault::NotUtf8));
        assert_eq!(check("\u{1f600}".repeat(128).as_bytes()), Err(NameFault::TooLong));
        for fault in [NameFault::End, NameFault::Character('?'), NameFault::TooLong] {
            assert!(fault.to_string().contains("rename it"), "{fault}");
        }
    }

    #[test]
    fn components_stay_in_their_folder() {
        for good in ["a.", "NUL", "a?b"] {
            assert_eq!(component(good.as_bytes()), Ok(good));
        }
        for bad in ["", ".", "..", "a/..", "..\\a", "a:b", "a\0"] {
            assert!(component(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
