//! A folder of a server that does what RFC 1813 allows and linerate's own server does not: something before it answers
//! some calls.

use linerate_model::{SessionKey, Transport};
use linerate_nfs::NfsFolder;
use linerate_nfsd::NfsService;
use linerate_oncrpc::ProgramSource as _;
use linerate_oncrpc::message::Refused;
use linerate_oncrpc::server::{Call, Program, Server, ServerOptions};
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const KEY: SessionKey = SessionKey([7; 16]);
// Procedures and status codes of RFC 1813.
const READ: u32 = 6;
const WRITE: u32 = 7;
const READDIRPLUS: u32 = 17;
const NOTSUPP: u32 = 10_004;
const JUKEBOX: u32 = 10_008;

/// Has no READDIRPLUS, and is busy at every third READ and WRITE.
struct Peculiar {
    inner: Arc<dyn Program>,
    asked: AtomicU32,
}

impl Program for Peculiar {
    fn number(&self) -> u32 {
        self.inner.number()
    }

    fn versions(&self) -> RangeInclusive<u32> {
        self.inner.versions()
    }

    fn call(&self, call: &Call<'_>, reply: &mut Vec<u8>) -> Result<Option<u64>, Refused> {
        let is_busy = || self.asked.fetch_add(1, Ordering::Relaxed).is_multiple_of(3);
        // The status, and that no attributes follow.
        let (status, attributes) = match call.procedure {
            READDIRPLUS => (NOTSUPP, 1),
            READ if is_busy() => (JUKEBOX, 1),
            WRITE if is_busy() => (JUKEBOX, 2),
            _ => return self.inner.call(call, reply),
        };
        reply.extend(status.to_be_bytes());
        reply.extend(vec![0; 4 * attributes]);
        Ok(None)
    }
}

#[test]
fn a_server_that_is_busy_now_and_then_and_lists_names_alone_will_do() {
    let programs = NfsService::default().programs(1).expect("programs");
    let before = |inner| Arc::new(Peculiar { inner, asked: AtomicU32::new(0) }) as Arc<dyn Program>;
    let options = ServerOptions { key: Some(KEY), ..ServerOptions::default() };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server =
        Server::at(Transport::Tcp, address, programs.into_iter().map(before).collect(), options).expect("serves");
    let folder = NfsFolder::of_agent(server.address(), &KEY, Box::new(|| false)).expect("is mounted");

    let content: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    let mut draft = folder.create(b"", b"file", ".new").expect("is made");
    draft.write(0, &content).expect("is written");
    draft.complete(content.len() as u64, 0o644, 0).expect("is complete");
    draft.sync().expect("is durable");
    draft.name().expect("has its name");

    let found: Vec<_> = folder.list(b"").expect("is listed").map(|found| found.expect("an entry")).collect();
    let [only] = &found[..] else { panic!("{found:?}") };
    let size = only.attributes.as_ref().expect("attributes").size;
    assert_eq!((&only.name[..], size), (&b"file"[..], content.len() as u64));

    let (mut reading, _) = folder.open(b"file").expect("opens");
    let (mut read, mut part) = (Vec::<u8>::new(), vec![0_u8; 100_000]);
    loop {
        let count = reading.read(read.len() as u64, &mut part).expect("is read");
        if count == 0 {
            break;
        }
        read.extend(&part[..count]);
    }
    assert!(read == content);
}
