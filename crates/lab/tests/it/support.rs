//! A bench for a test, and what the machine looks like from outside.
use linerate_lab::{Bench, Lab, LabError, LabOptions};
use linerate_model::HostName;
use linerate_sys::interface::LinkCounters;
use linerate_sys::netlink::Route;
use linerate_testsuite::wait_until;
use std::fs;
use std::future::Future;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::time::Duration;

/// The example program `bench`, which cargo builds with the tests.
pub(crate) fn bench_program() -> PathBuf {
    example("bench")
}

/// The example program `agent`: a fake agent that can also be a path.
pub(crate) fn fake_agent() -> PathBuf {
    example("agent")
}

fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("this program");
    test.parent().and_then(|deps| deps.parent()).expect("target/PROFILE/deps").join("examples").join(name)
}

pub(crate) fn wait_for<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(work)
}

pub(crate) fn up(text: &str) -> Lab {
    let bench = Bench::parse(text, "test").expect("a bench");
    try_up(&bench).expect("a lab")
}

pub(crate) fn try_up(bench: &Bench) -> Result<Lab, LabError> {
    wait_for(Lab::up(bench, &LabOptions { program: fake_agent(), keep: false, folders: Vec::new() }))
}

pub(crate) fn host(name: &str) -> HostName {
    HostName::from(name)
}

/// A socket in a host, at one of its addresses.
pub(crate) fn socket(lab: &Lab, name: &str, address: &str) -> UdpSocket {
    let address: IpAddr = address.parse().expect("an address");
    let socket = lab.inside(&host(name), || UdpSocket::bind((address, 0))).expect("inside").expect("bind");
    socket.set_read_timeout(Some(Duration::from_secs(30))).expect("timeout");
    socket
}

/// Sends from one socket to the other and checks what comes.
pub(crate) fn reaches(from: &UdpSocket, to: &UdpSocket, bytes: usize) {
    let target: SocketAddr = to.local_addr().expect("address");
    assert_eq!(from.send_to(&vec![7; bytes], target).expect("send"), bytes);
    let mut buffer = vec![0; 65_536];
    let (length, sender) = to.recv_from(&mut buffer).unwrap_or_else(|error| panic!("{target}: {error}"));
    assert_eq!((length, sender), (bytes, from.local_addr().expect("address")));
}

/// Fake agents that run anywhere on this machine and were told `words`, with all their arguments. Those of a lab that
/// is up are all there: the process that says where an agent is has its arguments from its start to its end.
pub(crate) fn agents_told(words: &str) -> Vec<(u32, String)> {
    let numbers = fs::read_dir("/proc").expect("/proc").flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let name = fake_agent().file_name().expect("a name").to_owned();
    let told = |pid: u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).trim_end_matches('\0').replace('\0', " ");
        let (program, arguments) = line.split_once(' ')?;
        let is_agent = PathBuf::from(program).file_name() == Some(&name) && arguments.starts_with("serve ");
        (is_agent && arguments.contains(words)).then(|| (pid, arguments.to_owned()))
    };
    numbers.filter_map(told).collect()
}

/// What the one agent was told whose command line has `words` in it. That of a lab taken down before may end a little
/// later.
pub(crate) fn agent_told(words: &str) -> String {
    let one = || <[_; 1]>::try_from(agents_told(words)).ok();
    wait_until(&format!("one agent is told `{words}`"), one).map(|(_, told)| told).concat()
}

/// Packets for which the kernel's input queues had no room: those of this machine's cores, and the receive queue at the
/// far end of the link of host `from`. A link of a set rate gives each its turn, but a flood on a busy machine
/// overflows them.
pub(crate) fn queue_drops(lab: &Lab, from: &str) -> u64 {
    let softnet = fs::read_to_string("/proc/net/softnet_stat").expect("counters");
    // The second column of each core's line, in hexadecimal.
    let column = |line: &str| u64::from_str_radix(line.split_ascii_whitespace().nth(1)?, 16).ok();
    let of_cores: u64 = softnet.lines().map(|line| column(line).expect("a column of drops")).sum();
    // A virtual link counts what its far end does not take as dropped by the near one.
    of_cores + counters(lab, from).tx_dropped
}

/// The counters of a host's data interface.
pub(crate) fn counters(lab: &Lab, name: &str) -> LinkCounters {
    let links = lab.inside(&host(name), || Route::open()?.links()).expect("inside").expect("links");
    links.into_iter().find(|link| link.name == "eth0").expect("eth0").counters
}
