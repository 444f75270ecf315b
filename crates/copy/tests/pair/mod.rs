//! A source and a destination in this process, and trees that are compared file by file.

use linerate_copy::{AllowedFolders, Control, CopyError, Counts, prepare};
use linerate_model::{
    CopyCache, CopyExisting, CopyFrom, CopyHalf, CopyInto, CopyLinks, CopyOnError, CopyOptions, CopyOrigin, CopyRole,
    CopySync, CopyTree, CopyVerify, TrialId, TrialKey,
};
use linerate_sys::clock;
use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

pub(crate) const OPTIONS: CopyOptions = CopyOptions {
    lanes: 2,
    verify: CopyVerify::Received,
    sync: CopySync::None,
    cache: CopyCache::AsIs,
    on_error: CopyOnError::Continue,
    existing: CopyExisting::Refuse,
    links: CopyLinks::Copy,
};

/// What both ends counted.
pub(crate) struct Copied {
    pub(crate) source: Counts,
    pub(crate) destination: Counts,
}

/// A copy to make, and the words to stop its ends.
pub(crate) struct Pair {
    pub(crate) options: CopyOptions,
    pub(crate) source: Arc<Control>,
    pub(crate) destination: Arc<Control>,
}

pub(crate) fn everywhere() -> AllowedFolders {
    AllowedFolders { allowed: vec![PathBuf::from("/")], scratch: Some(std::env::temp_dir()) }
}

pub(crate) fn folder(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

pub(crate) fn made(text: &str) -> CopyTree {
    text.parse().expect("a tree")
}

fn half(options: CopyOptions, role: CopyRole) -> CopyHalf {
    CopyHalf { id: TrialId(String::from("t")), key: TrialKey([5; 16]), options, role, password: None }
}

impl Pair {
    pub(crate) fn new(options: CopyOptions) -> Self {
        let control = || Arc::new(Control::new(options.on_error));
        Self { options, source: control(), destination: control() }
    }

    pub(crate) fn copy(&self, tree: CopyTree, from: CopyFrom, into: CopyInto) -> Result<Copied, CopyError> {
        let sources = vec![CopyOrigin { listen: Ipv4Addr::LOCALHOST.into(), folder: None }];
        let role = CopyRole::Destination { into, sources };
        let destination = prepare(&half(self.options, role), &everywhere(), &self.destination, &|_| ())?;
        let role = CopyRole::Source { tree, from, targets: destination.listening().to_vec() };
        let source = prepare(&half(self.options, role), &everywhere(), &self.source, &|_| ())?;
        let at = clock::now();
        Ok(thread::scope(|scope| {
            let destination = scope.spawn(|| destination.run(at));
            let source = source.run(at);
            Copied { source, destination: destination.join().expect("no panic") }
        }))
    }
}

/// Within one host.
pub(crate) fn alone(options: CopyOptions, tree: CopyTree, from: CopyFrom, into: CopyInto) -> Result<Counts, CopyError> {
    let control = Arc::new(Control::new(options.on_error));
    let options = CopyOptions { verify: CopyVerify::ReadBack, ..options };
    let ready = prepare(
        &half(options, CopyRole::Alone { tree, from, into: vec![into], folder: None }),
        &everywhere(),
        &control,
        &|_| (),
    )?;
    let counts = ready.run(clock::now());
    let told = control.progress().map(|progress| (progress.files, progress.bytes));
    assert_eq!(told, Some((counts.sides[0].files, counts.sides[0].bytes)), "each file is done once");
    Ok(counts)
}

/// All that a copy keeps, by path: kind, permissions, time, size, blocks of sparse files, content.
pub(crate) fn census(root: &Path) -> BTreeMap<Vec<u8>, String> {
    let mut all = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("listed") {
            let path = entry.expect("read").path();
            let about = path.symlink_metadata().expect("there");
            let content = if about.is_dir() {
                folders.push(path.clone());
                String::from("folder")
            } else if about.is_symlink() {
                fs::read_link(&path).expect("a link").display().to_string()
            } else {
                blake3::hash(&fs::read(&path).expect("read")).to_string()
            };
            let name = path.strip_prefix(root).expect("below").as_os_str().as_bytes().to_vec();
            let size = if about.is_dir() { 0 } else { about.len() };
            all.insert(name, format!("{:o} {}.{} {size} {content}", about.mode(), about.mtime(), about.mtime_nsec()));
        }
    }
    all
}

/// Fails with the first difference rather than with two whole trees.
pub(crate) fn assert_same(left: &Path, right: &Path) {
    let (left, right) = (census(left), census(right));
    for (path, about) in &left {
        assert_eq!(right.get(path), Some(about), "{}", String::from_utf8_lossy(path));
    }
    assert_eq!(left.len(), right.len(), "nothing was added");
}
