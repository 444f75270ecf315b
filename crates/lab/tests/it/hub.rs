//! All ports of a hub share one medium, on which one frame travels at a time.
//!
//! What the medium carries is compared with what `linerate limits --half-duplex` calculates. A busy machine makes
//! senders late, so rates are those of the kernel's time stamps, of datagrams that all wait ahead of the hub; of TCP it
//! is the payload for each second of the medium that its frames used.

use crate::support::{agents_told, counters, host, socket, up, wait_for};
use linerate_lab::{HubPortCounts, Lab};
use linerate_model::{IpVersion, Layer, Medium, Stack, Transport};
use linerate_sys::socket::{force_receive_buffer, force_send_buffer};
use linerate_testsuite::{alone, lab_test, wait_until};
use linerate_units::BitRate;
use nix::cmsg_space;
use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;
use std::io::{IoSliceMut, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::thread;
use std::time::Duration;

const RATE: u64 = 10_000_000;
/// Largest deviation of a figure from its limit.
const WITHIN: f64 = 0.01;
/// Silence after which no more datagrams come.
const SILENCE: Duration = Duration::from_millis(500);

/// Payload bits per second that `linerate limits --half-duplex` gives for 10BASE-T.
fn limit(transport: Transport, message: u64, mtu: u32) -> f64 {
    let stack = Stack {
        half_duplex: true,
        mtu: Some(mtu),
        ip: IpVersion::V4,
        ..Stack::on(Medium::Ethernet(BitRate::per_second(RATE)))
    };
    stack.carried(transport, message).expect("fits").rate(Layer::Payload).get() as f64
}

fn hub(fields: &str, hosts: usize, mtu: u32) -> Lab {
    let hosts = ["'a'", "'b'", "'c'", "'d'"][..hosts].join(", ");
    up(&format!("name = 'x'\nhosts = [{hosts}]\nlink = {{ mtu = {mtu} }}\n[device]\nkind = 'hub'\n{fields}"))
}

/// The counts of a port, once all that came from its host has left or was dropped.
fn counts(lab: &Lab, name: &str) -> HubPortCounts {
    wait_until("the hub has repeated all", || {
        let counts = lab.path_counts().expect("counts").expect("a hub");
        assert_eq!(counts.missed, 0, "the hub itself lost frames");
        let port = counts.from[&host(name)];
        (port.sent + port.queue_full + port.excessive_collisions == port.arrived).then_some(port)
    })
}

/// A socket that can hold all that a test sends or receives, and stamps what it receives.
fn deep(lab: &Lab, name: &str, address: &str) -> UdpSocket {
    let socket = socket(lab, name, address);
    force_send_buffer(socket.as_fd(), 64 << 20).expect("a send buffer");
    force_receive_buffer(socket.as_fd(), 64 << 20).expect("a receive buffer");
    setsockopt(&socket, ReceiveTimestampns, &true).expect("SO_TIMESTAMPNS");
    socket.set_read_timeout(Some(SILENCE)).expect("timeout");
    socket
}

/// Sends `count` datagrams of `bytes` bytes at once.
fn send(from: &UdpSocket, to: &UdpSocket, count: usize, bytes: usize) {
    let target = to.local_addr().expect("address");
    for _ in 0..count {
        assert_eq!(from.send_to(&vec![7; bytes], target).expect("send"), bytes);
    }
}

/// Receives `count` datagrams, or fewer if no more come. Returns when the kernel received each, in seconds.
fn stamps(socket: &UdpSocket, count: usize) -> Vec<f64> {
    let mut stamps = Vec::new();
    let mut datagram = [0; 2_048];
    let mut control = cmsg_space!(TimeSpec);
    while stamps.len() < count {
        let mut pieces = [IoSliceMut::new(&mut datagram)];
        let message = recvmsg::<()>(socket.as_raw_fd(), &mut pieces, Some(&mut control), MsgFlags::empty());
        let Ok(message) = message else { break };
        let stamp = message.cmsgs().expect("control messages").find_map(|control| match control {
            ControlMessageOwned::ScmTimestampns(time) => Some(Duration::from(time).as_secs_f64()),
            _ => None,
        });
        stamps.push(stamp.expect("SO_TIMESTAMPNS"));
    }
    stamps
}

/// Asserts that a figure deviates from its limit by no more than one percent.
fn is_near(what: &str, figure: f64, limit: f64) {
    let deviation = figure / limit - 1.0;
    eprintln!("{what}: {figure:.0} of {limit:.0} bit/s, {:+.3} %", 100.0 * deviation);
    assert!(deviation.abs() <= WITHIN, "{what}: {figure:.0} is not within 1 % of {limit:.0} bit/s");
}

#[lab_test]
fn udp_reaches_the_limit_of_a_half_duplex_medium() {
    const GROUP: usize = 50;
    let _alone = alone();
    let lab = hub("", 2, 1_500);
    let near = deep(&lab, "a", "198.18.0.1");
    let far = deep(&lab, "b", "198.18.0.2");
    for (bytes, groups) in [(64, 60), (512, 30), (1_472, 20)] {
        let count = groups * GROUP + 1;
        send(&near, &far, count, bytes);
        let received = stamps(&far, count);
        assert_eq!((received.len(), counts(&lab, "a").queue_full), (count, 0), "{bytes} bytes");
        // A pause of the machine is in a few groups only.
        let mut times: Vec<f64> = received.windows(GROUP + 1).step_by(GROUP).map(|all| all[GROUP] - all[0]).collect();
        times.sort_by(f64::total_cmp);
        let rate = (8 * bytes * GROUP) as f64 / times[times.len() / 2];
        is_near(&format!("UDP {bytes} bytes"), rate, limit(Transport::Udp, bytes as u64, 1_500));
    }
    wait_for(lab.down());
}

#[lab_test]
fn tcp_reaches_the_limit_that_counts_its_acknowledgements() {
    /// A receiver acknowledges the first segments one by one: they are not counted.
    const FIRST: usize = 256 << 10;
    const BYTES: usize = 2 << 20;
    let _alone = alone();
    for mtu in [1_280, 1_400, 1_500] {
        let lab = hub("", 2, mtu);
        let listener = lab.inside(&host("b"), || TcpListener::bind("198.18.0.2:0")).expect("inside").expect("bind");
        let target = listener.local_addr().expect("address");
        let mut sender = lab.inside(&host("a"), || TcpStream::connect(target)).expect("inside").expect("connect");
        let (mut receiver, _) = listener.accept().expect("accept");
        let mut exchange = |bytes: usize| {
            let mut received = vec![0; bytes];
            thread::scope(|scope| {
                let written = scope.spawn(|| sender.write_all(&vec![7; bytes]));
                receiver.read_exact(&mut received).expect("all");
                written.join().expect("a thread").expect("all is sent");
            });
        };
        exchange(FIRST);
        let before = ["a", "b"].map(|name| counts(&lab, name));
        exchange(BYTES);
        let after = ["a", "b"].map(|name| counts(&lab, name));
        let used: u64 = after.iter().zip(&before).map(|(now, then)| now.used.get() - then.used.get()).sum();
        let carried = 8.0 * BYTES as f64 / (used as f64 / 1e9);
        is_near(&format!("TCP at MTU {mtu}"), carried, limit(Transport::Tcp, BYTES as u64, mtu));
        wait_for(lab.down());
    }
}

#[lab_test]
fn both_directions_share_the_rate() {
    const COUNT: usize = 150;
    let _alone = alone();
    let lab = hub("", 2, 1_500);
    let near = deep(&lab, "a", "198.18.0.1");
    let far = deep(&lab, "b", "198.18.0.2");
    send(&near, &far, COUNT, 1_472);
    send(&far, &near, COUNT, 1_472);
    let mut received = stamps(&far, COUNT);
    received.extend(stamps(&near, COUNT));
    received.sort_by(f64::total_cmp);
    let [a, b] = ["a", "b"].map(|name| counts(&lab, name));
    assert_eq!((received.len(), a.queue_full + b.queue_full), (2 * COUNT, 0), "{a:?} {b:?}");
    assert_eq!((a.collisions, b.collisions), (0, 0));
    // The medium was never used by both: what came in the time took its own time on the wire. A frame may be 10 ms late.
    let time = received[received.len() - 1] - received[0] + 0.01;
    let least = (2 * COUNT - 1) as f64 * 8.0 * 1_538.0 / RATE as f64;
    assert!(time >= least, "{time} s for {least} s of frames");
    wait_for(lab.down());
}

#[lab_test]
fn every_port_hears_every_frame() {
    const COUNT: usize = 100;
    let _alone = alone();
    let lab = hub("", 3, 1_500);
    let near = deep(&lab, "a", "198.18.0.1");
    let far = deep(&lab, "b", "198.18.0.2");
    let before = counters(&lab, "c").rx_packets;
    send(&near, &far, COUNT, 1_000);
    assert_eq!(stamps(&far, COUNT).len(), COUNT);
    assert!(counters(&lab, "c").rx_packets >= before + COUNT as u64, "host c hears what a sends to b");
    wait_for(lab.down());
}

#[lab_test]
fn ports_that_send_at_once_collide_and_back_off() {
    const COUNT: usize = 150;
    let _alone = alone();
    let lab = hub("collisions = true\nseed = 7", 2, 1_500);
    let near = deep(&lab, "a", "198.18.0.1");
    let far = deep(&lab, "b", "198.18.0.2");
    send(&near, &far, COUNT, 1_472);
    send(&far, &near, COUNT, 1_472);
    let received = stamps(&far, COUNT).len() + stamps(&near, COUNT).len();
    let [a, b] = ["a", "b"].map(|name| counts(&lab, name));
    // A collision has two ports, and each counts it.
    assert!(a.collisions > 10 && a.collisions == b.collisions, "{a:?} {b:?}");
    let dropped = a.excessive_collisions + b.excessive_collisions + a.queue_full + b.queue_full;
    assert_eq!(received as u64 + dropped, 2 * COUNT as u64, "{a:?} {b:?}");
    wait_for(lab.down());
}

#[lab_test]
fn an_agent_is_told_that_its_link_is_half_duplex() {
    let _alone = alone();
    let lab = hub("rate = '100Mbit/s'", 2, 1_500);
    for name in ["a", "b"] {
        let told = agents_told(&format!("--name {name} "));
        let words: Vec<_> = told.iter().map(|(_, words)| words.as_str()).collect();
        let duplex = "--link-speed eth0=100000000bit/s --link-duplex eth0=half";
        assert!(words.iter().any(|words| words.ends_with(duplex)), "{words:?}");
    }
    wait_for(lab.down());
}
