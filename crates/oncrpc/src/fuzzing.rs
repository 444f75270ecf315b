//! Entry points for fuzzing: what strangers send, from its first byte on.

use crate::message::{Reply, put_accepted, put_refused, read_call, read_reply};
use crate::program::TestProgram;
use crate::record::Records;
use crate::server::{Call, Program as _};
use linerate_model::Transport;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::LazyLock;

/// The longest record that is taken here.
const MAXIMUM: usize = 1 << 16;

/// linerate's own program in a session.
static FOR_SESSION: LazyLock<TestProgram> = LazyLock::new(TestProgram::new);
/// linerate's own program outside a session: null calls only.
static FOR_ANYONE: LazyLock<TestProgram> = LazyLock::new(TestProgram::without_data);

/// Reads one message as a call and as a reply, and has linerate's own program execute the call. Bit 0 of the first
/// byte: the caller holds the key. Bit 1: it calls over UDP.
pub fn message(bytes: &[u8]) {
    let Some((choice, bytes)) = bytes.split_first() else { return };
    if let Some((_, Reply::Accepted(results))) = read_reply(bytes) {
        assert!(results.len() < bytes.len(), "results are a part of the reply");
    }
    let Ok(call) = read_call(bytes) else { return };
    assert!(call.args.len() < bytes.len(), "arguments are a part of the call");
    let knows_key = choice & 1 == 1;
    let call = Call {
        xid: call.xid,
        version: call.to.version,
        procedure: call.to.procedure,
        args: call.args,
        peer: SocketAddr::from((Ipv4Addr::LOCALHOST, 7)),
        transport: if choice & 2 == 0 { Transport::Tcp } else { Transport::Udp },
        arrived_ns: 1,
    };
    let mut reply = Vec::new();
    put_accepted(&mut reply, call.xid);
    let program = if knows_key { &FOR_SESSION } else { &FOR_ANYONE };
    if let Err(why) = program.call(&call, &mut reply) {
        reply.clear();
        put_refused(&mut reply, call.xid, why);
    }
    assert!(knows_key || reply.len() <= bytes.len(), "a stranger draws no more than was sent");
    assert!(read_reply(&reply).is_some_and(|(xid, _)| xid == call.xid), "the reply can be read");
}

/// Cuts a stream into records. The first byte says in pieces of how many bytes it comes.
pub fn records(bytes: &[u8]) {
    let Some((piece, mut stream)) = bytes.split_first() else { return };
    let mut records = Records::new(MAXIMUM);
    let mut come = 0;
    while !stream.is_empty() {
        let room = records.room();
        assert!(!room.is_empty(), "there is always room");
        let length = stream.len().min(usize::from(*piece) + 1).min(room.len());
        room[..length].copy_from_slice(&stream[..length]);
        records.filled(length);
        stream = &stream[length..];
        come += length;
        loop {
            match records.next() {
                Ok(Some(record)) => assert!(record.len() <= MAXIMUM.min(come), "no more is handed out than has come"),
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
}
