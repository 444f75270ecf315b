//! What works here. Each thing is tried, harmlessly, and what does not work says why and what would change that.

use crate::proc::ProcFile;
use linerate_model::Capability;
use linerate_sys::bpf;
use linerate_sys::capability::CapabilitySet;
use linerate_sys::ethtool::Ethtool;
use linerate_sys::landlock;
use linerate_sys::namespace::NetNamespace;
use linerate_sys::netlink::Route;
use linerate_sys::seccomp;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::sendfile::sendfile;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socket, sockopt};
use socket2::{Domain, Socket, Type};
use std::fs::File;
use std::io::{self, Write as _};
use std::net::UdpSocket;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The socket buffer a fast path needs at high rates: 4 MiB hold 3 ms of 10 Gbit/s.
const LARGE_BUFFER: usize = 4 << 20;

/// Tries each thing that linerate can use. What a lab needs is tried once in a process, for it takes some 20 ms.
pub fn capabilities() -> Vec<Capability> {
    static LAB: OnceLock<Lab> = OnceLock::new();
    let lab = LAB.get_or_init(Lab::try_out).clone();
    vec![
        of("ipv6", "trials over IPv6", ipv6()),
        of("udp-segmentation-offload", "many datagrams sent by one call (UDP_SEGMENT)", udp_segmentation()),
        of("udp-receive-offload", "many datagrams received by one call (UDP_GRO)", udp_receive()),
        of("tcp-sendfile", "TCP sent from memory without a copy (sendfile from a memfd)", sendfile_from_memory()),
        of("large-socket-buffers", "UDP socket buffers of 4 MiB, which ride out short stalls", large_buffers()),
        of("busy-poll", "sockets that spin on the NIC's queue (SO_BUSY_POLL)", busy_poll()),
        of("host-counters", "CPU, interface, queue and socket counters of each trial", counters()),
        of("pressure-information", "stall times of CPU, storage and memory (PSI)", pressure()),
        of("hardware-timestamps", "packets stamped by the NIC's own clock", hardware_timestamps()),
        of("packet-sockets", "raw frames from and to an interface", packet_sockets()),
        of("bpf-programs", "programs of ours in the kernel's packet path (XDP)", bpf_programs()),
        of("network-namespaces", "hosts of a lab on this machine", lab.namespaces),
        of("virtual-links", "links and switches of a lab (veth, bridge)", lab.links),
        of("traffic-shaping", "lab links of a set rate (tbf)", lab.shaping),
        landlock(),
        system_call_filter(),
        held_capabilities(),
    ]
}

/// Result of a trial: the reason for a failure, and the remedy.
type Tried = Result<(), String>;

fn of(name: &str, purpose: &str, tried: Tried) -> Capability {
    let (available, text) = match tried {
        Ok(()) => (true, purpose.to_owned()),
        Err(why) => (false, format!("{purpose}: {why}")),
    };
    Capability { name: name.to_owned(), available, text }
}

/// Adds the remedy to an error.
fn or(remedy: &str) -> impl Fn(io::Error) -> String {
    move |error| format!("{error}; {remedy}")
}

fn ipv6() -> Tried {
    UdpSocket::bind("[::1]:0").map(drop).map_err(or("enable it: sysctl -w net.ipv6.conf.all.disable_ipv6=0"))
}

fn udp_segmentation() -> Tried {
    let socket = UdpSocket::bind("127.0.0.1:0").map_err(or("bring loopback up"))?;
    let set = setsockopt(&socket, sockopt::UdpGsoSegment, &1400);
    set.map_err(|error| or("it needs Linux 4.18; datagrams are sent singly instead")(error.into()))
}

fn udp_receive() -> Tried {
    let socket = UdpSocket::bind("127.0.0.1:0").map_err(or("bring loopback up"))?;
    let set = setsockopt(&socket, sockopt::UdpGroSegment, &true);
    set.map_err(|error| or("it needs Linux 5.0; datagrams are received singly instead")(error.into()))
}

fn sendfile_from_memory() -> Tried {
    let remedy = or("the kernel needs CONFIG_MEMFD_CREATE; TCP is sent with a copy instead");
    let memory = memfd_create(c"linerate-probe", MFdFlags::MFD_CLOEXEC).map_err(|error| remedy(error.into()))?;
    File::from(memory.try_clone().map_err(&remedy)?).write_all(b"probe").map_err(&remedy)?;
    let (to, _from) = UnixStream::pair().map_err(&remedy)?;
    match sendfile(&to, &memory, Some(&mut 0), 5) {
        Ok(5) => Ok(()),
        Ok(sent) => Err(remedy(io::Error::other(format!("sendfile took {sent} of 5 bytes")))),
        Err(error) => Err(remedy(error.into())),
    }
}

fn large_buffers() -> Tried {
    let remedy = or("raise the limit: sysctl -w net.core.rmem_max=4194304 net.core.wmem_max=4194304");
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).map_err(&remedy)?;
    // The first needs privilege, the second is bounded by rmem_max; the kernel shows twice what it granted.
    if setsockopt(&socket, sockopt::RcvBufForce, &LARGE_BUFFER).is_err() {
        socket.set_recv_buffer_size(LARGE_BUFFER).map_err(&remedy)?;
    }
    let granted = socket.recv_buffer_size().map_err(&remedy)? / 2;
    if granted >= LARGE_BUFFER {
        return Ok(());
    }
    Err(remedy(io::Error::other(format!("at most {granted} bytes are granted"))))
}

fn busy_poll() -> Tried {
    let remedy = or("sysctl -w net.core.busy_read=50, or CAP_NET_ADMIN (linerate serve --keep-net-admin)");
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).map_err(&remedy)?;
    socket.set_busy_poll(50).map_err(&remedy)
}

/// Names the sources of an observation that cannot be read.
fn counters() -> Tried {
    let mut missing: Vec<String> = ["/proc/stat", "/proc/thread-self/net/softnet_stat", "/proc/thread-self/net/snmp"]
        .into_iter()
        .filter(|path| ProcFile::open(path).read().is_none())
        .map(str::to_owned)
        .collect();
    let asked = Route::open().and_then(|mut route| {
        route.links()?;
        route.qdiscs()
    });
    missing.extend(asked.err().map(|error| error.to_string()));
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!("cannot read {}; mount /proc and allow netlink, or drops cannot be placed", missing.join(", ")))
}

fn pressure() -> Tried {
    let file = "/proc/pressure/cpu";
    match ProcFile::open(file).read() {
        Some(_) => Ok(()),
        None => Err(format!("{file} cannot be read; the kernel needs CONFIG_PSI, and psi=1 on its command line")),
    }
}

fn hardware_timestamps() -> Tried {
    let remedy = or("it needs a NIC and a driver with hardware time stamps (ethtool -T)");
    let other = |error: linerate_sys::Error| remedy(io::Error::other(error));
    let ethtool = Ethtool::open().map_err(other)?;
    let links = Route::open().and_then(|mut route| route.links()).map_err(other)?;
    let stamps = links.iter().any(|link| ethtool.stamps_in_hardware(&link.name).unwrap_or(false));
    if stamps { Ok(()) } else { Err(remedy(io::Error::other("no interface here has them"))) }
}

fn packet_sockets() -> Tried {
    let opened = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, None);
    opened
        .map(drop)
        .map_err(|error| or("run as root or with CAP_NET_RAW; an agent also needs --allow-frames")(error.into()))
}

fn bpf_programs() -> Tried {
    bpf::try_loading().map_err(|error| {
        or("run as root or with CAP_BPF and CAP_NET_ADMIN; an agent also needs --allow-frames")(io::Error::other(error))
    })
}

/// Whether an agent's files can be confined, and are.
fn landlock() -> Capability {
    const PURPOSE: &str = "agents that reach allowed folders only, and start no programs (Landlock)";
    let Some(version) = landlock::version() else {
        let why = "this kernel has none; it needs Linux 5.13, and landlock in `lsm=` on its command line";
        return of("landlock", PURPOSE, Err(why.to_owned()));
    };
    of("landlock", &format!("{PURPOSE}: version {version}, {}", in_force(landlock::in_force().is_some())), Ok(()))
}

/// Whether an agent's system calls can be filtered, and are.
fn system_call_filter() -> Capability {
    const PURPOSE: &str = "agents that make only system calls they need (seccomp)";
    let Some(filters) = seccomp::filters() else {
        let why = "this kernel tells of no filters; it needs Linux 5.9 and CONFIG_SECCOMP_FILTER";
        return of("system-call-filter", PURPOSE, Err(why.to_owned()));
    };
    of("system-call-filter", &format!("{PURPOSE}: {}", in_force(filters > 0)), Ok(()))
}

/// Reports the privileges that could be misused.
fn held_capabilities() -> Capability {
    let purpose = "agents that keep only capabilities their options need";
    match CapabilitySet::held() {
        Ok(held) => of("least-privilege", &format!("{purpose}: this process has {held}"), Ok(())),
        Err(error) => of("least-privilege", purpose, Err(format!("{error}; is /proc mounted, and capget(2) allowed?"))),
    }
}

fn in_force(here: bool) -> &'static str {
    if here { "in force" } else { "not in force in this process" }
}

/// Needs of a lab, tried in a network namespace of its own.
#[derive(Clone)]
struct Lab {
    namespaces: Tried,
    links: Tried,
    shaping: Tried,
}

impl Lab {
    fn try_out() -> Self {
        let made = NetNamespace::new();
        match made.and_then(|namespace| namespace.enter(|| (lab_links(), lab_shaping()))) {
            Ok((links, shaping)) => Self { namespaces: Ok(()), links, shaping },
            Err(_) => Self::try_out_as_user(),
        }
    }

    /// Without privilege a user namespace gives it. A process of many threads cannot enter one, so that a program does.
    fn try_out_as_user() -> Self {
        Self {
            namespaces: in_user_namespace(&["true"]),
            links: in_user_namespace(&["ip", "link", "add", "type", "veth"])
                .and_then(|()| in_user_namespace(&["ip", "link", "add", "type", "bridge"])),
            shaping: in_user_namespace(&[
                "tc", "qdisc", "add", "dev", "lo", "root", "tbf", "rate", "100mbit", "burst", "10k", "limit", "10k",
            ]),
        }
    }
}

fn lab_links() -> Tried {
    for kind in ["veth", "bridge"] {
        // The namespace is nobody else's, so that the kind can be the name.
        let made = Route::open().and_then(|mut route| route.add_link(kind, kind));
        made.map_err(|error| format!("{error}; the kernel needs this kind of link: modprobe {kind}"))?;
    }
    Ok(())
}

fn lab_shaping() -> Tried {
    const LOOPBACK: u32 = 1;
    match Route::open().and_then(|mut route| route.add_qdisc("tbf", LOOPBACK)) {
        // Known, and asks for its settings.
        Err(error) if error.source.kind() == io::ErrorKind::InvalidInput => Ok(()),
        Err(error) => Err(format!("{error}; the kernel needs CONFIG_NET_SCH_TBF: modprobe sch_tbf")),
        Ok(()) => Ok(()),
    }
}

/// Runs `command` in new user and network namespaces.
fn in_user_namespace(command: &[&str]) -> Tried {
    let remedy = "run as root, or allow user namespaces: sysctl -w user.max_user_namespaces=10000 \
        (Ubuntu: kernel.apparmor_restrict_unprivileged_userns=0; older Debian: kernel.unprivileged_userns_clone=1)";
    // System programs are not in an ordinary user's path everywhere.
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let output = Command::new("unshare")
        .env("PATH", path)
        .args(["--map-root-user", "--net", "--"])
        .args(command)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run unshare (of util-linux): {error}; {remedy}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{}: {}; {remedy}", command[0], said.lines().next().unwrap_or("failed").trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_says_why_and_what_would_help() {
        let all = capabilities();
        for capability in &all {
            assert!(capability.available || capability.text.contains("; "), "{capability:?}");
        }
        let mut names: Vec<_> = all.iter().map(|capability| &capability.name).collect();
        names.dedup();
        assert_eq!(names.len(), 17);
        // Every kernel that this program runs on has this.
        assert!(all.iter().any(|capability| capability.name == "host-counters" && capability.available), "{all:?}");
    }

    #[test]
    fn trying_leaves_no_link_and_no_discipline_behind() {
        let seen = || {
            let mut route = Route::open().expect("netlink");
            let names = route.links().expect("links").into_iter().map(|link| (link.name, link.qdisc));
            names.filter(|(name, _)| name == "veth" || name == "bridge" || name == "lo").collect::<Vec<_>>()
        };
        let before = seen();
        capabilities();
        assert_eq!(seen(), before);
    }
}
