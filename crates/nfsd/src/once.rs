//! Replies to calls that must not be done twice. A call over UDP may come again because its reply was lost, and a
//! second REMOVE would find nothing to remove. The last replies to such calls are kept and sent again.

use linerate_oncrpc::server::Call;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

/// Number of replies kept: more than come while a caller waits to send again.
const KEPT: usize = 4_096;
/// Largest reply that is kept; these procedures have no longer one.
const REPLY_MAXIMUM: usize = 512;

/// The replies kept.
#[derive(Debug, Default)]
pub(super) struct Once {
    kept: Mutex<Kept>,
    hasher: RandomState,
}

#[derive(Debug, Default)]
struct Kept {
    replies: HashMap<Same, Vec<u8>>,
    order: VecDeque<Same>,
}

/// Identity of a call: caller, xid, and a hash of the arguments.
type Same = (SocketAddr, u32, u64);

impl Once {
    /// Appends the reply to this very call if it was kept, or what `act` appends, which is then kept.
    pub(super) fn or<E>(
        &self,
        call: &Call<'_>,
        reply: &mut Vec<u8>,
        act: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let same = (call.peer, call.xid, self.hasher.hash_one((call.procedure, call.args)));
        let lock = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = lock().replies.get(&same) {
            reply.extend_from_slice(kept);
            return Ok(());
        }
        let start = reply.len();
        act(reply)?;
        let mut kept = lock();
        if reply.len() - start <= REPLY_MAXIMUM && kept.replies.insert(same, reply[start..].to_vec()).is_none() {
            kept.order.push_back(same);
        }
        if kept.order.len() > KEPT
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.replies.remove(&oldest);
        }
        Ok(())
    }
}
