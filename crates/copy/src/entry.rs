//! A file, folder or link of a tree.

/// Entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Below the tree's root, with `/` between the names.
    pub(crate) path: Vec<u8>,
    /// Permission bits.
    pub(crate) mode: u32,
    /// When it was last changed, nanoseconds since 1970.
    pub(crate) modified: i64,
    /// Kind of the entry.
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Folder,
    File {
        size: u64,
        /// From which the content of a made file follows.
        content: u64,
    },
    Link {
        target: Vec<u8>,
    },
}

/// The longest path that is copied. Linux takes 4,096 bytes in one call; folder by folder there is no limit.
pub(crate) const LONGEST_PATH: usize = 16 << 10;

/// Whether `path` leads to something below the root: names, and nothing that leads up or nowhere.
pub(crate) fn is_inside(path: &[u8]) -> bool {
    path.len() <= LONGEST_PATH
        && path.split(|byte| *byte == b'/').all(|name| !matches!(name, b"" | b"." | b"..") && !name.contains(&0))
}

/// A path for people.
pub(crate) fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside() {
        for good in ["a", "a/b c/\u{e4}", "...", "a/..b"] {
            assert!(is_inside(good.as_bytes()), "{good}");
        }
        for bad in ["", "/a", "a/", "a//b", "..", "a/../b", "./a", "a\0b"] {
            assert!(!is_inside(bad.as_bytes()), "{bad}");
        }
        assert!(!is_inside(&[b'a'; LONGEST_PATH + 1]));
    }
}
