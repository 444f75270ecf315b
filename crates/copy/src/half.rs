//! A host's part in a copy: made ready, started, done.

use crate::allowed_folders::{self, AllowedFolders, Scratch};
use crate::cache;
use crate::connection::LaneListener;
use crate::destination::root::Root;
use crate::side::Side;
use crate::source::Origin;
use crate::storage::{self, Storage};
use crate::tree::Made;
use crate::ways::linerate::{Arrival, Target};
use crate::ways::path;
use crate::{Control, CopyError};
use linerate_model::{
    Caveat, CopyCache, CopyExisting, CopyFault, CopyFrom, CopyHalf, CopyInto, CopyLinks, CopyOnError, CopyOptions,
    CopyRole, CopySide, CopyStage, CopySync, CopyTree, CopyVerify, TrialKey,
};
use linerate_nfsd::NfsShare;
use linerate_sys::clock;
use linerate_units::{ByteCount, Nanos};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle, ScopedJoinHandle};
use std::time::Duration;

/// Most pipelines side by side to one host.
pub const MOST_LANES: u16 = 64;
/// Open files that are asked for.
const FILES_WANTED: u64 = 1 << 16;
/// Bytes of the key that temporary names show.
const MARK_BYTES: usize = 4;

/// A host's part, ready to start.
pub struct Ready {
    part: Part,
    options: CopyOptions,
    control: Arc<Control>,
    caveats: Vec<Caveat>,
    started: Arc<AtomicU64>,
    listening: Vec<SocketAddr>,
    files: u64,
    bytes: u64,
    /// What its folders are on.
    devices: Vec<u64>,
    /// Removed when all is done.
    _scratch: Vec<Scratch>,
}

/// What a host counted.
#[derive(Debug)]
pub struct Counts {
    /// When it started, nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// A side for each host at the other end.
    pub sides: Vec<CopySide>,
    /// What was not copied, the first of them.
    pub faults: Vec<CopyFault>,
    /// How many things were not copied.
    pub faults_total: u64,
    /// Doubts.
    pub caveats: Vec<Caveat>,
}

enum Part {
    Source { origin: Origin, targets: Vec<Target> },
    Destination { arrivals: Vec<Arriving> },
    Alone { origin: Origin, roots: Vec<Option<Root>> },
    Server { shares: Vec<NfsShare> },
}

/// A source whose connections are being accepted.
struct Arriving {
    root: Option<Root>,
    lanes: JoinHandle<Result<Arrival, CopyError>>,
}

/// Makes a host's part ready: its tree is there, its folder is open, its connections stand. `say` is told what takes a while.
pub fn prepare(
    half: &CopyHalf,
    allowed: &AllowedFolders,
    control: &Arc<Control>,
    say: &dyn Fn(&str),
) -> Result<Ready, CopyError> {
    raise_file_limit();
    let mut preparing =
        Preparing { half, allowed, control, say, devices: BTreeSet::new(), scratch: Vec::new(), caveats: Vec::new() };
    preparing.check()?;
    let started = Arc::new(AtomicU64::new(0));
    let (mut listening, mut count) = (Vec::new(), (0, 0));
    let part = match &half.role {
        CopyRole::Source { tree, from, targets } => {
            let origin;
            (origin, count) = preparing.origin(tree, from)?;
            say("connecting");
            let connect = |address: &SocketAddr| Target::connect(*address, &half.key, &half.options, control);
            Part::Source { origin, targets: targets.iter().map(connect).collect::<Result<_, _>>()? }
        }
        CopyRole::Destination { into, sources } => {
            let folder = preparing.folder(into)?;
            if let Some((storage, path)) = &folder {
                allowed_folders::check_empty(&**storage, path, half.options.existing)?;
            }
            preparing.cold_destination()?;
            let mut arrivals = Vec::new();
            for origin in sources {
                let root = preparing.root(folder.as_ref(), origin.folder.as_deref())?;
                let listener = LaneListener::open(origin.listen)?;
                listening.push(listener.address);
                let (key, options): (TrialKey, CopyOptions) = (half.key, half.options);
                let (control, started) = (Arc::clone(control), Arc::clone(&started));
                let lanes = thread::spawn(move || {
                    Arrival::accept(listener, &key, &options, &control, &|| started.load(Ordering::Acquire) > 0)
                });
                arrivals.push(Arriving { root, lanes });
            }
            Part::Destination { arrivals }
        }
        CopyRole::Alone { tree, from, into, folder } => {
            let mut roots = Vec::new();
            for into in into {
                let whole = preparing.folder(into)?;
                if let (CopyTree::Folder(source), CopyFrom::Files, Some((_, path))) = (tree, from, &whole) {
                    apart(&allowed.source(source)?.1, path)?;
                }
                let root = preparing.root(whole.as_ref(), folder.as_deref())?;
                if let (Some(root), Some((_, path))) = (&root, &whole) {
                    allowed_folders::check_empty(&*root.storage, path, half.options.existing)?;
                }
                roots.push(root);
            }
            let origin;
            (origin, count) = preparing.origin(tree, from)?;
            Part::Alone { origin, roots }
        }
        CopyRole::Server { into, sources } => {
            let (folder, path) = preparing.served(into)?;
            allowed_folders::check_empty(&*folder, &path, half.options.existing)?;
            preparing.cold_destination()?;
            let mut shares = Vec::new();
            for origin in sources {
                let path = match &origin.folder {
                    Some(name) => allowed_folders::below(&*folder, name, &path).map(|_| path.join(name))?,
                    None => path.clone(),
                };
                let share = NfsShare::start(&path, half.key, origin.listen)?;
                listening.push(share.address());
                shares.push(share);
            }
            Part::Server { shares }
        }
    };
    if control.is_stopped() {
        return Err(CopyError::Stopped);
    }
    let Preparing { devices, scratch, caveats, .. } = preparing;
    let devices = devices.into_iter().collect();
    let (files, bytes) = count;
    let (options, control) = (half.options, Arc::clone(control));
    Ok(Ready { part, options, control, caveats, started, listening, files, bytes, devices, _scratch: scratch })
}

/// What a part needs while it is made ready.
struct Preparing<'a> {
    half: &'a CopyHalf,
    allowed: &'a AllowedFolders,
    control: &'a Arc<Control>,
    say: &'a dyn Fn(&str),
    devices: BTreeSet<u64>,
    scratch: Vec<Scratch>,
    caveats: Vec<Caveat>,
}

/// An open folder and its real path, or its name on a server.
type Folder = (Box<dyn Storage>, PathBuf);

impl Preparing<'_> {
    /// Refuses what does not go together.
    fn check(&self) -> Result<(), CopyError> {
        let impossible = |why: &str| Err(CopyError::Impossible(why.to_owned()));
        let CopyOptions { lanes, verify, existing, .. } = self.half.options;
        let (from, tree, into) = match &self.half.role {
            CopyRole::Source { tree, from, .. } => (Some(from), Some(tree), None),
            CopyRole::Destination { into, .. } => (None, None, Some(into)),
            CopyRole::Alone { tree, from, into, .. } => (Some(from), Some(tree), into.first()),
            CopyRole::Server { into, .. } => (None, None, Some(into)),
        };
        if !(1..=MOST_LANES).contains(&lanes) {
            return Err(CopyError::Impossible(format!("{lanes} lanes: choose 1 to {MOST_LANES}")));
        }
        if from == Some(&CopyFrom::Memory) && matches!(tree, Some(CopyTree::Folder(_))) {
            return impossible("a folder is read from files; only a made tree, as like:system, can come from memory");
        }
        if into == Some(&CopyInto::Discard) && matches!(self.half.role, CopyRole::Server { .. }) {
            return impossible("a folder is served; what is to be discarded goes nowhere");
        }
        if into == Some(&CopyInto::Discard) && (verify == CopyVerify::ReadBack || existing != CopyExisting::Refuse) {
            return impossible("what is discarded can neither be read back, nor replace or resume anything");
        }
        if matches!(self.half.role, CopyRole::Alone { .. }) && verify == CopyVerify::Received {
            return impossible("nothing is received where one host does it all; verify by reading back");
        }
        Ok(())
    }

    /// The tree to read, with its files and bytes.
    fn origin(&mut self, tree: &CopyTree, from: &CopyFrom) -> Result<(Origin, (u64, u64)), CopyError> {
        let cache = self.half.options.cache;
        let (storage, path, count): (Box<dyn Storage>, _, _) = match (tree, from) {
            (_, CopyFrom::Server(server)) => {
                (self.say)("connecting to the server");
                let (storage, path) = storage::connect(server, self.half, false, self.control)?;
                (self.say)("counting the tree");
                let count = allowed_folders::count(&*storage, &path)?;
                (storage, path, count)
            }
            (CopyTree::Made(made), CopyFrom::Memory) => {
                return Ok((Origin::Memory(Made::new(*made)), (made.files, made.bytes.get())));
            }
            (CopyTree::Made(made), CopyFrom::Files) => {
                let scratch = self.allowed.scratch(made.bytes)?;
                (self.say)("making the tree");
                self.make(&Origin::Memory(Made::new(*made)), &scratch)?;
                let storage = scratch.storage.another();
                self.scratch.push(scratch);
                (storage, PathBuf::from("the made tree"), (made.files, made.bytes.get()))
            }
            (CopyTree::Folder(path), _) => {
                let (folder, path) = self.allowed.source(path)?;
                (self.say)("counting the tree");
                let count = allowed_folders::count(&folder, &path)?;
                (Box::new(folder), path, count)
            }
        };
        if cache != CopyCache::AsIs {
            (self.say)(if cache == CopyCache::Cold { "emptying the caches" } else { "reading the tree once" });
        }
        self.caveats.extend(cache::prepare(cache, Some((&*storage, &path)), self.control)?);
        self.devices.extend(storage.device());
        Ok((Origin::Folder(storage), count))
    }

    /// Writes a made tree.
    fn make(&self, made: &Origin, scratch: &Scratch) -> Result<(), CopyError> {
        let options = CopyOptions {
            lanes: 2,
            verify: CopyVerify::None,
            sync: CopySync::None,
            cache: CopyCache::AsIs,
            on_error: CopyOnError::Stop,
            existing: CopyExisting::Refuse,
            links: CopyLinks::Copy,
        };
        let root = Root::new(scratch.storage.another(), CopyExisting::Refuse, self.mark());
        let making = Control::new(CopyOnError::Stop);
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

    /// The folder to write; none if all goes nowhere.
    fn folder(&mut self, into: &CopyInto) -> Result<Option<Folder>, CopyError> {
        let folder: Option<Folder> = match into {
            CopyInto::Discard => None,
            CopyInto::Scratch => {
                let scratch = self.allowed.scratch(ByteCount::default())?;
                let storage = scratch.storage.another();
                self.scratch.push(scratch);
                Some((storage, PathBuf::from("the copy's own folder")))
            }
            CopyInto::Folder(path) => {
                let (folder, path) = self.allowed.destination(path)?;
                Some((Box::new(folder), path))
            }
            CopyInto::Server(server) => {
                (self.say)("connecting to the server");
                Some(storage::connect(server, self.half, true, self.control)?)
            }
        };
        self.devices.extend(folder.as_ref().and_then(|(storage, _)| storage.device()));
        Ok(folder)
    }

    /// The folder to serve, as [`Self::folder`] has it, and where it is on this host.
    fn served(&mut self, into: &CopyInto) -> Result<Folder, CopyError> {
        let folder = self.folder(into)?;
        let unfit = || CopyError::Impossible(String::from("a host serves a folder of its own only"));
        let (storage, path) = folder.ok_or_else(unfit)?;
        match (into, self.scratch.last()) {
            (CopyInto::Scratch, Some(scratch)) => Ok((storage, scratch.path().to_owned())),
            _ => Ok((storage, path)),
        }
    }

    /// Where a tree is put: `folder`, or one below it called `name`.
    fn root(&self, folder: Option<&Folder>, name: Option<&str>) -> Result<Option<Root>, CopyError> {
        let Some((storage, path)) = folder else { return Ok(None) };
        let storage = match name {
            Some(name) => allowed_folders::below(&**storage, name, path)?,
            None => storage.another(),
        };
        allowed_folders::root(storage, path, self.half.options.existing, &self.mark()).map(Some)
    }

    /// A destination's caches hold nothing of the tree but names; dropping them makes both ends alike.
    fn cold_destination(&mut self) -> Result<(), CopyError> {
        if self.half.options.cache == CopyCache::Cold {
            self.caveats.extend(cache::prepare(CopyCache::Cold, None, self.control)?);
        }
        Ok(())
    }

    /// Of temporary names: another copy into the same folder has another.
    fn mark(&self) -> String {
        self.half.key.0[..MARK_BYTES].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// A tree cannot be copied into itself.
fn apart(source: &Path, destination: &Path) -> Result<(), CopyError> {
    if destination.starts_with(source) {
        let why = format!("{} is inside {}: the copy would copy itself", destination.display(), source.display());
        return Err(CopyError::Impossible(why));
    }
    Ok(())
}

/// Each lane keeps some hundred files open.
fn raise_file_limit() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let wanted = hard.min(FILES_WANTED);
        if soft < wanted {
            // Without it, many lanes run into the limit, and the files that suffer are named.
            let _ = setrlimit(Resource::RLIMIT_NOFILE, wanted, hard);
        }
    }
}

impl Ready {
    /// Where a destination listens, an address for each source.
    pub fn listening(&self) -> &[SocketAddr] {
        &self.listening
    }

    /// Numbers of the devices that its folders are on, as their files have them (`st_dev`).
    pub fn devices(&self) -> &[u64] {
        &self.devices
    }

    /// Files and bytes that a source has to copy.
    pub fn count(&self) -> (u64, u64) {
        (self.files, self.bytes)
    }

    /// Copies from `at` on, a moment of the monotonic clock, to the end.
    pub fn run(self, at: u64) -> Counts {
        let Self { part, options, control, caveats, started, _scratch, .. } = self;
        started.store(at.max(1), Ordering::Release);
        clock::sleep_until(at);
        control.starts_at(at.max(1));
        let started_unix_ns = clock::unix_now();
        let sides = match part {
            Part::Alone { origin, roots } => thread::scope(|scope| {
                let (origin, options, control) = (&origin, &options, &control);
                let copy = |root| scope.spawn(move || path::copy(origin, root, options, at, control));
                let sides: Vec<_> = roots.iter().map(|root| copy(root.as_ref())).collect();
                sides.into_iter().map(|side| counted(side, CopyStage::Read, control)).collect()
            }),
            Part::Server { shares } => {
                serve(&shares, &control);
                Vec::new()
            }
            Part::Source { origin, targets } => thread::scope(|scope| {
                let send = |target: Target| scope.spawn(|| target.send(&origin, &options, at, &control));
                let sides: Vec<_> = targets.into_iter().map(send).collect();
                sides.into_iter().map(|side| counted(side, CopyStage::Send, &control)).collect()
            }),
            Part::Destination { arrivals } => thread::scope(|scope| {
                let receive = |arriving| scope.spawn(|| arrive(arriving, &options, at, &control));
                let sides: Vec<_> = arrivals.into_iter().map(receive).collect();
                sides.into_iter().map(|side| counted(side, CopyStage::Receive, &control)).collect()
            }),
        };
        let (faults, faults_total) = control.faults();
        Counts { started_unix_ns, sides, faults, faults_total, caveats }
    }
}

/// What a side counted. One that panicked has nothing to show, and is no copy that came to its end without a word.
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

fn arrive(arriving: Arriving, options: &CopyOptions, at: u64, control: &Control) -> CopySide {
    let arrival = arriving.lanes.join().unwrap_or(Err(CopyError::Stopped));
    match arrival {
        Ok(arrival) => arrival.receive(arriving.root.as_ref(), options, at, control),
        Err(error) => {
            if !control.is_stopped() {
                control.fault(b"", CopyStage::Receive, error);
            }
            Side::default().result(Nanos::default(), false)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_that_panics_is_a_fault() {
        let control = Control::new(CopyOnError::Continue);
        let side = thread::scope(|scope| counted(scope.spawn(|| panic!("planted")), CopyStage::Send, &control));
        assert!(!side.complete);
        let (faults, total) = control.faults();
        assert_eq!((faults[0].stage, total), (CopyStage::Send, 1));
    }
}
