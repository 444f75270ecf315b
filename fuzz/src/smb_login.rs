//! Sessions with an SMB server over a real connection, from the login on.

use linerate_smb::{Login, Session, Terms, Version};
use socket2::SockRef;
use std::io::Write as _;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::LazyLock;
use std::time::Duration;

/// Length of a header, and offsets of its fields (MS-SMB2 2.2.1.2).
const HEADER: usize = 64;
const CREDITS: usize = 14;
const FLAGS: usize = 16;
const MESSAGE_ID: usize = 24;
/// Maximum length of the server's data. The system's buffers hold it before the client reads.
const MAX_SENT: usize = 32 << 10;

static LISTENER: LazyLock<TcpListener> =
    LazyLock::new(|| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has a port"));

/// Runs a session in which the server sends the messages in `bytes`.
///
/// Each message is a length of two bytes and its content. The header is changed to that of a response to the next
/// request. A length with its highest bit set leaves the header unchanged.
pub(crate) fn conversation(bytes: &[u8]) {
    let client = TcpStream::connect(LISTENER.local_addr().expect("it listens")).expect("loopback connects");
    let (mut server, _) = LISTENER.accept().expect("a connection is there");
    // Closed connections must not remain in TIME-WAIT, since there are many.
    for stream in [&client, &server] {
        SockRef::from(stream).set_linger(Some(Duration::ZERO)).expect("a socket can linger");
    }
    server.write_all(&answers(bytes)).expect("the system keeps as much");
    server.shutdown(Shutdown::Write).expect("it is connected");
    let login = Login { user: String::from("guest"), password: String::new() };
    let terms = Terms { minimum: Version::V2_0_2, sign: false };
    match Session::log_in(client, "server", "share", &login, terms) {
        Ok(session) => use_share(&session),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Returns the messages, framed for TCP.
fn answers(mut bytes: &[u8]) -> Vec<u8> {
    let mut sent = Vec::new();
    let mut id = 0_u64;
    while let Some((&length, rest)) = bytes.split_first_chunk() {
        let length = u16::from_le_bytes(length);
        let (message, rest) = rest.split_at(usize::from(length & 0x7fff).min(rest.len()));
        bytes = rest;
        if sent.len() + message.len() + 4 > MAX_SENT {
            break;
        }
        sent.extend_from_slice(&(message.len() as u32).to_be_bytes());
        let start = sent.len();
        sent.extend_from_slice(message);
        if length & 0x8000 == 0 && message.len() >= HEADER {
            let header = &mut sent[start..start + HEADER];
            header[..4].copy_from_slice(b"\xfeSMB");
            header[CREDITS..CREDITS + 2].copy_from_slice(&8_u16.to_le_bytes());
            header[FLAGS] |= 1;
            header[MESSAGE_ID..MESSAGE_ID + 8].copy_from_slice(&id.to_le_bytes());
            id += 1;
        }
    }
    sent
}

/// Uses a share as a copy does.
fn use_share(session: &Session) {
    if let Ok(listing) = session.list(b"", "*") {
        listing.take(100).for_each(drop);
    }
    if let Ok(mut file) = session.open(b"file") {
        let _ = file.read(0, &mut [0; 512]);
    }
}
