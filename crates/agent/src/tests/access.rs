//! Who may ask, and what those are told who may not.

use super::*;
use crate::connection_gate::PER_CREDENTIAL;
use crate::slots::{PER_SOURCE, SLOTS};
use crate::{Allowance, Invitations};
use linerate_control::{AgentError, ApiError, ErrorKind, fingerprint};
use linerate_testsuite::wait_until;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use reqwest::Method;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ResolvesServerCertUsingSni;
use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

/// An agent URL changed by `change`, used; the error it gives.
async fn refused(agent: &Agent, change: impl FnOnce(&mut AgentUrl)) -> AgentError {
    let mut url = agent.url().clone();
    change(&mut url);
    Client::connect(&url).await.expect_err("it must not be let in")
}

#[tokio::test]
async fn the_agent_url_is_enough_and_survives_text() {
    let agent = agent(|_| ()).await;
    let line = agent.url().to_string();
    let host =
        Client::connect(&line.parse().expect("an agent URL")).await.expect("let in").host().await.expect("a host");
    assert_eq!((host.name.0.as_str(), host.protocol), ("test", PROTOCOL));
    assert!(!format!("{agent:?}").contains(&agent.url().token));
}

/// Client and agent share a clock here, so that the four times follow each other.
#[tokio::test]
async fn an_exchange_of_times_is_that_of_the_request_and_its_answer() {
    let agent = agent(|_| ()).await;
    let client = connect(&agent).await;
    let earlier = linerate_sys::clock::now();
    for _ in 0..5 {
        let times = client.clock().await.expect("a clock");
        let later = linerate_sys::clock::now();
        let order = [earlier, times.origin_ns, times.receive_ns, times.transmit_ns, times.destination_ns, later];
        assert!(order.is_sorted(), "{order:?}");
    }
}

#[tokio::test]
async fn a_wrong_token_or_fingerprint_is_told_apart() {
    let agent = agent(|_| ()).await;
    let error = refused(&agent, |url| url.token = "0".repeat(32)).await;
    assert!(matches!(error, AgentError::WrongToken { .. }), "{error:?}");
    assert!(error.to_string().contains(&agent.url().address()) && error.to_string().contains("agent URL"), "{error}");

    let error = refused(&agent, |url| url.fingerprint = "0".repeat(64)).await;
    assert!(matches!(error, AgentError::WrongFingerprint { .. }), "{error:?}");
    assert!(error.to_string().contains(&agent.url().address()), "{error}");
}

/// An agent of the first version refuses requests of this one; what its caller reads names both and the remedy.
#[tokio::test]
async fn an_agent_of_another_protocol_is_named_with_both_versions() {
    let made = rcgen::generate_simple_self_signed(vec!["linerate-agent".to_owned()]).expect("a certificate");
    let certificate = CertificateDer::from_pem_slice(made.cert.pem().as_bytes()).expect("DER");
    let key = PrivateKeyDer::from_pem_slice(made.signing_key.serialize_pem().as_bytes()).expect("DER");
    let fingerprint = fingerprint(&certificate);
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("a certificate and its key");
    let listener = TcpListener::bind((LOOPBACK, 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let old = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("a connection");
        let mut tls = rustls::ServerConnection::new(Arc::new(config)).expect("TLS");
        let mut stream = rustls::Stream::new(&mut tls, &mut socket);
        assert!(stream.read(&mut [0; 4_000]).expect("a request") > 0);
        let body = r#"{"error":"from-another-time","message":""}"#;
        let answer = format!(
            "HTTP/1.1 426 Upgrade Required\r\nlinerate-protocol: 1\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(answer.as_bytes()).expect("answered");
    });
    let url = AgentUrl { host: "127.0.0.1".into(), port, token: "0".repeat(32), fingerprint };
    let error = Client::connect(&url).await.expect_err("another protocol");
    old.join().expect("no panic");
    assert!(matches!(error, AgentError::WrongProtocol { .. }), "{error:?}");
    for part in ["speaks protocol 1", &format!("speaks protocol {PROTOCOL}"), "install the same version"] {
        assert!(error.to_string().contains(part), "{error}");
    }
}

/// Whoever copied the certificate cannot pass for the agent without its key.
#[tokio::test]
async fn a_certificate_without_its_key_is_not_believed() {
    let made = || rcgen::generate_simple_self_signed(vec!["linerate-agent".to_owned()]).expect("a certificate");
    let (agents, thiefs) = (made(), made());
    let certificate = CertificateDer::from_pem_slice(agents.cert.pem().as_bytes()).expect("DER");
    let key = PrivateKeyDer::from_pem_slice(thiefs.signing_key.serialize_pem().as_bytes()).expect("DER");
    let key = rustls::crypto::ring::sign::any_supported_type(&key).expect("a key");
    let fingerprint = fingerprint(&certificate);
    let stolen = rustls::sign::CertifiedKey::new(vec![certificate], key);
    let mut names = ResolvesServerCertUsingSni::new();
    // The resolver checks names, not keys.
    names.add("linerate-agent", stolen).expect("the certificate has this name");
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(names));
    let listener = TcpListener::bind((LOOPBACK, 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let thief = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("a connection");
        let mut tls = rustls::ServerConnection::new(Arc::new(config)).expect("TLS");
        let mut stream = rustls::Stream::new(&mut tls, &mut socket);
        let answered = stream.read(&mut [0; 1000]).is_ok();
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        answered
    });
    let tls = client_config(&fingerprint).expect("TLS");
    let http = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .resolve("linerate-agent", ([127, 0, 0, 1], port).into())
        .build()
        .expect("HTTP");
    let error = http.get(format!("https://linerate-agent:{port}/")).send().await.expect_err("a thief");
    assert!(format!("{error:?}").contains("BadSignature"), "{error:?}");
    assert!(!thief.join().expect("no panic"), "the thief was sent a request");
}

#[tokio::test]
async fn without_the_token_nothing_is_told() {
    let agent = agent(|_| ()).await;
    let raw = Raw::new(&agent);
    let mut answers = Vec::new();
    for (method, path) in [
        (Method::GET, "/v1/host"),
        (Method::GET, "/metrics"),
        (Method::GET, "/v1/openapi.json"),
        (Method::GET, "/nowhere"),
        (Method::DELETE, "/v1/host"),
        (Method::POST, "/v1/sessions"),
    ] {
        let response = raw.bare(method, path).header(PROTOCOL_HEADER, 99).send().await.expect("an answer");
        assert!(response.headers().get(PROTOCOL_HEADER).is_none());
        assert_eq!(response.status(), 401, "{path}");
        answers.push(response.json::<ApiError>().await.expect("an error body"));
    }
    assert_eq!(answers[0].error, ErrorKind::Unauthorized);
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    for wrong in ["", "Bearer", "Bearer ", "Basic abc", "Bearer \u{e9}", &format!("Bearer {}0", agent.url().token)] {
        let (status, _) = answer(raw.bare(Method::GET, "/v1/host").header("authorization", wrong.as_bytes())).await;
        assert_eq!(status, 401, "`{wrong}`");
    }
}

#[tokio::test]
async fn another_protocol_is_refused_with_both_versions() {
    let agent = agent(|_| ()).await;
    let raw = Raw::new(&agent);
    let get = |path| raw.bare(Method::GET, path).bearer_auth(&agent.url().token);
    for (request, theirs) in [(get("/v1/host").header(PROTOCOL_HEADER, 99), "99"), (get("/v1/host"), "none")] {
        let (status, body) = answer(request).await;
        assert_eq!((status, body["error"].as_str()), (426, Some("protocol")));
        let message = body["message"].as_str().expect("a message");
        for part in [format!("protocol {PROTOCOL}"), theirs.to_owned(), "same version of linerate".to_owned()] {
            assert!(message.contains(&part), "{message}");
        }
    }
    // What general tools read needs the token only.
    assert_eq!(answer(get("/metrics")).await.0, 200);
    assert_eq!(answer(get("/v1/openapi.json")).await.1, crate::openapi());
}

/// Reads until the agent closes the connection; false if it does not within `limit`.
fn is_closed(mut socket: &std::net::TcpStream, limit: Duration) -> bool {
    socket.set_read_timeout(Some(limit)).expect("a time limit");
    match socket.read(&mut [0; 1]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

fn knock(agent: &Agent) -> std::net::TcpStream {
    std::net::TcpStream::connect(agent.url().address()).expect("it listens")
}

/// Peers that are not allowed do not even get to TLS; what their program says names the remedy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_allowed_peers_may_ask() {
    let agent = agent(|options| {
        options.limits.allowed_peers = vec!["198.18.0.0/15".parse().expect("a network")];
        options.timeouts = Timeouts { unadmitted: 10 * SOON, ..Timeouts::default() };
    })
    .await;
    assert!(is_closed(&knock(&agent), SOON), "TLS is awaited of anyone");
    let error = refused(&agent, |_| ()).await;
    assert!(matches!(error, AgentError::Unreachable { .. }), "{error:?}");
    assert!(error.to_string().contains("127.0.0.1") && error.to_string().contains("--allow-peer"), "{error}");
}

/// Connections without a token take slots from each other only, and of those there are few.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_without_the_token_are_few() {
    // Long enough for no connection to be closed because of it.
    let timeouts = Timeouts { unadmitted: 10 * SOON, handshake: 10 * SOON, ..Timeouts::default() };
    let agent = agent(|options| options.timeouts = timeouts).await;
    let unadmitted: Vec<_> = (0..PER_SOURCE + 10).map(|_| knock(&agent)).collect();
    let closed = wait_until("connections beyond the limit are closed", || {
        let closed = unadmitted.iter().filter(|socket| is_closed(socket, Duration::from_millis(10))).count();
        (closed >= 10).then_some(closed)
    });
    assert_eq!(closed, 10, "of {} connections", unadmitted.len());
    // Admitted connections take no slots, however many.
    let mut clients = Vec::new();
    for _ in 0..=SLOTS {
        clients.push(Client::connect(agent.url()).await.expect("let in"));
    }
    for client in clients {
        client.host().await.expect("who was admitted goes on");
    }
}

/// The attack: 64 strangers open a connection each, say nothing for 10 s, and come again; nobody else gets in meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_do_not_keep_out_who_holds_a_token() {
    let timeouts = Timeouts { unadmitted: 10 * SOON, handshake: 10 * SOON, ..Timeouts::default() };
    let agent = agent(|options| options.timeouts = timeouts).await;
    let target = std::net::SocketAddr::new(LOOPBACK, agent.url().port);
    let stranger = |host: usize| async move {
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        let source = Ipv4Addr::new(127, 0, 1, 1 + host as u8);
        socket.bind((source, 0).into()).expect("loopback has this address");
        socket.connect(target).await.expect("it listens")
    };
    let mut strangers = Vec::new();
    for host in 0..2 * SLOTS {
        strangers.push(stranger(host).await);
    }
    let client = Client::connect(agent.url()).await.expect("a host that was never seen before gets in");
    for host in 0..2 * SLOTS {
        strangers.push(stranger(host).await);
    }
    client.host().await.expect("who is in stays in");
    // What is known has slots of its own.
    let known = tls(&agent);
    for host in 0..2 * SLOTS {
        strangers.push(stranger(host).await);
    }
    let (mut known, token) = (known, agent.url().token.clone());
    let answered = tokio::task::spawn_blocking(move || ask(&mut known, &token)).await.expect("no panic");
    assert_eq!(answered, "HTTP/1.1 200 OK");
}

/// A TLS connection to the agent.
type Tls = rustls::StreamOwned<rustls::ClientConnection, std::net::TcpStream>;

fn tls(agent: &Agent) -> Tls {
    let config = Arc::new(client_config(&agent.url().fingerprint).expect("TLS"));
    let name = "linerate-agent".try_into().expect("a name");
    rustls::StreamOwned::new(rustls::ClientConnection::new(config, name).expect("TLS"), knock(agent))
}

/// Sends a request and gives the answer's first line; empty if there is none.
fn ask(stream: &mut Tls, token: &str) -> String {
    let request = format!("GET /v1/openapi.json HTTP/1.1\r\nhost: agent\r\nauthorization: Bearer {token}\r\n\r\n");
    let mut answer = Vec::new();
    let whole = |answer: &[u8]| {
        let text = String::from_utf8_lossy(answer);
        text.split_once("\r\n\r\n").is_some_and(|(head, body)| {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
            body.len() >= length.parse().expect("a number")
        })
    };
    if stream.write_all(request.as_bytes()).is_ok() {
        let mut piece = [0; 4_096];
        while !whole(&answer) {
            match stream.read(&mut piece) {
                Ok(read) if read > 0 => answer.extend(&piece[..read]),
                _ => break,
            }
        }
    }
    String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned()
}

/// Sends the head of a request with a body that never comes whole, and gives the answer's first line.
fn trickle(stream: &mut Tls, token: &str) -> String {
    let head = format!(
        "POST /v1/ports HTTP/1.1\r\nhost: agent\r\nauthorization: Bearer {token}\r\n{PROTOCOL_HEADER}: {PROTOCOL}\r\n\
         content-type: application/json\r\ncontent-length: 100\r\n\r\n[\"lo"
    );
    stream.write_all(head.as_bytes()).expect("it is taken");
    let mut answer = vec![0; 4_096];
    let read = stream.read(&mut answer).expect("an answer");
    String::from_utf8_lossy(&answer[..read]).lines().next().unwrap_or_default().to_owned()
}

/// The attack: a guest sends a byte of a body now and then, on many connections, for as long as the agent runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_does_not_come_is_not_waited_for_long() {
    assert_eq!(Timeouts::default().body, Duration::from_secs(30));
    let timeouts = Timeouts { body: Duration::from_millis(300), ..Timeouts::default() };
    let agent = agent(|options| options.timeouts = timeouts).await;
    let mut stream = tls(&agent);
    stream.sock.set_read_timeout(Some(SOON)).expect("a time limit");
    assert_eq!(trickle(&mut stream, &agent.url().token), "HTTP/1.1 400 Bad Request");
}

/// The attack: who was given a URL opens connections until the agent has no descriptor left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_with_one_credential_are_bounded() {
    let directory = tempfile::tempdir().expect("a directory");
    let invitations = Invitations::of(directory.path());
    let kept = Some(invitations.clone());
    let agent = agent(|options| options.invitations = kept).await;
    let (_, guest) = invitations.invite(Allowance::default(), Nanos::from_secs(600)).expect("written");
    let with = |token: &str| {
        let mut stream = tls(&agent);
        let answer = ask(&mut stream, token);
        (stream, answer)
    };
    let mut open: Vec<Tls> = Vec::new();
    for _ in 0..PER_CREDENTIAL {
        let (stream, answer) = with(guest.as_str());
        assert_eq!(answer, "HTTP/1.1 200 OK");
        open.push(stream);
    }
    let (_, answer) = with(guest.as_str());
    assert_eq!(answer, "HTTP/1.1 403 Forbidden", "one more");
    let owner = agent.url().token.clone();
    assert_eq!(with(&owner).1, "HTTP/1.1 200 OK", "other credentials have a share of their own");
    assert_eq!(ask(&mut open[0], guest.as_str()), "HTTP/1.1 200 OK", "what is open goes on");
    drop(open);
    wait_until("a connection that was closed leaves its place", || {
        (with(guest.as_str()).1 == "HTTP/1.1 200 OK").then_some(())
    });
}

/// The token has to come soon; after that a connection may idle.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_without_the_token_are_closed_soon() {
    assert_eq!(Timeouts::default().unadmitted, Duration::from_secs(10));
    let waits_for = |unadmitted| {
        let timeouts = Timeouts { unadmitted, ..Timeouts::default() };
        agent(move |options| options.timeouts = timeouts)
    };
    let agent = waits_for(Duration::from_millis(800)).await;
    assert!(is_closed(&knock(&agent), SOON), "silence before TLS");

    let mut silent = tls(&agent);
    silent.sock.set_read_timeout(Some(SOON)).expect("a time limit");
    // On a slow machine the handshake alone may take too long, and the connection is closed within it.
    let handshake = silent.conn.complete_io(&mut silent.sock);
    let error = handshake.and_then(|_| silent.read(&mut [0; 1])).err().map(|error| error.kind());
    assert_ne!(error, Some(std::io::ErrorKind::WouldBlock), "silence after TLS");

    // Who asks at once is in time.
    let unadmitted = Duration::from_secs(5);
    let agent = waits_for(unadmitted).await;
    let token = agent.url().token.clone();
    let mut wrong = tls(&agent);
    assert_eq!(ask(&mut wrong, "0"), "HTTP/1.1 401 Unauthorized");
    assert_eq!(ask(&mut wrong, &token), "", "one guess for each connection");

    let mut right = tls(&agent);
    assert_eq!(ask(&mut right, &token), "HTTP/1.1 200 OK");
    // The time that it idles is what is tested.
    tokio::time::sleep(unadmitted * 3 / 2).await;
    assert_eq!(ask(&mut right, &token), "HTTP/1.1 200 OK");
}

/// The attack: requests without a token, and none of their answers is read, so that the agent waits to write and reads no more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_reads_no_answers_is_closed_as_well() {
    let timeouts = Timeouts { unadmitted: Duration::from_secs(3), ..Timeouts::default() };
    let agent = agent(|options| options.timeouts = timeouts).await;
    let mut deaf = tls(&agent);
    let asking = tokio::task::spawn_blocking(move || {
        deaf.sock.set_write_timeout(Some(SOON)).expect("a time limit");
        let requests = "GET /v1/pair HTTP/1.1\r\nhost: a\r\n\r\n".repeat(1_000);
        loop {
            if let Err(error) = deaf.write_all(requests.as_bytes()) {
                return error.kind();
            }
        }
    });
    let error = asking.await.expect("no panic");
    assert_ne!(error, std::io::ErrorKind::WouldBlock, "it is still open");
}

#[tokio::test]
async fn an_agent_on_all_addresses_shows_one_in_its_url() {
    let everywhere = || TcpListener::bind(("0.0.0.0", 0)).expect("a port");
    let agent_of_its_own = agent(|options| options.listener = everywhere()).await;
    assert_ne!(agent_of_its_own.url().host, "0.0.0.0");
    let told = agent(|options| {
        options.listener = everywhere();
        options.advertise = Some("box.example".to_owned());
    });
    assert_eq!(told.await.url().host, "box.example");
}

#[tokio::test]
async fn where_no_agent_is_the_message_says_how_to_start_one() {
    let agent = agent(|_| ()).await;
    let url = agent.url().clone();
    agent.shutdown().await;
    let error = Client::connect(&url).await.expect_err("nobody is there");
    assert!(matches!(error, AgentError::Unreachable { .. }), "{error:?}");
    let text = error.to_string();
    assert!(
        text.contains(&url.address())
            && text.contains("Start one on that host with `linerate serve`")
            && text.contains("refused"),
        "{text}"
    );
}

#[tokio::test]
async fn another_kind_of_server_is_recognised() {
    let listener = TcpListener::bind((LOOPBACK, 0)).expect("a port");
    let mut url = AgentUrl { host: "127.0.0.1".into(), port: 0, token: "0".repeat(32), fingerprint: "0".repeat(64) };
    url.port = listener.local_addr().expect("an address").port();
    let server = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("a connection");
        let _ = socket.read(&mut [0; 2000]);
        let _ = socket.write_all(b"SSH-2.0-OpenSSH_9.9\r\n");
    });
    let error = Client::connect(&url).await.expect_err("not an agent");
    assert!(matches!(error, AgentError::NotAnAgent { .. }), "{error:?}");
    assert!(error.to_string().contains("check the port"), "{error}");
    server.join().expect("no panic");
}

#[tokio::test]
async fn bad_requests_are_told_what_is_wrong() {
    let agent = agent(|options| options.limits.max_body = 2_000).await;
    let raw = Raw::new(&agent);
    let mut unknown_role = serde_json::to_value(assignment("t")).expect("JSON");
    unknown_role["roles"][0]["kind"]["kind"] = "bystander".into();
    let nested = format!("{}{}", "[".repeat(900), "]".repeat(900));
    for (body, part) in [
        (String::new(), "EOF"),
        ("{".to_owned(), "EOF"),
        ("{}".to_owned(), "id"),
        (unknown_role.to_string(), "roles[0].kind"),
        (nested, "expected a string"),
        (serde_json::json!({"id": "../x", "key": vec![0; 16]}).to_string(), "1 to 64 letters"),
        (serde_json::json!({"id": "x", "key": vec![0; 16]}).to_string(), "missing field"),
    ] {
        let (status, answer) = answer(raw.admitted(Method::POST, "/v1/sessions").body(body.clone())).await;
        assert_eq!((status, answer["error"].as_str()), (400, Some("bad-request")), "{body}: {answer}");
        assert!(answer["message"].as_str().expect("a message").contains(part), "{body}: {answer}");
    }
    let (status, body) = answer(raw.admitted(Method::POST, "/v1/sessions").body(vec![b' '; 2_001])).await;
    assert_eq!((status, body["error"].as_str()), (413, Some("too-large")));
    assert!(body["message"].as_str().expect("a message").contains("2000 bytes"), "{body}");

    for name in ["", "a b", "../host", &"x".repeat(65), "\u{4e00}"] {
        let (status, body) = answer(raw.admitted(Method::POST, "/v1/sessions").json(&assignment(name))).await;
        assert_eq!(status, 400, "`{name}`: {body}");
    }
}

/// Whatever bytes those send that have the token: an answer that blames the request, and an agent that lives on.
#[tokio::test]
async fn hostile_bodies_do_no_harm() {
    let agent = agent_with(scripted::Scripted::new().boxed(), |_| ()).await;
    let raw = Raw::new(&agent);
    let good = serde_json::to_vec(&assignment("hostile")).expect("JSON");
    let mut runner = TestRunner::deterministic();
    let mutations = prop::collection::vec((0..good.len(), any::<u8>()), 1..4);
    for round in 0..200 {
        let mut body = good.clone();
        for (place, byte) in mutations.new_tree(&mut runner).expect("a value").current() {
            body[place] = byte;
        }
        let path = ["/v1/sessions", "/v1/sessions/hostile/order"][round % 2];
        // A session's stages have no end while it waits: the answer's head is enough.
        let response = raw.admitted(Method::POST, path).body(body.clone()).send().await.expect("an answer");
        let (status, shown) = (response.status().as_u16(), String::from_utf8_lossy(&body));
        assert!([200, 204, 400, 403, 404, 409].contains(&status), "{status} to {path} {shown}");
        assert_eq!(answer(raw.admitted(Method::DELETE, "/v1/sessions/hostile")).await.0, 200);
    }
    assert_eq!(answer(raw.admitted(Method::GET, "/v1/host")).await.0, 200);
}

/// A server that takes the connection and says nothing must not hold its caller for ever.
#[tokio::test]
async fn silence_is_not_waited_for_long() {
    let listener = TcpListener::bind((LOOPBACK, 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let url = AgentUrl { host: "127.0.0.1".into(), port, token: "0".repeat(32), fingerprint: "0".repeat(64) };
    let tried = tokio::time::timeout(SOON, Client::connect(&url)).await.expect("it is given up");
    let error = tried.expect_err("nobody speaks");
    assert!(matches!(error, AgentError::Unreachable { .. }), "{error:?}");
    assert!(error.to_string().contains("TCP connects, but there is no answer for 10 s"), "{error}");
}

#[tokio::test]
async fn what_is_not_there_is_said_so() {
    let agent = agent(|_| ()).await;
    let raw = Raw::new(&agent);
    for (method, path, expected) in [
        (Method::GET, "/v1/nowhere", (404, "not-found")),
        (Method::PUT, "/v1/host", (405, "method")),
        (Method::GET, "/v1/sessions/t/counts", (404, "not-found")),
    ] {
        let (status, body) = answer(raw.admitted(method, path)).await;
        assert_eq!((status, body["error"].as_str()), (expected.0, Some(expected.1)), "{path}");
    }
    // Ending what is not there is fine.
    assert_eq!(answer(raw.admitted(Method::DELETE, "/v1/sessions/t")).await.0, 200);
}
