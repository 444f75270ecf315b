//! A role of a host in a copy, from listening to its counts.

use crate::allowed_folders;
use crate::connection::LaneListener;
use crate::destination::root::Root;
use crate::prepare::{self, Preparing, Size};
use crate::source::Origin;
use crate::storage;
use crate::ways::linerate::{Arrival, Lanes, Target};
use crate::ways::path;
use crate::{Control, CopyError};
use linerate_engine::proof::listener_key;
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
    Source { origin: Origin, size: Size, ways: Vec<(LinkId, Opens)> },
    Destination { arrivals: Vec<(LinkId, Option<Root>, Opens)> },
    Copier { origin: Origin, size: Size, into: Into },
    FileServer { shares: Vec<(LinkId, NfsShare)> },
}

/// How the connections of a link come about.
pub(crate) enum Opens {
    /// This host opens them.
    Here,
    /// They are accepted.
    There(LaneListener),
}

impl Opens {
    /// Where they are accepted; none if not on this host.
    fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Here => None,
            Self::There(listener) => Some(listener.address),
        }
    }
}

/// Where a host that has both ends of a copy writes to.
pub(crate) enum Into {
    /// What it reaches by itself; none drops the bytes.
    Root(Option<Root>),
    /// File servers of other hosts.
    Servers(Vec<LinkId>),
}

/// A role that could begin.
pub(crate) enum Connected {
    Source { origin: Origin, size: Size, targets: Vec<Target> },
    Destination { arrivals: Vec<(Option<Root>, Arrival)> },
    Copier { origin: Origin, size: Size, roots: Vec<Option<Root>> },
    FileServer { shares: Vec<NfsShare> },
}

impl Prepared {
    /// Makes ready what `role` needs.
    ///
    /// # Errors
    /// A folder is not allowed, not empty or not there, a tree does not fit, a server does not answer, or the session was stopped.
    pub(crate) fn new(role: &Role, preparing: &mut Preparing<'_>) -> Result<Self, CopyError> {
        let (existing, session_key) = (preparing.task.options.existing, preparing.assignment.key);
        let key = |link: &LinkId| listener_key(&session_key, link.0);
        let prepared = match &role.kind {
            RoleKind::Source => {
                let (origin, size) = preparing.origin()?;
                let connects = role.connects.iter().map(|link| Ok((*link, Opens::Here)));
                let listens = role.listens.iter().map(|listen| {
                    let listener = LaneListener::open(listen.address, key(&listen.link), preparing.listening)?;
                    Ok((listen.link, Opens::There(listener)))
                });
                let ways = connects.chain(listens).collect::<Result<_, CopyError>>()?;
                Self::Source { origin, size, ways }
            }
            RoleKind::Destination => {
                let folder = preparing.folder()?;
                if let Some((storage, path)) = &folder {
                    allowed_folders::check_empty(&**storage, path, existing)?;
                }
                preparing.cold_destination()?;
                let connects = role.connects.iter().map(|link| {
                    let root = preparing.root(folder.as_ref(), None)?;
                    Ok((*link, root, Opens::Here))
                });
                let listens = role.listens.iter().map(|listen| {
                    let root = preparing.root(folder.as_ref(), listen.folder.as_deref())?;
                    let listener = LaneListener::open(listen.address, key(&listen.link), preparing.listening)?;
                    Ok((listen.link, root, Opens::There(listener)))
                });
                Self::Destination { arrivals: connects.chain(listens).collect::<Result<_, CopyError>>()? }
            }
            RoleKind::Copier { folder: name } if role.connects.is_empty() => {
                let folder = preparing.folder()?;
                preparing.check_apart(folder.as_ref())?;
                let root = preparing.root(folder.as_ref(), name.as_deref())?;
                if let (Some(root), Some((_, path))) = (&root, &folder) {
                    allowed_folders::check_empty(&*root.storage, path, existing)?;
                }
                let (origin, size) = preparing.origin()?;
                Self::Copier { origin, size, into: Into::Root(root) }
            }
            RoleKind::Copier { .. } => {
                let (origin, size) = preparing.origin()?;
                Self::Copier { origin, size, into: Into::Servers(role.connects.clone()) }
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
                    let folder = folder.descriptor().map_err(CopyError::at("dup", &path))?;
                    let share = NfsShare::start(folder, key(&listen.link), listen.address, preparing.listening)?;
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

    /// Where its links are listened on.
    pub(crate) fn endpoints(&self) -> Vec<(LinkId, SocketAddr)> {
        match self {
            Self::Copier { .. } => Vec::new(),
            Self::Source { ways, .. } => ways.iter().filter_map(|(link, way)| Some((*link, way.address()?))).collect(),
            Self::Destination { arrivals } => {
                arrivals.iter().filter_map(|(link, _, way)| Some((*link, way.address()?))).collect()
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
        let key = |link: &LinkId| listener_key(&assignment.key, link.0);
        let options = &task.options;
        let open = |link: LinkId, way| match way {
            Opens::Here => Lanes::connect(address(&link)?, &key(&link), options, control),
            Opens::There(listener) => Lanes::accept(listener, options, control),
        };
        Ok(match self {
            Self::Source { origin, size, ways } => {
                let connect = |(link, way)| open(link, way).map(Target::from);
                Connected::Source { origin, size, targets: ways.into_iter().map(connect).collect::<Result<_, _>>()? }
            }
            Self::Destination { arrivals } => thread::scope(|scope| {
                let open = &open;
                let accept = |(link, root, way)| scope.spawn(move || Ok((root, Arrival::from(open(link, way)?))));
                let threads: Vec<_> = arrivals.into_iter().map(accept).collect();
                let accepted = threads
                    .into_iter()
                    .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
                Ok::<_, CopyError>(Connected::Destination { arrivals: accepted.collect::<Result<_, CopyError>>()? })
            })?,
            Self::Copier { origin, size, into: Into::Root(root) } => {
                Connected::Copier { origin, size, roots: vec![root] }
            }
            Self::Copier { origin, size, into: Into::Servers(links) } => {
                let connect = |link| {
                    let (storage, path) = storage::of_agent(address(link)?, &key(link), control)?;
                    let root = prepare::root(storage, &path, task, assignment, control)?;
                    allowed_folders::check_empty(&*root.storage, &path, options.existing)?;
                    Ok(Some(root))
                };
                Connected::Copier { origin, size, roots: links.iter().map(connect).collect::<Result<_, CopyError>>()? }
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
        let ((files, bytes), times) = match self {
            Self::Source { size, targets, .. } => (*size, targets.len() as u64),
            Self::Copier { size, roots, .. } => (*size, roots.len() as u64),
            Self::Destination { .. } | Self::FileServer { .. } => return (0, 0),
        };
        (files * times, bytes * times)
    }

    /// Copies from `start` on, a moment of the monotonic clock, to the end.
    pub(crate) fn run(self, start: u64, options: &CopyOptions, control: &Control) -> CopyCounts {
        let sides = match self {
            Self::Copier { origin, roots, .. } => thread::scope(|scope| {
                let origin = &origin;
                let copy = |root| scope.spawn(move || path::copy(origin, root, options, start, control));
                let sides: Vec<_> = roots.iter().map(|root| copy(root.as_ref())).collect();
                sides.into_iter().map(|side| counted(side, CopyStage::Read, control)).collect()
            }),
            Self::FileServer { shares } => {
                serve(&shares, control);
                Vec::new()
            }
            Self::Source { origin, targets, .. } => thread::scope(|scope| {
                let origin = &origin;
                let send = |target: Target| scope.spawn(move || target.send(origin, options, start, control));
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

/// What a side counted. One that panicked counts as a fault, and its counts are lost.
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
