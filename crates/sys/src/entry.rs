//! Attributes of an entry in a folder, whatever the file system.

/// Attributes of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    /// Permission bits. A file system without them has the usual ones: 755 for folders, 644 for files.
    pub mode: u32,
    /// Last change of the content, in nanoseconds since 1970.
    pub modified: i64,
    /// Last change of any attribute, for noticing changes.
    pub changed: i64,
    /// Kind of the entry.
    pub what: What,
}

/// Kinds of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A folder.
    Folder,
    /// A file.
    File {
        /// Length in bytes.
        size: u64,
    },
    /// A symbolic link, or what leads elsewhere like one.
    Link,
    /// A device, a pipe, a socket.
    Other,
}
