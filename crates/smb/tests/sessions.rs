//! Sessions with a server of other hands: Samba.

use linerate_smb::{Kind, Login, LoginError, Session, SmbError, Terms, Version};
use linerate_testsuite::server_test;
use linerate_testsuite::servers::{PASSWORD, Samba, USER};
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

fn login(user: &str, password: &str) -> Login {
    Login { user: user.to_owned(), password: password.to_owned() }
}

fn log_in_on(samba: &Samba, share: &str, login: &Login, terms: Terms) -> Result<Session, SmbError> {
    Session::log_in(TcpStream::connect(samba.address).expect("it listens"), "127.0.0.1", share, login, terms)
}

fn log_in(samba: &Samba, share: &str, login: &Login) -> Result<Session, SmbError> {
    log_in_on(samba, share, login, Terms::default())
}

fn session(samba: &Samba, share: &str) -> Session {
    log_in(samba, share, &login(USER, PASSWORD)).expect("logged in")
}

/// A moment in SMB's steps.
const MOMENT: i64 = 1_700_000_000_123_456_700;

#[server_test(Root, Program("smbd"), Program("smbpasswd"))]
fn files_are_written_named_read_and_listed() {
    let samba = Samba::start();
    for share in ["open", "sealed"] {
        let session = session(&samba, share);
        session.make_folder("d/\u{7d44} \u{e9}/deep".as_bytes()).expect("made");
        let content: Vec<u8> = (0..5_000_000_u32).map(|number| (number / 251) as u8).collect();
        let mut file = session.create(b"d/.part").expect("made");
        for (piece, data) in content.chunks(700_000).enumerate() {
            file.write(piece as u64 * 700_000, data).expect("written");
        }
        // The last 100 bytes are a hole.
        file.complete(content.len() as u64 + 100, MOMENT).expect("complete");
        let mut read = Vec::new();
        loop {
            match file.read(read.len() as u64).expect("read") {
                [] => break,
                more => read.extend_from_slice(more),
            }
        }
        assert!(read.starts_with(&content) && read[content.len()..] == [0; 100], "{share}");
        file.sync().expect("durable");
        file.name("d/\u{7d44} \u{e9}/deep/it".as_bytes()).expect("named");
        drop(file);
        let about = session.about("d/\u{7d44} \u{e9}/deep/it".as_bytes()).expect("known");
        assert_eq!((about.kind, about.size, about.modified), (Kind::File, 5_000_100, MOMENT));
        drop(session.create(b"d/.dropped").expect("made"));
        assert!(!samba.share(share).join("d/.dropped").exists(), "what has no name is removed");
        assert!(!samba.share(share).join("d/.part").exists());
    }
}

/// Each version has its own keys and signatures.
#[server_test(Root, Program("smbd"), Program("smbpasswd"))]
fn every_version_is_spoken_signed_and_not() {
    for (version, signing) in [
        ("SMB2_02", "mandatory"),
        ("SMB2_10", "auto"),
        ("SMB2_10", "mandatory"),
        ("SMB3_00", "mandatory"),
        ("SMB3_02", "auto"),
        ("SMB3_11", "auto"),
        ("SMB3_11", "mandatory\nserver smb3 signing algorithms = AES-128-CMAC"),
        ("SMB3_11", "mandatory\nserver smb3 encryption algorithms = AES-256-GCM"),
        ("SMB3_11", "mandatory\nserver smb3 encryption algorithms = AES-128-CCM"),
    ] {
        let settings = format!("server max protocol = {version}\nserver signing = {signing}");
        let samba = Samba::start_with(&settings);
        let shares = if version < "SMB3" { &["open"][..] } else { &["open", "sealed"] };
        for share in shares {
            // Twice, as the server demands it and with all messages signed.
            let any = |sign| Terms { minimum: Version::V2_0_2, sign };
            let user = login(USER, PASSWORD);
            let signed =
                log_in_on(&samba, share, &user, any(true)).unwrap_or_else(|error| panic!("{settings}: {error}"));
            assert_eq!(signed.about(b"").map(|about| about.kind).ok(), Some(Kind::Folder), "{settings}");
            let session =
                log_in_on(&samba, share, &user, any(false)).unwrap_or_else(|error| panic!("{settings}: {error}"));
            let content: Vec<u8> = (0..300_000_u32).map(|number| (number / 7) as u8).collect();
            let mut file = session.create(b".part").unwrap_or_else(|error| panic!("{settings}, {share}: {error}"));
            file.write(0, &content).expect("written");
            file.complete(content.len() as u64, MOMENT).expect("complete");
            assert_eq!(file.read(0).map(|first| first == &content[..first.len()]).ok(), Some(true), "{settings}");
            file.name(b"file").expect("named");
            assert_eq!(session.list(b"", "*").expect("there").count(), 1, "{settings}");
            drop((file, session));
            assert!(std::fs::read(samba.share(share).join("file")).expect("there") == content, "{settings}");
        }
    }
}

#[server_test(Root, Program("smbd"), Program("smbpasswd"))]
fn a_server_of_an_earlier_version_is_refused_unless_it_is_allowed() {
    let samba = Samba::start_with("server max protocol = SMB3_02");
    let user = login(USER, PASSWORD);
    let refused = log_in(&samba, "open", &user).err().expect("3.0.2 is too old").to_string();
    assert!(refused.contains("no version of SMB from 3.1.1 on"), "{refused}");
    let allowed = Terms { minimum: Version::V3_0_2, sign: false };
    log_in_on(&samba, "open", &user, allowed).expect("logged in").make_folder(b"made").expect("made");
    let signing = Terms { sign: true, ..Terms::default() };
    let guest = log_in_on(&Samba::start(), "open", &login("guest", ""), signing).err().expect("no key").to_string();
    assert!(guest.contains("a guest has no key"), "{guest}");
}

#[server_test(Root, Program("smbd"), Program("smbpasswd"))]
fn a_long_folder_is_listed_whole() {
    let samba = Samba::start();
    // The server gives some hundred names at a time; each count ends a page in another place.
    for count in [0, 1, 126, 127, 1_500] {
        let folder = samba.share("open").join(format!("of {count}"));
        std::fs::create_dir(&folder).expect("made");
        let names: BTreeSet<String> = (0..count).map(|number| format!("name {number}")).collect();
        for name in &names {
            std::fs::write(folder.join(name), "x").expect("written");
        }
        let session = session(&samba, "open");
        let listed = session.list(format!("of {count}").as_bytes(), "*").expect("it is there");
        let listed: BTreeSet<_> =
            listed.map(|found| String::from_utf8(found.expect("read").0).expect("UTF-8")).collect();
        assert_eq!(listed, names);
    }
}

/// A walk leaves off in the middle of one folder to list the next, and some listings are not taken to their end.
#[server_test(Root, Program("smbd"), Program("smbpasswd"))]
fn a_listing_that_stands_still_stops_no_other() {
    let samba = Samba::start();
    for number in 0..700 {
        std::fs::write(samba.share("open").join(format!("name {number}")), "x").expect("written");
    }
    let session = session(&samba, "open");
    let mut standing: Vec<_> = (0..20).map(|_| session.list(b"", "*").expect("it is there")).collect();
    for round in 0..200 {
        for listing in &mut standing {
            assert!(listing.next().is_some_and(|found| found.is_ok()), "round {round}");
        }
        assert!(session.list(b"", "name 7").expect("it is there").next().is_some());
        assert_eq!(session.about(b"name 699").expect("known").size, 1);
    }
}

#[server_test(Root, Program("smbd"), Program("smbpasswd"))]
fn what_a_server_refuses_is_named() {
    let samba = Samba::start();
    for (share, user, password, words) in [
        ("open", USER, "wrong", "refused user `root`: the server says: STATUS_LOGON_FAILURE"),
        ("open", "nobody-knows", "", "it would take this user for a guest"),
        ("none", USER, PASSWORD, "no share `none` for user `root`: the server says: STATUS_BAD_NETWORK_NAME"),
    ] {
        let error = log_in(&samba, share, &login(user, password)).err().expect("refused").to_string();
        assert!(error.contains(words), "{error}");
    }
    let closed = session(&samba, "closed");
    let error = closed.create(b"new").err().expect("it is read-only");
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    let open = session(&samba, "open");
    std::fs::write(samba.share("open").join("Twin"), "x").expect("written");
    let mut file = open.create(b".part").expect("made");
    let error = file.name(b"tWIN").expect_err("one name to the server");
    assert!(error.to_string().contains("`Twin` is there"), "{error}");
    file.name(b"Twin").expect("replaced");
    assert_eq!(open.about(b"Twin").expect("there").size, 0);
    assert_eq!(open.open(b"none").err().map(|error| error.kind()), Some(ErrorKind::NotFound));
    assert_eq!(open.create(b"a:b").err().map(|error| error.kind()), Some(ErrorKind::InvalidFilename));
}

/// Each write is pending at the server until it is durable: it is answered twice.
#[server_test(Root, Program("smbd"), Program("smbpasswd"))]
fn a_large_file_goes_to_a_share_that_makes_each_write_durable() {
    let samba = Samba::start();
    const PIECE: u64 = 512 << 10;
    let mut file = session(&samba, "durable").create(b".part").expect("made");
    for piece in 0..600 {
        let content = vec![(piece % 251) as u8; PIECE as usize];
        file.write(piece * PIECE, &content).unwrap_or_else(|error| panic!("piece {piece} of 600: {error}"));
    }
    file.complete(600 * PIECE, MOMENT).expect("complete");
    file.name(b"file").expect("named");
    drop(file);
    let written = std::fs::read(samba.share("durable").join("file")).expect("there");
    assert_eq!(written.len() as u64, 600 * PIECE);
    let right = |(piece, bytes): (usize, &[u8])| bytes.iter().all(|byte| usize::from(*byte) == piece % 251);
    assert!(written.chunks(PIECE as usize).enumerate().all(right));
}

/// A guest's messages are signed by nobody, so that whoever is on the way could change them.
#[server_test(Root, Program("smbd"), Program("smbpasswd"))]
fn nobody_becomes_a_guest_unasked() {
    let samba = Samba::start();
    let error = log_in(&samba, "open", &login("nobody-knows", "")).err().expect("refused");
    assert!(matches!(error, SmbError::Refused { cause: LoginError::TakenForGuest, .. }), "{error}");
    let session = log_in(&samba, "open", &login("guest", "")).expect("asked for");
    let error = session.create(b".part").err().expect("the folder is root's");
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
}

#[server_test(Root, Program("smbd"), Program("smbpasswd"))]
fn a_server_that_dies_is_lost_at_once() {
    let mut samba = Samba::start();
    let session = session(&samba, "open");
    let mut file = session.create(b"file").expect("made");
    file.write(0, &[7; 1000]).expect("sent");
    samba.kill();
    let since = Instant::now();
    let error = file.complete(1000, MOMENT).and_then(|()| file.name(b"other")).expect_err("nobody is there");
    assert_eq!(error.kind(), ErrorKind::NotConnected);
    assert!(error.to_string().starts_with("the connection to 127.0.0.1 is lost: "), "{error}");
    assert!(!error.to_string().contains("silent"), "{error}");
    assert_eq!(session.about(b"file").err().map(|error| error.kind()), Some(ErrorKind::NotConnected));
    drop((file, session));
    // A server that is not known to be dead may be silent for 20 s.
    assert!(since.elapsed() < Duration::from_secs(15), "{:?}", since.elapsed());
}

/// Where to connect to reach the server by way of a host that spoils the signature of its answer to the login, over the
/// first `spoilt` connections.
fn spoils(samba: &Samba, spoilt: usize) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let (address, server) = (listener.local_addr().expect("bound"), samba.address);
    std::thread::spawn(move || {
        for (connection, client) in listener.incoming().enumerate() {
            let mut client = client.expect("accepted");
            let mut server = TcpStream::connect(server).expect("it listens");
            let mut asked = client.try_clone().expect("cloned");
            let mut to_server = server.try_clone().expect("cloned");
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut asked, &mut to_server);
                let _ = to_server.shutdown(Shutdown::Write);
            });
            std::thread::spawn(move || {
                let mut answers = 0;
                let mut head = [0; 4];
                while server.read_exact(&mut head).is_ok() {
                    let mut answer = vec![0; u32::from_be_bytes(head) as usize];
                    server.read_exact(&mut answer).expect("whole");
                    answers += 1;
                    // Behind the dialects and the challenge; the signature is at 48 (MS-SMB2 2.2.1.2).
                    if answers == 3 && connection < spoilt {
                        answer[48] ^= 1;
                    }
                    let sent = client.write_all(&head).and_then(|()| client.write_all(&answer));
                    if sent.is_err() {
                        return;
                    }
                }
                let _ = client.shutdown(Shutdown::Write);
            });
        }
    });
    address
}

#[server_test(Root, Program("smbd"), Program("smbpasswd"))]
fn a_login_whose_answer_was_changed_on_the_way_is_refused() {
    let samba = Samba::start();
    let through = |address: SocketAddr| {
        let connection = TcpStream::connect(address).expect("it listens");
        Session::log_in(connection, "127.0.0.1", "open", &login(USER, PASSWORD), Terms::default())
    };
    let error = through(spoils(&samba, 1)).err().expect("refused").to_string();
    assert!(error.contains("could not be verified"), "{error}");
    through(spoils(&samba, 0)).expect("unchanged").make_folder(b"made").expect("it is there");
}
