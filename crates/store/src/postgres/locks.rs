//! Locks of the runs that this program measures.
//!
//! The program that measures a run holds an advisory lock on its number. The server drops it with the connection, and a program that
//! connects again takes it again. Another program may have been faster: the run is lost to it then.

use super::Core;
use super::connection::Connection;
use super::error::Failure;
use crate::backend::ServerLock;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Number of attempts to take a lock again. The server may still know of the connection that was lost.
const ATTEMPTS: u32 = 20;
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// Locks that this store holds.
#[derive(Default)]
pub(super) struct Locks(Mutex<State>);

#[derive(Default)]
struct State {
    /// Numbers of runs, each with a mark that is set when another program has it.
    held: BTreeMap<i64, Arc<AtomicBool>>,
    /// Numbers of runs whose locks are to end.
    released: Vec<i64>,
}

impl Locks {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether this store holds the lock of a run.
    pub(super) fn holds(&self, number: i64) -> bool {
        self.state().held.contains_key(&number)
    }

    /// Returns whether this store holds the lock of any run.
    pub(super) fn holds_any(&self) -> bool {
        !self.state().held.is_empty()
    }

    /// Records that this store holds the lock of a run.
    pub(super) fn hold(&self, number: i64) -> Arc<AtomicBool> {
        let lost = Arc::new(AtomicBool::new(false));
        self.state().held.insert(number, lost.clone());
        lost
    }

    pub(super) fn has_released(&self) -> bool {
        !self.state().released.is_empty()
    }

    /// Returns the runs whose locks are to end, once.
    pub(super) fn take_released(&self) -> Vec<i64> {
        std::mem::take(&mut self.state().released)
    }

    /// Takes the locks of a lost connection again, on a new one.
    pub(super) fn take_again(&self, connection: &mut Connection) -> Result<(), Failure> {
        // Those that were released ended with the old connection.
        let held = {
            let mut state = self.state();
            state.released.clear();
            state.held.clone()
        };
        if held.is_empty() {
            return Ok(());
        }
        connection.end_predecessor()?;
        for (number, lost) in held {
            let mut attempts = 0;
            while !connection.try_lock(number)? {
                attempts += 1;
                if attempts >= ATTEMPTS {
                    lost.store(true, Ordering::Release);
                    break;
                }
                thread::sleep(PAUSE);
            }
        }
        Ok(())
    }
}

/// Lock of a run, which ends when this is dropped.
pub(crate) struct AdvisoryLock {
    core: Arc<Core>,
    number: i64,
    lost: Arc<AtomicBool>,
}

impl AdvisoryLock {
    pub(super) fn new(core: Arc<Core>, number: i64) -> Self {
        let lost = core.locks.hold(number);
        Self { core, number, lost }
    }
}

impl ServerLock for AdvisoryLock {
    /// Another program took the run while this one had no connection.
    fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }
}

impl Drop for AdvisoryLock {
    fn drop(&mut self) {
        {
            let mut state = self.core.locks.state();
            state.held.remove(&self.number);
            if !self.is_lost() {
                state.released.push(self.number);
            }
        }
        self.core.try_unlock_released();
    }
}
