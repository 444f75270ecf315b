//! A role of a host in a copy, from listening to its counts.

use crate::allowed_folders;
use crate::connection::LaneListener;
use crate::destination::root::Root;
use crate::prepare::{self, Preparing, Size, Tree};
use crate::role::nfs_callers;
use crate::storage;
use crate::ways::linerate::{Arrival, Lanes, Target};
use crate::ways::path;
use crate::{Control, CopyError};
use linerate_engine::proof::link_key;
use linerate_model::{
    Assignment, CopyCounts, CopyOptions, CopySide, CopyStage, CopyTask, Endpoints, LinkId, Role, RoleKind,
};
use linerate_nfsd::NfsShare;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

/// A role that has all it needs on its own host, and listens.
pub(crate) enum Prepared {
    Source { links: Vec<(LinkId, Opens, Arc<Tree>)> },
    Destination { arrivals: Vec<(LinkId, Opens, Option<Root>)> },
    Copier { trees: Vec<Arc<Tree>>, into: Into },
    FileServer { shares: Vec<(LinkId, NfsShare)> },
}

/// Origin of the connections of a link.
pub(crate) enum Opens {
    /// This host connects.
    Here,
    /// This host accepts.
    There(LaneListener),
}

impl Opens {
    /// Returns the listening address, or `None` if this host does not listen.
    fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Here => None,
            Self::There(listener) => Some(listener.address),
        }
    }
}

/// Destination of a host that has both ends of a copy.
pub(crate) enum Into {
    /// Root that it reaches by itself; `None` drops the bytes.
    Root(Option<Root>),
    /// File servers of other hosts.
    Servers(Vec<LinkId>),
}

/// A role that could begin.
pub(crate) enum Connected {
    Source { targets: Vec<(Target, Arc<Tree>)> },
    Destination { arrivals: Vec<(Option<Root>, Arrival)> },
    Copier { copies: Vec<(Option<Root>, Arc<Tree>)> },
    FileServer { shares: Vec<NfsShare> },
}

impl Prepared {
    /// Makes ready what `role` needs.
    ///
    /// # Errors
    /// A folder is not allowed, not empty or not there, a tree does not fit, a server does not answer, or the session
    /// was stopped.
    pub(crate) fn new(role: &Role, preparing: &mut Preparing<'_>) -> Result<Self, CopyError> {
        let existing = preparing.task.options.existing;
        let session_key = preparing.assignment.key;
        let key = |link| link_key(&session_key, link);
        let links = role.connects.iter().copied().chain(role.listens.iter().map(|listen| listen.link));
        let destinations: Vec<usize> = links.map(|link| preparing.task.destination_of(link)).collect();
        let prepared = match &role.kind {
            RoleKind::Source => {
                let trees = preparing.trees(&destinations)?;
                let connects = role.connects.iter().map(|link| Ok((*link, Opens::Here)));
                let listens = role.listens.iter().map(|listen| {
                    let listener = LaneListener::open(listen.address, key(listen.link), preparing.listening)?;
                    Ok((listen.link, Opens::There(listener)))
                });
                let links = connects
                    .chain(listens)
                    .zip(trees)
                    .map(|(link, tree)| link.map(|(link, opens)| (link, opens, tree)));
                Self::Source { links: links.collect::<Result<_, CopyError>>()? }
            }
            RoleKind::Destination => {
                let folder = preparing.folder()?;
                if let Some((storage, path)) = &folder {
                    allowed_folders::check_empty(&**storage, path, existing)?;
                }
                preparing.cold_destination()?;
                let connects =
                    role.connects.iter().map(|link| Ok((*link, Opens::Here, preparing.root(folder.as_ref(), None)?)));
                let listens = role.listens.iter().map(|listen| {
                    let root = preparing.root(folder.as_ref(), listen.folder.as_deref())?;
                    let listener = LaneListener::open(listen.address, key(listen.link), preparing.listening)?;
                    Ok((listen.link, Opens::There(listener), root))
                });
                Self::Destination { arrivals: connects.chain(listens).collect::<Result<_, CopyError>>()? }
            }
            RoleKind::Copier { folder: name, destination } if role.connects.is_empty() => {
                let folder = preparing.folder()?;
                preparing.check_apart(folder.as_ref())?;
                let root = preparing.root(folder.as_ref(), name.as_deref())?;
                if let (Some(root), Some((_, path))) = (&root, &folder) {
                    allowed_folders::check_empty(&*root.storage, path, existing)?;
                }
                let trees = preparing.trees(&[usize::from(*destination)])?;
                Self::Copier { trees, into: Into::Root(root) }
            }
            RoleKind::Copier { .. } => {
                let trees = preparing.trees(&destinations)?;
                Self::Copier { trees, into: Into::Servers(role.connects.clone()) }
            }
            RoleKind::FileServer => {
                let (folder, path) = preparing.served()?;
                allowed_folders::check_empty(&folder, &path, existing)?;
                preparing.cold_destination()?;
                let shares = role.listens.iter().map(|listen| {
                    let folder = match &listen.folder {
                        Some(name) => allowed_folders::local_below(&folder, name, &path)?,
                        None => folder.again(),
                    };
                    let callers = nfs_callers(preparing.task);
                    let key = key(listen.link);
                    let share = NfsShare::start(folder.root(), key, listen.address, preparing.listening, callers)?;
                    Ok((listen.link, share))
                });
                Self::FileServer { shares: shares.collect::<Result<_, CopyError>>()? }
            }
            RoleKind::Client { .. } | RoleKind::Server { .. } | RoleKind::Ports { .. } => {
                return Err(CopyError::Impossible(String::from("the role is none of a copy")));
            }
        };
        if preparing.control.is_stopped() { Err(CopyError::Stopped) } else { Ok(prepared) }
    }

    /// Returns the listening address of each of its links.
    pub(crate) fn endpoints(&self) -> Vec<(LinkId, SocketAddr)> {
        match self {
            Self::Copier { .. } => Vec::new(),
            Self::Source { links } => {
                links.iter().filter_map(|(link, opens, _)| Some((*link, opens.address()?))).collect()
            }
            Self::Destination { arrivals } => {
                arrivals.iter().filter_map(|(link, opens, _)| Some((*link, opens.address()?))).collect()
            }
            Self::FileServer { shares } => shares.iter().map(|(link, share)| (*link, share.address())).collect(),
        }
    }

    /// Connects its links to those that listen at `there`, or waits for those that connect to it.
    ///
    /// # Errors
    /// A host does not answer, a server's folder is not empty, or the session was stopped.
    pub(crate) fn connect(
        self,
        there: &Endpoints,
        assignment: &Assignment,
        task: &CopyTask,
        control: &Arc<Control>,
    ) -> Result<Connected, CopyError> {
        let address = |link: &LinkId| {
            let unknown = || CopyError::NoConnection(format!("nobody listens for link {}", link.0));
            there.get(link).copied().ok_or_else(unknown)
        };
        let options = &task.options;
        let key = |link: &LinkId| link_key(&assignment.key, *link);
        let open = |link: LinkId, opens| match opens {
            Opens::Here => Lanes::connect(address(&link)?, &key(&link), options, control),
            Opens::There(listener) => Lanes::accept(listener, options, control),
        };
        Ok(match self {
            Self::Source { links } => {
                let connect = |(link, opens, tree)| Ok((Target::from(open(link, opens)?), tree));
                Connected::Source { targets: links.into_iter().map(connect).collect::<Result<_, CopyError>>()? }
            }
            Self::Destination { arrivals } => thread::scope(|scope| {
                let open = &open;
                let accept = |(link, opens, root)| scope.spawn(move || Ok((root, Arrival::from(open(link, opens)?))));
                let threads: Vec<_> = arrivals.into_iter().map(accept).collect();
                let accepted = threads
                    .into_iter()
                    .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
                Ok::<_, CopyError>(Connected::Destination { arrivals: accepted.collect::<Result<_, CopyError>>()? })
            })?,
            Self::Copier { trees, into: Into::Root(root) } => {
                Connected::Copier { copies: [root].into_iter().zip(trees).collect() }
            }
            Self::Copier { trees, into: Into::Servers(links) } => {
                let connect = |(link, tree)| {
                    let (storage, path) = storage::connect_agent(address(link)?, &key(link), control)?;
                    let root = prepare::root(storage, &path, task, assignment, control)?;
                    allowed_folders::check_empty(&*root.storage, &path, options.existing)?;
                    Ok((Some(root), tree))
                };
                Connected::Copier { copies: links.iter().zip(trees).map(connect).collect::<Result<_, CopyError>>()? }
            }
            Self::FileServer { shares } => {
                Connected::FileServer { shares: shares.into_iter().map(|(_, share)| share).collect() }
            }
        })
    }
}

impl Connected {
    /// Files and bytes that there are to copy from this host, to all others together.
    pub(crate) fn count(&self) -> Size {
        let trees: Vec<&Tree> = match self {
            Self::Source { targets } => targets.iter().map(|(_, tree)| &**tree).collect(),
            Self::Copier { copies } => copies.iter().map(|(_, tree)| &**tree).collect(),
            Self::Destination { .. } | Self::FileServer { .. } => Vec::new(),
        };
        trees.iter().fold((0, 0), |(files, bytes), tree| (files + tree.size.0, bytes + tree.size.1))
    }

    /// Copies from `start` on, a moment of the monotonic clock, to the end.
    pub(crate) fn run(self, start: u64, options: &CopyOptions, control: &Control) -> CopyCounts {
        let sides = match self {
            Self::Copier { copies } => thread::scope(|scope| {
                let copy = |(root, tree): (Option<Root>, Arc<Tree>)| {
                    scope.spawn(move || path::copy(&tree.origin, root.as_ref(), options, start, control))
                };
                let sides: Vec<_> = copies.into_iter().map(copy).collect();
                sides.into_iter().map(|side| counted(side, CopyStage::Read, control)).collect()
            }),
            Self::FileServer { shares } => {
                serve(&shares, control);
                Vec::new()
            }
            Self::Source { targets } => thread::scope(|scope| {
                let send = |(target, tree): (Target, Arc<Tree>)| {
                    scope.spawn(move || target.send(&tree.origin, options, start, control))
                };
                let sides: Vec<_> = targets.into_iter().map(send).collect();
                sides.into_iter().map(|side| counted(side, CopyStage::Send, control)).collect()
            }),
            Self::Destination { arrivals } => thread::scope(|scope| {
                let receive = |(root, arrival): (Option<Root>, Arrival)| {
                    scope.spawn(move || arrival.receive(root.as_ref(), options, start, control))
                };
                let sides: Vec<_> = arrivals.into_iter().map(receive).collect();
                sides.into_iter().map(|side| counted(side, CopyStage::Receive, control)).collect()
            }),
        };
        let (faults, faults_total) = control.faults();
        CopyCounts { sides, faults, faults_total }
    }
}

/// Returns the counts of a side. A side that panicked counts as a fault, and its counts are lost.
fn counted(side: ScopedJoinHandle<'_, CopySide>, stage: CopyStage, control: &Control) -> CopySide {
    side.join().unwrap_or_else(|_| {
        let why =
            "a fault of linerate's own ended it, please report it; standard error of this host's agent says where";
        control.fault(b"", stage, why);
        CopySide::default()
    })
}

/// Stays until all that write to `shares` are gone.
fn serve(shares: &[NfsShare], control: &Control) {
    const LOOK: Duration = Duration::from_millis(2);
    while shares.iter().any(NfsShare::is_in_use) && !control.is_stopped() {
        thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::CopyOnError;

    #[test]
    fn a_side_that_panics_is_a_fault() {
        let control = Control::new(CopyOnError::Continue, Arc::default());
        let side = thread::scope(|scope| counted(scope.spawn(|| panic!("planted")), CopyStage::Send, &control));
        assert!(!side.complete);
        let (faults, total) = control.faults();
        assert_eq!((faults[0].stage, total), (CopyStage::Send, 1));
    }
}
