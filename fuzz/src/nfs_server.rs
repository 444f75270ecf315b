//! Calls to the embedded NFS server by a peer that knows the trial's key.

use linerate_model::Transport;
use linerate_nfsd::NfsService;
use linerate_oncrpc::ProgramSource as _;
use linerate_oncrpc::message::{put, put_opaque};
use linerate_oncrpc::server::{Call, Program};
use linerate_units::ByteCount;
use std::net::{Ipv4Addr, SocketAddr};

const NFS: u32 = 100_003;
const MOUNT: u32 = 100_005;
/// Maximum number of handles remembered for later calls.
const HANDLES: usize = 16;
const HANDLE_BYTES: usize = 16;
/// Maximum length of a reply: one transfer and its attributes.
const MAX_REPLY: usize = (1 << 20) + 1_024;

/// A server, and the handles that a peer has received from it.
struct Peer {
    programs: [std::sync::Arc<dyn Program>; 2],
    /// Handles, that of the root first. All handles of a server have the same prefix.
    handles: Vec<[u8; HANDLE_BYTES]>,
    calls: u32,
}

/// Makes a sequence of calls, each `procedure, arguments..., 0xff`.
///
/// Handles are random, so arguments are tokens:
///
/// - `0x00..=0x3f`: opaque data of this length, which follows
/// - `0x40..=0x7f`: raw bytes of this length plus 0x40, which follow
/// - `0x80..=0xbf`: the handle of this number plus 0x80, of those received
/// - `0xc0..=0xfe`: this number, less 0xc0
///
/// A procedure with the highest bit set is one of the MOUNT service. With the next bit set the call comes over UDP.
pub(crate) fn calls(bytes: &[u8]) {
    let service = NfsService { memory: ByteCount::new(1 << 20), ..NfsService::default() };
    let programs = service.programs(1).expect("a tree in memory can be served");
    let Ok(programs) = <[_; 2]>::try_from(programs) else { panic!("NFS and MOUNT") };
    let mut peer = Peer { programs, handles: Vec::new(), calls: 0 };
    peer.mount();
    let mut rest = bytes;
    while let Some((procedure, after)) = rest.split_first() {
        let arguments;
        (arguments, rest) = peer.arguments(after);
        let program = if procedure & 0x80 == 0 { NFS } else { MOUNT };
        let transport = if procedure & 0x40 == 0 { Transport::Tcp } else { Transport::Udp };
        peer.call(program, (procedure & 0x3f).into(), transport, &arguments);
    }
}

impl Peer {
    /// Mounts the export and remembers the root's handle.
    fn mount(&mut self) {
        let mut path = Vec::new();
        put_opaque(&mut path, b"/");
        let reply = self.call(MOUNT, 1, Transport::Tcp, &path);
        // MNT3_OK, the handle's length, the handle.
        let root = reply.get(8..8 + HANDLE_BYTES).expect("a server mounts its root");
        self.handles = vec![root.try_into().expect("a handle of fixed length")];
    }

    /// Returns the arguments of the first call in `tokens`, and the tokens after it.
    fn arguments<'a>(&self, mut tokens: &'a [u8]) -> (Vec<u8>, &'a [u8]) {
        let mut arguments = Vec::new();
        while let Some((&token, after)) = tokens.split_first() {
            tokens = after;
            match token {
                0xff => break,
                0..0x80 => {
                    let data;
                    (data, tokens) = tokens.split_at(usize::from(token & 0x3f).min(tokens.len()));
                    if token < 0x40 { put_opaque(&mut arguments, data) } else { arguments.extend_from_slice(data) }
                }
                0x80..0xc0 => put_opaque(&mut arguments, &self.handles[usize::from(token & 0x3f) % self.handles.len()]),
                number => put(&mut arguments, u32::from(number - 0xc0)),
            }
        }
        (arguments, tokens)
    }

    fn call(&mut self, program: u32, procedure: u32, transport: Transport, args: &[u8]) -> Vec<u8> {
        self.calls += 1;
        let server = self.programs.iter().find(|server| server.number() == program).expect("both are there");
        let call = Call {
            xid: self.calls,
            version: 3,
            procedure,
            args,
            peer: SocketAddr::from((Ipv4Addr::LOCALHOST, 7)),
            transport,
            arrived_ns: 1,
        };
        let mut reply = Vec::new();
        if server.call(&call, &mut reply).is_err() {
            reply.clear();
        }
        assert!(reply.len() <= MAX_REPLY, "a reply of {} bytes", reply.len());
        self.learn(&reply);
        reply
    }

    /// Remembers the handles in a reply.
    fn learn(&mut self, reply: &[u8]) {
        let Some(server) = self.handles.first().map(|root| root[..8].to_vec()) else { return };
        for handle in reply.windows(HANDLE_BYTES).step_by(4).filter(|window| window.starts_with(&server)) {
            let handle: [u8; HANDLE_BYTES] = handle.try_into().expect("a window of fixed length");
            if !self.handles.contains(&handle) && self.handles.len() < HANDLES {
                self.handles.push(handle);
            }
        }
    }
}
