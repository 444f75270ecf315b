//! A source and a destination in this process, and trees that are compared file by file.

use linerate_copy::{AllowedFolders, Copy};
use linerate_engine::testing::{Session, run, sessions};
use linerate_engine::{Counted, EngineFailure, FailedBy};
use linerate_model::{
    Assignment, CopyCache, CopyCounts, CopyExisting, CopyFrom, CopyInto, CopyLinks, CopyOnError, CopyOptions,
    CopyStage, CopySync, CopyTask, CopyTree, CopyVerify, CopyWay, IpVersion, LinkId, Listen, Role, RoleCounts,
    RoleKind, SeriesQuantity, SessionId, SessionKey, Task, Timing,
};
use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

pub(crate) const KEY: SessionKey = SessionKey([5; 16]);
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
#[derive(Debug)]
pub(crate) struct Copied {
    pub(crate) source: CopyCounts,
    pub(crate) destination: CopyCounts,
}

pub(crate) fn engine() -> Copy {
    Copy::new(AllowedFolders { allowed: vec![PathBuf::from("/")], scratch: Some(std::env::temp_dir()) })
}

pub(crate) fn folder(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

pub(crate) fn made(text: &str) -> CopyTree {
    text.parse().expect("a tree")
}

pub(crate) fn task(options: CopyOptions, tree: CopyTree, from: CopyFrom, into: CopyInto) -> CopyTask {
    let sources = vec!["a".into()];
    let destinations = vec!["b".into()];
    CopyTask {
        tree,
        each: Vec::new(),
        way: CopyWay::Linerate,
        sources,
        destinations,
        from,
        into,
        options,
        ip: IpVersion::V4,
    }
}

/// A role that listens on some links and connects others. Each link to listen on may have a folder of its own.
pub(crate) fn role(kind: RoleKind, listens: &[(u16, Option<&str>)], connects: &[u16]) -> Role {
    let listen = |(link, folder): &(u16, Option<&str>)| Listen {
        link: LinkId(*link),
        address: Ipv4Addr::LOCALHOST.into(),
        folder: folder.map(str::to_owned),
    };
    let connects = connects.iter().copied().map(LinkId).collect();
    Role { kind, listens: listens.iter().map(listen).collect(), connects }
}

pub(crate) fn assignment(task: &CopyTask, roles: Vec<Role>) -> Assignment {
    Assignment {
        id: SessionId(String::from("t")),
        key: KEY,
        task: Task::Copy(task.clone()),
        timing: Timing::UntilDone,
        roles,
        password: None,
        sampling: linerate_model::Sampling::default(),
    }
}

/// What a host with one role counted.
pub(crate) fn one(counted: Counted) -> CopyCounts {
    assert_eq!(counted.remains, Vec::<String>::new());
    let [RoleCounts::Copy(counts)] = &counted.roles[..] else { panic!("{counted:?}") };
    counts.clone()
}

/// A source and a destination.
pub(crate) fn ends(task: &CopyTask) -> [Assignment; 2] {
    let source = role(RoleKind::Source, &[], &[0]);
    let destination = role(RoleKind::Destination, &[(0, None)], &[]);
    [source, destination].map(|role| assignment(task, vec![role]))
}

/// Copies from one host to another.
pub(crate) fn copy(
    options: CopyOptions,
    tree: CopyTree,
    from: CopyFrom,
    into: CopyInto,
) -> Result<Copied, EngineFailure> {
    let [source, destination]: [_; 2] =
        run(&engine(), ends(&task(options, tree, from, into))).try_into().expect("two sessions");
    match (source, destination) {
        (Ok(source), Ok(destination)) => Ok(Copied { source: one(source), destination: one(destination) }),
        // The one that failed, not the one that was stopped because of it.
        (Err(failure), Ok(_)) | (Ok(_), Err(failure)) => Err(failure),
        (Err(failure), Err(stopped)) if matches!(stopped.error, FailedBy::Stop(_)) => Err(failure),
        (Err(_), Err(failure)) => Err(failure),
    }
}

/// The session of a host that copies from what it reaches to what it reaches.
pub(crate) fn copier(options: CopyOptions, tree: CopyTree, from: CopyFrom, into: CopyInto) -> Session {
    let role = role(RoleKind::Copier { folder: None, destination: 0 }, &[], &[]);
    sessions([assignment(&task(options, tree, from, into), vec![role])]).remove(0)
}

/// Copies within one host.
pub(crate) fn alone(
    options: CopyOptions,
    tree: CopyTree,
    from: CopyFrom,
    into: CopyInto,
) -> Result<CopyCounts, EngineFailure> {
    let session = copier(CopyOptions { verify: CopyVerify::ReadBack, ..options }, tree, from, into);
    let counts = one(session.run(&engine())?);
    let told = session.meter().map(|meter| (meter.operations, meter.received_bytes));
    assert_eq!(told, Some((counts.sides[0].files, counts.sides[0].bytes)), "each file is done once");
    // What is counted at the end was told meanwhile. Work of all lanes is timed twice.
    for (stage, time) in &counts.sides[0].stages {
        let told = stage_micros(&session, stage.name()).expect("it is told");
        let counted = time.busy.get() / 1_000;
        assert!(told >= counted && (told == counted || *stage == CopyStage::Sync), "{stage:?}: {told} of {counted}");
    }
    Ok(counts)
}

/// The time of a stage so far, as it is sampled.
pub(crate) fn stage_micros(session: &Session, stage: &str) -> Option<u64> {
    let readings = session.readings()?;
    readings.of(SeriesQuantity::StageTime).find(|(subject, _)| *subject == stage).map(|(_, micros)| micros)
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
    let left = census(left);
    let right = census(right);
    for (path, about) in &left {
        assert_eq!(right.get(path), Some(about), "{}", String::from_utf8_lossy(path));
    }
    assert_eq!(left.len(), right.len(), "nothing was added");
}
