//! Names that a share can hold.
//!
//! MS-FSCC 2.1.5: a name has at most 255 units of UTF-16, no control character and none of `" \ / : | < > * ?`. Servers
//! differ in how they treat names that end in a dot or a space, so these are refused too.

use std::io;

/// Characters that no name has.
const RESERVED: &str = "\"\\/:|<>*?";
/// Units of UTF-16 in a name, at most.
const LONGEST: usize = 255;

/// Refuses a path that no share can hold.
///
/// # Errors
/// Names the refused name and the remedy.
pub fn check(path: &[u8]) -> io::Result<()> {
    wire(path).map(drop)
}

/// The path as the server has it, or why there is none.
pub(crate) fn wire(path: &[u8]) -> io::Result<String> {
    let Ok(text) = str::from_utf8(path) else {
        return Err(refused("SMB cannot hold a name that is not UTF-8; rename it"));
    };
    if !text.is_empty() {
        text.split('/').try_for_each(check_name)?;
    }
    Ok(text.replace('/', "\\"))
}

fn check_name(name: &str) -> io::Result<()> {
    if let Some(bad) = name.chars().find(|letter| RESERVED.contains(*letter) || *letter < ' ') {
        return Err(refused(&format!("SMB cannot hold a name with {bad:?}; rename it")));
    }
    if name.is_empty() || name.ends_with(['.', ' ']) {
        return Err(refused("SMB cannot hold a name that ends in a dot or a space; rename it"));
    }
    if name.encode_utf16().count() > LONGEST {
        return Err(refused("SMB cannot hold a name of more than 255 UTF-16 units; rename it"));
    }
    Ok(())
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidFilename, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_share_holds_passes_and_nothing_else() {
        assert_eq!(wire(b"").expect("the folder itself"), "");
        assert_eq!(wire("a/b c/\u{e4}.x".as_bytes()).expect("a path"), "a\\b c\\\u{e4}.x");
        assert!(wire(&[b'x'; 255]).is_ok());
        for bad in ["a:b", "a\\b", "d/x?", "end.", "end ", "a//b", "/a", "..", "new\nline", "d./x", &"x".repeat(256)] {
            let error = wire(bad.as_bytes()).expect_err(bad);
            assert!(error.to_string().contains("rename it"), "{bad}: {error}");
        }
        assert!(wire(b"\xff").is_err());
    }
}
