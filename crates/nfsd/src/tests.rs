//! The server as a whole: both stores alike, over the wire with a client of others, with hostile bytes, and at a
//! planted pace.

use super::*;
use crate::store::{DirOpArgs, Name, New, Removed};
use linerate_model::SessionKey;
use linerate_oncrpc::client::{Caller, Retransmission};
use linerate_oncrpc::message::{Credential, Procedure, Reply};
use linerate_oncrpc::server::{Server, ServerOptions};
use linerate_sys::clock;
use linerate_units::Nanos;
use nfs3_types::nfs3::{
    Nfs3Option, createhow3, createverf3, diropargs3, fattr3, ftype3, nfs_fh3, nfsstat3, nfstime3, sattr3, set_mtime,
    stable_how, wcc_data,
};
use nfs3_types::xdr_codec::{Opaque, Pack};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};

const KEY: SessionKey = SessionKey([7; 16]);
const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// Longer than any call of a test takes; a reply ends the wait.
const SOON: Nanos = Nanos::from_secs(60);

/// An empty store of either kind, and what must live as long.
fn stores() -> [(&'static str, Arc<dyn Store>, Option<tempfile::TempDir>); 2] {
    let directory = tempfile::tempdir().expect("a directory");
    let store = directory::open(directory.path(), 1 << 20).expect("opens");
    [("memory", Arc::new(MemoryStore::new(64 << 20)), None), ("directory", store, Some(directory))]
}

fn at(directory: handle::Handle, name: &str) -> DirOpArgs<'_> {
    DirOpArgs { directory, name: Name::new(name.as_bytes()).expect("a name") }
}

fn file(store: &dyn Store, directory: handle::Handle, name: &str) -> handle::Handle {
    store.make(at(directory, name), New::Guarded { attributes: &sattr3::default() }).expect("is made").handle
}

fn directory(store: &dyn Store, parent: handle::Handle, name: &str) -> handle::Handle {
    store.make(at(parent, name), New::Directory { attributes: &sattr3::default() }).expect("is made").handle
}

fn names(store: &dyn Store, directory: handle::Handle) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let (_, all) = store
        .list(directory, 0, &mut |entry| names.insert(String::from_utf8(entry.name.to_vec()).expect("text")))
        .expect("is listed");
    assert!(all);
    names
}

fn content(store: &dyn Store, file: handle::Handle) -> Vec<u8> {
    let mut data = Vec::new();
    assert!(store.read(file, 0, u32::MAX, &mut data).expect("is read").0, "all of it");
    data
}

fn known(changed: &wcc_data) -> (u64, fattr3) {
    match (&changed.before, &changed.after) {
        (Nfs3Option::Some(before), Nfs3Option::Some(after)) => (before.size, after.clone()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn files_are_written_read_cut_and_removed() {
    for (kind, store, _keep) in stores() {
        let (store, root) = (&*store, store.root());
        let made = store.make(at(root, "f"), New::Guarded { attributes: &sattr3::default() }).expect("is made");
        assert_eq!((made.attributes.type_, made.attributes.size, made.attributes.mode), (ftype3::NF3REG, 0, 0o644));
        let file = made.handle;
        let again = store.make(at(root, "f"), New::Guarded { attributes: &sattr3::default() });
        assert_eq!(again.expect_err("is there"), nfsstat3::NFS3ERR_EXIST, "{kind}");

        let (before, after) = known(&store.write(file, 10_000, b"there", stable_how::UNSTABLE).expect("is written"));
        assert_eq!((before, after.size), (0, 10_005), "{kind}");
        store.write(file, 0, b"here", stable_how::FILE_SYNC).expect("is written");
        known(&store.commit(file).expect("is committed"));
        let mut expected = vec![0; 10_005];
        expected[..4].copy_from_slice(b"here");
        expected[10_000..].copy_from_slice(b"there");
        assert_eq!(content(store, file), expected, "{kind}");
        let mut data = b"before".to_vec();
        let (end, attributes) = store.read(file, 9_998, 4, &mut data).expect("is read");
        assert_eq!((end, &data[..], attributes.size), (false, &b"before\0\0th"[..], 10_005), "{kind}");
        assert!(store.read(file, 1 << 40, 4, &mut data).expect("nothing is there").0);
        assert_eq!(data.len(), 10);

        let size = |size| sattr3 { size: Nfs3Option::Some(size), ..sattr3::default() };
        let (before, after) = known(&store.set_attributes(file, &size(3), None).expect("is cut"));
        assert_eq!((before, after.size), (10_005, 3), "{kind}");
        store.set_attributes(file, &size(6), None).expect("grows");
        assert_eq!(content(store, file), b"her\0\0\0", "{kind}");
        let found = store.make(at(root, "f"), New::Unchecked { attributes: &size(0) }).expect("is found and emptied");
        assert_eq!((found.handle, found.attributes.size), (file, 0), "{kind}");

        assert_eq!(store.remove(at(root, "f"), Removed::Directory).expect_err("a file"), nfsstat3::NFS3ERR_NOTDIR);
        known(&store.remove(at(root, "f"), Removed::File).expect("is removed"));
        assert_eq!(store.attributes(file).expect_err("is gone"), nfsstat3::NFS3ERR_STALE, "{kind}");
        assert_eq!(store.lookup(at(root, "f")).expect_err("is gone"), nfsstat3::NFS3ERR_NOENT, "{kind}");
        assert_eq!(store.remove(at(root, "f"), Removed::File).expect_err("is gone"), nfsstat3::NFS3ERR_NOENT);
        let new = self::file(store, root, "f");
        assert_ne!(new, file, "{kind}: no handle comes back");
    }
}

#[test]
fn names_move_and_what_holds_them_is_kept_in_order() {
    for (kind, store, _keep) in stores() {
        let (store, root) = (&*store, store.root());
        let a = directory(store, root, "a");
        let b = directory(store, root, "b");
        let inner = directory(store, a, "inner");
        let moved = file(store, a, "f");
        store.write(moved, 0, b"data", stable_how::UNSTABLE).expect("is written");
        file(store, b, "g");

        store.rename(at(a, "f"), at(b, "g")).expect("moves over another");
        assert_eq!(names(store, b), [".", "..", "g"].map(str::to_owned).into(), "{kind}");
        assert_eq!(store.lookup(at(b, "g")).expect("is there").0, moved, "{kind}: keeps its handle");
        assert_eq!(content(store, moved), b"data");
        store.rename(at(b, "g"), at(b, "g")).expect("onto itself");
        assert_eq!(content(store, moved), b"data", "{kind}");

        assert_eq!(store.rename(at(root, "a"), at(inner, "a")).expect_err("into itself"), nfsstat3::NFS3ERR_INVAL);
        let full = store.rename(at(a, "inner"), at(root, "b")).expect_err("b is not empty");
        assert!(matches!(full, nfsstat3::NFS3ERR_NOTEMPTY | nfsstat3::NFS3ERR_EXIST), "{kind}: {full:?}");
        store.remove(at(b, "g"), Removed::File).expect("is removed");
        store.rename(at(a, "inner"), at(root, "b")).expect("over an empty directory");
        assert_eq!(store.parent(inner).expect("moved").0, root, "{kind}");
        assert_eq!(store.attributes(b).expect_err("was replaced"), nfsstat3::NFS3ERR_STALE, "{kind}");
        assert_eq!(store.attributes(a).expect("is there").nlink, 2, "{kind}: no directory in it any more");
        assert_eq!(store.attributes(root).expect("is there").nlink, 4, "{kind}");

        file(store, inner, "left");
        assert_eq!(store.remove(at(root, "b"), Removed::Directory).expect_err("full"), nfsstat3::NFS3ERR_NOTEMPTY);
        assert_eq!(store.remove(at(root, "b"), Removed::File).expect_err("directory"), nfsstat3::NFS3ERR_ISDIR);
        store.remove(at(inner, "left"), Removed::File).expect("is removed");
        store.remove(at(root, "b"), Removed::Directory).expect("is removed");
        let late = store.make(at(inner, "late"), New::Guarded { attributes: &sattr3::default() });
        assert_eq!(late.expect_err("its directory is gone"), nfsstat3::NFS3ERR_STALE, "{kind}");
        assert_eq!(store.parent(root).expect("itself").0, root, "{kind}");
    }
}

#[test]
fn links_are_read_and_not_followed() {
    for (kind, store, _keep) in stores() {
        let (store, root) = (&*store, store.root());
        let new = New::Link { attributes: &sattr3::default(), text: b"../../etc" };
        let link = store.make(at(root, "l"), new).expect("is made");
        assert_eq!((link.attributes.type_, link.attributes.size), (ftype3::NF3LNK, 9), "{kind}");
        assert_eq!(store.link_text(link.handle).expect("is read").0, b"../../etc");
        assert_eq!(store.lookup(at(link.handle, "passwd")).expect_err("no way"), nfsstat3::NFS3ERR_NOTDIR, "{kind}");
        assert!(store.read(link.handle, 0, 1, &mut Vec::new()).is_err(), "{kind}");
        assert_eq!(store.link_text(root).expect_err("no link"), nfsstat3::NFS3ERR_INVAL, "{kind}");
    }
}

#[test]
fn an_exclusive_creation_may_come_twice_and_another_may_not() {
    for (kind, store, _keep) in stores() {
        let (store, root) = (&*store, store.root());
        let new = |number| New::Exclusive { number: createverf3([0, 0, 0, 1, 0, 0, 0, number]) };
        let first = store.make(at(root, "f"), new(1)).expect("is made").handle;
        assert_eq!(store.make(at(root, "f"), new(1)).expect("the same").handle, first, "{kind}");
        assert_eq!(store.make(at(root, "f"), new(2)).expect_err("another"), nfsstat3::NFS3ERR_EXIST, "{kind}");
    }
}

#[test]
fn attributes_are_set_and_guarded() {
    for (kind, store, _keep) in stores() {
        let (store, root) = (&*store, store.root());
        let file = file(store, root, "f");
        let time = nfstime3 { seconds: 1_000_000, nseconds: 5 };
        let to =
            sattr3 { mode: Nfs3Option::Some(0o600), mtime: set_mtime::SET_TO_CLIENT_TIME(time), ..sattr3::default() };
        let (_, after) = known(&store.set_attributes(file, &to, None).expect("is set"));
        assert_eq!((after.mode, after.mtime), (0o600, time), "{kind}");
        let wrong = store.set_attributes(file, &to, Some(time)).expect_err("it changed later");
        assert_eq!(wrong, nfsstat3::NFS3ERR_NOT_SYNC, "{kind}");
        store.set_attributes(file, &to, Some(after.ctime)).expect("as it was then");
        let size = sattr3 { size: Nfs3Option::Some(0), ..sattr3::default() };
        assert_eq!(store.set_attributes(root, &size, None).expect_err("directory"), nfsstat3::NFS3ERR_ISDIR, "{kind}");
    }
}

#[test]
fn a_listing_goes_on_where_it_stopped_whatever_happens_meanwhile() {
    for (kind, store, _keep) in stores() {
        let (store, root) = (&*store, store.root());
        let all: BTreeSet<String> = (0..100).map(|n| format!("file{n}")).collect();
        for name in &all {
            file(store, root, name);
        }
        let mut seen = BTreeSet::new();
        let mut cookie = 0;
        let mut calls = 0;
        loop {
            let mut shown = Vec::new();
            let (_, end) = store
                .list(root, cookie, &mut |entry| {
                    if shown.len() == 7 {
                        return false;
                    }
                    cookie = entry.cookie;
                    shown.push(String::from_utf8(entry.name.to_vec()).expect("text"));
                    true
                })
                .expect("is listed");
            // What was shown goes, and something new comes: what was there all the time is shown once.
            for name in shown.iter().filter(|name| !matches!(&name[..], "." | "..")) {
                store.remove(at(root, name), Removed::File).expect("is removed");
            }
            assert!(shown.iter().all(|name| seen.insert(name.clone())), "{kind}: twice");
            file(store, root, &format!("new{calls}"));
            calls += 1;
            if end || calls > 100 {
                break;
            }
        }
        assert!(all.is_subset(&seen), "{kind}: {:?}", all.difference(&seen).collect::<Vec<_>>());
        assert!(seen.contains(".") && seen.contains("..") && calls > 14, "{kind}: {calls}");
    }
}

/// Returns the server's results for a call's arguments, or the refusal.
fn answer(store: &dyn Store, procedure: NFS_PROGRAM, args: &[u8]) -> Result<Vec<u8>, Refused> {
    let mut reply = Vec::new();
    procedures::execute(store, UDP_MAXIMUM, procedure, &mut Arguments::new(args), &mut reply)?;
    Ok(reply)
}

fn procedure(number: u32) -> NFS_PROGRAM {
    NFS_PROGRAM::try_from(number).expect("a procedure")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Arguments of any bytes, after the handle of the root or any handle, are garbage, an error or a result.
    #[test]
    fn no_arguments_are_too_bad(number in 1u32..22, known: bool, words in prop::collection::vec(prop_oneof![
        0u32..6, Just(u32::MAX), Just(16), any::<u32>()], 0..40), tail: Vec<u8>)
    {
        let store = MemoryStore::new(1 << 20);
        let file = file(&store, store.root(), "f");
        for handle in [store.root(), file] {
            let mut args = Vec::new();
            if known {
                args.extend_from_slice(&16u32.to_be_bytes());
                args.extend_from_slice(&handle.to_bytes());
            }
            words.iter().for_each(|word| args.extend_from_slice(&word.to_be_bytes()));
            args.extend_from_slice(&tail);
            if let Ok(reply) = answer(&store, procedure(number), &args) {
                prop_assert!(reply.len() >= 4 && reply.len().is_multiple_of(4));
                prop_assert!(reply.len() <= UDP_MAXIMUM as usize + 256, "{} bytes", reply.len());
            }
        }
        prop_assert!(store.space().expect("is known").bytes_free <= 1 << 20);
    }
}

#[test]
fn a_server_of_one_kind_does_not_take_the_handles_of_another() {
    let (one, other) = (MemoryStore::new(1 << 20), MemoryStore::new(1 << 20));
    assert_eq!(one.attributes(other.root()).expect_err("stale"), nfsstat3::NFS3ERR_STALE);
}

fn fh(handle: handle::Handle) -> nfs_fh3 {
    nfs_fh3 { data: Opaque::owned(handle.to_bytes().to_vec()) }
}

fn packed(value: &impl Pack) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.pack(&mut bytes).expect("packs");
    bytes
}

fn status(reply: &[u8]) -> u32 {
    u32::from_be_bytes(reply[..4].try_into().expect("a status"))
}

#[test]
fn listings_keep_to_the_sizes_asked_for() {
    let store = MemoryStore::new(8 << 20);
    let root = store.root();
    for n in 0..200 {
        file(&store, root, &format!("a-file-of-number-{n}"));
    }
    let args = |cookie: u64, verifier: [u8; 8], counts: &[u32]| {
        let mut args = packed(&fh(root));
        args.extend_from_slice(&cookie.to_be_bytes());
        args.extend_from_slice(&verifier);
        counts.iter().for_each(|count| args.extend_from_slice(&count.to_be_bytes()));
        args
    };
    for count in [200, 512, 4_096, 1 << 20] {
        let plain = answer(&store, NFS_PROGRAM::NFSPROC3_READDIR, &args(0, [0; 8], &[count])).expect("is listed");
        assert_eq!(status(&plain), 0);
        // The count is of the results without the status.
        assert!(plain.len() - 4 <= count as usize, "{} bytes of {count}", plain.len());
        let plus = answer(&store, NFS_PROGRAM::NFSPROC3_READDIRPLUS, &args(0, [0; 8], &[count, count * 4]));
        let plus = plus.expect("is listed");
        assert!(status(&plus) == 0 && plus.len() - 4 <= count as usize * 4, "{} bytes of {count}", plus.len());
    }
    let small = answer(&store, NFS_PROGRAM::NFSPROC3_READDIR, &args(0, [0; 8], &[100])).expect("an error");
    assert_eq!(status(&small), nfsstat3::NFS3ERR_TOOSMALL as u32);
    let strange = answer(&store, NFS_PROGRAM::NFSPROC3_READDIR, &args(5, [1; 8], &[512])).expect("an error");
    assert_eq!(status(&strange), nfsstat3::NFS3ERR_BAD_COOKIE as u32);
}

#[test]
fn an_operation_over_udp_is_done_once() {
    let programs = NfsService::default().programs(1).expect("serves");
    let root = mounted(&programs);
    let args = packed(&diropargs3 { dir: root, name: b"f"[..].into() });
    let create = [args.clone(), packed(&createhow3::GUARDED(sattr3::default()))].concat();
    let call = |transport, xid, number, args: &[u8]| {
        let call = Call { xid, version: 3, procedure: number, args, peer: LOOPBACK, transport, arrived_ns: 0 };
        let mut reply = Vec::new();
        programs[0].call(&call, &mut reply).expect("answers");
        reply
    };
    let udp = Transport::Udp;
    let exist = nfsstat3::NFS3ERR_EXIST as u32;
    let gone = nfsstat3::NFS3ERR_NOENT as u32;
    let first = call(udp, 1, 8, &create);
    assert_eq!(status(&first), 0);
    assert_eq!(call(udp, 1, 8, &create), first, "it came again");
    assert_eq!(status(&call(udp, 2, 8, &create)), exist, "another call");
    assert_eq!(status(&call(udp, 3, 12, &args)), 0);
    assert_eq!(status(&call(udp, 3, 12, &args)), 0, "it came again");
    assert_eq!(status(&call(udp, 4, 12, &args)), gone, "another call");
    assert_eq!(status(&call(Transport::Tcp, 1, 12, &args)), gone, "over TCP nothing comes twice");
}

/// The exported directory's handle.
fn mounted(programs: &[Arc<dyn Program>]) -> nfs_fh3 {
    let mut reply = Vec::new();
    let call = Call {
        xid: 0,
        version: 3,
        procedure: 1,
        args: &[0, 0, 0, 1, b'/', 0, 0, 0],
        peer: LOOPBACK,
        transport: Transport::Tcp,
        arrived_ns: 0,
    };
    programs[1].call(&call, &mut reply).expect("is mounted");
    assert_eq!((status(&reply), status(&reply[4..])), (0, 16));
    nfs_fh3 { data: Opaque::owned(reply[8..24].to_vec()) }
}

/// A server of a session.
fn serve(transport: Transport, programs: Vec<Arc<dyn Program>>) -> Server {
    let options = ServerOptions { key: Some(KEY), ..ServerOptions::default() };
    Server::at(transport, LOOPBACK, programs, options).expect("listens")
}

fn caller(transport: Transport, server: SocketAddr) -> Caller {
    match transport {
        Transport::Tcp => Caller::tcp(TcpStream::connect(server).expect("connects")),
        Transport::Udp => {
            let socket = UdpSocket::bind(LOOPBACK).expect("binds");
            socket.connect(server).expect("connects");
            Caller::udp(socket, Retransmission::default())
        }
    }
    .expect("a caller")
}

#[test]
fn only_the_key_opens_it_and_a_ping_needs_none() {
    for transport in [Transport::Tcp, Transport::Udp] {
        let programs = NfsService::default().programs(1).expect("serves");
        let root = mounted(&programs);
        let server = serve(transport, programs);
        let mut caller = caller(transport, server.address());
        let args = packed(&root);
        let known = caller.greet(&KEY).expect("holds the key");
        let other = self::caller(transport, server.address()).greet(&KEY).expect("holds the key");
        for (program, procedure) in [(100_003, 1), (100_005, 1), (100_005, 2), (100_005, 5)] {
            let to = Procedure { program, version: 3, procedure };
            for credential in [Credential::none(), Credential::sys("h", 0, 0), other.clone()] {
                let error = caller.ask("a call", to, &credential, &args, SOON).expect_err("is refused");
                assert!(error.to_string().contains("AUTH_BADCRED"), "{transport}: {error}");
            }
            caller.ask("a call", to, &known, &args, SOON).expect("is answered");
        }
        for program in [100_003, 100_005] {
            let to = Procedure { program, version: 3, procedure: 0 };
            let answer = caller.ask("a null call", to, &Credential::none(), &[], SOON).expect("is answered");
            assert!(answer.is_empty());
            let error = caller.ask("a call", Procedure { version: 2, ..to }, &Credential::none(), &[], SOON);
            assert!(error.expect_err("version").to_string().contains("versions 3 to 3"));
        }
    }
}

/// Response times of `count` GETATTR calls (or small WRITE calls), `outstanding` under way at a time, sorted.
fn response_times(transport: Transport, time: ServiceTime, write: bool, outstanding: usize, count: usize) -> Vec<u64> {
    let service = NfsService { time, ..NfsService::default() };
    let programs = service.programs(1).expect("serves");
    let root = mounted(&programs);
    let server = serve(transport, programs);
    let mut caller = caller(transport, server.address());
    let credential = caller.greet(&KEY).expect("holds the key");
    let mut args = packed(&root);
    if write {
        // To a directory: an error takes as long.
        args.extend_from_slice(&[0; 24]);
    }
    let to = Procedure { program: PROGRAM, version: VERSION, procedure: if write { 7 } else { 1 } };
    let mut begun = std::collections::BTreeMap::new();
    let mut times = Vec::new();
    while times.len() < count {
        while begun.len() < outstanding {
            begun.insert(caller.call(to, &credential, &args), clock::now());
        }
        caller
            .poll(SOON, &mut |xid, reply| {
                assert!(matches!(reply, Reply::Accepted(_)), "{reply:?}");
                times.push(clock::now() - begun.remove(&xid).expect("was asked"));
            })
            .expect("polls");
    }
    times.sort_unstable();
    times
}

#[test]
fn a_planted_service_time_is_what_a_caller_sees() {
    let time = ServiceTime { call: Nanos::from_millis(2), write: None, at_once: None };
    for transport in [Transport::Tcp, Transport::Udp] {
        let times = response_times(transport, time, false, 1, 100);
        // A busy machine adds to most of them, but not to each.
        assert!((2_000_000..40_000_000).contains(&times[0]), "{transport}: {} ns", times[0]);
    }
}

#[test]
fn slow_writes_leave_other_calls_alone() {
    let time = ServiceTime { call: Nanos::default(), write: Some(Nanos::from_millis(20)), at_once: None };
    let writes = response_times(Transport::Tcp, time, true, 1, 9);
    assert!((20_000_000..400_000_000).contains(&writes[0]), "{writes:?}");
    let others = response_times(Transport::Tcp, time, false, 1, 99);
    assert!(others[0] < 20_000_000, "{} ns", others[0]);
}

#[test]
fn calls_wait_for_one_of_the_servers_there_are() {
    // Eight under way at two servers of 5 ms. Served all at once, 80 calls would take 50 ms.
    let time = ServiceTime { call: Nanos::from_millis(5), write: None, at_once: Some(2) };
    let begun = clock::now();
    response_times(Transport::Tcp, time, false, 8, 80);
    let took = clock::now() - begun;
    assert!(took >= 195_000_000, "{took} ns");
}

/// The attack: calls over UDP with a forged source, by a holder of the key who does not see the replies at that source.
#[test]
fn a_spoofed_source_is_sent_no_more_of_a_file_than_it_sent() {
    let programs = NfsService::default().programs(1).expect("serves");
    let root = mounted(&programs);
    let server = serve(Transport::Udp, programs);
    let mut attacker = caller(Transport::Udp, server.address());
    let ticket = attacker.greet(&KEY).expect("holds the key");
    let name = packed(&diropargs3 { dir: root.clone(), name: b"f"[..].into() });
    let create = [name, packed(&createhow3::GUARDED(sattr3::default()))].concat();
    let to = |procedure| Procedure { program: PROGRAM, version: VERSION, procedure };
    let created = attacker.ask("CREATE", to(8), &ticket, &create, SOON).expect("is made");
    // A status, and then whether a handle follows, and the handle.
    let file = nfs_fh3 { data: Opaque::owned(created[12..28].to_vec()) };
    let write = [packed(&file), vec![0; 8], packed(&40_000u32), packed(&2u32), packed(&40_000u32), vec![7; 40_000]];
    attacker.ask("WRITE", to(7), &ticket, &write.concat(), SOON).expect("is written");
    let read = [packed(&file), vec![0; 8], packed(&40_000u32)].concat();
    assert!(attacker.ask("READ", to(6), &ticket, &read, SOON).expect("is read").len() > 40_000);

    let mut victim = caller(Transport::Udp, server.address());
    for (procedure, args) in [(6, &read), (1, &packed(&root)), (17, &[packed(&root), vec![0; 24]].concat())] {
        let error = victim.ask("a call", to(procedure), &ticket, args, SOON).expect_err("another's ticket");
        assert!(error.to_string().contains("AUTH_BADCRED"), "a refusal is shorter than any call: {error}");
    }
}

mod foreign;
