//! Trees made from a seed: a list of entries and the files' content, both pure functions of the seed.
//!
//! Nothing is held but sums, so that a tree of a million files costs no memory. Sizes and layout use whole numbers
//! only: the same seed gives the same tree on every machine.

mod content;
mod sizes;

pub(crate) use content::fill;

use crate::CopyError;
use crate::entry::{Entry, Kind};
use linerate_model::MadeTree;
use sizes::Sizes;

/// Number of folders for each one with a symbolic link.
const LINK_EVERY: u64 = 4;
/// Largest depth of the chain that the last folders form.
const CHAIN_MOST: u64 = 30;
/// The first moment that a file of a made tree may be from, and the span: 2005 to 2024.
const FIRST_SECOND: u64 = 1_104_537_600;
const SECONDS: u64 = 600_000_000;

/// Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (2014), figure 16: `mix64variant13`.
fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// The odd constant nearest to 2^64 over the golden ratio, by which that generator steps.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Random properties of an entry; each has a row of its own.
#[derive(Clone, Copy)]
enum Row {
    Size = 1,
    Weight,
    Parent,
    Time,
    Mode,
    Content,
}

/// A made tree, ready to be listed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Made {
    tree: MadeTree,
    sizes: Sizes,
    /// Sum of the weights of all folders, with the root.
    weights: u64,
}

impl Made {
    /// The tree, unless `stopped` meanwhile: sums over a hundred million files take seconds.
    pub(crate) fn new(tree: MadeTree, stopped: impl Fn() -> bool) -> Result<Self, CopyError> {
        /// Entries between two looks at the stop.
        const LOOK: u64 = 1 << 16;
        let goes_on = |entry: &u64| !entry.is_multiple_of(LOOK) || !stopped();
        let draws = (0..tree.files).take_while(goes_on).map(|file| draw(tree.seed, Row::Size, file));
        let sizes = Sizes::new(tree.like, tree.bytes.get(), draws);
        let weights = (0..=tree.folders).take_while(goes_on).map(|folder| weight(tree.seed, folder)).sum();
        if stopped() { Err(CopyError::Stopped) } else { Ok(Self { tree, sizes, weights }) }
    }

    /// Every folder, before what is in it; its files, and its link.
    pub(crate) fn entries(&self) -> Entries {
        Entries { made: *self, folder: 0, file: 0, weight: 0, drawn: 0, stage: Stage::Folder, last: None }
    }

    /// Folders that hang one below the other at the end.
    fn chain(&self) -> u64 {
        (self.tree.folders / 5).min(CHAIN_MOST)
    }

    /// The folder that `folder` is in; 0 is the root.
    fn parent(&self, folder: u64) -> u64 {
        if folder + self.chain() > self.tree.folders && folder > 1 {
            return folder - 1;
        }
        draw(self.tree.seed, Row::Parent, folder) % (folder / 2 + 1)
    }

    /// The path of a folder; empty for the root.
    fn path(&self, folder: u64) -> Vec<u8> {
        let mut way = Vec::new();
        let mut at = folder;
        while at > 0 {
            way.push(at);
            at = self.parent(at);
        }
        way.iter().rev().map(|at| folder_name(*at)).collect::<Vec<_>>().join("/").into_bytes()
    }

    fn modified(&self, row: u64) -> i64 {
        let drawn = draw(self.tree.seed, Row::Time, row);
        let nanos = (FIRST_SECOND + drawn % SECONDS) * 1_000_000_000 + drawn % 1_000_000_000;
        i64::try_from(nanos).unwrap_or(i64::MAX)
    }

    fn within(&self, folder: u64, name: &str) -> Vec<u8> {
        let mut path = self.path(folder);
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name.as_bytes());
        path
    }
}

fn draw(seed: u64, row: Row, index: u64) -> u64 {
    mix(mix(seed.wrapping_add((row as u64).wrapping_mul(GAMMA))).wrapping_add(index.wrapping_mul(GAMMA)))
}

/// Returns the share of files that a folder draws.
fn weight(seed: u64, folder: u64) -> u64 {
    let drawn = draw(seed, Row::Weight, folder) % 8;
    1 + drawn * drawn
}

/// Most names are plain, some hold what programs stumble over.
fn folder_name(folder: u64) -> String {
    match folder % 32 {
        7 => format!("with two spaces {folder}"),
        19 => format!("\u{7d44}\u{7e54}-\u{fc}ber-{folder}"),
        _ => format!("d{folder:04}"),
    }
}

fn file_name(file: u64) -> String {
    const LONGEST: usize = 255;
    match file % 64 {
        5 => format!("a name, with 'quotes' {file}.txt"),
        17 => format!("\u{5199}\u{771f}-\u{e9}t\u{e9}-{file}.dat"),
        29 => format!("-{file}"),
        // Once is enough to find out who cannot.
        41 if file == 41 => format!("{:x<LONGEST$}", "long-"),
        _ => format!("f{file:06}.bin"),
    }
}

/// The entries of a made tree.
#[derive(Debug)]
pub(crate) struct Entries {
    made: Made,
    folder: u64,
    file: u64,
    /// Sum of the weights of earlier folders.
    weight: u64,
    /// Sum of the raw sizes of earlier files.
    drawn: u128,
    stage: Stage,
    /// The name of the folder's last file.
    last: Option<String>,
}

#[derive(Debug)]
enum Stage {
    Folder,
    Files { end: u64 },
    Link,
}

impl Iterator for Entries {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        let Made { tree, sizes, weights } = self.made;
        while self.folder <= tree.folders {
            match self.stage {
                Stage::Folder => {
                    self.weight += weight(tree.seed, self.folder);
                    let end = u128::from(tree.files) * u128::from(self.weight) / u128::from(weights);
                    self.stage = Stage::Files { end: end as u64 };
                    self.last = None;
                    if self.folder > 0 {
                        return Some(Entry {
                            path: self.made.path(self.folder),
                            mode: 0o755,
                            modified: self.made.modified(self.folder),
                            kind: Kind::Folder,
                        });
                    }
                }
                Stage::Files { end } if self.file < end => {
                    let file = self.file;
                    self.file += 1;
                    let (size, drawn) = sizes.next(self.drawn, draw(tree.seed, Row::Size, file));
                    self.drawn = drawn;
                    let name = file_name(file);
                    let path = self.made.within(self.folder, &name);
                    self.last = Some(name);
                    let mode = [0o644, 0o644, 0o644, 0o755, 0o600, 0o444];
                    return Some(Entry {
                        path,
                        mode: mode[(draw(tree.seed, Row::Mode, file) % 6) as usize],
                        modified: self.made.modified(tree.folders + 1 + file),
                        kind: Kind::File { size, content: draw(tree.seed, Row::Content, file) },
                    });
                }
                Stage::Files { .. } => self.stage = Stage::Link,
                Stage::Link => {
                    let folder = self.folder;
                    self.folder += 1;
                    self.stage = Stage::Folder;
                    if let Some(target) = self.last.take().filter(|_| folder % LINK_EVERY == 1) {
                        return Some(Entry {
                            path: self.made.within(folder, &format!("link{folder}")),
                            mode: 0o777,
                            modified: self.made.modified(folder),
                            kind: Kind::Link { target: target.into_bytes() },
                        });
                    }
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{CopyTree, TreeKind};
    use linerate_units::ByteCount;
    use std::cell::Cell;
    use std::collections::HashSet;

    fn made(text: &str) -> Made {
        match text.parse() {
            Ok(CopyTree::Made(tree)) => Made::new(tree, || false).expect("nobody stops it"),
            other => panic!("{text}: {other:?}"),
        }
    }

    fn sizes(made: Made) -> Vec<u64> {
        let size = |entry: Entry| match entry.kind {
            Kind::File { size, .. } => Some(size),
            _ => None,
        };
        made.entries().filter_map(size).collect()
    }

    /// The attack: a request for a tree of very many files keeps a core busy, also after it was given up.
    #[test]
    fn summing_up_a_tree_polls_its_stop() {
        let looks = Cell::new(0);
        let stopped = || looks.replace(looks.get() + 1) > 3;
        let tree =
            MadeTree { like: TreeKind::Mail, files: u64::MAX, folders: u64::MAX, bytes: ByteCount::new(1), seed: 1 };
        assert!(matches!(Made::new(tree, stopped), Err(CopyError::Stopped)));
        assert!(looks.get() < 10, "{} looks", looks.get());
    }

    #[test]
    fn every_kind_has_what_it_says() {
        for kind in TreeKind::ALL {
            let made = made(&format!("like:{}", kind.name()));
            let sizes = sizes(made);
            assert_eq!(sizes.len() as u64, made.tree.files, "{kind:?}");
            assert_eq!(sizes.iter().sum::<u64>(), made.tree.bytes.get(), "{kind:?}");
            assert_eq!(made.entries().filter(|entry| entry.kind == Kind::Folder).count() as u64, made.tree.folders);
        }
    }

    #[test]
    fn a_system_has_many_small_files_and_few_large_ones() {
        let mut sizes = sizes(made("like:system"));
        sizes.sort_unstable();
        let half = sizes[sizes.len() / 2];
        let largest = sizes[sizes.len() - 1];
        assert!((500..10_000).contains(&half), "half are up to {half}");
        assert!(largest > 5_000_000, "the largest is {largest}");
        assert!(sizes.iter().filter(|size| **size == 0).count() > 20, "some are empty");
        let top: u64 = sizes.iter().rev().take(sizes.len() / 20).sum();
        assert!(top * 2 > sizes.iter().sum(), "a twentieth of the files holds most of the bytes: {top}");
    }

    #[test]
    fn the_same_seed_gives_the_same_tree_and_another_another() {
        let list = |text: &str| made(text).entries().collect::<Vec<_>>();
        assert_eq!(list("like:mail,seed=7"), list("like:mail,seed=7"));
        assert_ne!(list("like:mail,seed=7"), list("like:mail,seed=8"));
    }

    #[test]
    fn names_differ_and_every_parent_comes_first() {
        let mut seen = HashSet::from([Vec::new()]);
        let mut links = 0;
        let mut longest = 0;
        let mut deepest = 0;
        for entry in made("like:system").entries() {
            let path = entry.path.clone();
            let cut = path.iter().rposition(|byte| *byte == b'/');
            let (parent, name) = cut.map_or((&[][..], &path[..]), |cut| (&path[..cut], &path[cut + 1..]));
            assert!(seen.contains(parent), "{} comes before its folder", String::from_utf8_lossy(&path));
            assert!(name.len() <= 255 && !name.is_empty());
            longest = longest.max(name.len());
            deepest = deepest.max(path.iter().filter(|byte| **byte == b'/').count());
            links += usize::from(matches!(entry.kind, Kind::Link { .. }));
            assert!(seen.insert(path), "twice: {}", String::from_utf8_lossy(&entry.path));
        }
        assert!(longest == 255 && deepest >= 30 && links > 10, "{longest} {deepest} {links}");
    }

    #[test]
    fn small_and_empty_trees_are_trees() {
        for (text, count) in
            [("files=0,folders=0,bytes=0", 0), ("files=1,folders=0,bytes=5", 1), ("files=0,folders=3", 3)]
        {
            assert_eq!(made(text).entries().count(), count, "{text}");
        }
        assert_eq!(sizes(made("files=1,folders=0,bytes=5")), [5]);
        assert_eq!(sizes(made("files=3,folders=1,bytes=0")), [0, 0, 0]);
    }
}
