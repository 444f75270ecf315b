//! Preparation of a role: its tree, its folder, its caches.

use crate::allowed_folders::{self, AllowedFolders};
use crate::cache;
use crate::destination::root::Root;
use crate::progress::Progress;
use crate::scratch::Scratch;
use crate::source::Origin;
use crate::storage::local::LocalFolder;
use crate::storage::{self, Storage};
use crate::tree::Made;
use crate::ways::path;
use crate::{Control, CopyError};
use linerate_engine::ListenOptions;
use linerate_model::{
    Assignment, Caveat, CopyCache, CopyExisting, CopyFrom, CopyInto, CopyLinks, CopyOnError, CopyOptions, CopySync,
    CopyTask, CopyTree, CopyVerify, FileServer, Preparation,
};
use linerate_sys::clock;
use linerate_units::ByteCount;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Bytes of the key that temporary names show.
const MARK_BYTES: usize = 4;

/// Files and bytes of a tree.
pub(crate) type Size = (u64, u64);

/// An open folder and its real path, or its name on a server.
pub(crate) type Folder = (Box<dyn Storage>, PathBuf);

/// Makes ready what a role needs, and notes what the session has to know of it.
pub(crate) struct Preparing<'a> {
    pub(crate) task: &'a CopyTask,
    pub(crate) assignment: &'a Assignment,
    pub(crate) folders: &'a AllowedFolders,
    pub(crate) control: &'a Arc<Control>,
    /// Peers that may connect to its links.
    pub(crate) listening: &'a ListenOptions,
    /// Takes reports of lengthy preparations.
    pub(crate) say: &'a dyn Fn(Preparation),
    /// Numbers of the devices that its folders are on, as their files have them (`st_dev`).
    pub(crate) disks: &'a mut BTreeSet<u64>,
    /// To be removed at the end.
    pub(crate) scratch: &'a mut Vec<Scratch>,
    pub(crate) caveats: &'a mut Vec<Caveat>,
}

/// A tree to read.
pub(crate) struct Tree {
    pub(crate) origin: Origin,
    pub(crate) size: Size,
}

impl Preparing<'_> {
    /// The trees for these destinations, by their indices: the same one for all, or one for each.
    pub(crate) fn trees(&mut self, destinations: &[usize]) -> Result<Vec<Arc<Tree>>, CopyError> {
        if !self.task.each.is_empty() {
            return destinations.iter().map(|destination| self.tree(*destination).map(Arc::new)).collect();
        }
        let tree = Arc::new(self.tree(0)?);
        Ok(vec![tree; destinations.len()])
    }

    /// The tree for a destination.
    fn tree(&mut self, destination: usize) -> Result<Tree, CopyError> {
        let (task, cache) = (self.task, self.task.options.cache);
        let (storage, path, size): (Box<dyn Storage>, _, _) = match (task.tree_to(destination), &task.from) {
            (tree, CopyFrom::Server(server)) => {
                let (storage, path) = match tree {
                    CopyTree::Folder(name) if !task.each.is_empty() => {
                        allowed_folders::check_path(name)?;
                        self.connect(&server.below(name), false)?
                    }
                    _ => self.connect(server, false)?,
                };
                (self.say)(Preparation::CountingTree);
                let size = allowed_folders::count(&*storage, &path, self.control)?;
                (storage, path, size)
            }
            (CopyTree::Made(made), CopyFrom::Memory) => {
                let size = (made.files, made.bytes.get());
                let origin = Origin::Memory(Made::new(*made, || self.control.is_stopped())?);
                return Ok(Tree { origin, size });
            }
            (CopyTree::Made(made), CopyFrom::Files) => {
                let scratch = self.folders.scratch(made.bytes)?;
                let storage = scratch.storage.another();
                self.scratch.push(scratch);
                (self.say)(Preparation::MakingTree);
                self.make(&Origin::Memory(Made::new(*made, || self.control.is_stopped())?), &*storage)?;
                (storage, PathBuf::from("the made tree"), (made.files, made.bytes.get()))
            }
            (CopyTree::Folder(path), _) => {
                let (folder, path) = self.folders.source(path)?;
                (self.say)(Preparation::CountingTree);
                let size = allowed_folders::count(&folder, &path, self.control)?;
                (Box::new(folder), path, size)
            }
        };
        if cache != CopyCache::AsIs {
            (self.say)(if cache == CopyCache::Cold { Preparation::EmptyingCaches } else { Preparation::ReadingTree });
        }
        self.caveats.extend(cache::prepare(cache, Some((&*storage, &path)), self.control)?);
        self.disks.extend(storage.device());
        Ok(Tree { origin: Origin::Folder(storage), size })
    }

    /// Writes a made tree.
    fn make(&self, made: &Origin, storage: &dyn Storage) -> Result<(), CopyError> {
        let options = CopyOptions {
            lanes: 2,
            verify: CopyVerify::None,
            sync: CopySync::None,
            cache: CopyCache::AsIs,
            on_error: CopyOnError::Stop,
            existing: CopyExisting::Refuse,
            links: CopyLinks::Copy,
        };
        let root = Root::new(storage.another(), CopyExisting::Refuse, mark(self.assignment));
        let making = Control::new(CopyOnError::Stop, Arc::<Progress>::default());
        let made = thread::scope(|scope| {
            let work = scope.spawn(|| path::copy(made, Some(&root), &options, clock::now(), &making));
            while !work.is_finished() {
                if self.control.is_stopped() {
                    making.stop();
                }
                thread::sleep(Duration::from_millis(5));
            }
            work.join()
        });
        match (made, making.faults().0.first()) {
            _ if self.control.is_stopped() => Err(CopyError::Stopped),
            (_, Some(fault)) => Err(CopyError::NotMade(format!("{}: {}", fault.path, fault.reason))),
            (Ok(side), None) if side.complete => Ok(()),
            _ => Err(CopyError::NotMade(String::from("a thread ended unexpectedly; this is a bug in linerate"))),
        }
    }

    /// Returns the folder to write, or `None` if the bytes are dropped.
    pub(crate) fn folder(&mut self) -> Result<Option<Folder>, CopyError> {
        if let CopyInto::Server(server) = &self.task.into {
            return self.connect(server, true).map(Some);
        }
        Ok(self.local()?.map(|(storage, path)| (Box::new(storage) as Box<dyn Storage>, path)))
    }

    /// The folder to serve, of this host.
    pub(crate) fn served(&mut self) -> Result<(LocalFolder, PathBuf), CopyError> {
        let unfit = || CopyError::Impossible(String::from("a host serves a folder of its own only"));
        self.local()?.ok_or_else(unfit)
    }

    /// Returns the folder of this host to write, if there is one.
    fn local(&mut self) -> Result<Option<(LocalFolder, PathBuf)>, CopyError> {
        let folder = match &self.task.into {
            CopyInto::Discard | CopyInto::Server(_) => None,
            CopyInto::Scratch => {
                let scratch = self.folders.scratch(ByteCount::default())?;
                let storage = scratch.storage.again();
                self.scratch.push(scratch);
                Some((storage, PathBuf::from("the copy's own folder")))
            }
            CopyInto::Folder(path) => Some(self.folders.destination(path)?),
        };
        self.disks.extend(folder.as_ref().and_then(|(storage, _)| storage.device()));
        Ok(folder)
    }

    /// Returns the root of a tree: `folder`, or one below it called `name`.
    pub(crate) fn root(&self, folder: Option<&Folder>, name: Option<&str>) -> Result<Option<Root>, CopyError> {
        let Some((storage, path)) = folder else { return Ok(None) };
        let storage = match name {
            Some(name) => allowed_folders::below(&**storage, name, path)?,
            None => storage.another(),
        };
        root(storage, path, self.task, self.assignment, self.control).map(Some)
    }

    /// Empties a destination's caches where those of the source are emptied: they hold nothing of the tree but names.
    pub(crate) fn cold_destination(&mut self) -> Result<(), CopyError> {
        if self.task.options.cache == CopyCache::Cold {
            self.caveats.extend(cache::prepare(CopyCache::Cold, None, self.control)?);
        }
        Ok(())
    }

    /// Refuses a tree that would be copied into itself.
    pub(crate) fn check_apart(&self, destination: Option<&Folder>) -> Result<(), CopyError> {
        // Within one host there is one tree.
        let (CopyTree::Folder(source), CopyFrom::Files, Some((_, destination))) =
            (&self.task.tree, &self.task.from, destination)
        else {
            return Ok(());
        };
        let (_, source) = self.folders.source(source)?;
        if destination.starts_with(&source) {
            let why = format!("{} is inside {}: the copy would copy itself", destination.display(), source.display());
            return Err(CopyError::Impossible(why));
        }
        Ok(())
    }

    fn connect(&self, server: &FileServer, make: bool) -> Result<Folder, CopyError> {
        (self.say)(Preparation::ConnectingToServer);
        storage::connect(server, self.assignment, make, self.control)
    }
}

/// The root of a tree in an open folder.
pub(crate) fn root(
    storage: Box<dyn Storage>,
    path: &Path,
    task: &CopyTask,
    assignment: &Assignment,
    control: &Control,
) -> Result<Root, CopyError> {
    allowed_folders::root(storage, path, task.options.existing, &mark(assignment), control)
}

/// Marks temporary names: another copy into the same folder has another.
fn mark(assignment: &Assignment) -> String {
    assignment.key.0[..MARK_BYTES].iter().map(|byte| format!("{byte:02x}")).collect()
}
