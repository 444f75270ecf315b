//! Open vSwitch as the device of a lab.

use crate::endings::{Outside, Program, bench_command};
use crate::support::{host, reaches, socket, up, wait_for};
use linerate_lab::Lab;
use linerate_sys::process::ProcessId;
use linerate_testsuite::{alone, server_test, wait_until};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

const SWITCH: &str = "ovs-vswitchd";

/// Returns the programs of Open vSwitch below the process `ancestor`.
fn programs_below(ancestor: u32) -> Vec<(String, ProcessId)> {
    let mut programs = Vec::new();
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().to_owned();
        let is_ours = name.starts_with("ovs") && parent(pid).and_then(parent) == Some(ancestor);
        if let Some(process) = ProcessId::of(pid).filter(|_| is_ours) {
            programs.push((name, process));
        }
    }
    programs.sort_by(|(a, _), (b, _)| a.cmp(b));
    programs
}

/// Returns the parent of a process, or `None` if the process has ended.
fn parent(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

fn names(programs: &[(String, ProcessId)]) -> Vec<&str> {
    programs.iter().map(|(name, _)| name.as_str()).collect()
}

/// Sends `bytes` by TCP from host a to host b.
fn send_by_tcp(lab: &Lab, bytes: usize) {
    let listener = lab.inside(&host("b"), || TcpListener::bind("198.18.0.2:0")).expect("inside").expect("a listener");
    let address = listener.local_addr().expect("an address");
    let mut sender = lab
        .inside(&host("a"), || TcpStream::connect_timeout(&address, Duration::from_secs(30)))
        .expect("inside")
        .expect("a connection");
    let (mut receiver, _) = listener.accept().expect("a connection");
    receiver.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let receiving = std::thread::spawn(move || {
        let mut data = Vec::new();
        receiver.read_to_end(&mut data).map(|_| data.len())
    });
    sender.write_all(&vec![7; bytes]).expect("sent");
    drop(sender);
    assert_eq!(receiving.join().expect("it ends").expect("received"), bytes);
}

#[server_test(Root, Program("ovs-vswitchd"))]
fn hosts_reach_each_other_and_nothing_stays() {
    let _alone = alone();
    let before = Outside::now();
    let lab = up("name = 'x'\nhosts = ['a', 'b', 'c']\ndevice = { kind = 'open-vswitch' }");
    let programs = programs_below(std::process::id());
    assert_eq!(names(&programs), [SWITCH, "ovsdb-server"]);
    for (from, to) in [("198.18.0.1", "198.18.0.2"), ("2001:2::1", "2001:2::2")] {
        reaches(&socket(&lab, "a", from), &socket(&lab, "b", to), 1_400);
    }
    send_by_tcp(&lab, 10_000_000);
    let watch = lab.open_vswitch().expect("a switch");
    assert_eq!(watch.missed().expect("it runs"), None);
    wait_for(lab.down());
    assert!(programs.iter().all(|(_, process)| !process.lives()));
    assert_eq!(Outside::now(), before);
    let socket = Path::new("/run").join(format!("{SWITCH}.{}.ctl", programs[0].1.pid));
    assert!(!socket.exists(), "{socket:?} is outside the lab");
}

#[server_test(Root, Program("ovs-vswitchd"))]
fn a_program_killed_takes_its_switch_with_it() {
    let _alone = alone();
    let before = Outside::now();
    let folder = tempfile::tempdir().expect("a folder");
    let bench = folder.path().join("x.toml");
    fs::write(&bench, "name = 'x'\nhosts = ['a', 'b']\ndevice = { kind = 'open-vswitch' }").expect("written");
    let mut program = Program::start(&mut bench_command(folder.path()), &[bench.to_str().expect("a path")]);
    assert_eq!(program.line(), "up");
    let programs = programs_below(program.number());
    assert_eq!(names(&programs), [SWITCH, "ovsdb-server"]);
    program.kill();
    wait_until("the switch ends", || programs.iter().all(|(_, process)| !process.lives()).then_some(()));
    wait_until("the agents end", || (Outside::now() == before).then_some(()));
}

#[server_test(Root, Program("ovs-vswitchd"))]
fn a_switch_that_ended_is_reported() {
    let _alone = alone();
    let lab = up("name = 'x'\nhosts = ['a', 'b']\ndevice = { kind = 'open-vswitch' }");
    let watch = lab.open_vswitch().expect("a switch");
    assert_eq!(watch.missed().expect("it runs"), None);
    let programs = programs_below(std::process::id());
    assert_eq!(names(&programs), [SWITCH, "ovsdb-server"]);
    programs[0].1.end(Duration::ZERO).expect("ended");
    let error = wait_until("the switch is missed", || watch.missed().err()).to_string();
    assert!(error.contains("ovs-vswitchd ended early") && error.contains("last log line"), "{error}");
}
