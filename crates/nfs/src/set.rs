//! The files that operations work on: made before the load, removed after it.
//!
//! The set lies in one directory that is named after the trial. Nothing outside is touched, and inside only files with
//! names that linerate gives: a file that someone else put there stays, and so do the directories above it.

use crate::answers::Answer;
use crate::calls::{Ask, Handle, handle};
use crate::content::{BLOCK, BlockId};
use crate::session::Session;
use crate::status;
use linerate_model::{FileSet, NfsTask, Transport};
use linerate_oncrpc::RpcError;
use nfs3_types::nfs3::nfsstat3;

/// Bytes of one write while files are made, where the server takes as much.
const CHUNK_TCP: u32 = 256 << 10;
const CHUNK_UDP: u32 = 8 << 10;

/// The files as they are on the server.
#[derive(Debug)]
pub(crate) struct Set {
    /// The exported directory.
    pub(crate) export: Handle,
    /// Name of the set's directory.
    pub(crate) name: String,
    /// Handle of the set's directory.
    pub(crate) top: Handle,
    /// Directories in it. File, link or name number `n` lies in number `n` modulo their count.
    pub(crate) directories: Vec<Handle>,
    pub(crate) files: Vec<Handle>,
    pub(crate) links: Vec<Handle>,
}

impl Set {
    /// The directory that number `n` lies in.
    pub(crate) fn directory_of(&self, n: u32) -> &Handle {
        &self.directories[n as usize % self.directories.len()]
    }
}

/// The name of the set's directory number `n`.
fn directory_name(n: usize) -> String {
    format!("d{n}")
}

/// The name of file number `n`.
pub(crate) fn file_name(n: usize) -> String {
    format!("f{n}")
}

/// The name of symbolic link number `n`, and where it leads.
fn link_name(n: usize, files: usize) -> (String, String) {
    (format!("l{n}"), link_target(n, files))
}

/// Returns the target of symbolic link number `n`.
pub(crate) fn link_target(n: usize, files: usize) -> String {
    file_name(n % files.max(1))
}

/// A name that flow `flow` makes and removes during the load, for a file or link.
pub(crate) fn spare_name(flow: u16, n: u32) -> String {
    format!("x{flow}-{n}")
}

/// Returns the name of transient directory number `n` of a flow.
pub(crate) fn spare_directory_name(flow: u16, n: u32) -> String {
    format!("y{flow}-{n}")
}

/// Kinds of names that linerate gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Own {
    Directory,
    EmptyDirectory,
    File,
}

/// Returns the kind of `name`, or `None` if linerate does not give such names.
fn own(name: &[u8]) -> Option<Own> {
    let (kind, rest) = name.split_first()?;
    let plain = !rest.is_empty() && rest.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-');
    match kind {
        _ if !plain => None,
        b'd' => Some(Own::Directory),
        b'y' => Some(Own::EmptyDirectory),
        b'f' | b'l' | b'x' => Some(Own::File),
        _ => None,
    }
}

/// Makes the set of `spec` in the directory `name` of `export`.
pub(crate) fn create(
    session: &mut Session<'_>,
    export: &Handle,
    name: &str,
    spec: &NfsTask,
    write_maximum: u32,
) -> Result<Set, RpcError> {
    let FileSet { files, directories, symlinks, .. } = spec.files;
    let server = session.caller.server();
    let what = format!("making the file set `{name}`");
    let refused = |call: String, status| RpcError::Refused {
        server,
        what: format!("{call} in `{name}`"),
        reason: format!("{}{}", status::name(status), status::remedy(status)),
    };
    let top = made(session, &what, export, name, &Ask::Mkdir(export, name.as_bytes()))?;
    let mut set =
        Set { export: export.clone(), name: name.to_owned(), top, directories: vec![], files: vec![], links: vec![] };

    let mut handles = vec![None; directories as usize];
    session.run(
        &what,
        handles.len(),
        |n, into| Ask::Mkdir(&set.top, directory_name(n).as_bytes()).pack(into),
        |n, answer| {
            keep(&mut handles[n], answer).map_err(|status| refused(format!("mkdir {}", directory_name(n)), status))
        },
    )?;
    set.directories = found(session, &what, handles, |n| (&set.top, directory_name(n)))?;

    let mut handles = vec![None; files as usize];
    session.run(
        &what,
        handles.len(),
        |n, into| Ask::Create(set.directory_of(n as u32), file_name(n).as_bytes()).pack(into),
        |n, answer| keep(&mut handles[n], answer).map_err(|status| refused(format!("create {}", file_name(n)), status)),
    )?;
    set.files = found(session, &what, handles, |n| (set.directory_of(n as u32), file_name(n)))?;

    let mut handles = vec![None; symlinks as usize];
    session.run(
        &what,
        handles.len(),
        |n, into| {
            let (name, to) = link_name(n, files as usize);
            Ask::Symlink { directory: set.directory_of(n as u32), name: name.as_bytes(), to: to.as_bytes() }.pack(into)
        },
        |n, answer| keep(&mut handles[n], answer).map_err(|status| refused(format!("symlink l{n}"), status)),
    )?;
    let name_of = |n| link_name(n, files as usize).0;
    set.links = found(session, &what, handles, |n| (set.directory_of(n as u32), name_of(n)))?;

    if spec.mix.moves_data() {
        fill(session, &set, spec, write_maximum, &what)?;
    }
    Ok(set)
}

/// Makes something and returns its handle.
fn made(
    session: &mut Session<'_>,
    what: &str,
    directory: &Handle,
    name: &str,
    ask: &Ask<'_>,
) -> Result<Handle, RpcError> {
    let mut status = 0;
    let slot_result = session.one(what, ask, |answer| {
        let mut slot = None;
        keep(&mut slot, answer).unwrap_or_else(|failed| status = failed);
        Ok(slot)
    })?;
    if status != status::OK {
        return Err(session.unfit(format!("making `{name}`"), Answer::Failed(status)));
    }
    match slot_result {
        Some(slot_result) => Ok(slot_result),
        None => look_up(session, what, directory, name)?.ok_or_else(|| {
            session.unfit(format!("the handle of `{name}`, which it has just made"), Answer::Failed(NOENT))
        }),
    }
}

const NOENT: u32 = nfsstat3::NFS3ERR_NOENT as u32;

/// Looks up the handle of `name`. Returns `None` if there is no such name.
fn look_up(session: &mut Session<'_>, what: &str, directory: &Handle, name: &str) -> Result<Option<Handle>, RpcError> {
    let mut status = 0;
    let found = session.one(what, &Ask::Lookup(directory, name.as_bytes()), |answer| {
        Ok(match answer {
            Answer::Handle(given, _) => given.map(handle),
            Answer::Failed(failed) => {
                status = failed;
                None
            }
            _ => None,
        })
    })?;
    match status {
        status::OK | NOENT => Ok(found),
        failed => Err(session.unfit(format!("looking up `{name}`"), Answer::Failed(failed))),
    }
}

/// Keeps the handle of a new object, if the server sent it.
fn keep(slot: &mut Option<Handle>, answer: Answer<'_>) -> Result<(), u32> {
    match answer {
        Answer::Handle(given, _) => *slot = given.map(handle),
        Answer::Failed(status) => return Err(status),
        _ => {}
    }
    Ok(())
}

/// Returns all handles. Handles that the server did not send are looked up (`post_op_fh3` is optional).
fn found<'a>(
    session: &mut Session<'_>,
    what: &str,
    handles: Vec<Option<Handle>>,
    place: impl Fn(usize) -> (&'a Handle, String),
) -> Result<Vec<Handle>, RpcError> {
    let numbered = handles.into_iter().enumerate();
    numbered
        .map(|(n, handle)| match handle {
            Some(handle) => Ok(handle),
            None => {
                let (directory, name) = place(n);
                look_up(session, what, directory, &name)?
                    .ok_or_else(|| session.unfit(format!("looking up `{name}`"), Answer::Failed(NOENT)))
            }
        })
        .collect()
}

/// Writes version 0 of every file.
fn fill(session: &mut Session<'_>, set: &Set, spec: &NfsTask, write_maximum: u32, what: &str) -> Result<(), RpcError> {
    let server = session.caller.server();
    let max_chunk = if session.transport == Transport::Udp { CHUNK_UDP } else { CHUNK_TCP };
    let block = BLOCK as u32;
    let chunk = (max_chunk.min(write_maximum) / block).max(1);
    let blocks = (spec.files.file_bytes.get() / u64::from(block)) as u32;
    let chunks = blocks.div_ceil(chunk) as usize;
    let refused = |call: &str, n: usize, status| RpcError::Refused {
        server,
        what: format!("{call} {} in `{}`", file_name(n), set.name),
        reason: format!("{}{}", status::name(status), status::remedy(status)),
    };
    let of = |index: usize| (index / chunks, (index % chunks) as u32 * chunk);
    let mut data = Vec::new();
    let mut verifier = None;
    let mut restarted = |given| *verifier.get_or_insert(given) != given;
    let gone = || RpcError::Gone { peer: server, what: "it restarted while files were made, and lost some".to_owned() };
    session.run(
        what,
        set.files.len() * chunks,
        |index, into| {
            let (file, first) = of(index);
            data.clear();
            for block in first..(first + chunk).min(blocks) {
                BlockId { seed: spec.seed, file: file as u32, block }.write(0, &mut data);
            }
            let offset = u64::from(first) * u64::from(block);
            Ask::Write { file: &set.files[file], offset, data: &data, stable: false }.pack(into)
        },
        |index, answer| {
            let (file, first) = of(index);
            match answer {
                Answer::Failed(status) => Err(refused("writing", file, status)),
                Answer::Written { count, .. } if count != (first + chunk).min(blocks).saturating_sub(first) * block => {
                    let reason = format!("it took {count} bytes of {}", chunk * block);
                    Err(RpcError::Refused { server, what: format!("writing {}", file_name(file)), reason })
                }
                Answer::Written { verifier, .. } if restarted(verifier) => Err(gone()),
                _ => Ok(()),
            }
        },
    )?;
    session.run(
        what,
        set.files.len(),
        |n, into| Ask::Commit(&set.files[n]).pack(into),
        |n, answer| match answer {
            Answer::Failed(status) => Err(refused("committing", n, status)),
            Answer::Committed(verifier) if restarted(verifier) => Err(gone()),
            _ => Ok(()),
        },
    )
}

/// Removes all that linerate made in the directory `name` of `export`, and the directory.
pub(crate) fn remove(session: &mut Session<'_>, export: &Handle, name: &str) -> Result<(), RpcError> {
    let what = format!("removing the file set `{name}`");
    let Some(top) = look_up(session, &what, export, name)? else { return Ok(()) };
    loop {
        let listed = own_entries(session, &what, &top)?;
        if listed.is_empty() {
            break;
        }
        for (directory, kind) in &listed {
            if *kind != Own::Directory {
                continue;
            }
            if let Some(inside) = look_up(session, &what, &top, directory)? {
                empty(session, &what, &inside)?;
            }
        }
        let removable: Vec<_> = listed.into_iter().map(|(name, kind)| (name, kind != Own::File)).collect();
        take_away(session, &what, &top, &removable)?;
    }
    take_away(session, &what, export, &[(name.to_owned(), true)])
}

/// Removes what linerate made in a directory of the set.
fn empty(session: &mut Session<'_>, what: &str, directory: &Handle) -> Result<(), RpcError> {
    loop {
        let listed = own_entries(session, what, directory)?;
        if listed.is_empty() {
            return Ok(());
        }
        let names: Vec<_> = listed.into_iter().map(|(name, kind)| (name, kind != Own::File)).collect();
        take_away(session, what, directory, &names)?;
    }
}

/// The names of linerate's own at the beginning of a directory: as many as one reply holds.
fn own_entries(session: &mut Session<'_>, what: &str, directory: &Handle) -> Result<Vec<(String, Own)>, RpcError> {
    let mut status = 0;
    let mut listed = Vec::new();
    session.one(what, &Ask::Readdir(directory), |answer| {
        match answer {
            Answer::Entries(entries) => listed.extend(entries.filter_map(|entry| {
                let kind = own(entry.name)?;
                Some((String::from_utf8(entry.name.to_vec()).ok()?, kind))
            })),
            Answer::Failed(failed) => status = failed,
            _ => {}
        }
        Ok(())
    })?;
    if status != status::OK {
        return Err(session.unfit("listing a directory", Answer::Failed(status)));
    }
    Ok(listed)
}

/// Removes names; those marked are directories. One that is gone already is fine.
fn take_away(
    session: &mut Session<'_>,
    what: &str,
    directory: &Handle,
    names: &[(String, bool)],
) -> Result<(), RpcError> {
    let server = session.caller.server();
    session.run(
        what,
        names.len(),
        |n, into| match &names[n] {
            (name, true) => Ask::Rmdir(directory, name.as_bytes()).pack(into),
            (name, false) => Ask::Remove(directory, name.as_bytes()).pack(into),
        },
        |n, answer| match answer {
            Answer::Failed(status) if status != NOENT => Err(RpcError::Refused {
                server,
                what: format!("removing `{}`", names[n].0),
                reason: status::name(status),
            }),
            _ => Ok(()),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_its_own_are_its_own() {
        for (name, expected) in [
            (directory_name(0), Some(Own::Directory)),
            (file_name(17), Some(Own::File)),
            (link_name(3, 2).0, Some(Own::File)),
            (spare_name(2, 40), Some(Own::File)),
            (spare_directory_name(2, 40), Some(Own::EmptyDirectory)),
            (".".to_owned(), None),
            ("..".to_owned(), None),
            ("f".to_owned(), None),
            ("f1.txt".to_owned(), None),
            ("data".to_owned(), None),
            ("f1/../../x".to_owned(), None),
        ] {
            assert_eq!(own(name.as_bytes()), expected, "{name}");
        }
        assert_eq!(link_name(3, 2).1, "f1");
    }
}
