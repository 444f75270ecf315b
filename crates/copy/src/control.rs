//! State that all threads of a role share on a host: stop, faults, progress.

use crate::progress::Progress;
use crate::stage_meter::StageMeters;
use linerate_model::{CopyFault, CopyOnError, CopyStage};
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Faults that are reported one by one; others are counted.
const FAULTS_KEPT: usize = 100;
/// Bytes of a fault's path, and of its reason, that are kept: both may be a peer's choice.
const FAULT_TEXT: usize = 2 << 10;
/// Memory of a role's faults.
pub(crate) const FAULTS_MEMORY: u64 = 2 * (FAULTS_KEPT * FAULT_TEXT) as u64;

/// Stops a role's threads, and keeps what went wrong.
#[derive(Debug)]
pub(crate) struct Control {
    on_error: CopyOnError,
    stopped: AtomicBool,
    faults: Mutex<Vec<CopyFault>>,
    faults_total: AtomicU64,
    /// A server that it needs is gone.
    lost: AtomicBool,
    /// Connections, so that threads that wait on them are woken.
    connections: Mutex<Vec<TcpStream>>,
    /// The whole session's.
    progress: Arc<Progress>,
}

impl Control {
    /// The control of a role that has not begun. Files in place are added to `progress`.
    pub(crate) fn new(on_error: CopyOnError, progress: Arc<Progress>) -> Self {
        Self {
            on_error,
            stopped: AtomicBool::new(false),
            faults: Mutex::default(),
            faults_total: AtomicU64::new(0),
            lost: AtomicBool::new(false),
            connections: Mutex::default(),
            progress,
        }
    }

    /// Ends the copy at once: nothing half-written keeps its final name.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        for connection in self.connections().drain(..) {
            // One that is closed already needs no closing.
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Counts files and bytes that are done: that have their names at the destination.
    pub(crate) fn done(&self, files: u64, bytes: u64) {
        self.progress.add(files, bytes);
    }

    /// Counts bytes that were sent.
    pub(crate) fn sent(&self, bytes: u64) {
        self.progress.add_sent(bytes);
    }

    /// Returns the running times of the stages.
    pub(crate) fn stages(&self) -> &Arc<StageMeters> {
        self.progress.stages()
    }

    /// Keeps a connection, to be closed by [`Self::stop`].
    pub(crate) fn keep(&self, connection: &TcpStream) -> io::Result<()> {
        let kept = connection.try_clone()?;
        self.connections().push(kept);
        // The stop may have come just before.
        if self.is_stopped() {
            self.stop();
        }
        Ok(())
    }

    /// Notes what could not be copied.
    pub(crate) fn fault(&self, path: &[u8], stage: CopyStage, reason: impl ToString) {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        if faults.len() < FAULTS_KEPT {
            let path = shortened(crate::entry::shown(path));
            faults.push(CopyFault { path, stage, reason: shortened(reason.to_string()) });
        }
        drop(faults);
        self.faults_total.fetch_add(1, Ordering::AcqRel);
    }

    /// Notes what could not be copied because of `error`. Where that says that a server is lost, all of the copy ends,
    /// and what fails because of that is not reported one by one.
    pub(crate) fn failed(&self, path: &[u8], stage: CopyStage, error: &io::Error) {
        let lost = error.kind() == io::ErrorKind::NotConnected;
        if !(lost && (self.lost.swap(true, Ordering::AcqRel) || self.is_stopped())) {
            self.fault(path, stage, error);
        }
    }

    /// Whether a fault ends the copy, and there was one.
    pub(crate) fn gave_up(&self) -> bool {
        let ends = self.on_error == CopyOnError::Stop && self.faults_total.load(Ordering::Acquire) > 0;
        ends || self.lost.load(Ordering::Acquire)
    }

    pub(crate) fn faults(&self) -> (Vec<CopyFault>, u64) {
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (faults, self.faults_total.load(Ordering::Acquire))
    }

    fn connections(&self) -> MutexGuard<'_, Vec<TcpStream>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A text of at most [`FAULT_TEXT`] bytes; what is left out is marked.
fn shortened(mut text: String) -> String {
    const MARK: char = '…';
    if text.len() > FAULT_TEXT {
        text.truncate(text.floor_char_boundary(FAULT_TEXT - MARK.len_utf8()));
        text.push(MARK);
        text.shrink_to_fit();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The attack: a peer sends files with paths of the greatest length, and no file can be created.
    #[test]
    fn faults_keep_little_of_long_paths() {
        let control = Control::new(CopyOnError::Continue, Arc::default());
        let path = vec![0xff; crate::entry::LONGEST_PATH];
        for _ in 0..2 * FAULTS_KEPT {
            control.fault(&path, CopyStage::Create, "no room".repeat(10_000));
        }
        let (faults, total) = control.faults();
        assert_eq!((faults.len(), total), (FAULTS_KEPT, 2 * FAULTS_KEPT as u64));
        let kept: usize = faults.iter().map(|fault| fault.path.capacity() + fault.reason.capacity()).sum();
        assert!(kept as u64 <= FAULTS_MEMORY, "{kept} bytes");
        assert!(faults[0].path.ends_with('…') && faults[0].reason.starts_with("no room"));
        control.fault(b"a/b", CopyStage::Create, "short");
        assert_eq!(shortened("a/b".to_owned()), "a/b");
    }
}
