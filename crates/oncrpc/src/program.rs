//! linerate's own RPC program, for which docs/linerate.x is the contract: calls that do nothing but carry data.

use crate::greeting::{PROGRAM, VERSION};
use crate::message::{Refused, Rest, put, put_opaque};
use crate::server::{Call, Moved, Program};
use linerate_engine::Timeline;
use linerate_model::{RpcCall, RpcTask, Transport};
use std::collections::{HashSet, VecDeque};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Mutex;

/// Calls over UDP that are remembered, so that one that comes again is not counted twice.
const REMEMBERED: usize = 8_192;

/// The number of the procedure that does `call`.
pub(crate) fn number(call: RpcCall) -> u32 {
    match call {
        RpcCall::Null => 0,
        RpcCall::Write => 1,
        RpcCall::Read => 2,
        RpcCall::Echo => 3,
    }
}

/// The arguments of a call that is to carry `data`.
pub(crate) fn arguments(call: RpcCall, data: &[u8]) -> Vec<u8> {
    let mut args = Vec::new();
    match call {
        RpcCall::Null => (),
        RpcCall::Write | RpcCall::Echo => put_opaque(&mut args, data),
        RpcCall::Read => put(&mut args, data.len() as u32),
    }
    args
}

/// Returns the number of data bytes in `results`. Returns `None` if they do not carry `expected` bytes where they
/// should.
pub(crate) fn carried(call: RpcCall, results: &[u8], expected: usize) -> Option<usize> {
    let mut rest = Rest(results);
    let carried = match call {
        RpcCall::Null | RpcCall::Write => Some(0),
        RpcCall::Read | RpcCall::Echo => Some(rest.opaque(expected)?.len()).filter(|length| *length == expected),
    };
    carried.filter(|_| rest.0.is_empty())
}

/// The program at work.
#[derive(Debug)]
pub(crate) struct TestProgram {
    /// Data of replies; empty if the program carries no data.
    data: Vec<u8>,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    /// Load over whose window calls count; `None` counts every call.
    timeline: Option<Timeline>,
    /// Within the window.
    moved: Moved,
    /// Since the load began.
    moved_so_far: Moved,
    seen: Seen,
}

impl TestProgram {
    /// Makes a program that carries data for every admitted caller.
    pub(crate) fn new() -> Self {
        let mut data = vec![0; RpcTask::TCP_MAXIMUM as usize];
        rand::fill(&mut data[..]);
        Self { data, ..Self::without_data() }
    }

    /// Answers null calls only.
    pub(crate) fn without_data() -> Self {
        Self { data: Vec::new(), counts: Mutex::default() }
    }

    fn count(&self, call: &Call<'_>, received: Option<usize>, sent: Option<usize>) {
        let mut counts = self.counts.lock().expect("no holder panics");
        let is_copy = call.transport == Transport::Udp && !counts.seen.is_new((call.peer, call.xid));
        let in_window = counts.timeline.as_ref().is_none_or(|timeline| timeline.in_window(call.arrived_ns));
        counts.moved_so_far.add(is_copy, received, sent);
        if in_window {
            counts.moved.add(is_copy, received, sent);
        }
    }
}

impl Program for TestProgram {
    fn number(&self) -> u32 {
        PROGRAM
    }

    fn versions(&self) -> RangeInclusive<u32> {
        VERSION..=VERSION
    }

    fn call(&self, call: &Call<'_>, reply: &mut Vec<u8>) -> Result<Option<u64>, Refused> {
        let admit = || if self.data.is_empty() { Err(Refused::TOO_WEAK) } else { Ok(()) };
        let mut rest = Rest(call.args);
        // A reply that would not fit a datagram is not begun.
        let most = match call.transport {
            Transport::Tcp => RpcTask::TCP_MAXIMUM,
            Transport::Udp => RpcTask::UDP_MAXIMUM,
        } as usize;
        let (received, sent) = match call.procedure {
            0 => (None, None),
            1 => {
                admit()?;
                let data = rest.opaque(most).ok_or(Refused::GarbageArguments)?;
                (Some(data.len()), None)
            }
            2 => {
                admit()?;
                let length = rest.word().ok_or(Refused::GarbageArguments)? as usize;
                let data = self.data.get(..length).filter(|_| length <= most).ok_or(Refused::GarbageArguments)?;
                put_opaque(reply, data);
                (None, Some(length))
            }
            3 => {
                admit()?;
                let data = rest.opaque(most).ok_or(Refused::GarbageArguments)?;
                put_opaque(reply, data);
                (Some(data.len()), Some(data.len()))
            }
            _ => return Err(Refused::ProcedureUnavailable),
        };
        if !rest.0.is_empty() {
            return Err(Refused::GarbageArguments);
        }
        if call.procedure != 0 {
            self.count(call, received, sent);
        }
        Ok(None)
    }

    fn observe(&self, timeline: &Timeline) {
        let mut counts = self.counts.lock().expect("no holder panics");
        (counts.moved, counts.moved_so_far) = (Moved::default(), Moved::default());
        counts.timeline = Some(timeline.clone());
    }

    fn moved(&self) -> Option<Moved> {
        Some(self.counts.lock().expect("no holder panics").moved)
    }

    fn moved_so_far(&self) -> Option<Moved> {
        Some(self.counts.lock().expect("no holder panics").moved_so_far)
    }
}

impl Moved {
    /// Counts a call and the bytes of data that it and its reply carried; a copy of an earlier call counts as a
    /// duplicate only.
    fn add(&mut self, is_copy: bool, received: Option<usize>, sent: Option<usize>) {
        if is_copy {
            self.duplicates += 1;
            return;
        }
        if let Some(bytes) = received {
            self.received_bytes += bytes as u64;
            self.received_calls += 1;
        }
        if let Some(bytes) = sent {
            self.sent_bytes += bytes as u64;
            self.sent_calls += 1;
        }
    }
}

/// The calls over UDP that came last.
#[derive(Debug, Default)]
struct Seen {
    calls: HashSet<(SocketAddr, u32)>,
    order: VecDeque<(SocketAddr, u32)>,
}

impl Seen {
    /// Whether this call did not come before; it is remembered.
    fn is_new(&mut self, call: (SocketAddr, u32)) -> bool {
        if !self.calls.insert(call) {
            return false;
        }
        self.order.push_back(call);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.calls.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Credential, Procedure, put_accepted, put_call};
    use crate::record::put_record;
    use linerate_units::ByteCount;

    #[test]
    fn a_units_message_is_as_long_as_the_model_says() {
        let key = Credential::short(&[1; 16]);
        for unit in [0, 1, 64, 8_191] {
            let data = vec![7; unit];
            let mut call = Vec::new();
            put_record(&mut call, |into| {
                let to = Procedure { program: PROGRAM, version: VERSION, procedure: 1 };
                put_call(into, 1, to, &key, &arguments(RpcCall::Write, &data));
            });
            let mut reply = Vec::new();
            put_record(&mut reply, |into| {
                put_accepted(into, 1);
                put_opaque(into, &data);
            });
            for (call_or_reply, does) in [(&call, RpcCall::Write), (&reply, RpcCall::Read)] {
                let spec = |transport| RpcTask::plain(transport, does, ByteCount::new(unit as u64));
                assert_eq!(call_or_reply.len() as u64, spec(Transport::Tcp).message_bytes(), "{does} of {unit}");
                assert_eq!(call_or_reply.len() as u64 - 4, spec(Transport::Udp).message_bytes(), "{does} of {unit}");
            }
        }
    }

    #[test]
    fn a_call_that_came_long_ago_is_forgotten_and_a_recent_one_is_not() {
        let peer = SocketAddr::from(([198, 18, 0, 1], 7));
        let mut seen = Seen::default();
        let new = (0..=REMEMBERED as u32).filter(|xid| seen.is_new((peer, *xid))).count();
        assert_eq!(new, REMEMBERED + 1);
        assert!(!seen.is_new((peer, 1)), "the last {REMEMBERED} are remembered");
        assert!(seen.is_new((peer, 0)));
        assert!(seen.is_new((SocketAddr::from(([198, 18, 0, 2], 7)), 2)), "another caller's");
    }
}
