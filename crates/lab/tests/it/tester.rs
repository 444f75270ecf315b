//! A device tester on each kind of device.

use crate::support::{agents_told, host, try_up, up, wait_for};
use linerate_lab::{Bench, DeviceKind, Lab};
use linerate_sys::ethtool::Ethtool;
use linerate_sys::netlink::Route;
use linerate_testsuite::{alone, lab_test, wait_until};
use std::net::IpAddr;

/// The tester's bench with another device.
fn tester_on(device: DeviceKind) -> Lab {
    try_up(&Bench::find("tester").expect("built in").with_device(device)).expect("a lab")
}

/// The tester's ports with their addresses; each is up, and takes raw frames.
fn ports(lab: &Lab) -> Vec<(String, Vec<IpAddr>)> {
    let look = || {
        let mut route = Route::open().expect("netlink");
        let ethtool = Ethtool::open().expect("ethtool");
        let addresses = route.addresses().expect("addresses");
        let links = route.links().expect("links");
        let ports = links.into_iter().filter(|link| !link.loopback).map(|link| {
            assert!(link.up, "{link:?}");
            assert_eq!(ethtool.features(&link.name).expect("features").get("rx-gro"), Some(&true), "{}", link.name);
            let own = addresses.iter().filter(|address| address.link == link.index).map(|address| address.address);
            (link.name, own.collect())
        });
        let mut ports: Vec<_> = ports.collect();
        ports.sort();
        ports
    };
    lab.inside(&host("tester"), look).expect("inside")
}

fn port(name: &str, v4: &str, v6: &str) -> (String, Vec<IpAddr>) {
    (name.to_owned(), vec![v4.parse().expect("IPv4"), v6.parse().expect("IPv6")])
}

#[lab_test]
fn its_ports_are_there_with_their_addresses() {
    let _alone = alone();
    for (device, expected) in [
        (
            DeviceKind::Bridge,
            vec![
                port("p0", "198.18.0.1", "2001:2::1"),
                port("p1", "198.18.0.2", "2001:2::2"),
                port("p2", "198.18.0.3", "2001:2::3"),
            ],
        ),
        (
            DeviceKind::Router,
            vec![
                port("p0", "198.19.0.2", "2001:2:0:1::2"),
                port("p1", "198.19.16.2", "2001:2:0:2::2"),
                port("p2", "198.19.32.2", "2001:2:0:3::2"),
            ],
        ),
        (DeviceKind::None, vec![port("p0", "198.18.0.1", "2001:2::1"), port("p1", "198.18.0.2", "2001:2::2")]),
    ] {
        let lab = tester_on(device);
        assert_eq!(ports(&lab), expected, "{device}");
        let names: Vec<_> = lab.hosts().keys().map(|host| host.0.as_str()).collect();
        let with_device: &[&str] = if device == DeviceKind::None { &["tester"] } else { &["device", "tester"] };
        assert_eq!(names, with_device, "{device}");
        wait_for(lab.down());
    }
}

#[lab_test]
fn its_agent_is_told_the_speed_of_each_port() {
    let _alone = alone();
    let lab = tester_on(DeviceKind::Bridge);
    let told = agents_told("--name tester");
    assert_eq!(told.len(), 1, "{told:?}");
    for words in ["--link-speed p0=10000000000bit/s", "--link-speed p2=10000000000bit/s", "--data-address 198.18.0.3"] {
        assert!(told[0].1.contains(words), "{told:?}");
    }
    wait_for(lab.down());
}

#[lab_test]
fn the_device_works_away_from_the_testers_core() {
    let _alone = alone();
    let cores = std::thread::available_parallelism().expect("cores").get();
    if cores < 2 {
        return linerate_testsuite::skip(module_path!(), "it needs two cores");
    }
    // The kernel names a thread by its interface, and the device has a port for each host. No other test names a host
    // so.
    let lab =
        up("name = 'x'\nhosts = ['left7', 'right7']\ntesters = ['left7', 'right7']\ndevice = { kind = 'bridge' }");
    let threads = |name: &str| {
        let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
        let allowed = entries.filter_map(|entry| {
            let comm = std::fs::read_to_string(entry.path().join("comm")).ok()?;
            let status = std::fs::read_to_string(entry.path().join("status")).ok()?;
            let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.trim().to_owned();
            comm.starts_with(name).then_some(allowed)
        });
        allowed.collect::<Vec<_>>()
    };
    let names = ["napi/port-left7-", "napi/port-right7-"];
    for name in names {
        assert_eq!(threads(name), [(cores - 1).to_string()], "{name}: one thread, on the last core");
    }
    wait_for(lab.down());
    // The kernel removes a namespace by a worker of its own, in its own time.
    wait_until("the device's threads end", || names.iter().all(|name| threads(name).is_empty()).then_some(()));
}
