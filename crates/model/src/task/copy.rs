//! A folder tree that is copied.

use crate::checked::{OutOfRange, check_when_read, within};
use crate::{FileServer, HostName, IpVersion, LinkId};
use linerate_units::ByteCount;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::slice;
use std::str::FromStr;

/// A copy to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct CopyTask {
    /// What is copied.
    pub tree: CopyTree,
    /// The tree of each destination, in their order, where each has its own; `tree` is the first of them then. From a file
    /// server they are folders below the one of the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<CopyTree>,
    /// How its bytes get from source to destination.
    pub way: CopyWay,
    /// Hosts that have the tree; the name of the file server where one has it.
    pub sources: Vec<HostName>,
    /// Hosts it is copied to, or the name of the file server; none where the way needs one host only.
    pub destinations: Vec<HostName>,
    /// Whether the source reads files or makes their content up.
    pub from: CopyFrom,
    /// Where the destination puts it.
    pub into: CopyInto,
    /// How it is done.
    pub options: CopyOptions,
    /// IP version of the data connections.
    pub ip: IpVersion,
}

/// What both ends are to know of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct CopyOptions {
    /// Pipelines side by side from each source to each destination, each with a connection of its own.
    pub lanes: u16,
    /// How the bytes are verified.
    pub verify: CopyVerify,
    /// When the destination makes them durable.
    pub sync: CopySync,
    /// What the hosts' caches hold when it starts.
    pub cache: CopyCache,
    /// What becomes of the rest when a file cannot be copied.
    pub on_error: CopyOnError,
    /// What becomes of files that are there already.
    pub existing: CopyExisting,
    /// What becomes of symbolic links.
    #[serde(default)]
    pub links: CopyLinks,
}

/// A tree: a real one, or one made from a seed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CopyTree {
    /// A folder of the source.
    Folder(String),
    /// Made from a seed: the same seed gives the same tree everywhere.
    Made(MadeTree),
}

/// A tree made from a seed; its content cannot be compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct MadeTree {
    /// How sizes and names are drawn.
    pub like: TreeKind,
    /// Files in it; links and folders not counted.
    pub files: u64,
    /// Folders in it, its root not counted.
    pub folders: u64,
    /// Bytes of all files together.
    pub bytes: ByteCount,
    /// Where chance begins.
    pub seed: u64,
}

/// What a made tree is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TreeKind {
    /// Programs and their data: many small files, few large ones.
    System,
    /// Pictures of some megabytes.
    Photos,
    /// Messages of some kilobytes.
    Mail,
}

/// The ways of a copy, in the order in which help lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CopyWay {
    /// From agent to agent over TCP, many files in flight.
    Linerate,
    /// Within one host, into any mounted path.
    Path,
    /// To or from an NFS version 3 server, by a client of linerate's own.
    Nfs,
    /// To or from an SMB server (version 2 or 3), by a client in pure Rust.
    Smb,
}

/// Where the content comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CopyFrom {
    /// Files on the source's storage. A made tree is written there first.
    Files,
    /// Made up in memory.
    Memory,
    /// A folder of a file server. The tree bears its name.
    Server(FileServer),
}

/// Where a destination puts what it gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CopyInto {
    /// A folder of the destination.
    Folder(String),
    /// A new folder below the first one that the agent allows, removed at the end.
    Scratch,
    /// Nowhere: the bytes are verified and dropped.
    Discard,
    /// A folder of a file server.
    Server(FileServer),
}

/// How the bytes are verified: by BLAKE3 over each file's whole content, or byte by byte where what was read is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CopyVerify {
    /// Not at all.
    None,
    /// As they arrive, before they are written.
    Received,
    /// Read back through the file system after they were written.
    ReadBack,
}

/// When data is made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CopySync {
    /// All of it before the copy counts as done.
    End,
    /// Each file before it gets its name.
    Each,
    /// Left to kernel writeback.
    None,
}

/// What caches hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CopyCache {
    /// What they happen to hold.
    AsIs,
    /// Nothing of the tree.
    Cold,
    /// The whole tree, as far as it fits: it was read once before.
    Warm,
}

/// What becomes of symbolic links.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CopyLinks {
    /// They are copied as links; one that cannot be is a fault.
    #[default]
    Copy,
    /// They are left out and counted.
    Skip,
}

/// What becomes of the rest when a file cannot be copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CopyOnError {
    /// It goes on.
    Continue,
    /// It stops.
    Stop,
}

/// What becomes of files that are there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CopyExisting {
    /// A folder that holds anything is refused.
    Refuse,
    /// Files of the same names are replaced, others stay.
    Replace,
    /// Files of the same name, size and time are left as they are: an interrupted copy goes on.
    Resume,
}

/// A text that names no tree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}; write a folder, or like:system, like:photos, like:mail, or files=2000,folders=50,bytes=200M")]
pub struct BadTree(String);

impl TreeKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::System, Self::Photos, Self::Mail];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Photos => "photos",
            Self::Mail => "mail",
        }
    }

    /// The tree that `like:NAME` stands for.
    fn tree(self) -> MadeTree {
        let (folders, files, bytes) = match self {
            Self::System => (157, 6_578, 680_000_000),
            Self::Photos => (24, 400, 1_600_000_000),
            Self::Mail => (40, 20_000, 300_000_000),
        };
        MadeTree { like: self, files, folders, bytes: ByteCount::new(bytes), seed: 1 }
    }
}

impl Default for CopyTree {
    /// `like:system`.
    fn default() -> Self {
        Self::Made(TreeKind::System.tree())
    }
}

/// Beyond these nothing is made.
const MOST_ENTRIES: u64 = 100_000_000;
/// An exbibyte: sums of sizes stay within 64 bits.
const MOST_BYTES: u64 = 1 << 60;

impl MadeTree {
    /// Checks that it can be made.
    ///
    /// # Errors
    /// It has too many entries or bytes, or bytes and no file.
    pub fn check(&self) -> Result<(), OutOfRange> {
        if self.files.max(self.folders) > MOST_ENTRIES {
            return Err(OutOfRange(format!("at most {MOST_ENTRIES} files and folders are made")));
        }
        if self.bytes.get() > MOST_BYTES {
            return Err(OutOfRange(format!("at most {MOST_BYTES} bytes are made")));
        }
        if self.files == 0 && self.bytes.get() > 0 {
            return Err(OutOfRange(String::from("bytes need files to be in")));
        }
        Ok(())
    }
}

impl CopyOptions {
    /// Copies as they are without further options: four lanes, made durable at the end, nothing verified, nothing replaced.
    pub const PLAIN: Self = Self {
        lanes: 4,
        verify: CopyVerify::None,
        sync: CopySync::End,
        cache: CopyCache::AsIs,
        on_error: CopyOnError::Stop,
        existing: CopyExisting::Refuse,
        links: CopyLinks::Copy,
    };

    /// Most lanes from one host to another.
    pub const MOST_LANES: u16 = 64;

    /// Checks the number of lanes.
    ///
    /// # Errors
    /// There are none, or too many.
    pub fn check(&self) -> Result<(), OutOfRange> {
        within("lanes", self.lanes, 1..=Self::MOST_LANES)
    }
}

impl CopyTask {
    /// Most sources, and most destinations.
    const MOST_HOSTS: usize = 1_024;

    /// All trees: one for each destination, or one for all.
    pub fn trees(&self) -> &[CopyTree] {
        if self.each.is_empty() { slice::from_ref(&self.tree) } else { &self.each }
    }

    /// The tree that goes to a destination, by its index.
    pub fn tree_to(&self, destination: usize) -> &CopyTree {
        self.each.get(destination).unwrap_or(&self.tree)
    }

    /// The link of a source and a destination, by their indices.
    pub fn link(&self, source: usize, destination: usize) -> LinkId {
        LinkId((destination * self.sources.len() + source) as u16)
    }

    /// The index of the destination at the end of a link.
    pub fn destination_of(&self, link: LinkId) -> usize {
        usize::from(link.0) / self.sources.len().max(1)
    }

    fn check(&self) -> Result<(), OutOfRange> {
        within("sources", self.sources.len(), 0..=Self::MOST_HOSTS)?;
        within("destinations", self.destinations.len(), 0..=Self::MOST_HOSTS)?;
        if self.each.is_empty() || self.each.len() == self.destinations.len() {
            return Ok(());
        }
        let (trees, hosts) = (self.each.len(), self.destinations.len());
        Err(OutOfRange(format!(
            "{trees} trees for {hosts} destinations: each destination has one of its own, or all the same"
        )))
    }
}

check_when_read!(MadeTree, CopyOptions, CopyTask);

impl FromStr for CopyTree {
    type Err = BadTree;

    /// Words apart by commas, as in `like:mail,seed=7` or `files=10,folders=2,bytes=1M`; anything else is a folder.
    fn from_str(text: &str) -> Result<Self, BadTree> {
        const KEYS: [&str; 4] = ["files", "folders", "bytes", "seed"];
        let is_word =
            |word: &str| word.starts_with("like:") || word.split_once('=').is_some_and(|(key, _)| KEYS.contains(&key));
        if text.is_empty() {
            return Err(BadTree(String::from("the tree's name is empty")));
        }
        if !text.split(',').next().is_some_and(is_word) {
            return Ok(Self::Folder(text.to_owned()));
        }
        let mut tree = MadeTree { files: 0, folders: 0, bytes: ByteCount::default(), ..TreeKind::System.tree() };
        for word in text.split(',') {
            let bad = |why: &str| BadTree(format!("`{word}`: {why}"));
            if let Some(name) = word.strip_prefix("like:") {
                let kind = TreeKind::ALL.into_iter().find(|kind| kind.name() == name);
                tree = MadeTree { seed: tree.seed, ..kind.ok_or_else(|| bad("no such kind of tree"))?.tree() };
                continue;
            }
            let (key, value) = word.split_once('=').ok_or_else(|| bad("not KEY=VALUE"))?;
            let number = || value.parse::<u64>().map_err(|_| bad("not a whole number"));
            match key {
                "files" => tree.files = number()?,
                "folders" => tree.folders = number()?,
                "bytes" => tree.bytes = value.parse().map_err(|error| bad(&format!("{error}")))?,
                "seed" => tree.seed = number()?,
                _ => return Err(bad("no such word")),
            }
        }
        match tree.check() {
            Err(why) => Err(BadTree(format!("`{text}`: {why}"))),
            Ok(()) => Ok(Self::Made(tree)),
        }
    }
}

impl fmt::Display for CopyTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => f.write_str(path),
            Self::Made(tree) => {
                let usual = tree.like.tree();
                if (MadeTree { seed: usual.seed, ..*tree }) == usual {
                    write!(f, "like:{}", tree.like.name())?;
                } else {
                    let MadeTree { files, folders, bytes, .. } = tree;
                    write!(f, "like:{},files={files},folders={folders},bytes={}", tree.like.name(), bytes.get())?;
                }
                if tree.seed == usual.seed { Ok(()) } else { write!(f, ",seed={}", tree.seed) }
            }
        }
    }
}

impl CopyWay {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Linerate, Self::Path, Self::Nfs, Self::Smb];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Linerate => "linerate",
            Self::Path => "path",
            Self::Nfs => "nfs",
            Self::Smb => "smb",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_read_and_written() {
        for (text, shown) in [
            ("like:system", "like:system"),
            ("like:mail,seed=7", "like:mail,seed=7"),
            ("files=2000,folders=50,bytes=200M", "like:system,files=2000,folders=50,bytes=200000000"),
            ("like:photos,files=3", "like:photos,files=3,folders=24,bytes=1600000000"),
            ("/srv/data", "/srv/data"),
            ("a=b,c", "a=b,c"),
        ] {
            let tree: CopyTree = text.parse().expect(text);
            assert_eq!(tree.to_string(), shown);
            assert_eq!(tree.to_string().parse(), Ok(tree), "{text}");
        }
        let CopyTree::Made(system) = "like:system".parse().expect("a tree") else { panic!("made") };
        assert_eq!((system.folders, system.files, system.bytes.get()), (157, 6_578, 680_000_000));
    }

    #[test]
    fn what_names_no_tree_is_refused_with_what_does() {
        for text in ["", "like:zoo", "files=many", "files=3,colour=red", "bytes=1M", "files=999999999999,bytes=1"] {
            let error = text.parse::<CopyTree>().expect_err(text).to_string();
            assert!(error.contains("like:system"), "{error}");
        }
    }
}
