//! What is read of a device by SNMP is what it counted: against net-snmp's snmpd, on a port of its own.

use linerate_model::DeviceLoad;
use linerate_observe::snmp::{Reading, Session, SnmpError, Target, Watcher};
use linerate_sys::namespace::NetNamespace;
use linerate_sys::netlink::Route;
use linerate_sys::udp;
use linerate_testsuite::server_test;
use linerate_testsuite::servers::Snmpd;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::future::Future;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What a test waits for comes by then, even on a busy machine.
const LONG: Duration = Duration::from_secs(60);
/// What the agent shall say of its first two CPUs, and of all. Its own 1-minute averages come only after a minute.
const PLANTED: [u64; 2] = [30, 90];
const PLANTED_IDLE: u64 = 75;
/// Users of version 3: name, protocols as snmpd calls them, options as we do.
const USERS: [(&str, &str, &str); 7] = [
    ("nobody", "", ""),
    ("md5", "MD5 auth-word", "?auth=md5:auth-word"),
    ("sha224", "SHA-224 auth-word", "?auth=sha224:auth-word"),
    ("sha384", "SHA-384 auth-word", "?auth=sha384:auth-word"),
    ("sha1aes", "SHA auth-word AES priv-word", "?auth=sha1:auth-word&priv=aes128:priv-word"),
    ("sha256aes", "SHA-256 auth-word AES priv-word", "?auth=sha256:auth-word&priv=aes128:priv-word"),
    ("sha512aes", "SHA-512 auth-word AES-256 priv-word", "?auth=sha512:auth-word&priv=aes256:priv-word"),
];

/// The service with what the tests plant in it.
struct Agent {
    snmpd: Snmpd,
}

impl Agent {
    fn start() -> Self {
        let mut settings = format!(
            "rocommunity public 127.0.0.1\n\
             view averages included .1.3.6.1.2.1.1\n\
             view averages included .1.3.6.1.2.1.25.3.3\n\
             rocommunity averages 127.0.0.1 -V averages\n\
             view idle included .1.3.6.1.2.1.1\n\
             view idle included .1.3.6.1.4.1.2021.11.11\n\
             rocommunity idle 127.0.0.1 -V idle\n\
             view nothing included .1.3.6.1.2.1.99\n\
             rocommunity nothing 127.0.0.1 -V nothing\n\
             override .1.3.6.1.4.1.2021.11.11.0 integer {PLANTED_IDLE}\n"
        );
        for (cpu, load) in PLANTED.iter().enumerate() {
            settings += &format!("override .1.3.6.1.2.1.25.3.3.1.2.{} integer {load}\n", 196_608 + cpu);
        }
        for (user, protocols, _) in USERS {
            let level = match protocols.split(' ').count() {
                4 => "authpriv",
                2 => "auth",
                _ => "noauth",
            };
            settings += &format!("createUser {user} {protocols}\nrouser {user} {level}\n");
        }
        Self { snmpd: Snmpd::start(&settings) }
    }

    fn target(&self, before: &str, options: &str) -> Target {
        format!("{before}@127.0.0.1:{}{options}", self.snmpd.port).parse().expect("a target")
    }

    /// Opens a session once the service listens.
    async fn open(&self, before: &str, options: &str) -> Session {
        let started = Instant::now();
        loop {
            match Session::open(&self.target(before, options)).await {
                Ok(session) => return session,
                Err(SnmpError::Closed { .. } | SnmpError::Silent { .. }) if started.elapsed() < LONG => {}
                Err(error) => {
                    let log = std::fs::read_to_string(self.snmpd.directory.path().join("log")).unwrap_or_default();
                    panic!("{before}: {error}\n{log}");
                }
            }
        }
    }

    async fn watcher(&self) -> Watcher {
        Watcher::new(self.open("snmp://public", "").await)
    }
}

/// On one thread, as the program does.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

/// Keeps one core busy while it lives.
struct Burner {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Burner {
    fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map(std::thread::JoinHandle::join);
    }
}

/// Ticks of all this machine's CPUs.
#[derive(Debug, Clone, Copy)]
struct Ticks {
    busy: u64,
    stolen: u64,
    all: u64,
}

impl Ticks {
    fn since(self, before: Self) -> Self {
        Self { busy: self.busy - before.busy, stolen: self.stolen - before.stolen, all: self.all - before.all }
    }
}

fn proc_stat() -> Ticks {
    let text = std::fs::read_to_string("/proc/stat").expect("/proc/stat");
    let ticks: Vec<u64> =
        text.lines().next().expect("a line").split_whitespace().skip(1).take(8).map(|n| n.parse().expect(n)).collect();
    let all: u64 = ticks.iter().sum();
    // Not idle (3), not waiting (4), not stolen (7).
    Ticks { busy: all - ticks[3] - ticks[4] - ticks[7], stolen: ticks[7], all }
}

/// Reads until the device has renewed its CPU counters; what /proc/stat says before that moment and after it.
async fn renewed(session: &mut Session, before: &Reading) -> (Reading, [Ticks; 2]) {
    let started = Instant::now();
    let mut unchanged = proc_stat();
    loop {
        let asked = proc_stat();
        let now = session.sample().await.expect("a reading");
        if now.load_since(before).cpu.is_some() {
            return (now, [unchanged, proc_stat()]);
        }
        unchanged = asked;
        assert!(started.elapsed() < LONG, "the device's CPU counters stand still");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Between two renewals, what SNMP says, and the least and the most that it can be by /proc/stat.
async fn both(session: &mut Session) -> (DeviceLoad, [f64; 2]) {
    let first = loop {
        let reading = session.sample().await.expect("a reading");
        if reading.load_since(&reading).source == "snmp UCD raw counters" {
            break reading;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    let (before, [outer_start, inner_start]) = renewed(session, &first).await;
    let (after, [inner_end, outer_end]) = renewed(session, &before).await;
    let (inner, outer) = (inner_end.since(inner_start), outer_end.since(outer_start));
    let share = |busy: u64, all: u64| busy as f64 / all as f64;
    (after.load_since(&before), [share(inner.busy, outer.all), share(outer.busy, inner.all)])
}

fn has_note(load: &DeviceLoad, words: &str) -> bool {
    load.notes.iter().any(|note| note.contains(words))
}

#[server_test(Program("snmpd"))]
fn every_version_and_protocol_reads() {
    let agent = Agent::start();
    block_on(async {
        let session = agent.open("snmp://public", "").await;
        assert!(session.device().description.starts_with("Linux"), "{:?}", session.device());
        assert!(!session.device().name.is_empty());
        for (user, _, options) in USERS {
            let mut session = agent.open(&format!("snmp+v3://{user}"), options).await;
            assert!(session.device().description.starts_with("Linux"), "{user}: {:?}", session.device());
            let before = session.sample().await.expect(user);
            let after = session.sample().await.expect(user);
            assert!(after.at() > before.at(), "{user}");
        }
    });
}

#[server_test(Program("snmpd"))]
fn an_error_says_where_and_what_to_check() {
    let agent = Agent::start();
    block_on(async {
        agent.open("snmp://public", "").await;
        let error = async |before: &str, options: &str| {
            let target = agent.target(before, options);
            let error = Session::open(&target).await.err().unwrap_or_else(|| panic!("{target} opened"));
            let text = error.to_string();
            assert!(text.contains(&format!("127.0.0.1:{}", agent.snmpd.port)), "{text}");
            assert!(!text.contains("-word"), "{text}");
            (error, text)
        };
        // net-snmp does not answer what it cannot decrypt.
        let undecrypted = "?auth=sha256:auth-word&priv=aes128:wrong-word";
        let ((kind, text), (undecrypted, of_undecrypted)) =
            tokio::join!(error("snmp://no-word", ""), error("snmp+v3://sha256aes", undecrypted));
        assert!(matches!(kind, SnmpError::Silent { .. }) && text.contains("community"), "{text}");
        assert!(text.contains("no answer within 2 s, asked 3 times"), "{text}");
        let (kind, text) = (undecrypted, of_undecrypted);
        assert!(matches!(kind, SnmpError::Silent { .. }) && text.contains("password of priv="), "{text}");
        let refused = [
            ("snmp+v3://sha256aes", "?auth=sha256:wrong-word&priv=aes128:priv-word"),
            ("snmp+v3://sha256aes", "?auth=sha1:auth-word&priv=aes128:priv-word"),
            ("snmp+v3://sha256aes", "?auth=sha256:auth-word"),
            ("snmp+v3://sha256aes", ""),
            ("snmp+v3://stranger", "?auth=sha256:auth-word"),
        ];
        for (before, options) in refused {
            let (kind, text) = error(before, options).await;
            assert!(matches!(kind, SnmpError::Refused { .. }) && text.contains("check the user"), "{options}: {text}");
        }
        let (kind, text) = error("snmp://nothing", "").await;
        assert!(matches!(kind, SnmpError::Hidden { .. }), "{text}");
    });
    let nobody = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port that was free");
    let error = block_on(Session::open(&format!("snmp://{nobody}").parse().expect("a target"))).err().expect("nobody");
    assert!(matches!(error, SnmpError::Closed { .. }), "{error}");
}

#[server_test(Program("snmpd"))]
fn averages_are_called_averages() {
    let agent = Agent::start();
    block_on(async {
        let mut session = agent.open("snmp://averages", "").await;
        let before = session.sample().await.expect("a reading");
        let load = session.sample().await.expect("a reading").load_since(&before);
        assert_eq!(load.source, "snmp hrProcessorLoad (1-minute average)");
        assert_eq!(load.per_cpu, PLANTED.map(|percent| percent as f64 / 100.0));
        assert_eq!((load.cpu, load.busiest_cpu, load.softirq), (Some(0.6), Some(0.9), None));
        assert!(has_note(&load, "holds what was before it"), "{:?}", load.notes);
        assert!(has_note(&load, "no interface counters"), "{:?}", load.notes);

        let mut session = agent.open("snmp://idle", "").await;
        let before = session.sample().await.expect("a reading");
        let load = session.sample().await.expect("a reading").load_since(&before);
        assert_eq!((load.source.as_str(), load.cpu), ("snmp ssCpuIdle (1-minute average)", Some(0.25)));
    });
}

#[server_test(Program("snmpd"))]
fn cpu_use_is_that_of_the_window() {
    let agent = Agent::start();
    let cores = std::thread::available_parallelism().expect("cores").get() as f64;
    block_on(async {
        let mut session = agent.open("snmp://public", "").await;
        let mut watcher = agent.watcher().await.settle(Duration::ZERO);
        let burner = Burner::start();
        let begun = proc_stat();
        // Its window has both renewals that are waited for here; net-snmp renews every 5 s, and no setting changes that.
        watcher.start().await;
        let (busy, [least, most]) = both(&mut session).await;
        let load = watcher.stop().await;
        let watched = proc_stat().since(begun);
        drop(burner);
        println!("busy: {:?}, by /proc/stat {least} to {most}", busy.cpu);
        // Ticks are whole hundredths of a second.
        let within = (least - 0.02..=most + 0.02).contains(&busy.cpu.expect("renewed"));
        assert!(within, "{busy:?}, by /proc/stat {least} to {most}");
        assert_eq!(busy.source, "snmp UCD raw counters");
        assert!(busy.softirq.is_some_and(|softirq| softirq < busy.cpu.expect("renewed")), "{busy:?}");
        // Per CPU this agent knows only averages. They must not pass for the window's.
        assert!(busy.per_cpu.is_empty() && busy.busiest_cpu.is_none(), "{busy:?}");
        assert!(has_note(&busy, "1-minute averages: the busiest was at 90 %"), "{:?}", busy.notes);

        // The same by watcher. Whatever else this machine does, one core is busy, but for what another machine takes of it.
        let stolen = watched.stolen as f64 / watched.all as f64;
        println!("watched: {load:?}, stolen {stolen}");
        let one_core = 1.0 / cores - stolen;
        assert!(load.cpu.is_some_and(|cpu| cpu > 0.8 * one_core && cpu <= 1.0), "{load:?}, stolen {stolen}");
        assert!(!has_note(&load, "only once") && !has_note(&load, "did not move"), "{load:?}");
        assert!(load.window.as_secs_f64() > 5.0, "{load:?}");
        // Two renewals and a look after each: 11 s. Looks that come late make the time between two of them shorter or longer.
        let shortest = watcher.shortest_window().expect("two renewals seen").as_secs_f64();
        assert!((5.0..=60.0).contains(&shortest), "{shortest}");

        // Too short to hold two renewals: said, not made up.
        watcher.start().await;
        let load = watcher.stop().await;
        match load.cpu {
            None => assert!(has_note(&load, "did not move"), "{load:?}"),
            Some(_) => assert!(has_note(&load, "only once"), "{load:?}"),
        }
    });
}

#[server_test(Root, Program("snmpd"))]
fn interfaces_count_what_was_sent() {
    const DATAGRAMS: u64 = 20_000;
    const PAYLOAD: usize = 400;
    /// What our own questions and their answers may add.
    const OWN_FRAMES: u64 = 5_000;
    let namespace = NetNamespace::new().expect("a namespace");
    namespace
        .enter(|| {
            let mut route = Route::open().expect("netlink");
            let lo = route.index_of("lo").expect("lo");
            route.set_up(lo).expect("up");
            let agent = Agent::start();
            block_on(async {
                let mut watcher = agent.watcher().await.settle(LONG);
                watcher.start().await;
                let receiver = UdpSocket::bind("127.0.0.1:0").expect("a socket");
                let source = UdpSocket::bind("127.0.0.1:0").expect("a socket");
                let to = receiver.local_addr().expect("an address");
                for _ in 0..DATAGRAMS {
                    source.send_to(&[0; PAYLOAD], to).expect("sent");
                    // One at a time, so that none is dropped.
                    receiver.recv(&mut [0; PAYLOAD]).expect("received");
                }
                let load = watcher.stop().await;
                println!("{load:?}");
                let lo = load.interfaces.iter().find(|interface| interface.name == "lo").expect("lo counted");
                for frames in [lo.in_frames, lo.out_frames] {
                    assert!((DATAGRAMS..DATAGRAMS + OWN_FRAMES).contains(&frames), "{lo:?}");
                }
                // A loopback counts IPv4 and UDP headers.
                let bytes = DATAGRAMS * (PAYLOAD as u64 + 20 + 8);
                for counted in [lo.in_bytes, lo.out_bytes] {
                    assert!((bytes..bytes + OWN_FRAMES * 1000).contains(&counted), "{lo:?} {bytes}");
                }
                assert_eq!((lo.in_errors, lo.out_errors), (0, 0));
                assert!(!has_note(&load, "may lack"), "{:?}", load.notes);

                // Read twice at once, the table is the same: old, not silent.
                let mut session = agent.open("snmp://public", "").await;
                let first = session.sample().await.expect("a reading");
                let load = session.sample().await.expect("a reading").load_since(&first);
                assert!(load.interfaces.is_empty() == has_note(&load, "old table"), "{load:?}");
            });
        })
        .expect("enter");
}

#[server_test(Program("snmpd"))]
fn a_device_that_falls_silent_costs_the_figures_only() {
    let mut agent = Agent::start();
    block_on(async {
        let mut watcher = agent.watcher().await.settle(Duration::ZERO);
        let starting = Instant::now();
        agent.snmpd.restart();
        agent.open("snmp://public", "").await;
        let takes = starting.elapsed();
        // The time that it has run is what tells it from one that started anew: it must be longer than the next start takes.
        tokio::time::sleep(5 * takes + Duration::from_secs(4)).await;
        // What it counts now is no difference to what it counted before.
        watcher.start().await;
        agent.snmpd.restart();
        agent.open("snmp://public", "").await;
        let load = watcher.stop().await;
        assert!(has_note(&load, "started anew") && load.cpu.is_none() && load.interfaces.is_empty(), "{load:?}");

        watcher.start().await;
        agent.snmpd.end();
        let load = watcher.stop().await;
        assert!(has_note(&load, "unanswered") && has_note(&load, &agent.snmpd.port.to_string()), "{load:?}");
        assert!(load.cpu.is_none() && load.interfaces.is_empty(), "{load:?}");
        let load = watcher.stop().await;
        assert!(has_note(&load, "not watched"), "{load:?}");
    });
}

/// Passes questions on to the service and changes up to three bytes of one answer in so many, or cuts it short. What it does
/// looks random and is the same each time.
struct Meddler {
    port: u16,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Meddler {
    fn before(agent: &Agent, one_in: u32) -> Self {
        let near = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let far = UdpSocket::bind("127.0.0.1:0").expect("a port");
        far.connect(("127.0.0.1", agent.snmpd.port)).expect("an address");
        // Whether it is to stop is looked at between two questions; an answer may take long.
        for (socket, timeout) in [(&near, Duration::from_millis(200)), (&far, Duration::from_secs(5))] {
            socket.set_read_timeout(Some(timeout)).expect("a timeout");
        }
        let port = near.local_addr().expect("an address").port();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut random = SmallRng::seed_from_u64(1157);
            let mut buffer = [0; 65_536];
            while !stopped.load(Ordering::Relaxed) {
                let Ok((length, asker)) = near.recv_from(&mut buffer) else { continue };
                // An answer to an earlier question would pass for that to this one.
                while udp::receive_one(&far, &mut [0; 16], false).is_ok() {}
                far.send(&buffer[..length]).expect("passed on");
                let Ok(mut length) = far.recv(&mut buffer) else { continue };
                if random.random_ratio(1, one_in) {
                    for _ in 0..random.random_range(1..4) {
                        let at = random.random_range(0..length);
                        buffer[at] = random.random();
                    }
                    if random.random_ratio(1, 4) {
                        length = random.random_range(0..length);
                    }
                }
                near.send_to(&buffer[..length], asker).expect("passed back");
            }
        });
        Self { port, stop, thread: Some(thread) }
    }

    fn target(&self, before: &str, options: &str) -> Target {
        format!("{before}@127.0.0.1:{}{options}", self.port).parse().expect("a target")
    }
}

impl Drop for Meddler {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map(std::thread::JoinHandle::join);
    }
}

/// Whatever comes in place of an answer, it ends in a reading or in an error that names the device.
#[server_test(Program("snmpd"))]
fn changed_answers_do_no_harm() {
    let agent = Agent::start();
    let private = "?auth=sha256:auth-word&priv=aes128:priv-word";
    block_on(async {
        agent.open("snmp://public", "").await;
        // Of version 3 each changed answer is refused for its signature, and a reading takes some forty of them.
        for (before, options, one_in, rounds) in
            [("snmp://public", "", 3, 150), ("snmp://public", "", 40, 50), ("snmp+v3://sha256aes", private, 12, 20)]
        {
            let meddler = Meddler::before(&agent, one_in);
            let (mut read, mut failed) = (0, 0);
            for _ in 0..rounds {
                let reading = match Session::open(&meddler.target(before, options)).await {
                    Ok(mut session) => session.sample().await,
                    Err(error) => Err(error),
                };
                match reading {
                    Ok(reading) => {
                        read += 1;
                        let load = reading.load_since(&reading);
                        assert!(load.cpu.is_none_or(|cpu| (0.0..=1.0).contains(&cpu)), "{load:?}");
                    }
                    Err(error) => {
                        failed += 1;
                        assert!(error.to_string().contains(&meddler.port.to_string()), "{error}");
                    }
                }
            }
            println!("{before}, one in {one_in}: {read} read, {failed} failed");
            assert!(read > 0, "{before}, one answer in {one_in} changed: {failed} failed");
        }
    });
}

/// The elements that follow each other in BER: tag and content.
fn elements(mut bytes: &[u8]) -> Vec<(u8, &[u8])> {
    let mut found = Vec::new();
    while let [tag, length, rest @ ..] = bytes {
        let (long, length) = if *length < 128 { (0, usize::from(*length)) } else { (usize::from(*length & 0x7f), 0) };
        let length = rest[..long].iter().fold(length, |length, byte| length << 8 | usize::from(*byte));
        found.push((*tag, &rest[long..long + length]));
        bytes = &rest[long + length..];
    }
    found
}

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).expect("short").to_be_bytes();
    [&[tag, 0x82], &length[..], content].concat()
}

/// Answers each question for a table with rows that never end, until an empty datagram comes.
fn endless(socket: &UdpSocket) {
    let mut buffer = [0; 4096];
    let mut row = 0u32;
    while let Ok((length @ 1.., asker)) = socket.recv_from(&mut buffer) {
        let whole = elements(&buffer[..length])[0].1;
        let [version, community, (kind, question)] = elements(whole)[..] else { panic!("no message of version 2c") };
        let parts = elements(question);
        let names = elements(parts[3].1).into_iter().map(|(_, pair)| elements(pair)[0].1);
        let pair = |name: &[u8], value: Vec<u8>| element(0x30, &[element(6, name), value].concat());
        let pairs: Vec<u8> = match kind {
            // GetBulk (RFC 3416 section 3): rows after the name asked for, whose column is 9 bytes long, or 10 in ifXTable.
            0xa5 => (0..24)
                .flat_map(|_| {
                    row += 1;
                    let name = elements(elements(parts[3].1)[0].1)[0].1;
                    let column = &name[..if name[5] == 2 { 9 } else { 10 }];
                    // Base 128, four digits, the high bit set in all but the last.
                    let index = [3u32, 2, 1, 0]
                        .map(|digit| (row >> (7 * digit)) as u8 & 0x7f | if digit > 0 { 0x80 } else { 0 });
                    pair(&[column, &index[..]].concat(), element(0x41, &[1]))
                })
                .collect(),
            _ => names.flat_map(|name| pair(name, element(4, b"endless"))).collect(),
        };
        let answer = [element(2, parts[0].1), element(2, &[0]), element(2, &[0]), element(0x30, &pairs)].concat();
        let head = [version, community].map(|(tag, content)| element(tag, content)).concat();
        let message = element(0x30, &[head, element(0xa2, &answer)].concat());
        socket.send_to(&message, asker).expect("answered");
    }
}

#[test]
fn a_table_without_end_is_an_error() {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = socket.local_addr().expect("an address");
    let device = std::thread::spawn(move || endless(&socket));
    let target = format!("snmp://public@{address}").parse().expect("a target");
    let error = block_on(Session::open(&target)).err().expect("it never ends");
    assert!(error.to_string().contains("more than 65536 rows"), "{error}");
    UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.send_to(&[], address)).expect("sent");
    device.join().expect("the device ended");
}
