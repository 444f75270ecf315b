//! Calls that set up or tidy up: many under way, each answered well or the whole ended.

use crate::answers::{self, Answer};
use crate::{calls, status};
use linerate_model::{NfsOperation, Transport};
use linerate_oncrpc::RpcError;
use linerate_oncrpc::client::Caller;
use linerate_oncrpc::message::{Credential, Reply};
use linerate_sys::clock;
use linerate_units::Nanos;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};

/// Calls under way over a connection.
const WINDOW_TCP: usize = 64;
/// Calls under way over UDP: few, so that a server with small buffers loses none.
const WINDOW_UDP: usize = 8;
/// Time within which a stop is noticed.
const TICK_NS: u64 = 50_000_000;
/// Interval of retries while a server is not ready (NFS3ERR_JUKEBOX).
const AGAIN_NS: u64 = 100_000_000;

/// Makes calls until a deadline.
pub(crate) struct Session<'a> {
    pub(crate) caller: &'a mut Caller,
    pub(crate) credential: &'a Credential,
    pub(crate) transport: Transport,
    /// By [`clock::now`].
    pub(crate) deadline: u64,
    /// Rate limit of calls, in bit/s; `None` sets no limit.
    pub(crate) rate: Option<u64>,
    /// Ends it at once.
    pub(crate) stop: &'a AtomicBool,
}

impl Session<'_> {
    /// Makes calls 0 to `count`, in order but not one by one: `ask` packs the arguments of each, `take` gets its
    /// answer. `what` says what it is all for.
    pub(crate) fn run(
        &mut self,
        what: &str,
        count: usize,
        mut ask: impl FnMut(usize, &mut Vec<u8>) -> NfsOperation,
        mut take: impl FnMut(usize, Answer<'_>) -> Result<(), RpcError>,
    ) -> Result<(), RpcError> {
        let window = if self.transport == Transport::Udp { WINDOW_UDP } else { WINDOW_TCP };
        let server = self.caller.server();
        let mut under_way: HashMap<u32, (usize, NfsOperation)> = HashMap::new();
        let mut again: VecDeque<(u64, usize)> = VecDeque::new();
        let mut next = 0;
        let mut done = 0;
        let mut arguments = Vec::new();
        // When the rate allows the next call.
        let mut allowed = clock::now();
        while done < count {
            let now = clock::now();
            if self.stop.load(Ordering::Relaxed) {
                return Err(RpcError::Stopped);
            }
            if now >= self.deadline {
                return Err(RpcError::TooLong { server, what: what.to_owned(), done, count });
            }
            while under_way.len() < window && allowed <= now {
                let index = match again.front() {
                    Some((due, index)) if *due <= now => {
                        let index = *index;
                        again.pop_front();
                        index
                    }
                    _ if next < count => {
                        next += 1;
                        next - 1
                    }
                    _ => break,
                };
                let operation = ask(index, &mut arguments);
                let xid = self.caller.call(calls::procedure(operation), self.credential, &arguments);
                under_way.insert(xid, (index, operation));
                if let Some(rate) = self.rate {
                    // A pause is not made up for: the limit holds at any moment.
                    allowed = allowed.max(now) + (arguments.len() as u128 * 8_000_000_000 / u128::from(rate)) as u64;
                }
            }
            let mut failure = None;
            let mut until = again.front().map_or(TICK_NS, |(due, _)| due.saturating_sub(now).min(TICK_NS));
            if allowed > now {
                until = until.min(allowed - now);
            }
            self.caller.poll(Nanos::new(until), &mut |xid, reply| {
                let Some((index, operation)) = under_way.remove(&xid) else { return };
                let taken = match reply {
                    Reply::Accepted(results) => match answers::read(operation, results) {
                        Some(Answer::Failed(status::JUKEBOX)) => {
                            again.push_back((clock::now() + AGAIN_NS, index));
                            return;
                        }
                        Some(answer) => take(index, answer),
                        None => Err(malformed(server, operation)),
                    },
                    Reply::Refused(why) => Err(RpcError::refused(server, format!("{operation} for {what}"), why)),
                    Reply::Lost => {
                        let what = format!("{operation} for {what}");
                        let reason = "no reply".to_owned();
                        Err(RpcError::NoAnswer { server, what, seconds: 15, reason })
                    }
                };
                done += 1;
                failure = failure.take().or(taken.err());
            })?;
            if let Some(error) = failure {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Makes one call, and returns what `take` makes of its answer.
    pub(crate) fn one<T>(
        &mut self,
        what: &str,
        ask: &calls::Ask<'_>,
        mut take: impl FnMut(Answer<'_>) -> Result<T, RpcError>,
    ) -> Result<T, RpcError> {
        let mut answer = None;
        self.run(
            what,
            1,
            |_, into| ask.pack(into),
            |_, given| {
                answer = Some(take(given)?);
                Ok(())
            },
        )?;
        Ok(answer.expect("the call was answered"))
    }

    /// The server did not do what set-up needs.
    pub(crate) fn unfit(&self, what: impl Into<String>, answer: Answer<'_>) -> RpcError {
        let reason = match answer {
            Answer::Failed(status) => format!("{}{}", status::name(status), status::remedy(status)),
            other => format!("it answered {other:?}"),
        };
        RpcError::Refused { server: self.caller.server(), what: what.into(), reason }
    }
}

/// The server answered `operation` with results that are none.
pub(crate) fn malformed(server: std::net::SocketAddr, operation: NfsOperation) -> RpcError {
    let what = format!("its results of {operation} are not those of RFC 1813");
    RpcError::Malformed { peer: server, what }
}
