//! A thread with a runtime of its own: the store is called from other runtimes, which must not be entered again.

use std::future::Future;
use std::io;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// The thread, which ends when this is dropped.
pub(super) struct RuntimeThread {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl RuntimeThread {
    pub(super) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name("postgres".into()).spawn(move || {
            // An error means that the sender is gone, and with it the store.
            let _ = runtime.block_on(stopped);
        })?;
        Ok(Self { handle, stop: Some(stop), thread: Some(thread) })
    }

    /// Runs a future on the thread and waits for its result. Returns `None` if the future panicked.
    pub(super) fn run<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> Option<T> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.handle.spawn(async move {
            // The receiver waits below.
            let _ = sender.send(future.await);
        });
        receiver.recv().ok()
    }

    /// Runs a future on the thread without waiting for it.
    pub(super) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(future);
    }
}

impl Drop for RuntimeThread {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended as well.
            let _ = thread.join();
        }
    }
}
