//! Attack: whoever is on the way to an SMB server lowers the version that is spoken, or leaves out what would show it.
//! The server here follows a script; it knows the password, and so can sign.

use super::*;
use crate::answer::ServerInfo;
use crate::wire::{COMMAND, FLAGS, FROM_SERVER, HEADER, Put as _, SESSION, STATUS, part, u16_at, u32_at, utf16};
use crate::{Session, request};
use hmac::{Hmac, KeyInit as _, Mac as _};
use linerate_testsuite::wait_until;
use md4::{Digest as _, Md4};
use md5::Md5;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;

const PASSWORD: &str = "a secret";
const SESSION_ID: u64 = 0x1122;
const NTLM: &[u8] = &[0x06, 10, 0x2b, 6, 1, 4, 1, 0x82, 0x37, 2, 2, 10];

/// What the server does.
#[derive(Debug, Clone, Copy)]
struct Script {
    /// The version that it speaks, whatever was offered; 0 speaks none of them.
    dialect: u16,
    /// Its answer that ends the login is signed.
    signs_login: bool,
    guest: bool,
    validation: Validation,
}

/// What becomes of the question what was negotiated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Validation {
    Honest,
    /// It negotiated another version, as it did if its answer was changed on the way.
    OtherVersion,
    OtherCapabilities,
    Status(u32),
    /// Whoever is on the way answers as the client wants it, without the key.
    Unsigned,
}

const HONEST: Script = Script { dialect: 0x302, signs_login: true, guest: false, validation: Validation::Honest };

fn seen(dialect: u16) -> ServerInfo {
    ServerInfo { capabilities: 0x4, id: [9; 16], security_mode: 1, dialect }
}

/// An answer with its length; signed if there are keys.
fn answer(request: &[u8], status: u32, body: &[u8], keys: Option<&Keys>) -> Vec<u8> {
    let mut message = [&request[..HEADER], body].concat();
    message[STATUS..STATUS + 4].copy_from_slice(&status.to_le_bytes());
    message[FLAGS..FLAGS + 4].copy_from_slice(&FROM_SERVER.to_le_bytes());
    message[SESSION..SESSION + 8].copy_from_slice(&SESSION_ID.to_le_bytes());
    if let Some(signer) = keys.and_then(|keys| keys.signer.as_ref()) {
        signer.sign(&mut message);
    }
    [&(message.len() as u32).to_be_bytes()[..], &message].concat()
}

fn negotiated(info: ServerInfo) -> Vec<u8> {
    let mut body = Vec::new();
    body.u16(65);
    body.u16(info.security_mode);
    body.u16(info.dialect);
    body.u16(0);
    body.put(&info.id);
    body.u32(info.capabilities);
    (0..3).for_each(|_| body.u32(1 << 20));
    body.resize(64, 0);
    body
}

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    [&[tag, u8::try_from(content.len()).expect("short")], content].concat()
}

/// A challenge that grants what is needed, and no exchange of keys: the session's key follows from the response.
fn challenge() -> Vec<u8> {
    let mut ntlm = b"NTLMSSP\0".to_vec();
    ntlm.u32(2);
    ntlm.u64(0);
    ntlm.u32(0x2008_0001);
    ntlm.put(&[3; 8]);
    ntlm.u64(0);
    ntlm.u16(4);
    ntlm.u16(4);
    ntlm.u32(56);
    ntlm.put(&[0; 8]);
    ntlm.u32(0);
    let parts = [element(0xa0, &element(0x0a, &[1])), element(0xa1, NTLM), element(0xa2, &element(0x04, &ntlm))];
    let token = element(0xa1, &element(0x30, &parts.concat()));
    set_up(0, &token)
}

fn set_up(flags: u16, token: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    body.u16(9);
    body.u16(flags);
    body.u16(HEADER as u16 + 8);
    body.u16(token.len() as u16);
    body.put(token);
    body
}

fn hmac_md5(key: &[u8], bytes: &[u8]) -> [u8; 16] {
    let mut mac = Hmac::<Md5>::new_from_slice(key).expect("a key");
    mac.update(bytes);
    mac.finalize().into_bytes().into()
}

/// The session's key, from the client's last message (MS-NLMP 3.3.2): the user is `USER`, of no domain.
fn session_key(request: &[u8]) -> [u8; 16] {
    let at = request.windows(8).position(|bytes| bytes == b"NTLMSSP\0").expect("NTLM");
    let message = &request[at..];
    let response = part(message, u32_at(message, 24).expect("there") as usize, 16).expect("a proof");
    hmac_md5(&hmac_md5(&Md4::digest(utf16(PASSWORD)), &utf16("USER")), response)
}

fn validation(info: ServerInfo) -> Vec<u8> {
    let mut body = Vec::new();
    body.u16(49);
    body.u16(0);
    body.u32(0x0014_0204);
    body.put(&[0xff; 16]);
    body.u32(0);
    body.u32(0);
    body.u32(HEADER as u32 + 48);
    body.u32(24);
    body.u64(0);
    body.u32(info.capabilities);
    body.put(&info.id);
    body.u16(info.security_mode);
    body.u16(info.dialect);
    body
}

/// Answers one client by the script, and tells each request.
fn serve(mut client: TcpStream, script: Script, told: &mpsc::Sender<Vec<u8>>) {
    let mut keys_known = None;
    let mut steps = 0;
    let mut head = [0; 4];
    while client.read_exact(&mut head).is_ok() {
        let mut request = vec![0; u32::from_be_bytes(head) as usize];
        client.read_exact(&mut request).expect("whole");
        let _ = told.send(request.clone());
        let signed = u32_at(&request, FLAGS).is_some_and(|flags| flags & 8 != 0);
        let keys = keys_known.as_ref().filter(|_| signed);
        let answer = match u16_at(&request, COMMAND) {
            Some(0) if script.dialect == 0 => {
                answer(&request, status::NOT_SUPPORTED, &[9, 0, 0, 0, 0, 0, 0, 0, 0], None)
            }
            Some(0) => answer(&request, 0, &negotiated(seen(script.dialect)), None),
            Some(1) if script.guest => answer(&request, 0, &set_up(1, &[]), None),
            Some(1) if steps == 0 => {
                steps += 1;
                answer(&request, status::MORE, &challenge(), None)
            }
            Some(1) => {
                let agreed =
                    Negotiated { server: seen(script.dialect), max_read: 0, max_write: 0, cipher: None, signing: None };
                let keys = keys_known.insert(super::keys(&agreed, &session_key(&request), &[0; 64], SESSION_ID));
                answer(&request, 0, &set_up(0, &[]), script.signs_login.then_some(&*keys))
            }
            Some(11) => {
                let honest = seen(script.dialect);
                match script.validation {
                    Validation::Honest => answer(&request, 0, &validation(honest), keys),
                    Validation::OtherVersion => {
                        answer(&request, 0, &validation(ServerInfo { dialect: 0x311, ..honest }), keys)
                    }
                    Validation::OtherCapabilities => {
                        answer(&request, 0, &validation(ServerInfo { capabilities: 0x44, ..honest }), keys)
                    }
                    Validation::Status(status) => answer(&request, status, &[9, 0, 0, 0, 0, 0, 0, 0, 0], keys),
                    Validation::Unsigned => answer(&request, 0, &validation(honest), None),
                }
            }
            _ => answer(&request, 0, &[16, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], keys),
        };
        if client.write_all(&answer).is_err() {
            return;
        }
    }
}

/// Logs in by the script. Returns the outcome and all requests.
fn log_in_by(script: Script, user: &str, terms: Terms) -> (Result<(), String>, Vec<Vec<u8>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let stream = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
    let (told, requests) = mpsc::channel();
    let server = thread::spawn(move || serve(listener.accept().expect("accepted").0, script, &told));
    let login = Login { user: user.to_owned(), password: PASSWORD.to_owned() };
    let logged_in = Session::log_in(stream, "filer", "data", &login, terms);
    let outcome = logged_in.map(drop).map_err(|error| error.to_string());
    wait_until("the server has ended", || server.is_finished().then_some(()));
    (outcome, requests.iter().collect())
}

fn any(sign: bool) -> Terms {
    Terms { minimum: Version::V2_0_2, sign }
}

#[test]
fn a_version_below_the_minimum_is_neither_offered_nor_taken() {
    for dialect in [0x202, 0x210, 0x300, 0x302] {
        let (outcome, requests) = log_in_by(Script { dialect, ..HONEST }, "user", Terms::default());
        assert!(outcome.is_err_and(|why| why.contains("was not offered")), "{dialect:#x}");
        // MS-SMB2 2.2.3: their count is at 2, the first one at 36.
        let body = &requests[0][HEADER..];
        assert_eq!((u16_at(body, 2), u16_at(body, 36)), (Some(1), Some(0x311)));
        assert_eq!(requests.len(), 1, "nothing is told of the user");
        assert_eq!(log_in_by(Script { dialect, ..HONEST }, "user", any(false)).0, Ok(()), "{dialect:#x} is allowed");
    }
    let (outcome, _) = log_in_by(Script { dialect: 0, ..HONEST }, "user", Terms::default());
    assert!(outcome.is_err_and(|why| why.contains("no version of SMB from 3.1.1 on")));
}

#[test]
fn an_unsigned_last_answer_to_a_login_is_refused_by_every_version() {
    for dialect in [0x202, 0x210, 0x300, 0x302] {
        let script = Script { dialect, signs_login: false, ..HONEST };
        let (outcome, _) = log_in_by(script, "user", any(false));
        assert!(outcome.is_err_and(|why| why.contains("could not be verified")), "{dialect:#x}");
    }
}

#[test]
fn a_negotiation_that_was_changed_on_the_way_is_noticed() {
    for (validation, good) in [
        (Validation::Honest, true),
        (Validation::Status(status::FILE_CLOSED), true),
        (Validation::Status(status::INVALID_DEVICE_REQUEST), true),
        (Validation::Status(status::NOT_SUPPORTED), true),
        (Validation::Status(0xC000_0022), false),
        (Validation::OtherVersion, false),
        (Validation::OtherCapabilities, false),
        (Validation::Unsigned, false),
    ] {
        for dialect in [0x210, 0x302] {
            let (outcome, requests) = log_in_by(Script { dialect, validation, ..HONEST }, "user", any(false));
            assert_eq!(outcome.is_ok(), good, "{validation:?}: {outcome:?}");
            assert!(good || outcome.is_err_and(|why| why.contains("could not be verified")), "{validation:?}");
            let asked = requests.iter().find(|request| request[COMMAND] == 11).expect("it is asked");
            assert_ne!(asked[FLAGS] & 8, 0, "the question is signed");
        }
    }
}

#[test]
fn all_is_signed_where_that_is_wanted_and_a_guest_is_refused_then() {
    let (outcome, requests) = log_in_by(HONEST, "user", any(true));
    assert_eq!(outcome, Ok(()));
    // MS-SMB2 2.2.3 and 2.2.5, SecurityMode.
    assert_eq!(u16_at(&requests[0], HEADER + 4), Some(request::security_mode::REQUIRED));
    assert_eq!(u16::from(requests[1][HEADER + 3]), request::security_mode::REQUIRED);
    assert!(requests[3..].iter().all(|request| request[FLAGS] & 8 != 0));

    let guest = Script { guest: true, ..HONEST };
    assert_eq!(log_in_by(guest, "guest", any(false)).0, Ok(()));
    assert!(log_in_by(guest, "guest", any(true)).0.is_err_and(|why| why.contains("a guest has no key")));
    assert!(log_in_by(guest, "user", any(false)).0.is_err_and(|why| why.contains("take this user for a guest")));
}
