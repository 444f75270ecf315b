//! Writing a feed.

use super::{FeedFolder, LOCKED_BYTE, NEXT};
use linerate_model::{RecordId, StreamEvent, TrialState};
use linerate_sys::byte_lock::ByteLock;
use linerate_sys::{file_system, private};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

/// Length at which a feed begins again, bytes: some hours of intervals.
const LONGEST: usize = 4 << 20;
/// Length from which it begins again with the next trial.
const LONG: usize = 1 << 20;
/// Room that a disk must have, bytes. What is left of a disk that is almost full belongs to the store.
const ROOM: u64 = 64 << 20;
/// Events that wait for a slow disk, at most.
const WAITING: usize = 256;

/// Writes the feed of a run. It is removed when this is dropped.
///
/// A thread of its own writes, and nothing is flushed to the disk, so neither the run nor a measurement of storage waits for it. Where
/// the disk does not keep up, events are left out.
#[derive(Debug)]
pub struct FeedWriter {
    /// None where there is no feed.
    events: Option<SyncSender<StreamEvent>>,
    thread: Option<JoinHandle<()>>,
}

impl FeedWriter {
    /// Begins the feed of `record`; one that tells nobody where none can be written.
    pub(crate) fn begin(folder: &FeedFolder, record: &RecordId) -> Self {
        let file = folder.file(record).map(|path| FeedFile::new(folder.clone(), path));
        let (events, told) = sync_channel(WAITING);
        let thread =
            file.and_then(|file| thread::Builder::new().name("feed".into()).spawn(move || write(file, &told)).ok());
        Self { events: thread.is_some().then_some(events), thread }
    }

    /// Returns a feed that reaches nobody.
    pub(crate) fn silent() -> Self {
        Self { events: None, thread: None }
    }

    /// Appends an event. Results, verdicts and outcomes are left out: the store has them by then.
    pub fn tell(&mut self, event: StreamEvent) {
        use StreamEvent::{End, Host, Interval, Start, Trial};
        if let (Some(events), Start { .. } | Host { .. } | Trial { .. } | Interval(_) | End { .. }) =
            (&self.events, &event)
        {
            // Full or gone: the feed tells less, or nothing.
            let _ = events.try_send(event);
        }
    }
}

impl Drop for FeedWriter {
    fn drop(&mut self) {
        self.events = None;
        if let Some(thread) = self.thread.take() {
            // One that panicked has dropped its file too.
            let _ = thread.join();
        }
    }
}

/// Writes events until there are no more, or until one cannot be written.
fn write(mut file: FeedFile, told: &Receiver<StreamEvent>) {
    while let Ok(event) = told.recv() {
        if file.append(&event).is_err() {
            return;
        }
    }
}

/// The file of a feed.
#[derive(Debug)]
struct FeedFile {
    folder: FeedFolder,
    path: PathBuf,
    /// The file that is written and the lock on it; none before the first event.
    open: Option<(File, ByteLock)>,
    length: usize,
    /// The lines that a file which begins again has at its top: of the run, and of the trial that runs.
    run: Vec<u8>,
    trial: Vec<u8>,
}

impl FeedFile {
    fn new(folder: FeedFolder, path: PathBuf) -> Self {
        Self { folder, path, open: None, length: 0, run: Vec::new(), trial: Vec::new() }
    }

    fn append(&mut self, event: &StreamEvent) -> io::Result<()> {
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        match event {
            StreamEvent::Start { .. } => self.run.clone_from(&line),
            StreamEvent::Host { .. } => self.run.extend(&line),
            StreamEvent::Trial { state: TrialState::Begins, .. } => {
                self.trial.clone_from(&line);
                // Checked between trials, where it is in nobody's way.
                self.check_room()?;
                if self.length >= LONG {
                    return self.begin(&[]);
                }
            }
            _ => {}
        }
        match &mut self.open {
            Some((file, _)) if self.length + line.len() <= LONGEST => {
                file.write_all(&line)?;
                self.length += line.len();
                Ok(())
            }
            Some(_) => self.begin(&line),
            // The line is among those of the run.
            None => self.begin(&[]),
        }
    }

    /// Puts a new file in the place of the old one, with what is needed to understand `line`, and `line`. Nobody sees it without its
    /// lock, nor empty.
    fn begin(&mut self, line: &[u8]) -> io::Result<()> {
        private::make_folder(&self.folder.0)?;
        if !private::is_own_folder(&self.folder.0) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "others may write the folder of feeds"));
        }
        self.check_room()?;
        let next = self.path.with_extension(NEXT);
        let lines = [&self.run, &self.trial, line].concat();
        let made = || {
            // What a killed program left.
            if !ByteLock::is_taken(&next, LOCKED_BYTE).unwrap_or(false) {
                let _ = fs::remove_file(&next);
            }
            let lock = ByteLock::take_new(&next, LOCKED_BYTE).map_err(io::Error::other)?;
            let lock = lock.ok_or(io::ErrorKind::ResourceBusy)?;
            let mut file = lock.file().try_clone()?;
            file.write_all(&lines)?;
            fs::rename(&next, &self.path)?;
            Ok((file, lock))
        };
        let made: io::Result<(File, ByteLock)> = made();
        if made.is_err() {
            let _ = fs::remove_file(&next);
        }
        // The old one goes with its lock.
        self.open = Some(made?);
        self.length = lines.len();
        Ok(())
    }

    /// Fails where the disk is almost full.
    fn check_room(&self) -> io::Result<()> {
        if file_system::free_bytes(&self.folder.0)? < ROOM { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

impl Drop for FeedFile {
    fn drop(&mut self) {
        if self.open.is_some() {
            // Whoever opens the store next tries again.
            let _ = fs::remove_file(&self.path);
        }
    }
}
